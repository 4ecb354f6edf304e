r"""How many of a set of unlabelled rows are positive.

.. math:: N_R \mid \theta = \sum_{i \in R} y_i, \qquad
    y_i \sim \mathrm{Bernoulli}(m_i(\theta)), \quad m_i = P(y=1 \mid x_i, l_i = 0)

A finite set has two sources of uncertainty, the draws of θ and the rows' own coin tosses; both are
in every interval. A row of weight w counts like w rows: w m on average, with variance w m (1 - m).

Conventions
-----------
Rows come in an order, and ``edges`` cut that order into segments; counts are ``(draws, segments)``.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayes_lepu.actions.readings import UNNAMED_LEVEL, Reading, kept, read, read_open, weighted_sums
from bayes_lepu.data.weights import evenly_spaced
from bayes_lepu.links import Array, RowKind
from bayes_lepu.result.summaries import (
    describe_draws,
    interval_level,
    open_sums,
    over_all_rows,
    row_blocks,
)
from bayes_lepu.verdict.forms import missed_between
from bayes_lepu.verdict.records import Identifiability

if TYPE_CHECKING:
    from bayes_lepu.fitted import Fit

STREAM = 7  # which of the streams of the fit's seed is used here


class Alternatives(NamedTuple):
    """Models that predict the labels as well: ends of π, and of positives among the first rows.

    ``hits`` (2, rows) are the fewest and the most among the first k = 1, 2, ... open rows in the
    order of `decide`; of a large table, of those rows to which the models were fitted.
    """

    pi: tuple[float, float] | None
    hits: Array

    def of_first(self, count: int, candidates: int) -> tuple[float, float] | None:
        """Positives among the first of so many rows, with the rows' own coin tosses at the ends."""
        if not self.hits.size or not count:
            return None
        known = self.hits.shape[1]
        at = max(round(count * known / max(candidates, 1)), 1)
        low, high = self.hits[:, at - 1] * (count / at)
        tosses = [2 * np.sqrt(v * max(1 - v / count, 0.0)) for v in (low, high)]
        return max(float(low - tosses[0]), 0.0), min(float(high + tosses[1]), float(count))


NOTHING_KNOWN = Alternatives(None, np.zeros((2, 0)))


def alternatives_of(fit: "Fit", verdict: Identifiability) -> Alternatives:
    """The ends of π and of what the first rows hold, over all models that predict as well."""
    found = None if verdict.evidence is None else verdict.evidence.forms
    nothing = NOTHING_KNOWN._replace(pi=verdict.pi_range)
    if found is None or not found.missed.size or not fit.data.in_memory:
        return nothing
    rows = np.arange(fit.data.n)[evenly_spaced(fit.data.n, found.rows)]
    unmarked = rows[fit.data.l[rows] == 0]
    if len(unmarked) != found.missed.shape[1]:  # weighted rows, of which the models had a part
        return nothing
    still = fit.data.kind[unmarked] == RowKind.UNLABELLED
    every, (reading, *_) = read_open(fit, both=verdict.level >= UNNAMED_LEVEL)
    probability = np.zeros(fit.data.n)
    probability[every] = reading.mean
    order = np.argsort(-probability[unmarked[still]], kind="stable")
    sums = np.cumsum(found.missed[:, still][:, order], axis=1)
    return Alternatives(verdict.pi_range, np.stack([sums.min(axis=0), sums.max(axis=0)]))


def stream(fit: "Fit") -> np.random.Generator:
    """Random numbers of the fit's own seed."""
    return np.random.default_rng([fit.options.random_seed, STREAM])


def count_positives(
    reading: Reading, order: NDArray[np.intp], edges: Sequence[int], rng: np.random.Generator
) -> tuple[Array, Array]:
    """Expected and simulated number of positives in every segment, for every draw.

    For a point estimate both are the expected number.
    """
    expected, drawn = np.zeros((2, reading.size, len(edges) - 1))
    for segment, (start, stop) in enumerate(pairwise(edges)):
        rows = order[start:stop]
        for block in row_blocks(len(rows), reading.size):
            m = reading.missed(rows[block])
            expected[:, segment] += m.sum(axis=1)
            drawn[:, segment] += (rng.random(m.shape) < m).sum(axis=1)
    return expected, (drawn if reading.size > 1 else expected)


def describe(expected: Array, drawn: Array, ci_prob: float | None) -> dict[str, float]:
    """Mean of the expected number, sd and interval of the simulated one."""
    return describe_draws(drawn, ci_prob) | {"mean": float(expected.mean())}


def missed_range(
    fit: "Fit", pi_range: tuple[float, float] | None, total: pd.DataFrame
) -> tuple[float, float] | None:
    """Missed positives over every model that predicts the labels as well; None where none is."""
    return None if pi_range is None else around(missed_between(fit.data, *pi_range), total)


def around(ends: tuple[float, float], own: pd.DataFrame) -> tuple[float, float]:
    """A range that holds what the fit itself says too, in every reading."""
    few = [float(own[name].min()) for name in ("mean", "lower") if name in own]
    many = [float(own[name].max()) for name in ("mean", "upper") if name in own]
    return min(ends[0], *few), max(ends[1], *many)


def count_missed(
    fit: "Fit",
    X: object = None,
    *,
    ci_prob: float | None = None,
    both: bool,
    pi_range: tuple[float, float] | None = None,
) -> pd.DataFrame:
    """How many unlabelled rows are positive: mean, sd and interval, a line per reading.

    Rows of the fit count by their weights, ``low`` and ``high`` over the ends of ``pi_range``.
    """
    if X is None:
        found = _missed_of_fit(fit, ci_prob=interval_level(ci_prob), both=both)
        ends = missed_range(fit, pi_range, found)
        return found.copy() if ends is None else with_range(found, ends)
    values, _ = fit.data.transform(X)
    rng, order = stream(fit), np.arange(len(values))
    return _table(
        {
            reading.name: count_positives(reading, order, (0, len(order)), rng)
            for reading in read(fit, values, both=both)
        },
        ci_prob,
    )


@kept
def _missed_of_fit(fit: "Fit", *, ci_prob: float, both: bool) -> pd.DataFrame:
    """The count of the fit's own rows: one number, whoever asks for it.

    Of weighted rows, and of those out of memory, the coin tosses are as wide as their variance.
    """
    rows, readings = read_open(fit, both=both)
    order, found, rng = np.arange(len(rows)), {}, stream(fit)
    for reading in readings:
        if fit.data.in_memory and not fit.data.weight.size:
            found[reading.name] = count_positives(reading, order, (0, len(order)), rng)
            continue
        if fit.data.in_memory:
            w = fit.data.weight[rows][:, None]
            sums = weighted_sums(reading.probability, reading.draws, reading.X, w)
        else:
            sums = over_all_rows(fit.data, open_sums, reading.draws)
        expected, variance = sums
        tosses = np.sqrt(np.maximum(variance, 0.0)) * rng.standard_normal(expected.shape)
        drawn = np.maximum(expected + tosses, 0.0) if reading.size > 1 else expected
        found[reading.name] = expected, drawn
    return _table(found, ci_prob)


def _table(counts: Mapping[str, tuple[Array, Array]], ci_prob: float | None) -> pd.DataFrame:
    """A line per reading."""
    lines = {name: describe(*each, ci_prob) for name, each in counts.items()}
    return pd.DataFrame.from_dict(lines, orient="index").rename_axis("reading")


def with_range(table: pd.DataFrame, ends: tuple[float, float]) -> pd.DataFrame:
    """The table with the range first."""
    return table.assign(low=ends[0], high=ends[1])[["low", "high", *table.columns]]
