"""The answer: class probabilities, priors and posteriors of π, c, γ and λ, groups, the ranking."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayes_lepu.actions.groups import By, read_groups, shares_table
from bayes_lepu.actions.missed import (
    AS_NAMED,
    EXCHANGED,
    Reading,
    count_positives,
    kept,
    read_open,
    stream,
)
from bayes_lepu.errors import ModelError
from bayes_lepu.links import Array
from bayes_lepu.model.parameters import Parameters
from bayes_lepu.model.spec import RATE_WORDS
from bayes_lepu.plots.panels import (
    CLASS,
    DRAWS,
    GUIDE,
    LABEL,
    MAX_ROWS,
    PRIOR,
    PROPENSITY,
    Panels,
    height,
    mean_and_interval,
    share_range,
    short,
    some_rows,
)
from bayes_lepu.result.summaries import mean_by_row, tail_probabilities

if TYPE_CHECKING:
    from arviz_plots import PlotCollection

    from bayes_lepu.fitted import Fit

COLORS = {AS_NAMED: CLASS, EXCHANGED: GUIDE}
NAMES = {AS_NAMED: "as named", EXCHANGED: "t and s swapped"}

QUANTITIES = {
    "pi": ("class prior π", CLASS),
    "c": ("label frequency c", LABEL),
    **{name: (words, PROPENSITY) for name, words in RATE_WORDS.items()},
    "epsilon": ("rate of false marks ε", LABEL),
}


def plot_class_probability(
    fit: "Fit",
    *,
    ci_prob: float | None = None,
    plot_collection: "PlotCollection | None" = None,
    backend: str | None = None,
) -> "PlotCollection":
    """P(y=1 | x) of all rows in order, with P(l=1 | x) below it: the gap are missed positives.

    Rows are sorted by the posterior mean of t and averaged in (at most 40) equal groups; dots are
    observed label rates. The area below the upper curve is the class prior π. Where positives are
    rare, only the rows that are most probably positive are drawn.

    Returns
    -------
    PlotCollection
        One panel.
    """
    panels = Panels.of(["class probability"], plot_collection=plot_collection, backend=backend)
    x, t, h, observed = ranked_groups(fit, ci_prob=ci_prob)
    panels.band(0, x, t, CLASS)
    panels.band(0, x, h, LABEL)
    panels.dots(0, x, observed, LABEL)
    panels.limits(0, x=(float(x[0] - (x[-1] - x[0]) / 50), 1.0), y=height(t[2]))
    panels.labels(0, x="share of rows, by P(y=1 | x)", y="probability")
    panels.legend([("class t", CLASS), ("label h, observed rate", LABEL)])
    return panels.collection


def ranked_groups(fit: "Fit", *, ci_prob: float | None = None) -> tuple[Array, Array, Array, Array]:
    """Rank, (mean, lower, upper) of t and of h, and label rate in groups of rows sorted by t."""
    rows = some_rows(fit.data.n, MAX_ROWS)
    X, labels, draws = fit.data.X[rows], fit.data.l[rows], fit.draws.thin(DRAWS)
    t = draws.t(X)
    order = np.argsort(t.mean(axis=0), kind="stable")
    first = 0.0
    if (pi := float(t.mean())) < 0.1:
        first = 1 - 10 * pi  # the top of the ranking, in which nearly all positives are
    start = int(first * len(rows))
    groups = min(40, max(1, (len(rows) - start) // 10))
    edges = np.linspace(start, len(rows), groups + 1).astype(int)
    sizes = np.diff(edges)
    tails = tail_probabilities(ci_prob)

    def grouped(values: Array) -> Array:
        return np.add.reduceat(values[..., order], edges[:-1], axis=-1) / sizes

    centre = (edges[:-1] + edges[1:]) / 2 / len(rows)
    return (
        centre,
        mean_and_interval(grouped(t), tails),
        mean_and_interval(grouped(draws.anybody(X, fit.data.shown[rows])), tails),
        grouped(labels.astype(float)),
    )


def plot_prior_posterior(
    fit: "Fit",
    *,
    var_names: Sequence[str] | None = None,
    plot_collection: "PlotCollection | None" = None,
    backend: str | None = None,
) -> "PlotCollection":
    """Posterior densities of π, c, γ and λ over their priors (grey): what the data taught.

    Parameters
    ----------
    fit : Fit
        A fit with draws.
    var_names : sequence of str, optional
        By default all that the model has: ``pi``, ``c``, its guess and lapse rates, ``epsilon``.

    Returns
    -------
    PlotCollection
        One panel per quantity, dimension ``quantity``.
    """
    from arviz_stats.base import array_stats

    if fit.is_point:
        raise ModelError(
            "A point estimate has no posterior to compare with its prior. Use method='nuts'."
        )
    pairs = prior_and_posterior(fit)
    names = list(pairs) if var_names is None else list(var_names)
    unknown = sorted(set(names) - set(pairs))
    if unknown or not names:
        raise ModelError(f"Unknown quantities {unknown} in var_names. Known: {', '.join(pairs)}.")
    panels = Panels.of(names, dim="quantity", plot_collection=plot_collection, backend=backend)
    for position, name in enumerate(names):
        prior, posterior = pairs[name]
        title, color = QUANTITIES[name]
        for values, shade in ((prior, PRIOR), (posterior, color)):
            if np.ptp(values) == 0:
                continue  # naive and SPM fix some of these: a single value has no density
            ends = share_range(posterior)
            inside = values[(values >= ends[0]) & (values <= ends[1])]
            if len(inside) < 20:
                continue  # hardly a draw of the prior lies where the posterior is
            # Reflected at the ends, where a kernel would otherwise fall off; Scott's rule, because
            # ArviZ's own bandwidth shows the noise of a thousand draws as bumps.
            x, density, _ = array_stats.kde(
                inside, grid_len=256, bw="scott", custom_lims=ends, bound_correction=True
            )
            density = density * (len(inside) / len(values))
            panels.band(position, x, np.stack([density, 0 * density, density]), shade)
        panels.limits(position, x=share_range(posterior))
        panels.labels(position, x=title, y="density")
    panels.legend([("posterior", QUANTITIES[names[0]][1]), ("prior", PRIOR)])
    return panels.collection


def prior_and_posterior(fit: "Fit") -> dict[str, tuple[Array, Array]]:
    """Prior and posterior draws of π, c, and the guesses and lapses that are free."""
    prior, posterior = fit.prior_draws.average(), fit.draws.average()
    prior_pi, prior_c = fit.prior_pi_and_c
    pairs = {"pi": (prior_pi, fit.pi_draws), "c": (prior_c, fit.c_draws)}
    names = fit.spec.shape_rates
    before, after = prior.rates(names), posterior.rates(names)
    pairs |= {name: (before[name], after[name]) for name in names}
    if prior.epsilon is not None and posterior.epsilon is not None:
        pairs["epsilon"] = prior.epsilon, posterior.epsilon
    return pairs


def plot_groups(
    fit: "Fit",
    *,
    by: By | None = None,
    ci_prob: float | None = None,
    plot_collection: "PlotCollection | None" = None,
    backend: str | None = None,
) -> "PlotCollection":
    """Share of positives in groups of rows: if the form is exact, and over alternative models.

    Parameters
    ----------
    fit : Fit
    by : str, list of str, Series, array or function, optional
        Groups, as in ``fit.class_prior(by=...)``; by default quarters of P(y=1 | x).
    ci_prob : float, optional
        Probability of the intervals; ArviZ's ``stats.ci_prob`` by default.

    Returns
    -------
    PlotCollection
        One panel: thin lines over the alternative models that fit the labels as well, thick ones if
        the form is exact; green dots are the shares that are marked.
    """
    if by is None:
        score = pd.Series(mean_by_row(fit.draws, Parameters.t, fit.data.X)).rank(method="first")
        by = (pd.qcut(score, 4, labels=False) + 1).rename("quarter of P(y=1 | x)").to_numpy()
    groups = read_groups(fit.data, by)
    table = shares_table(fit, fit.identifiability, groups, ci_prob)
    panels = Panels.of(["groups"], plot_collection=plot_collection, backend=backend)
    x = np.arange(len(table), dtype=float)
    ends = table.reindex(columns=["low", "high", "lower", "upper"])
    for low, high, color, width in (("low", "high", PRIOR, 1.2), ("lower", "upper", CLASS, 3.0)):
        if ends[[low, high]].notna().all(axis=None):
            panels.bars(0, x, ends[low].to_numpy(), ends[high].to_numpy(), color, width=width)
    panels.dots(0, x, table["mean"].to_numpy(), CLASS, size=18)
    panels.dots(0, x, (table["marked"] / table["rows"]).to_numpy(), LABEL, size=14)
    panels.ticks(0, x, [short(str(name), 12) for name in table.index])
    panels.limits(0, x=(-0.5, len(x) - 0.5), y=(0.0, 1.02))
    panels.labels(0, x=short(groups.title), y="share of positives")
    panels.legend([("positive", CLASS), ("over alternative models", PRIOR), ("marked", LABEL)])
    return panels.collection


def plot_ranking(
    fit: "Fit",
    *,
    exchanged: bool = False,
    ci_prob: float | None = None,
    plot_collection: "PlotCollection | None" = None,
    backend: str | None = None,
) -> "PlotCollection":
    """Positives found in the first k unlabelled rows, the most probable first, with their band.

    Parameters
    ----------
    fit : Fit
    exchanged : bool
        Draw also what the same rows hold if the factors are exchanged, in grey.
    ci_prob : float, optional
        Probability of the equal-tailed band; ArviZ's ``stats.ci_prob`` by default.

    Returns
    -------
    PlotCollection
        One panel.
    """
    panels = Panels.of(["found"], plot_collection=plot_collection, backend=backend)
    curves = ranking_curves(fit, ci_prob=ci_prob, both=exchanged)
    shown = [str(name) for name in curves["reading"].unique()]
    for name in reversed(shown):  # the reading as named on top
        part: pd.DataFrame = curves[curves["reading"] == name]
        y = part[["found", "found_lower", "found_upper"]].to_numpy().T
        panels.band(0, part["rows"].to_numpy(), y, COLORS[name])
    found = max(float(curves["found_upper"].max()), 1.0)
    panels.limits(0, x=(0.0, float(curves["rows"].max())), y=(0.0, 1.05 * found))
    x_label = "unlabelled rows reviewed, most probable first"
    panels.labels(0, x=x_label, y="positives found")
    if len(shown) > 1:
        panels.legend([(NAMES[name], COLORS[name]) for name in shown])
    return panels.collection


@kept
def ranking_curves(fit: "Fit", *, ci_prob: float | None = None, both: bool) -> pd.DataFrame:
    """What is found by looking at the first k unlabelled rows, for about 100 values of k.

    Returns
    -------
    DataFrame
        Per reading and k (``rows``): ``found``, ``found_lower`` and ``found_upper``. Rows are
        ranked by the reading as named.
    """
    among, readings = read_open(fit, both=both)
    rng = stream(fit)
    order = np.argsort(-readings[0].mean, kind="stable")
    # Cuts of the ranking, closer together at its top, where decisions are made.
    cuts = np.unique(np.round(len(among) * np.linspace(0, 1, 101) ** 2).astype(int))
    edges = [int(k) for k in cuts]
    parts = [_along(reading, order, edges, ci_prob, rng) for reading in readings]
    return pd.concat(parts, ignore_index=True)


def _along(
    reading: Reading,
    order: NDArray[np.intp],
    edges: list[int],
    ci_prob: float | None,
    rng: np.random.Generator,
) -> pd.DataFrame:
    expected, drawn = (
        np.cumsum(counts, axis=1) for counts in count_positives(reading, order, edges, rng)
    )
    lower, upper = np.quantile(drawn, tail_probabilities(ci_prob), axis=0)
    found = {"found": expected.mean(axis=0), "found_lower": lower, "found_upper": upper}
    return pd.DataFrame({"reading": reading.name, "rows": edges[1:], **found})
