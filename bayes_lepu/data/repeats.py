"""Identical rows of a table, found in one pass and without sorting."""

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

FEWEST_ROWS = 1_000  # below which counting rows saves nothing
LOOK = 20_000  # rows of a first look: without a repeat among them, the table has too few to matter
FEW_COLUMNS = 3  # which tell rows of measurements apart already
WORTH = 2  # rows for every distinct one, at least
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
    for seen in (looked[:FEW_COLUMNS], looked):
        keys = np.sort(_keys(seen))
        if np.all(keys[1:] != keys[:-1]):
            return None
    found = find_all_repeats(*tables)
    return None if found is None or len(found[0]) * WORTH > n else found


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
