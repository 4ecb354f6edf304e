r"""P(y=1 | x, l=0) of rows, draw by draw and in both orientations, and how many are positive.

.. math:: N_R \mid \theta = \sum_{i \in R} y_i, \qquad
    y_i \sim \mathrm{Bernoulli}(m_i(\theta)), \quad m_i = P(y=1 \mid x_i, l_i = 0)

Every interval includes two uncertainties: that of θ, and the random class of every row given θ. A
row of weight w counts like w rows: w m on average, with variance w m (1 - m). ``edges`` cut the
ordered rows into segments; counts are ``(draws, segments)``.

Where the data do not show which factor is the class (level 3 or worse), every answer is given for
both orientations: as fitted, and with t and s swapped. A `Reading` has the draws of one of them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, wraps
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit, logit

from bayes_lepu.data.pu_data import PUData
from bayes_lepu.data.weights import evenly_spaced
from bayes_lepu.links import Array, RowKind
from bayes_lepu.model.density import row_terms
from bayes_lepu.model.parameters import Parameters, stack
from bayes_lepu.result.summaries import (
    RowFunction,
    describe_draws,
    interval_level,
    mean_by_row,
    open_sums,
    over_all_rows,
    row_blocks,
    summary_by_row,
)
from bayes_lepu.verdict.class_prior import ENOUGH_DRAWS, exchanged_peak
from bayes_lepu.verdict.evidence import evidence_of
from bayes_lepu.verdict.forms import FormRange, missed_between
from bayes_lepu.verdict.records import Identifiability

if TYPE_CHECKING:
    from bayes_lepu.fitted import Fit

AS_NAMED = "as named"
EXCHANGED = "swapped"
# Quantiles of 1000 draws are good to about a percentage point of probability; more cost time only.
MAX_DRAWS = 1000
UNNAMED_LEVEL = 3  # from this level on the data do not show which factor is the class
ONLY_MARKS = 4  # at this level the data identify only P(l=1 | x)


@dataclass(frozen=True, eq=False)
class Reading:
    """Draws of one orientation (``name``), rows X, and the ``probability`` to evaluate there."""

    name: str
    draws: Parameters
    X: NDArray[Any]
    probability: RowFunction = Parameters.missed

    @cached_property
    def mean(self) -> Array:
        """Posterior mean of P(y=1 | x, l=0) for every row."""
        return mean_by_row(self.draws, self.probability, self.X)

    def summary(
        self, rows: NDArray[np.intp], index: pd.Index, ci_prob: float | None = None
    ) -> pd.DataFrame:
        """Mean, lower and upper of P(y=1 | x, l=0) of some rows; the mean alone for a point."""
        return summary_by_row(self.draws, self.probability, self.X[rows], index, ci_prob)


def kept[T](find: Callable[..., T]) -> Callable[..., T]:
    """Decorator: cache the result with the (immutable) fit, by keywords."""

    @wraps(find)
    def look_up(fit: "Fit", **keywords: Any) -> T:
        found: dict[Any, T] = vars(fit).setdefault(find.__name__, {})
        key = tuple(sorted(keywords.items()))
        if key not in found:
            found[key] = find(fit, **keywords)
        return found[key]

    return look_up


def open_rows(fit: "Fit") -> NDArray[np.intp]:
    """Positions of the unlabelled rows whose class nobody has checked."""
    return np.flatnonzero(fit.data.kind == RowKind.UNLABELLED)


def positive_given_labels(data: PUData) -> RowFunction:
    """P(y=1 | x, labels and audit) of the data's rows, by position; not shown is not missed."""

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
    """The positions of the unlabelled rows of a fit, and their `Reading` in each orientation."""
    rows = open_rows(fit)
    return rows, read(fit, rows, both=both, probability=positive_given_labels(fit.data))


def read(
    fit: "Fit", X: NDArray[Any], *, both: bool, probability: RowFunction = Parameters.missed
) -> tuple[Reading, ...]:
    """The rows in the fitted orientation and, with ``both``, with t and s swapped if possible.

    With several annotators there is no single propensity that could be swapped with t.
    """
    two = both and fit.spec.has_selection and not fit.parameters.several
    draws = _orientations(fit) if two else [fit.draws]
    named = zip((AS_NAMED, EXCHANGED), draws, strict=False)
    return tuple(Reading(name, some.thin(MAX_DRAWS), X, probability) for name, some in named)


def _orientations(fit: "Fit") -> list[Parameters]:
    """Draws in the fitted orientation and, where there are any, with t and s swapped.

    If the likelihood is symmetric, every draw can be swapped. Otherwise each draw is assigned to
    the nearer orientation. Too few swapped draws are replaced by the best swapped mode.
    """
    evidence = evidence_of(fit if fit.data.in_memory else replace(fit, data=fit.data.held))
    if evidence.symmetric:
        draws = evidence.pivoted.take_flat()
        return [draws, draws.swap()]
    if fit.data.is_sparse:
        return [fit.draws, *(stack([m.point]) for m in fit.modes if m.role == "swapped")][:2]
    side = _exchanged(fit)
    own = fit.draws.take(~side) if (~side).any() else fit.draws
    if side.sum() >= ENOUGH_DRAWS:
        return [own, fit.draws.take(side)]
    peak = exchanged_peak(evidence)
    if peak is None:
        return [own]
    (mean, sd), point = fit.data.column_moments, peak.point  # from standardised columns
    a, alpha = (slope / np.maximum(sd, 1e-300) for slope in (point.a, point.alpha))
    moved = replace(point, a=a, alpha=alpha, b=point.b - a @ mean, beta=point.beta - alpha @ mean)
    return [own, stack([moved])]


def _exchanged(fit: "Fit") -> NDArray[np.bool_]:
    """Which draws have t and s swapped relative to the best mode."""
    if "exchanged" in fit.stats:
        return np.asarray(fit.stats["exchanged"]).ravel() > 0.5
    X, draws, best = fit.data.X, fit.draws, fit.modes[0].point
    metric = np.cov(X.T, ddof=0).reshape(X.shape[1], -1)

    def apart(slope: Array, level: Array, a: Array, b: Any) -> Array:
        """Mean squared distance of linear predictors from one of them, over the rows."""
        d = slope - a
        return np.einsum("ki,ij,kj->k", d, metric, d) + (level - b + d @ X.mean(axis=0)) ** 2

    def distance(point: Parameters) -> Array:
        of_class = apart(draws.a, draws.b, point.a, point.b)
        return of_class + apart(draws.alpha, draws.beta, point.alpha, point.beta)

    return distance(best.swap()) < distance(best)


def review_score(fit: "Fit", reading: Reading, X: Any, level: int) -> Array:
    """Score that orders the rows: P(y=1 | x, l=0), or P(l=1 | x) if only that is identified."""
    if level < ONLY_MARKS or fit.parameters.several:
        return reading.mean
    return mean_by_row(reading.draws, Parameters.h, X)


def weighted_sums(
    probability: RowFunction, draws: Parameters, rows: NDArray[Any], weight: Array
) -> tuple[Array, Array]:
    """Mean Σ w m and variance Σ w m (1 - m) of the number of positives, ``(draws, k)``.

    ``weight`` has k columns, one for each set of rows.
    """
    mean, variance = np.zeros((2, draws.b.size, weight.shape[1]))
    for block in row_blocks(len(rows), draws.b.size):
        m, w = probability(draws, rows[block]), weight[block]
        mean += m @ w
        variance += (m * (1 - m)) @ w
    return mean, variance


# How many ---------------------------------------------------------------------------------


class Alternatives(NamedTuple):
    """Alternative models with the same fit: their ranges of π and of positives in the first rows.

    ``hits`` (2, rows) are the fewest and the most positives among the first k = 1, 2, ... open rows
    in the order of `decide`. In a large table these are the rows to which the models were fitted.
    """

    pi: tuple[float, float] | None = None
    hits: Array = np.zeros((2, 0))

    def of_first(self, count: int, candidates: int) -> tuple[float, float] | None:
        """Range of the positives among the first ``count`` rows, with binomial sampling error."""
        if not self.hits.size or not count:
            return None
        known = self.hits.shape[1]
        at = max(round(count * known / max(candidates, 1)), 1)
        low, high = self.hits[:, at - 1] * (count / at)
        tosses = [2 * np.sqrt(v * max(1 - v / count, 0.0)) for v in (low, high)]
        return max(float(low - tosses[0]), 0.0), min(float(high + tosses[1]), float(count))


def rows_of_forms(data: PUData, found: FormRange | None) -> NDArray[np.intp] | None:
    """Rows to which the alternative models (``found``) were fitted; None where not known."""
    if found is None or not found.missed.size:
        return None
    rows = np.arange(data.n)[evenly_spaced(data.n, found.rows)]
    return rows if np.sum(data.l[rows] == 0) == found.missed.shape[1] else None


def alternatives_of(fit: "Fit", verdict: Identifiability) -> Alternatives:
    """Ranges of π and of positives in the first rows, over alternative models with the same fit."""
    found, data = None if verdict.evidence is None else verdict.evidence.forms, fit.data
    still_open = data.kind_weights[RowKind.UNLABELLED]
    rows = rows_of_forms(data, found) if data.in_memory and still_open > 0 else None
    if found is None or rows is None:
        return Alternatives(verdict.pi_range)
    unmarked = rows[data.l[rows] == 0]
    still = data.kind[unmarked] == RowKind.UNLABELLED
    every, (reading, *_) = read_open(fit, both=verdict.level >= UNNAMED_LEVEL)
    score = np.zeros(data.n)
    score[every] = review_score(fit, reading, data.X[every], verdict.level)
    order = np.argsort(-score[unmarked[still]], kind="stable")
    missed = found.missed[:, still][:, order]
    if verdict.pi_range is not None:  # every model, shifted to either end of the total
        share = np.array(missed_between(data, *verdict.pi_range)) / float(still_open)
        missed = np.concatenate([with_mean(missed, mean) for mean in share])
    sums = np.cumsum(missed, axis=1)
    return Alternatives(verdict.pi_range, np.stack([sums.min(axis=0), sums.max(axis=0)]))


def with_mean(probability: Array, mean: float) -> Array:
    """Shift the log odds of every row of ``probability`` by a constant that gives this mean."""
    odds = logit(np.clip(probability, 1e-12, 1 - 1e-12))
    low, high = np.full((2, len(odds), 1), [[[-40.0]], [[40.0]]])
    for _ in range(30):  # halves the interval, to 1e-7
        middle = (low + high) / 2
        below = expit(odds + middle).mean(axis=1, keepdims=True) < mean
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return expit(odds + low)


def stream(fit: "Fit") -> np.random.Generator:
    """Random number generator seeded by the fit."""
    return np.random.default_rng([fit.options.random_seed, 7])  # a stream that nothing else uses


def count_positives(
    reading: Reading, order: NDArray[np.intp], edges: Sequence[int], rng: np.random.Generator
) -> tuple[Array, Array]:
    """Expected and simulated number of positives in every segment, for every draw.

    For a point estimate both are the expected number.
    """
    size = reading.draws.b.size
    expected, drawn = np.zeros((2, size, len(edges) - 1))
    for segment, (start, stop) in enumerate(pairwise(edges)):
        rows = order[start:stop]
        for block in row_blocks(len(rows), size):
            m = reading.probability(reading.draws, reading.X[rows[block]])
            expected[:, segment] += m.sum(axis=1)
            drawn[:, segment] += (rng.random(m.shape) < m).sum(axis=1)
    return expected, (drawn if size > 1 else expected)


def describe(expected: Array, drawn: Array, ci_prob: float | None) -> dict[str, float]:
    """Mean of the expected number, sd and interval of the simulated one."""
    return describe_draws(drawn, ci_prob) | {"mean": float(expected.mean())}


def missed_range(
    fit: "Fit", pi_range: tuple[float, float] | None, total: pd.DataFrame
) -> tuple[float, float] | None:
    """Missed positives over the alternative models with the same fit; None where there is none."""
    return None if pi_range is None else around(missed_between(fit.data, *pi_range), total)


def around(ends: tuple[float, float], own: pd.DataFrame) -> tuple[float, float]:
    """The range, widened to the fit's own intervals in every orientation."""
    own = own.reindex(columns=["mean", "lower", "upper"])
    return float(np.fmin(ends[0], own.min().min())), float(np.fmax(ends[1], own.max().max()))


def count_missed(
    fit: "Fit",
    X: object = None,
    *,
    ci_prob: float | None = None,
    both: bool,
    pi_range: tuple[float, float] | None = None,
) -> pd.DataFrame:
    """How many unlabelled rows are positive: mean, sd and interval, one line per orientation.

    Rows of the fit count by their weights. ``low`` and ``high`` follow from ``pi_range``.
    """
    if X is not None:
        values, _ = fit.data.transform(X)
        return _counted(fit, read(fit, values, both=both), ci_prob)
    found = _missed_of_fit(fit, ci_prob=interval_level(ci_prob), both=both)
    ends = missed_range(fit, pi_range, found)
    return found.copy() if ends is None else with_range(found, ends)


@kept
def _missed_of_fit(fit: "Fit", *, ci_prob: float, both: bool) -> pd.DataFrame:
    """The count in the fit's own rows, cached so that every caller gets the same number."""
    return _counted(fit, read_open(fit, both=both)[1], ci_prob, own=True)


def _counted(
    fit: "Fit", readings: Sequence[Reading], ci_prob: float | None, *, own: bool = False
) -> pd.DataFrame:
    """Count the positives, one line per orientation.

    If the fit's own rows are weighted or out of memory, their random classes are replaced by a
    normal variable with the same variance.
    """
    lines, rng, data = {}, stream(fit), fit.data
    for reading in readings:
        rows, draws = np.arange(reading.X.shape[0]), reading.draws
        if not own or (data.in_memory and not data.weighted):
            expected, drawn = count_positives(reading, rows, (0, len(rows)), rng)
        else:
            if data.in_memory:
                w = data.weight[reading.X][:, None]
                expected, variance = weighted_sums(reading.probability, draws, reading.X, w)
            else:
                expected, variance = over_all_rows(data, open_sums, draws)
            tosses = np.sqrt(np.maximum(variance, 0.0)) * rng.standard_normal(expected.shape)
            drawn = np.maximum(expected + tosses, 0.0) if draws.b.size > 1 else expected
        lines[reading.name] = describe(expected, drawn, ci_prob)
    return pd.DataFrame.from_dict(lines, orient="index").rename_axis("reading")


def with_range(table: pd.DataFrame, ends: tuple[float, float]) -> pd.DataFrame:
    """The table with the range as its first columns."""
    return table.assign(low=ends[0], high=ends[1])[["low", "high", *table.columns]]
