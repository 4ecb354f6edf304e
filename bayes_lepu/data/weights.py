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

FEWEST_ROWS = 1_000  # below which counting rows saves nothing
LOOK = 20_000  # rows of a first look: without a repeat among them, the table has too few to matter


def counted_rows(weight: Array, most: int) -> NDArray[np.intp]:
    """Positions of rows, repeated as often as they count; of many, evenly spaced ones.

    Of weights that are no counts as many rows as there are.
    """
    counts = np.all(weight == np.round(weight))
    return evenly_by_weight(weight, int(min(weight.sum() if counts else weight.size, most)))


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
    squares = weight if np.all(weight == np.round(weight)) else weight**2
    return float(weight @ values), float(np.sqrt(squares @ off**2))


def find_repeats(
    *tables: NDArray[Any], few: bool = False
) -> tuple[NDArray[np.intp], NDArray[np.intp]] | None:
    """Position of the first row of every kind, and the kind of every row; None without many.

    ``tables`` have n rows each and stand side by side. ``few``: however few rows repeat.
    """

    def keys(rows: Any) -> NDArray[np.uint64]:
        """A number of 64 bits for every row, the same for identical rows alone in practice."""
        side_by_side = np.column_stack([t[rows] for t in tables]).astype(float) + 0.0  # no "-0.0"
        return pd.util.hash_pandas_object(pd.DataFrame(side_by_side), index=False).to_numpy()

    n = len(tables[0])
    if n < FEWEST_ROWS and not few:
        return None
    if n > LOOK and not few:
        first_look = np.random.default_rng(0).choice(n, LOOK, replace=False)
        if len(pd.unique(keys(first_look))) == LOOK:
            return None
    found = keys(slice(None))
    first, kind = np.flatnonzero(~pd.Series(found).duplicated()), pd.factorize(found)[0]
    return None if len(first) > n / 2 and not few else (first, kind)
