"""Rows that count for more or less than one, and some rows that stand for all.

Whole numbers count rows that are alike; other weights say how much a row stands for. A random
sample holds the rows with the smallest random numbers, which depend on their positions alone: it is
the same wherever the rows are, and a smaller sample is a part of a larger one.
"""

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayes_lepu.links import Array


def are_counts(weight: Array) -> bool:
    """Whether the weights are whole numbers."""
    return bool(np.all(weight == np.round(weight)))


def counted_rows(weight: Array, most: int) -> NDArray[np.intp]:
    """Positions of rows, repeated as often as they count; of many, evenly spaced ones.

    Of weights that are no counts as many rows as there are.
    """
    count = int(min(weight.sum(), most)) if are_counts(weight) else min(weight.size, most)
    return evenly_by_weight(weight, count)


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


FEWEST_ROWS = 1_000  # below which counting rows saves nothing
LOOK = 20_000  # rows of a first look: without a repeat among them, the table has too few to matter


def find_repeats(*tables: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[np.intp]] | None:
    """Position of the first row of every kind, and the kind of every row; None without many.

    Parameters
    ----------
    *tables : arrays of n rows
        Side by side they are the table.
    """
    n = len(tables[0])
    if n < FEWEST_ROWS:
        return None
    if n > LOOK:
        some = np.random.default_rng(0).choice(n, LOOK, replace=False)
        if len(pd.unique(_keys(*(table[some] for table in tables)))) == LOOK:
            return None
    first, kind = find_all_repeats(*tables)
    return None if len(first) > n / 2 else (first, kind)


def find_all_repeats(*tables: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The same however few there are."""
    keys = _keys(*tables)
    return np.flatnonzero(~pd.Series(keys).duplicated()), pd.factorize(keys)[0]


def _keys(*tables: NDArray[Any]) -> NDArray[np.uint64]:
    """A number of 64 bits for every row, the same for identical rows and else never in practice."""
    side_by_side = np.column_stack(tables).astype(float) + 0.0  # no "-0.0"
    return pd.util.hash_pandas_object(pd.DataFrame(side_by_side), index=False).to_numpy()
