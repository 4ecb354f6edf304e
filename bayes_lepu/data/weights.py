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
MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # odd, with bits all over: 2^64 over the golden ratio


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
    looked = columns = _columns(tables)
    if n > LOOK:
        some = np.random.default_rng(0).choice(n, LOOK, replace=False)
        looked = [column[some] for column in columns]
    for seen in (looked[:3], looked):  # three columns tell rows of measurements apart already
        keys = np.sort(_keys(seen))
        if np.all(keys[1:] != keys[:-1]):
            return None
    found = find_all_repeats(*tables)
    return None if found is None or len(found[0]) > n / 2 else found


def find_all_repeats(
    *tables: NDArray[Any],
) -> tuple[NDArray[np.intp], NDArray[np.intp]] | None:
    """The same however few there are; None where different rows cannot be told apart."""
    n = len(tables[0])
    columns = _columns(tables)
    kind, found = pd.factorize(_keys(columns))
    first = np.empty(len(found), dtype=np.intp)
    first[kind[::-1]] = np.arange(n)[::-1]
    # Different rows with one key would be taken for equal.
    if not all(_same(column, column[first][kind]) for column in columns):
        return None
    return first, kind


def _columns(tables: tuple[NDArray[Any], ...]) -> list[NDArray[Any]]:
    n = len(tables[0])
    return [table.reshape(n, -1)[:, j] for table in tables for j in range(table.size // n)]


def _keys(columns: list[NDArray[Any]]) -> NDArray[np.uint64]:
    """A number for every row, the same for identical rows."""
    keys = np.zeros(len(columns[0]), dtype=np.uint64)
    for column in columns:
        keys ^= (column.astype(float) + 0.0).view(np.uint64)  # + 0.0: no "-0.0"
        keys *= MULTIPLIER
        keys ^= keys >> np.uint64(29)
    return keys


def _same(one: NDArray[Any], other: NDArray[Any]) -> bool:
    return bool(np.array_equal(one, other, equal_nan=one.dtype.kind == "f"))
