r"""How many of a set of unlabelled rows are positive.

.. math:: N_R \mid \theta = \sum_{i \in R} y_i, \qquad
    y_i \sim \mathrm{Bernoulli}(m_i(\theta)), \quad m_i = P(y=1 \mid x_i, l_i = 0)

A finite set has two sources of uncertainty, the draws of θ and the rows' own coin tosses; both are
in every interval. A row of weight w counts like w rows: w m on average, with variance w m (1 - m).

Conventions
-----------
Rows come in an order, and ``edges`` cut that order into segments; counts are ``(draws, segments)``.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayes_lepu.actions.readings import Reading, read, read_open
from bayes_lepu.links import Array
from bayes_lepu.result.summaries import describe_draws, open_sums, over_all_rows, row_blocks

if TYPE_CHECKING:
    from bayes_lepu.fitted import Fit

STREAM = 7  # which of the streams of the fit's seed is used here


def stream(fit: "Fit") -> np.random.Generator:
    """Random numbers of the fit's own seed."""
    return np.random.default_rng([fit.options.random_seed, STREAM])


def count_positives(
    reading: Reading,
    order: NDArray[np.intp],
    edges: Sequence[int],
    rng: np.random.Generator,
    weight: Array | None = None,
) -> tuple[Array, Array]:
    """Expected and simulated number of positives in every segment, for every draw.

    For a point estimate both are the expected number. Without a weight every row counts once.
    """
    expected = np.zeros((reading.size, len(edges) - 1))
    drawn = np.zeros_like(expected)
    for segment, (start, stop) in enumerate(pairwise(edges)):
        rows = order[start:stop]
        for block in row_blocks(len(rows), reading.size):
            m = reading.missed(rows[block])
            if weight is None:
                expected[:, segment] += m.sum(axis=1)
                drawn[:, segment] += (rng.random(m.shape) < m).sum(axis=1)
            else:
                expected[:, segment] += m @ weight[rows[block]]
                drawn[:, segment] += _toss(m, weight[rows[block]], rng).sum(axis=1)
    return expected, (np.maximum(drawn, 0.0) if reading.size > 1 else expected)


def _toss(m: Array, weight: Array, rng: np.random.Generator) -> Array:
    """Positives among w copies of every row; what is left of a whole number has its variance."""
    whole = np.floor(weight)
    rest = weight - whole
    deviation = (rng.random(m.shape) < m) - m
    return rng.binomial(whole.astype(np.int64), m) + rest * m + np.sqrt(rest) * deviation


def count_by_partition(
    fit: "Fit", reading: Reading, rng: np.random.Generator
) -> tuple[Array, Array]:
    """The same over all rows of a fit, by sums over partitions; their coin tosses add up."""
    expected, variance = over_all_rows(fit.data, open_sums, reading.draws)
    tosses = np.sqrt(np.maximum(variance, 0.0)) * rng.standard_normal(expected.shape)
    return expected, (np.maximum(expected + tosses, 0.0) if reading.size > 1 else expected)


def describe(expected: Array, drawn: Array, ci_prob: float | None) -> dict[str, float]:
    """Mean of the expected number, sd and interval of the simulated one."""
    return describe_draws(drawn, ci_prob) | {"mean": float(expected.mean())}


def count_missed(
    fit: "Fit", X: object = None, *, ci_prob: float | None = None, both: bool
) -> pd.DataFrame:
    """How many unlabelled rows are positive: mean, sd and interval, a line per reading.

    Rows of the fit count as often as their weights say.
    """
    weight = None
    if X is None:
        rows, readings = read_open(fit, both=both)
        weight = fit.data.weight[rows] if fit.data.weight.size else None
    else:
        values, _ = fit.data.transform(X)
        rows, readings = np.arange(values.shape[0]), read(fit, values, both=both)
    partitioned = X is None and not fit.data.in_memory
    order = np.arange(len(rows))
    lines, rng = {}, stream(fit)
    for reading in readings:
        if partitioned:
            expected, drawn = count_by_partition(fit, reading, rng)
        else:
            expected, drawn = count_positives(reading, order, (0, len(rows)), rng, weight)
        lines[reading.name] = describe(expected, drawn, ci_prob)
    return pd.DataFrame.from_dict(lines, orient="index").rename_axis("reading")
