r"""What the annotator responds to: the propensity along each column.

.. math:: \bar s_j(v) = \frac1n \sum_i s(x_i \text{ with } x_{ij} = v)

the propensity averaged over the rows with one column moved and the others left as they are.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from bayes_lepu.errors import DataError
from bayes_lepu.inference.orientation import sigma_norm
from bayes_lepu.links import Array, psychometric, sigmoid
from bayes_lepu.models.parameters import Parameters
from bayes_lepu.plots.panels import (
    CLASS,
    GUIDE,
    PROPENSITY,
    Panels,
    mean_and_interval,
    short,
    some_rows,
    thin,
)
from bayes_lepu.result import FittedModel
from bayes_lepu.result.summaries import CI_PROB, tail_probabilities

if TYPE_CHECKING:
    from arviz_plots import PlotCollection

MAX_PANELS = 12
GRID = 41
ROWS = 200


def plot_propensity(
    fit: FittedModel,
    *,
    features: Sequence[str] | None = None,
    show_class: bool = False,
    ci_prob: float = CI_PROB,
    plot_collection: "PlotCollection | None" = None,
    backend: str | None = None,
) -> "PlotCollection":
    """s(x) = P(l=1 | y=1, x) along each column, averaged over the other columns, with its band.

    Parameters
    ----------
    fit : Fit
    features : sequence of str, optional
        Columns to show; by default the (at most 12) columns s and t depend on most.
    show_class : bool
        Draw the class probability t along the same columns, dashed.
    ci_prob : float
        Probability of the equal-tailed band.
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
    for position, name in enumerate(names):
        j = fit.feature_names.index(name)
        x, s, t = partial_curves(fit, j, ci_prob=ci_prob)
        if show_class:
            panels.band(position, x, t, CLASS, dashed=True)
        panels.band(position, x, s, PROPENSITY)
        if fit.spec.n_weights == 2:
            floor, ceiling = float(fit.draws.gamma.mean()), 1 - float(fit.draws.lam.mean())
            for level in (floor, ceiling):
                panels.line(position, x[[0, -1]], np.full(2, level), GUIDE, dashed=True, width=0.8)
        panels.limits(position, y=(0.0, 1.0))
        panels.labels(position, x=short(name), y="probability")
    if plot_collection is None:
        entries = [("propensity s", PROPENSITY)]
        panels.legend([*entries, ("class t", CLASS)] if show_class else entries)
    return panels.collection


def partial_curves(
    fit: FittedModel, j: int, *, ci_prob: float = CI_PROB
) -> tuple[Array, Array, Array]:
    """Values of column j in its own units, and (mean, lower, upper) of s and of t along it."""
    data, draws = fit.data, thin(fit.draws)
    X = data.X[some_rows(data.n, ROWS)]
    low, high = np.quantile(data.X[:, j], [0.005, 0.995])
    grid = np.linspace(low, high, GRID)
    tails = tail_probabilities(ci_prob)
    s = _averaged(draws.omega(X), draws.alpha[:, j], X[:, j], grid, draws)
    t = _averaged(draws.tau(X), draws.a[:, j], X[:, j], grid, None)
    shown = grid * data.scale[j] + data.center[j]
    return shown, mean_and_interval(s, tails), mean_and_interval(t, tails)


def _averaged(
    predictor: Array, slope: Array, column: Array, grid: Array, weights: Parameters | None
) -> Array:
    """Mean over the rows with the column set to every value of the grid, ``(draws, grid)``."""
    rest = predictor - slope[:, None] * column
    out = np.empty((len(slope), len(grid)))
    for g, value in enumerate(grid):
        moved = rest + (slope * value)[:, None]
        if weights is None:
            out[:, g] = sigmoid(moved).mean(axis=1)
        else:
            out[:, g] = psychometric(moved, weights.log_w.T[..., None]).mean(axis=1)
    return out


def top_features(fit: FittedModel, count: int = MAX_PANELS) -> list[str]:
    """The columns with the largest slopes of s and t against the sizes of these factors."""
    share = np.zeros(fit.data.p)
    for slope in (fit.draws.a, fit.draws.alpha):
        mean = slope.mean(axis=0)
        size = float(sigma_norm(mean, fit.data.X))
        share += np.abs(mean * fit.data.X.std(axis=0)) / max(size, 1e-12)
    order = np.argsort(-share, kind="stable")[:count]
    return [fit.feature_names[j] for j in order]


def _known(fit: FittedModel, features: Sequence[str]) -> list[str]:
    unknown = [f for f in features if f not in fit.feature_names]
    if unknown or not features:
        raise DataError(
            f"Unknown column(s) {unknown} in features; at least one of "
            f"{', '.join(fit.feature_names[:10])} is expected."
        )
    return list(features)
