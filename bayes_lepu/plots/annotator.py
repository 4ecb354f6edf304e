r"""What the annotator responds to: the propensity along each column.

.. math:: \bar s_j(v) = \frac1n \sum_i s(x_i \text{ with } x_{ij} = v)

the propensity averaged over the rows with one column moved and the others left as they are.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from bayes_lepu.actions.groups import own_values
from bayes_lepu.actions.missed import kept
from bayes_lepu.data.formulas import inverse_of, is_group, spline_argument
from bayes_lepu.errors import DataError
from bayes_lepu.links import Array
from bayes_lepu.model.parameters import sigma_norm
from bayes_lepu.plots.panels import (
    CLASS,
    DRAWS,
    GUIDE,
    PROPENSITY,
    Panels,
    enlarged,
    mean_and_interval,
    short,
    some_rows,
)
from bayes_lepu.result.summaries import tail_probabilities
from bayes_lepu.verdict.forms import AS_WELL

if TYPE_CHECKING:
    from arviz_plots import PlotCollection

    from bayes_lepu.fitted import Fit

MAX_PANELS = 12  # what a reader compares at a glance
GRID = 41  # points of a curve: smooth at the width of a panel
ROWS = 200  # over which a curve is averaged: good to the width of its line


def plot_propensity(
    fit: "Fit",
    *,
    features: Sequence[str] | None = None,
    show_class: bool = False,
    ci_prob: float | None = None,
    plot_collection: "PlotCollection | None" = None,
    backend: str | None = None,
) -> "PlotCollection":
    """s(x) = P(l=1 | y=1, x) along each column, averaged over the other columns, with its band.

    Parameters
    ----------
    fit : Fit
    features : sequence of str, optional
        Columns to show; by default the (at most 12) columns s and t depend on most. Categories and
        columns of two values are drawn as bars, one per level.
    show_class : bool
        Draw the class probability t along the same columns, dashed.
    ci_prob : float, optional
        Probability of the equal-tailed band; ArviZ's ``stats.ci_prob`` by default.
    plot_collection : PlotCollection, optional
        Panels to draw on, one per feature.
    backend : {"matplotlib", "plotly", "bokeh"}, optional

    Returns
    -------
    PlotCollection
        One panel per column, dimension ``feature``.
    """
    names = top_features(fit) if features is None else _known(fit, features)
    panels = Panels.of(names, dim="feature", plot_collection=plot_collection, backend=backend)
    effects = [effect_of(fit, name, ci_prob=ci_prob) for name in names]
    times = enlarged(max(float(along.t.max()) for along in effects))
    for position, (name, along) in enumerate(zip(names, effects, strict=True)):
        shown = [(along.s, PROPENSITY)]
        if show_class:
            shown.insert(0, (times * along.t, CLASS))
        for curve, color in shown:
            if along.levels:
                # Side by side, so that the bars of t and s do not hide each other.
                x = along.x + (0.08 if color == CLASS else -0.08) * show_class
                panels.bars(position, x, curve[1], curve[2], color, width=3.0)
                panels.dots(position, x, curve[0], color, size=26)
            else:
                panels.band(position, along.x, curve, color, dashed=color == CLASS)
        ends = along.x[[0, -1]]
        if along.levels:
            ends = ends + np.array([-0.5, 0.5])
            panels.ticks(position, along.x, along.levels)
            panels.limits(position, x=(float(ends[0]), float(ends[1])))
        if fit.spec.shape_rates:
            for level in (float(fit.draws.gamma.mean()), 1 - float(fit.draws.lam.mean())):
                panels.line(position, ends, np.full(2, level), GUIDE, dashed=True, width=0.8)
        panels.limits(position, y=(0.0, 1.0))
        panels.labels(position, x=short(own_name(fit, name) or name), y="probability")
    entries = [("propensity s", PROPENSITY)]
    of_class = "class t" if times == 1 else f"class t, {times} times as large"
    panels.legend([*entries, (of_class, CLASS)] if show_class else entries)
    return panels.collection


def plot_sensitivity(
    fit: "Fit",
    *,
    plot_collection: "PlotCollection | None" = None,
    backend: str | None = None,
) -> "PlotCollection":
    """The class prior π over S, how much the annotator may vary: `Fit.sensitivity` as a curve.

    Large dots are the values of S that fit these labels within 4 log-likelihood units of the best
    one, small grey dots those that fit them worse. Dashed: the range of π that the verdict prints.

    Returns
    -------
    PlotCollection
        One panel.
    """
    table = sensitivity_of(fit)
    x, pi = table.index.to_numpy(), table["class_prior"].to_numpy()
    panels = Panels.of(["sensitivity"], plot_collection=plot_collection, backend=backend)
    panels.line(0, x, pi, CLASS)
    as_well = (table["behind"] <= AS_WELL).to_numpy()
    panels.dots(0, x[~as_well], pi[~as_well], GUIDE, size=10)
    panels.dots(0, x[as_well], pi[as_well], CLASS, size=30)
    ends = fit.identifiability.pi_range or ()
    for end in ends:
        panels.line(0, x[[0, -1]], np.full(2, end), GUIDE, dashed=True, width=1.0)
    panels.limits(0, y=(0.0, min(1.0, 1.15 * max([float(pi.max()), *ends]))))
    panels.labels(0, x="S: how much the annotator may vary", y="class prior π")
    return panels.collection


@kept
def sensitivity_of(fit: "Fit") -> pd.DataFrame:
    """The table behind the curve, found once for a fit."""
    return fit.sensitivity()


@dataclass(frozen=True, eq=False)
class Effect:
    """s and t along one column of the user's, averaged over the rows.

    Attributes
    ----------
    x : array
        Values in the column's own units, or 0, 1, ... for levels.
    s, t : (3, len(x)) arrays
        Mean, lower and upper.
    levels : tuple of str
        Names of the levels; empty for a column of numbers.
    """

    x: Array
    s: Array
    t: Array
    levels: tuple[str, ...] = ()


def effect_of(fit: "Fit", name: str, *, ci_prob: float | None = None) -> Effect:
    """The effect of a column: a curve for numbers, a value per level for categories and flags."""
    data = fit.data
    places = list(data.terms.get(name) or (fit.feature_names.index(name),))
    values, x, levels = _settings(fit, name, places)
    tails = tail_probabilities(ci_prob)
    draws, X = fit.draws.thin(DRAWS).average(), data.cells(range(data.p), some_rows(data.n, ROWS))
    s, t = np.empty((2, draws.b.size, len(values)))
    for g, value in enumerate(values):
        X[:, places] = value
        X = data.rated(X)
        s[:, g], t[:, g] = draws.s(X).mean(axis=-1), draws.t(X).mean(axis=-1)
    return Effect(x, mean_and_interval(s, tails), mean_and_interval(t, tails), levels)


def _settings(fit: "Fit", name: str, places: list[int]) -> tuple[Array, Array, tuple[str, ...]]:
    """Values on the internal scale to move the columns to, their place on the axis, and names."""
    data, design = fit.data, fit.data.encoding.design
    center, scale = data.center[places], data.scale[places]
    if is_group(name):
        return _group_settings(fit, name, places)
    if design is not None and (curve := design.curve(name, GRID)) is not None:
        _, inverse = inverse_of((spline_argument(name) or (name,))[0])
        return (curve[1] - center) / scale, inverse(curve[0]), ()
    column = next((c for c in data.encoding.columns if c.name == name), None)
    if column is not None and column.levels is not None and len(column.names) == len(places):
        raw = np.vstack([np.zeros(len(places)), np.eye(len(places))])
        levels = tuple(short(level, 12) for level in column.levels)
        return (raw - center) / scale, np.arange(len(raw), dtype=float), levels
    j = places[0]  # of a column with an indicator of missing cells, the values
    columns = data.cells(places)
    distinct = np.unique(columns[:, 0])
    if len(distinct) == 2:
        raw_values = distinct * data.scale[j] + data.center[j]
        values = np.tile(columns.mean(axis=0), (2, 1))
        values[:, 0] = distinct
        return values, np.arange(2.0), tuple(f"{v:.4g}" for v in np.round(raw_values, 10) + 0.0)
    low, high = np.quantile(columns[:, 0], [0.005, 0.995])
    grid = np.linspace(low, high, GRID)
    values = np.tile(columns.mean(axis=0), (GRID, 1))
    values[:, 0] = grid
    return values, inverse_of(name)[1](grid * data.scale[j] + data.center[j]), ()


def _group_settings(
    fit: "Fit", name: str, places: list[int]
) -> tuple[Array, Array, tuple[str, ...]]:
    """One setting per group, in the order of their intercepts; of many only the ends are named."""
    data, draws = fit.data, fit.draws.average()
    slope = draws.a if data.class_mask[places].any() else draws.alpha
    order = np.argsort(slope[:, places].mean(axis=0), kind="stable")
    raw = np.eye(len(places))[order]
    levels = [short(data.feature_names[places[k]].split("=", 1)[1], 12) for k in order]
    if len(levels) > 12:  # names would lie over each other
        levels[1:-1] = [""] * (len(levels) - 2)
    x = np.arange(len(places), dtype=float)
    return (raw - data.center[places]) / data.scale[places], x, tuple(levels)


def top_features(fit: "Fit", count: int = MAX_PANELS) -> list[str]:
    """The user's columns with the largest effects on s and t against the sizes of these factors.

    Of several terms of one column that with the largest; terms of several columns have no axis.
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
    """The user's column that a term is of; None where it is of several."""
    found = own_values(fit.data, term, np.arange(1))
    return None if found is None else found[0]


def _known(fit: "Fit", features: Sequence[str]) -> list[str]:
    known = {*fit.data.terms, *fit.feature_names}
    unknown = [f for f in features if f not in known]
    if unknown or not features:
        raise DataError(
            f"Unknown column(s) {unknown} in features; at least one of "
            f"{', '.join(list(fit.data.terms)[:10])} is expected."
        )
    return list(features)
