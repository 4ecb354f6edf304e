"""Rows that count for more or less than one, and some rows that stand for all.

Whole numbers count rows that are alike; other weights say how much a row stands for. A random
sample holds the rows with the smallest random numbers, which depend on their positions alone: it is
the same wherever the rows are, and a smaller sample is a part of a larger one.
"""

import numpy as np
from numpy.typing import NDArray

from bayes_lepu.links import Array


def are_counts(weight: Array) -> bool:
    """Whether the weights are whole numbers."""
    return bool(np.all(weight == np.round(weight)))


def random_keys(start: int, count: int) -> Array:
    """The random numbers of rows ``start`` to ``start + count``, the same every time."""
    generator = np.random.PCG64(0)
    generator.advance(start)
    return np.random.Generator(generator).random(count)


def evenly_spaced(count: int, most: int) -> slice:
    """Every k-th of so many rows or draws, such that at most ``most`` are taken."""
    return slice(None, None, max(1, -(-count // most)))


def evenly_by_weight(weight: Array, count: int) -> NDArray[np.intp]:
    """So many rows, evenly spaced over all that the weights count."""
    until = np.cumsum(weight)
    places = (np.arange(count) + 0.5) / count * until[-1]
    return np.minimum(np.searchsorted(until, places), weight.size - 1)


def total_and_error(values: Array, weight: Array) -> tuple[float, float]:
    """Weighted sum of a value per row, and its standard error.

    A row that counts for several has their independent errors; one of any other weight has its own,
    enlarged.
    """
    off = values - np.average(values, weights=weight)
    squares = weight if are_counts(weight) else weight**2
    return float(weight @ values), float(np.sqrt(squares @ off**2))
