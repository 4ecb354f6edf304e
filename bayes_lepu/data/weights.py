"""Weights of rows, and samples of rows.

Whole weights count identical rows; other weights are the number of rows that a row represents. A
random sample consists of the rows with the smallest random numbers, which depend only on the
positions of the rows. It is therefore the same for rows in and out of memory, and a smaller sample
is a part of a larger one.
"""

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayes_lepu.links import Array

FEWEST_ROWS = 1_000  # in smaller tables merging identical rows saves nothing
LOOK = 20_000  # rows searched first; without a repeat among them, repeats are too rare to matter


def counted_rows(weight: Array, most: int) -> NDArray[np.intp]:
    """Positions of rows, each repeated by its weight; evenly spaced if there are too many.

    If the weights are not whole numbers, as many positions as there are rows.
    """
    counts = np.all(weight == np.round(weight))
    return evenly_by_weight(weight, int(min(weight.sum() if counts else weight.size, most)))


def random_keys(start: int, count: int) -> Array:
    """The fixed random numbers of the rows ``start`` to ``start + count``."""
    generator = np.random.PCG64(0)
    generator.advance(start)
    return np.random.Generator(generator).random(count)


def evenly_spaced(count: int, most: int) -> slice:
    """Slice of every k-th row or draw that selects at most ``most`` of them."""
    return slice(None, None, max(1, -(-count // most)))


def evenly_by_weight(weight: Array, count: int) -> NDArray[np.intp]:
    """Positions of this many rows, evenly spaced in the cumulated weights."""
    until = np.cumsum(weight)
    places = (np.arange(count) + 0.5) / count * until[-1]
    return np.minimum(np.searchsorted(until, places), weight.size - 1)


def total_and_error(values: Array, weight: Array) -> tuple[float, float]:
    """Weighted sum of a value per row, and its standard error.

    A row of whole weight w has w independent errors; with other weights its one error is multiplied
    by w.
    """
    off = values - np.average(values, weights=weight)
    squares = weight if np.all(weight == np.round(weight)) else weight**2
    return float(weight @ values), float(np.sqrt(squares @ off**2))


def find_repeats(
    *tables: NDArray[Any], few: bool = False
) -> tuple[NDArray[np.intp], NDArray[np.intp]] | None:
    """First position of every distinct row, and the distinct row of every row; None if few repeat.

    ``tables`` are matrices of n rows that are compared together. ``few``: return them in any case.
    """

    def keys(rows: Any) -> NDArray[np.uint64]:
        """A 64-bit hash of every row."""
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
