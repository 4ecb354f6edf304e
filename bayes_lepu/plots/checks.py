"""Pictures behind the verdict: label rates, sizes of the two factors, the profile of π."""

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayes_lepu.data.formulas import inverse_of
from bayes_lepu.errors import DataError, ModelError
from bayes_lepu.links import Array
from bayes_lepu.model.parameters import sigma_norm
from bayes_lepu.plots.panels import (
    CLASS,
    DRAWS,
    GUIDE,
    LABEL,
    MAX_ROWS,
    PRIOR,
    PROPENSITY,
    Panels,
    share_range,
    short,
    some_rows,
)
from bayes_lepu.result.summaries import tail_probabilities
from bayes_lepu.verdict.peaks import Role
from bayes_lepu.verdict.records import LIKELIHOOD_DROP

if TYPE_CHECKING:
    from arviz_plots import PlotCollection

    from bayes_lepu.fitted import Fit


def plot_label_rate(
    fit: "Fit",
    *,
    by: str | None = None,
    ci_prob: float | None = None,
    plot_collection: "PlotCollection | None" = None,
    backend: str | None = None,
) -> "PlotCollection":
    """Observed label rate in groups of rows, with the interval the model predicts for it.

    Parameters
    ----------
    fit : Fit
    by : str, optional
        Column whose values make the groups; by default tenths of the label probability h.
    ci_prob : float, optional
        Probability of the predictive interval; ArviZ's ``stats.ci_prob`` by default.

    Returns
    -------
    PlotCollection
        One panel.
    """
    panels = Panels.of(["label rate"], plot_collection=plot_collection, backend=backend)
    table = grouped_rates(fit, by=by, ci_prob=ci_prob)
    x = table["at"].to_numpy()
    panels.bars(0, x, table["lower"].to_numpy(), table["upper"].to_numpy(), PRIOR)
    panels.dots(0, x, table["predicted"].to_numpy(), PRIOR, size=10)
    panels.dots(0, x, table["observed"].to_numpy(), LABEL, size=18)
    axis = "predicted label probability h"
    name = axis if by is None else short(inverse_of(fit.feature_names[_place(fit, by)])[0])
    top = max(1e-6, float(table[["upper", "observed"]].to_numpy().max()))
    panels.limits(0, y=(0.0, min(1.02, 1.15 * top)))
    if by is not None and len(x) == 2:  # a flag: its two values, not an axis of numbers
        panels.ticks(0, x, [f"{value:.4g}" for value in np.round(x, 10) + 0.0])
        panels.limits(0, x=(float(1.5 * x[0] - 0.5 * x[1]), float(1.5 * x[1] - 0.5 * x[0])))
    panels.labels(0, x=name, y="share labelled")
    panels.legend([("observed", LABEL), ("predicted", PRIOR)])
    return panels.collection


def grouped_rates(
    fit: "Fit", *, by: str | None = None, ci_prob: float | None = None
) -> pd.DataFrame:
    """Per group: size, place on the axis, observed rate, predicted rate and its interval."""
    rows = some_rows(fit.data.n, MAX_ROWS)
    X, labels = fit.data.X[rows], fit.data.l[rows].astype(float)
    draws = fit.draws.thin(DRAWS)
    h = draws.anybody(X, fit.data.shown[rows])
    score = h.mean(axis=0)
    along = score
    if by is not None:
        j = _place(fit, by)
        along = fit.data.cells([j], rows)[:, 0] * fit.data.scale[j] + fit.data.center[j]
        along = inverse_of(by)[1](along)
    group = _groups(along)
    rng = np.random.default_rng([fit.options.random_seed, 5])
    # The one draw of a point estimate makes as many sets of labels as many draws would.
    replicated = rng.random((DRAWS if len(h) == 1 else len(h), len(rows))) < h
    records = []
    for g in range(group.max() + 1):
        here = group == g
        rates = replicated[:, here].mean(axis=1)
        lower, upper = np.quantile(rates, tail_probabilities(ci_prob))
        records.append(
            {
                "at": along[here].mean(),
                "rows": int(here.sum()),
                "observed": labels[here].mean(),
                "predicted": score[here].mean(),
                "lower": lower,
                "upper": upper,
            }
        )
    return pd.DataFrame(records)


def _place(fit: "Fit", name: str) -> int:
    """Where a column of numbers stands, or one of the user's that became a single one."""
    if name in fit.feature_names:
        return fit.feature_names.index(name)
    places = fit.data.terms.get(name, ())
    if len(places) != 1:
        raise DataError(f"Unknown column {name!r}; one of {', '.join(fit.feature_names[:10])}.")
    return int(places[0])


def _groups(values: Array) -> NDArray[np.intp]:
    """Group of every row: its value where at most ten are distinct, else its tenth."""
    distinct, index = np.unique(values, return_inverse=True)
    if len(distinct) <= 10:
        return index
    edges = np.unique(np.quantile(values, np.linspace(0, 1, 11)[1:-1]))
    _, group = np.unique(np.searchsorted(edges, values, side="right"), return_inverse=True)
    return group


def plot_orientation(
    fit: "Fit",
    *,
    plot_collection: "PlotCollection | None" = None,
    backend: str | None = None,
) -> "PlotCollection":
    """Sizes of t and s, as sd of their linear predictors, one dot per draw.

    Below the diagonal t is the steeper factor, which is what the paper assumes; a cloud across
    the diagonal leaves open which factor is the class. Larger dots
    are the modes found by the search.

    Returns
    -------
    PlotCollection
        One panel.
    """
    if not fit.spec.has_selection:
        raise ModelError(f"In {fit.spec.name} s does not depend on x: there is one factor only.")
    panels = Panels.of(["orientation"], plot_collection=plot_collection, backend=backend)
    draws = fit.draws.thin(DRAWS).average()
    t, s = (sigma_norm(slope, fit.data.X) for slope in (draws.a, draws.alpha))
    best = fit.modes[0]
    top = 1.1 * max(float(np.max(t)), float(np.max(s)), best.norm_a, best.norm_alpha)
    panels.line(0, np.array([0, top]), np.array([0, top]), GUIDE, dashed=True, width=1.0)
    panels.dots(0, t, s, CLASS, size=5)
    panels.dots(0, np.array([best.norm_a]), np.array([best.norm_alpha]), PROPENSITY, size=50)
    panels.limits(0, x=(0.0, top), y=(0.0, top))
    panels.labels(0, x="size of t: sd of a·x + b", y="size of s: sd of α·x + β")
    return panels.collection


def plot_profile(
    fit: "Fit",
    *,
    plot_collection: "PlotCollection | None" = None,
    backend: str | None = None,
) -> "PlotCollection":
    """Log likelihood of the class prior π, everything else at its best, below its maximum.

    Above the dashed line (1.92) lies what the likelihood alone cannot exclude; a flat top means
    that the level of t comes from elsewhere. Grey: the same with the factors exchanged.

    Returns
    -------
    PlotCollection
        One panel.
    """
    evidence = fit.identifiability.evidence
    if evidence is None or evidence.profile is None:
        raise ModelError("The profile of this fit was not computed: it has too many coordinates.")
    panels = Panels.of(["profile"], plot_collection=plot_collection, backend=backend)
    for _, curve in evidence.profile.table.groupby("curve", sort=False):
        color = GUIDE if curve["branch"].iloc[0] == Role.EXCHANGED else CLASS
        panels.line(0, curve["pi"].to_numpy(), curve["delta"].to_numpy(), color)
    level = np.full(2, -LIKELIHOOD_DROP)
    lowest = -6.5  # three and a half standard deviations
    table = evidence.profile.table
    shown = table.loc[table["delta"] >= lowest, "pi"].to_numpy()
    panels.line(0, np.array([0.0, 1.0]), level, GUIDE, dashed=True, width=1.0)
    panels.limits(0, x=share_range(shown), y=(lowest, 0.4))
    panels.labels(0, x="class prior π", y="log likelihood below the best")
    return panels.collection
