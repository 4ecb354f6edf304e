r"""Eight pictures of a fit: the class, the annotator, the labels, and the basis of the verdict.

The effect of a column is an average over the rows with this column set to v (partial dependence):

.. math:: \bar s_j(v) = \frac1n \sum_i s(x_i \text{ with } x_{ij} = v) .
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayes_lepu.actions.groups import By, own_values, read_groups, shares_table
from bayes_lepu.actions.missed import (
    AS_NAMED,
    EXCHANGED,
    UNNAMED_LEVEL,
    count_positives,
    read_open,
    stream,
)
from bayes_lepu.data.formulas import is_group
from bayes_lepu.errors import DataError, ModelError
from bayes_lepu.links import Array
from bayes_lepu.model.parameters import Parameters, sigma_norm
from bayes_lepu.model.spec import RATE_WORDS
from bayes_lepu.plots.panels import (
    CLASS,
    DRAWS,
    GUIDE,
    LABEL,
    MAX_ROWS,
    PRIOR,
    PROPENSITY,
    enlarged,
    height,
    legend,
    mean_and_interval,
    new_panels,
    share_range,
    short,
    some_rows,
)
from bayes_lepu.result.summaries import mean_by_row, tail_probabilities
from bayes_lepu.suggestions import some
from bayes_lepu.verdict.class_prior import Role
from bayes_lepu.verdict.records import LIKELIHOOD_DROP

if TYPE_CHECKING:
    from arviz_plots import PlotCollection

    from bayes_lepu.fitted import Fit

MAX_PANELS = 12  # what a reader compares at a glance
GRID = 41  # points of a curve: smooth at the width of a panel
ROWS = 200  # rows over which a curve is averaged: exact to the width of its line
ORIENTATIONS = {AS_NAMED: ("as named", CLASS), EXCHANGED: ("t and s swapped", GUIDE)}
QUANTITIES = {
    "pi": ("class prior π", CLASS),
    "c": ("label frequency c", LABEL),
    **{name: (words, PROPENSITY) for name, words in RATE_WORDS.items()},
    "epsilon": ("rate of false marks ε", LABEL),
}

# The answer -----------------------------------------------------------------------------------


def plot_class_probability(fit: "Fit", *, backend: str | None = None) -> "PlotCollection":
    """P(y=1 | x) of the sorted rows, with P(l=1 | x) below it; the gap is the missed positives.

    Rows are sorted by the posterior mean of t and averaged in (at most 40) equal groups; dots are
    observed label rates. The area below the upper curve is the class prior π. Where positives are
    rare, only the rows that are most probably positive are drawn.
    """
    made, (panel,) = panels = new_panels(["class probability"], backend=backend)
    x, t, h, observed = ranked_groups(fit)
    panel.band(x, t, CLASS)
    panel.band(x, h, LABEL)
    panel.dots(x, observed, LABEL)
    ends = (float(x[0] - (x[-1] - x[0]) / 50), 1.0)
    panel.axes("share of rows, by P(y=1 | x)", "probability", across=ends, up=height(t[2]))
    legend(*panels, [("class t", CLASS), ("label h, observed rate", LABEL)])
    return made


def ranked_groups(fit: "Fit") -> tuple[Array, Array, Array, Array]:
    """Groups of rows sorted by t: rank, (mean, lower, upper) of t and of h, and label rate."""
    rows = some_rows(fit.data.n, MAX_ROWS)
    X, labels, draws = fit.data.X[rows], fit.data.l[rows], fit.draws.thin(DRAWS)
    t = draws.t(X)
    order = np.argsort(t.mean(axis=0), kind="stable")
    pi = float(t.mean())
    # Of a rare class the top of the ranking, in which nearly all positives are.
    start = int((1 - 10 * pi) * len(rows)) if pi < 0.1 else 0
    groups = min(40, max(1, (len(rows) - start) // 10))
    edges = np.linspace(start, len(rows), groups + 1).astype(int)

    def grouped(values: Array) -> Array:
        return np.add.reduceat(values[..., order], edges[:-1], axis=-1) / np.diff(edges)

    return (
        (edges[:-1] + edges[1:]) / 2 / len(rows),
        mean_and_interval(grouped(t)),
        mean_and_interval(grouped(draws.anybody(X, fit.data.shown[rows]))),
        grouped(labels.astype(float)),
    )


def plot_prior_posterior(
    fit: "Fit", *, var_names: Sequence[str] | None = None, backend: str | None = None
) -> "PlotCollection":
    """Posterior densities of π, c, γ and λ over their prior densities (grey).

    Parameters
    ----------
    fit : Fit
        A fit with draws.
    var_names : sequence of str, optional
        By default all that the model has: ``pi``, ``c``, its guess and lapse rates, ``epsilon``.
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
    made, each = panels = new_panels(names, dim="quantity", backend=backend)
    for panel, name in zip(each, names, strict=True):
        title, color = QUANTITIES[name]
        ends = share_range(pairs[name][1])
        for values, shade in zip(pairs[name], (PRIOR, color), strict=True):
            inside = values[(values >= ends[0]) & (values <= ends[1])]
            if np.ptp(values) == 0 or len(inside) < 20:
                continue  # fixed by the model, or almost no prior draw in the posterior's range
            # Reflected at the ends, where a kernel would otherwise fall off; Scott's rule, because
            # ArviZ's own bandwidth shows the noise of a thousand draws as bumps.
            x, density, _ = array_stats.kde(
                inside, grid_len=256, bw="scott", custom_lims=ends, bound_correction=True
            )
            density = density * (len(inside) / len(values))
            panel.band(x, np.stack([density, 0 * density, density]), shade)
        panel.axes(title, "density", across=ends)
    legend(*panels, [("posterior", QUANTITIES[names[0]][1]), ("prior", PRIOR)])
    return made


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
    fit: "Fit", *, by: By | None = None, backend: str | None = None
) -> "PlotCollection":
    """Share of positives in groups of rows: if the form is exact, and over alternative models.

    Thin lines: over the alternative models that fit the labels as well. Thick lines: if the form is
    exact. Green dots: the shares that are marked.

    Parameters
    ----------
    fit : Fit
    by : str, list of str, Series or array, optional
        Groups, as in ``fit.class_prior(by=...)``; by default quarters of P(y=1 | x).
    """
    if by is None:
        score = pd.Series(mean_by_row(fit.draws, Parameters.t, fit.data.X)).rank(method="first")
        by = (pd.qcut(score, 4, labels=False) + 1).rename("quarter of P(y=1 | x)").to_numpy()
    groups = read_groups(fit.data, by)
    table = shares_table(fit, fit.identifiability, groups)
    made, (panel,) = panels = new_panels(["groups"], backend=backend)
    x = np.arange(len(table), dtype=float)
    ends = table.reindex(columns=["low", "high", "lower", "upper"])
    for low, high, color, width in (("low", "high", PRIOR, 1.2), ("lower", "upper", CLASS, 3.0)):
        if ends[[low, high]].notna().all(axis=None):
            panel.bars(x, ends[low].to_numpy(), ends[high].to_numpy(), color, width=width)
    panel.dots(x, table["mean"].to_numpy(), CLASS, size=18)
    panel.dots(x, (table["marked"] / table["rows"]).to_numpy(), LABEL, size=14)
    panel.ticks(x, [short(str(name), 12) for name in table.index])
    across = (-0.5, len(x) - 0.5)
    panel.axes(short(groups.title), "share of positives", across=across, up=(0.0, 1.02))
    legend(*panels, [("positive", CLASS), ("over alternative models", PRIOR), ("marked", LABEL)])
    return made


def plot_ranking(fit: "Fit", *, backend: str | None = None) -> "PlotCollection":
    """Positives among the first k unlabelled rows, the most probable first, with their interval.

    Where the data do not show which factor is the class, also with t and s swapped, in grey.
    """
    made, (panel,) = panels = new_panels(["found"], backend=backend)
    curves = ranking_curves(fit)
    shown = [str(name) for name in curves["reading"].unique()]
    for name in reversed(shown):  # the reading as named on top
        part: pd.DataFrame = curves[curves["reading"] == name]
        y = part[["found", "found_lower", "found_upper"]].to_numpy().T
        panel.band(part["rows"].to_numpy(), y, ORIENTATIONS[name][1])
    panel.axes(
        "unlabelled rows reviewed, most probable first",
        "positives found",
        across=(0.0, float(curves["rows"].max())),
        up=(0.0, 1.05 * max(float(curves["found_upper"].max()), 1.0)),
    )
    if len(shown) > 1:
        legend(*panels, [ORIENTATIONS[name] for name in shown])
    return made


def ranking_curves(fit: "Fit") -> pd.DataFrame:
    """Positives among the first k unlabelled rows, for about 100 values of k.

    Per orientation and k (``rows``): ``found``, ``found_lower`` and ``found_upper``. Rows are
    ranked in the fitted orientation.
    """
    among, readings = read_open(fit, both=fit.identifiability.level >= UNNAMED_LEVEL)
    rng, parts = stream(fit), []
    order = np.argsort(-readings[0].mean, kind="stable")
    # Cuts of the ranking, closer together at its top, where decisions are made.
    cuts = np.unique(np.round(len(among) * np.linspace(0, 1, 101) ** 2).astype(int))
    for reading in readings:
        counts = count_positives(reading, order, cuts.tolist(), rng)
        expected, drawn = (np.cumsum(part, axis=1) for part in counts)
        lower, upper = np.quantile(drawn, tail_probabilities(), axis=0)
        found = {"found": expected.mean(axis=0), "found_lower": lower, "found_upper": upper}
        parts.append(pd.DataFrame({"reading": reading.name, "rows": cuts[1:], **found}))
    return pd.concat(parts, ignore_index=True)


# The annotator --------------------------------------------------------------------------------


def plot_propensity(
    fit: "Fit",
    *,
    features: Sequence[str] | None = None,
    show_class: bool = False,
    backend: str | None = None,
) -> "PlotCollection":
    """s(x) = P(l=1 | y=1, x) along each column, averaged over the rows, with its interval.

    Parameters
    ----------
    fit : Fit
    features : sequence of str, optional
        Columns to show; by default the (at most 12) columns s and t depend on most. Categories and
        columns of two values are drawn as bars, one per level.
    show_class : bool
        Draw the class probability t along the same columns, dashed.
    """
    if features is None:
        features = top_features(fit)
    known = list(fit.data.terms)
    if not features or not set(known).issuperset(features):
        raise DataError(
            f"Unknown column(s) {[f for f in features if f not in known]} in features; at least one"
            f" of {some(known)} is expected."
        )
    made, each = panels = new_panels(list(features), dim="feature", backend=backend)
    effects = [effect_of(fit, name) for name in features]
    times = enlarged(max(float(along.t.max()) for along in effects))
    for panel, name, along in zip(each, features, effects, strict=True):
        shown = [(along.s, PROPENSITY)]
        if show_class:
            shown.insert(0, (times * along.t, CLASS))
        for curve, color in shown:
            if along.levels:
                # Side by side, so that the bars of t and s do not hide each other.
                x = along.x + (0.08 if color == CLASS else -0.08) * show_class
                panel.bars(x, curve[1], curve[2], color, width=3.0)
                panel.dots(x, curve[0], color, size=26)
            else:
                panel.band(along.x, curve, color, dashed=color == CLASS)
        ends, across = along.x[[0, -1]], None
        if along.levels:
            ends = ends + np.array([-0.5, 0.5])
            across = (float(ends[0]), float(ends[1]))
            panel.ticks(along.x, along.levels)
        if fit.spec.shape_rates:
            for level in (float(fit.draws.gamma.mean()), 1 - float(fit.draws.lam.mean())):
                panel.line(ends, np.full(2, level), GUIDE, dashed=True, width=0.8)
        title = short(own_name(fit, name) or name)
        panel.axes(title, "probability", across=across, up=(0.0, 1.0))
    entries = [("propensity s", PROPENSITY)]
    of_class = "class t" if times == 1 else f"class t, {times} times as large"
    legend(*panels, [*entries, (of_class, CLASS)] if show_class else entries)
    return made


class Effect(NamedTuple):
    """s and t along one column of the user's, averaged over the rows."""

    x: Array  # values in the column's own units, or 0, 1, ... for levels
    s: Array  # mean, lower and upper at every value
    t: Array
    levels: tuple[str, ...] = ()  # names; empty for a column of numbers


def effect_of(fit: "Fit", name: str) -> Effect:
    """The effect of a column: a curve for numbers, a value per level for categories and flags."""
    own = own_values(fit.data, name, np.arange(fit.data.n))
    if own is None:
        raise DataError(f"{name!r} is of several columns, so it has no axis to be drawn along.")
    column = pd.Series(own[1]).dropna().sort_values()
    numbers = pd.api.types.is_numeric_dtype(column)
    low, high = column.quantile([0.005, 0.995]) if numbers else (0, 0)
    column = column.drop_duplicates()
    if curve := numbers and len(column) > 2:  # through values that there are
        grid = np.linspace(low, high, GRID)
        column = column.iloc[pd.Index(column).get_indexer(grid, method="nearest")]
        column = column.drop_duplicates()
    moved = _in_a_formula(fit, own[0], column) or _moved(fit, name, column.index)
    draws = fit.draws.thin(DRAWS).average()
    found = [(draws.s(X).mean(axis=-1), draws.t(X).mean(axis=-1)) for X in moved]
    s, t = (mean_and_interval(np.column_stack(each)) for each in zip(*found, strict=True))
    if curve:
        return Effect(column.to_numpy(), s, t)
    levels = [f"{value:.4g}" if numbers else str(value) for value in column]
    if is_group(name):  # in order; of many only the ends are named, others would lie on each other
        order = np.argsort(t[0] if np.ptp(t[0]) else s[0], kind="stable")
        s, t, levels = s[:, order], t[:, order], [levels[k] for k in order]
        if len(levels) > 12:
            levels = [levels[0], *[""] * (len(levels) - 2), levels[-1]]
    return Effect(np.arange(float(len(levels))), s, t, tuple(short(v, 12) for v in levels))


def _in_a_formula(fit: "Fit", name: str, column: pd.Series) -> Sequence[Array] | None:
    """Some rows with a column set to each of its values in all terms of the formulas.

    The user's table is recovered from the encoded rows, the column is changed, and the formulas are
    evaluated again. None if the table cannot be recovered.
    """
    data, rows = fit.data, some_rows(fit.data.n, ROWS)
    if data.encoding.design is None:
        return None
    terms = (own_values(data, term, rows) for term in data.terms)
    table = pd.DataFrame(dict(found for found in terms if found is not None))
    try:
        again = data.transform(table)[0]
    except DataError:  # a column that has no term of its own
        return None
    if not np.allclose(again, data.rated(data.cells(range(data.p), rows)), atol=1e-6):
        return None
    stacked = pd.concat([table.assign(**{name: value}) for value in column])
    return np.split(data.transform(stacked)[0], len(column))


def _moved(fit: "Fit", name: str, places: Iterable[int]) -> Iterator[Array]:
    """Some rows, with the term of a column set to its value in each row at these positions."""
    data = fit.data
    X, term = data.cells(range(data.p), some_rows(data.n, ROWS)), list(data.terms[name])
    for place in places:
        X[:, term] = data.cells(term, np.array([place]))
        yield data.rated(X)


def top_features(fit: "Fit", count: int = MAX_PANELS) -> list[str]:
    """The user's columns with the largest effects on s and t, relative to the sizes of the factors.

    With several terms of a column the largest counts; terms of several columns are left out.
    """
    share = np.zeros(fit.data.p)
    average = fit.draws.average()
    for slope in (average.a, average.alpha):
        mean = slope.mean(axis=0)
        size = float(sigma_norm(mean, fit.data.X))
        share += np.abs(mean * fit.data.column_moments[1]) / max(size, 1e-12)
    effects = {name: float(share[list(places)].max()) for name, places in fit.data.terms.items()}
    ranked = sorted(effects, key=lambda name: -effects[name])
    first = {own_name(fit, name): name for name in reversed(ranked)}
    return [name for name in ranked if name in first.values() and own_name(fit, name)][:count]


def own_name(fit: "Fit", term: str) -> str | None:
    """The user's column in a term; None for a term of several columns."""
    found = own_values(fit.data, term, np.arange(1))
    return None if found is None else found[0]


# The labels, and what is behind the verdict ---------------------------------------------------


def plot_label_rate(
    fit: "Fit", *, by: str | None = None, backend: str | None = None
) -> "PlotCollection":
    """Observed label rate in groups of rows, with the interval the model predicts for it.

    Parameters
    ----------
    fit : Fit
    by : str, optional
        Column whose values make the groups; by default tenths of the label probability h.
    """
    made, (panel,) = panels = new_panels(["label rate"], backend=backend)
    table = grouped_rates(fit, by)
    x, across = table["at"].to_numpy(), None
    panel.bars(x, table["lower"].to_numpy(), table["upper"].to_numpy(), PRIOR)
    panel.dots(x, table["predicted"].to_numpy(), PRIOR, size=10)
    panel.dots(x, table["observed"].to_numpy(), LABEL, size=18)
    if any(table["level"]):  # not an axis of numbers
        panel.ticks(x, [short(level, 12) for level in table["level"]])
        room = np.ptp(x[:2]) / 2 or 0.5
        across = (float(x[0] - room), float(x[-1] + room))
    up = height(table[["upper", "observed"]].to_numpy())
    panel.axes(short(str(table.index.name)), "share labelled", across=across, up=up)
    legend(*panels, [("observed", LABEL), ("predicted", PRIOR)])
    return made


def grouped_rates(fit: "Fit", by: str | None) -> pd.DataFrame:
    """Per group: place on the axis, level, size, observed and predicted rate with its interval."""
    rows = some_rows(fit.data.n, MAX_ROWS)
    draws, title = fit.draws.thin(DRAWS), "predicted label probability h"
    h = draws.anybody(fit.data.X[rows], fit.data.shown[rows])
    values = h.mean(axis=0)
    if by is not None:
        found = own_values(fit.data, by, rows)
        if found is None:
            raise DataError(f"Unknown column {by!r}; one of {some(list(fit.data.terms))}.")
        title, values = found
    group, x, levels = _groups(values)
    rng = np.random.default_rng([fit.options.random_seed, 5])
    # The one draw of a point estimate makes as many sets of labels as many draws would.
    replicated = rng.random((DRAWS if len(h) == 1 else len(h), len(rows))) < h
    records = []
    for g, level in enumerate(levels):
        here = group == g
        ends = np.quantile(replicated[:, here].mean(axis=1), tail_probabilities())
        means = fit.data.l[rows][here].mean(), h.mean(axis=0)[here].mean()
        records.append([x[here].mean(), level, int(here.sum()), *means, *ends])
    columns = ["at", "level", "rows", "observed", "predicted", "lower", "upper"]
    return pd.DataFrame(records, columns=columns).rename_axis(title)


def _groups(values: NDArray[Any]) -> tuple[NDArray[np.intp], Array, list[str]]:
    """Group of every row (-1 without a value), its place on the axis, and names of the groups.

    Groups are the values where at most ten are distinct, else tenths; numbers have no names.
    """
    group, distinct = pd.factorize(values, sort=True)
    if not pd.api.types.is_numeric_dtype(values):
        return group, group.astype(float), [str(level) for level in distinct]
    if len(distinct) > 10:
        edges = np.unique(np.nanquantile(values, np.linspace(0, 1, 11)[1:-1]))
        tenth = np.searchsorted(edges, values, side="right")
        group = pd.factorize(np.where(np.isnan(values), np.nan, tenth), sort=True)[0]
    flag = [f"{value:.4g}" for value in distinct] if len(distinct) == 2 else None
    return group, values, flag or [""] * (int(group.max()) + 1)


def plot_orientation(fit: "Fit", *, backend: str | None = None) -> "PlotCollection":
    """Sizes of t and s, as sd of their linear predictors, one dot per draw.

    Below the diagonal t is the steeper factor, as the paper assumes. If the cloud crosses the
    diagonal, this assumption does not identify the class. The large dot is the best mode.
    """
    if not fit.spec.has_selection:
        raise ModelError(f"In {fit.spec.name} s does not depend on x: there is one factor only.")
    made, (panel,) = new_panels(["orientation"], backend=backend)
    draws, best = fit.draws.thin(DRAWS).average(), fit.modes[0]
    t, s = (sigma_norm(slope, fit.data.X) for slope in (draws.a, draws.alpha))
    top = 1.1 * max(float(np.max(t)), float(np.max(s)), best.norm_a, best.norm_alpha)
    panel.line(np.array([0, top]), np.array([0, top]), GUIDE, dashed=True, width=1.0)
    panel.dots(t, s, CLASS, size=5)
    panel.dots(np.array([best.norm_a]), np.array([best.norm_alpha]), PROPENSITY, size=50)
    ends, names = (0.0, top), ("size of t: sd of a·x + b", "size of s: sd of α·x + β")
    panel.axes(*names, across=ends, up=ends)
    return made


def plot_profile(fit: "Fit", *, backend: str | None = None) -> "PlotCollection":
    """Profile log likelihood of the class prior π, relative to its maximum.

    The likelihood alone cannot exclude values of π above the dashed line (1.92). A flat top means
    that the labels do not identify the level of t. Grey: the same with t and s swapped.
    """
    evidence = fit.identifiability.evidence
    if evidence is None or evidence.profile is None:
        raise ModelError("The profile of this fit was not computed: it has too many coordinates.")
    made, (panel,) = new_panels(["profile"], backend=backend)
    table = evidence.profile
    for _, curve in table.groupby("curve", sort=False):
        color = GUIDE if curve["branch"].iloc[0] == Role.EXCHANGED else CLASS
        panel.line(curve["pi"].to_numpy(), curve["delta"].to_numpy(), color)
    lowest = -6.5  # three and a half standard deviations
    shown = table.loc[table["delta"] >= lowest, "pi"].to_numpy()
    level = np.full(2, -LIKELIHOOD_DROP)
    panel.line(np.array([0.0, 1.0]), level, GUIDE, dashed=True, width=1.0)
    across, up = share_range(shown), (lowest, 0.4)
    panel.axes("class prior π", "log likelihood below the best", across=across, up=up)
    return made
