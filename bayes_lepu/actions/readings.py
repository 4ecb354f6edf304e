r"""The readings of a fit: P(y=1 | x, l=0) of rows, draw by draw, in both orientations.

Where the data do not say which factor is the class (level 3 or worse), every answer has a second
reading, with t and s swapped. A reading is the draws that belong to one orientation.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any, Concatenate
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayes_lepu.data.pu_data import PUData
from bayes_lepu.links import Array, RowKind
from bayes_lepu.model.parameters import Parameters, stack
from bayes_lepu.model.row_sums import row_terms
from bayes_lepu.result.summaries import RowFunction, mean_by_row, row_blocks, summary_by_row
from bayes_lepu.verdict.evidence import evidence_of
from bayes_lepu.verdict.naming import ENOUGH_DRAWS, exchanged_peak

if TYPE_CHECKING:
    from bayes_lepu.fitted import Fit

AS_NAMED = "as named"
EXCHANGED = "exchanged"
# Quantiles of 1000 draws are good to about a percentage point of probability; more cost time only.
MAX_DRAWS = 1000
UNNAMED_LEVEL = 3  # from this level on the data do not name the factors


@dataclass(frozen=True, eq=False)
class Reading:
    """The draws of one orientation, and the rows they are asked about.

    Attributes
    ----------
    name : {"as named", "exchanged"}
    draws : Parameters
        Along one axis.
    X : array
        The rows: on the internal scale, or whatever ``probability`` takes.
    probability : function of draws and rows
        P(y=1 | x, what the annotators left unlabelled).
    """

    name: str
    draws: Parameters
    X: NDArray[Any]
    probability: RowFunction = Parameters.missed

    @property
    def size(self) -> int:
        """Number of draws; 1 for a point estimate, which has no interval."""
        return int(self.draws.b.size)

    def missed(self, rows: NDArray[np.intp]) -> Array:
        """P(y=1 | x, l=0), ``(draws, rows)``."""
        return self.probability(self.draws, self.X[rows])

    @cached_property
    def mean(self) -> Array:
        """Posterior mean of P(y=1 | x, l=0) for every row."""
        return mean_by_row(self.draws, self.probability, self.X)

    def summary(
        self, rows: NDArray[np.intp], index: pd.Index, ci_prob: float | None = None
    ) -> pd.DataFrame:
        """Mean, lower and upper of P(y=1 | x, l=0) of some rows; the mean alone for a point."""
        return summary_by_row(self.draws, self.probability, self.X[rows], index, ci_prob)


def kept[**P, T](
    find: "Callable[Concatenate[Fit, P], T]",
) -> "Callable[Concatenate[Fit, P], T]":
    """Decorator: find once for a fit and these keywords; a fit does not change."""
    found: WeakKeyDictionary[Fit, dict[Any, T]] = WeakKeyDictionary()

    @wraps(find)
    def look_up(fit: "Fit", *args: P.args, **keywords: P.kwargs) -> T:
        own = found.setdefault(fit, {})
        key = args, tuple(sorted(keywords.items()))
        if key not in own:
            own[key] = find(fit, *args, **keywords)
        return own[key]

    return look_up


def open_rows(fit: "Fit") -> NDArray[np.intp]:
    """Positions of the unlabelled rows whose class nobody has checked."""
    return np.flatnonzero(fit.data.kind == RowKind.UNLABELLED)


def positive_given_labels(data: PUData) -> RowFunction:
    """P(y=1 | x, labels and audit) of the data's rows, by position: not shown is not missed."""

    def positive(draws: Parameters, rows: NDArray[Any]) -> Array:
        some = data.rows(rows)
        if draws.several:
            return row_terms(draws, some)[1]
        found = draws.missed(some.X)  # for all draws at once, unlike `row_terms`
        if (marked := some.l == 1).any():
            found[..., marked] = draws.positive_if_marked(some.X[marked])
        if (audited := ~np.isnan(some.y)).any():
            found[..., audited] = some.y[audited]
        return found

    return positive


@kept
def read_open(fit: "Fit", *, both: bool) -> tuple[NDArray[np.intp], tuple[Reading, ...]]:
    """The unlabelled rows of a fit, by position, and their readings."""
    rows = open_rows(fit)
    return rows, read(fit, rows, both=both, probability=positive_given_labels(fit.data))


def read(
    fit: "Fit",
    X: NDArray[Any],
    *,
    both: bool,
    probability: RowFunction = Parameters.missed,
) -> tuple[Reading, ...]:
    """The reading as named and, where ``both`` are asked for and there is one, the swapped.

    A symmetric likelihood gives every draw a mirror image. Elsewhere the draws are told apart by
    the side they fell on, and the best swapped answer stands in where these are too few.
    """

    def named(draws: Parameters, other: Parameters | None = None) -> tuple[Reading, ...]:
        own = Reading(AS_NAMED, draws.thin(MAX_DRAWS), X, probability)
        if other is None:
            return (own,)
        return own, Reading(EXCHANGED, other.thin(MAX_DRAWS), X, probability)

    if not both or not _has_exchange(fit):
        return named(fit.draws)
    evidence = evidence_of(fit if fit.data.in_memory else replace(fit, data=fit.data.held))
    if evidence.symmetric:
        draws = evidence.pivoted.take_flat()
        return named(draws, draws.swap())
    side = exchanged_draws(fit)
    own = fit.draws.take(~side) if (~side).any() else fit.draws
    if side.sum() >= ENOUGH_DRAWS:
        return named(own, fit.draws.take(side))
    if fit.data.is_sparse:
        points = [stack([mode.point]) for mode in fit.modes if mode.role == "swapped"]
        return named(own, points[0] if points else None)
    peak = exchanged_peak(evidence)
    if peak is None:
        return named(own)
    (mean, sd), point = fit.data.column_moments, peak.point  # from standardised columns
    a, alpha = (slope / np.maximum(sd, 1e-300) for slope in (point.a, point.alpha))
    moved = replace(point, a=a, alpha=alpha, b=point.b - a @ mean, beta=point.beta - alpha @ mean)
    return named(own, stack([moved]))


def exchanged_draws(fit: "Fit") -> NDArray[np.bool_]:
    """Which draws have the other orientation than the best mode has."""
    if "exchanged" in fit.stats:
        return np.asarray(fit.stats["exchanged"]).ravel() > 0.5
    X, draws, best = fit.data.X, fit.draws, fit.modes[0].point
    if not _has_exchange(fit) or fit.data.is_sparse:  # the latter a point, which is a mode itself
        return np.zeros(draws.b.size, dtype=bool)
    metric = np.cov(X.T, ddof=0).reshape(X.shape[1], -1)

    def distance(point: Parameters) -> Array:
        """Mean squared distance of both linear predictors from a point's, over the rows."""
        out = np.zeros(draws.b.size)
        for slope, level, a, b in (
            (draws.a, draws.b, point.a, point.b),
            (draws.alpha, draws.beta, point.alpha, point.beta),
        ):
            d = slope - a
            out += np.einsum("ki,ij,kj->k", d, metric, d) + (level - b + d @ X.mean(axis=0)) ** 2
        return out

    return distance(best.swap()) < distance(best)


def _has_exchange(fit: "Fit") -> bool:
    """One annotator with slopes: several have no single factor to swap with the class."""
    return fit.spec.has_selection and not fit.parameters.several


def weighted_sums(
    probability: RowFunction, draws: Parameters, rows: NDArray[Any], weight: Array
) -> tuple[Array, Array]:
    """Mean Σ w m and variance Σ w m (1 - m) of the number of positives, ``(draws, k)``.

    The weight has k columns, one for each set of rows.
    """
    mean, variance = np.zeros((2, draws.b.size, weight.shape[1]))
    for block in row_blocks(len(rows), draws.b.size):
        m, w = probability(draws, rows[block]), weight[block]
        mean += m @ w
        variance += (m * (1 - m)) @ w
    return mean, variance
