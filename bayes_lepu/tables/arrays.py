"""Arrays as tables: two dimensions of numbers, or advice that depends on what there is instead."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayes_lepu.errors import DataError
from bayes_lepu.links import Array


def refuse_swapped(X: Any, l: Any) -> None:
    """Refuse what is no table, and a vector where the table belongs."""
    refuse_others(X)
    first: tuple[int, ...] = getattr(X, "shape", ())
    second: tuple[int, ...] = getattr(l, "shape", ())
    if len(first) == 1 and len(second) == 2 and second[-1] > 1:
        raise DataError(
            f"X has shape {first} and l has shape {second}: the two seem to be swapped. "
            "The table comes first: fit(X, l)."
        )


def refuse_others(X: Any) -> None:
    """Refuse names of files and several tables, with the line that makes one table of them."""
    if isinstance(X, str | Path):
        raise DataError(
            f"X is the text {str(X)!r}; a table is expected. Use pd.read_parquet({str(X)!r}) or "
            f"pd.read_csv first; for more rows than memory holds dask.dataframe.read_parquet, then "
            "fit(X, ..., method='map')."
        )
    frames = isinstance(X, list | tuple) and any(hasattr(part, "columns") for part in X)
    if frames or callable(X) or isinstance(X, Iterator):
        raise DataError(
            f"X is a {type(X).__name__}{' of data frames' if frames else ''}; one table is "
            "expected. Use pd.concat(frames), or for more rows than memory holds "
            "dask.dataframe.from_map(read, names)."
        )


def numeric_array(X: Any, *, like: Sequence[str] = ()) -> Array:
    """The values as float64; ``like`` names the columns that are expected, if any."""
    array = _two_dimensions(X, like)
    if array.dtype.kind not in "fiub":
        raise DataError(
            f"X holds {array.dtype} values; numbers are expected. Convert with X.astype(float), "
            "or pass a DataFrame, whose columns of text become categories."
        )
    return np.ascontiguousarray(array, dtype=float)


def object_array(X: Any, like: Sequence[str]) -> NDArray[Any]:
    """The values as they are, for columns that hold more than numbers."""
    return _two_dimensions(X, like).astype(object)


def _two_dimensions(X: Any, like: Sequence[str]) -> NDArray[Any]:
    """An array of two dimensions, or advice that depends on what it has instead."""
    if hasattr(X, "tocsr"):
        raise DataError(
            f"X is a sparse matrix ({type(X).__name__}), and the columns of this fit are centred "
            "or made from others; dense rows are expected. Use X.toarray()."
        )
    if isinstance(X, np.ma.MaskedArray):
        X = np.ma.filled(X.astype(float), np.nan)  # a masked cell is a missing one
    refuse_others(X)
    if isinstance(X, dict):
        raise DataError("X is a dict; a table is expected. Use pd.DataFrame(X).")
    try:
        array = np.asarray(X)
    except ValueError as error:
        raise DataError(
            f"X is no table ({type(X).__name__}): its rows differ in length. Give each row as many "
            "cells, NaN where there is none."
        ) from error
    if array.ndim == 2:
        return array
    if array.ndim == 0:
        hint = "Pass a DataFrame or a 2-d array."
    elif array.ndim > 2:
        hint = "Use X.reshape(len(X), -1) to make one row of each entry."
    elif isinstance(X, pd.Series) and len(like) == len(X) > 1:
        hint = "Use X.to_frame().T for a single row."
    elif len(like) == len(array) > 1:
        hint = "Use X.reshape(1, -1) for a single row."
    elif isinstance(X, pd.Series):
        hint = "Use X.to_frame() for a single column."
    else:
        hint = "Use X.reshape(-1, 1) for a single column."
    raise DataError(
        f"X has {array.ndim} dimension(s), shape {array.shape}; a table of shape (rows, "
        f"columns) is expected. {hint}"
    )
