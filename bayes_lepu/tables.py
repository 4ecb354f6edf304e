"""A user's table as numbers, with its names and row labels, or a refusal that says where."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from bayes_lepu.errors import DataError
from bayes_lepu.links import Array

MAX_NAMED = 5
MAX_COUNTED = 20


def read_table(X: Any) -> tuple[Array, tuple[str, ...], bool, pd.Index]:
    """Float64 values, column names, whether the names are the user's, and row labels."""
    if hasattr(X, "tocsr"):
        raise DataError(
            f"X is a sparse matrix ({type(X).__name__}); dense columns are expected. "
            "Use X.toarray(), or reduce the columns first (for example TruncatedSVD)."
        )
    named = isinstance(X, pd.DataFrame)
    if isinstance(X, pd.DataFrame):
        names, index = _frame_names(X), X.index
        _refuse_empty(X.shape)
        values = np.empty(X.shape)
        for j, name in enumerate(X.columns):
            values[:, j] = _numeric_column(X[name], str(name))
    else:
        values = _numeric_array(X)
        names = tuple(f"x{j}" for j in range(values.shape[1]))
        index = pd.RangeIndex(values.shape[0])
        _refuse_empty(values.shape)
    _refuse_non_finite(values, names)
    return values, names, named, index


def _refuse_empty(shape: tuple[int, ...]) -> None:
    if min(shape) == 0:
        raise DataError(
            f"X is empty: its shape is {shape}. At least one row and one column are needed."
        )


def _frame_names(X: pd.DataFrame) -> tuple[str, ...]:
    names = tuple(str(c) for c in X.columns)
    twice = sorted(c for c, count in Counter(names).items() if count > 1)
    if twice:
        raise DataError(
            f"X has duplicate column names: {some(twice)}. Every column needs its own name; "
            "rename or drop the copies."
        )
    return names


def _numeric_column(column: pd.Series, name: str) -> Array:
    if isinstance(column.dtype, pd.CategoricalDtype):
        raise DataError(
            f"Column {name!r} is categorical. Encode it first, for example "
            f"pd.get_dummies(X, columns=[{name!r}], drop_first=True, dtype=float)."
        )
    if not (pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column)):
        raise DataError(
            f"Column {name!r} holds {column.dtype} values, for example {column.iloc[0]!r}; numbers "
            "are expected. Convert with pd.to_numeric, encode with pd.get_dummies, or drop it."
        )
    if pd.api.types.is_complex_dtype(column):
        raise DataError(f"Column {name!r} holds complex numbers; real numbers are expected.")
    return column.to_numpy(dtype=float, na_value=np.nan)


def _numeric_array(X: Any) -> Array:
    array = np.asarray(X)
    if array.ndim != 2:
        raise DataError(
            f"X has {array.ndim} dimension(s), shape {array.shape}; a table of shape (rows, "
            "columns) is expected. Use X.reshape(-1, 1) for a single column."
        )
    if array.dtype.kind not in "fiub":
        raise DataError(
            f"X holds {array.dtype} values; numbers are expected. Convert with X.astype(float), "
            "or pass a DataFrame to be told which column is meant."
        )
    return np.ascontiguousarray(array, dtype=float)


def _refuse_non_finite(values: Array, names: tuple[str, ...]) -> None:
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum()):  # one pass without a temporary settles the usual case
            return
    cells = (~np.isfinite(values)).sum(axis=0)
    if cells.any():
        found = [f"{names[j]} ({cells[j]})" for j in np.flatnonzero(cells)]
        raise DataError(
            f"X holds NaN or infinite values ({cells.sum()} cells) in column(s) "
            f"{some(found, most=MAX_COUNTED)}. Impute or drop them first."
        )


def match_columns(X: pd.DataFrame, names: tuple[str, ...]) -> pd.DataFrame:
    """The columns of these names in this order; missing and unknown ones are refused."""
    got = _frame_names(X)
    position, known = {c: j for j, c in enumerate(got)}, set(names)
    missing = [c for c in names if c not in position]
    extra = [c for c in got if c not in known]
    if missing or extra:
        parts = [f"missing column(s) {some(missing)}"] if missing else []
        parts += [f"unknown column(s) {some(extra)}"] if extra else []
        raise DataError(
            f"X does not match the fitted columns: {'; '.join(parts)}. "
            "Select them with X[list(fit.feature_names)]."
        )
    return X.iloc[:, [position[c] for c in names]]


def column_places(names: Sequence[str], X: Any) -> dict[Any, int]:
    """Positions of the columns by name and by number, whichever way they are asked for.

    In a table whose columns are labelled by numbers a number is a label, elsewhere a position.
    """
    places: dict[Any, int] = {name: j for j, name in enumerate(names)}
    labels = X.columns if isinstance(X, pd.DataFrame) else ()
    numbers = [c for c in labels if isinstance(c, int | np.integer)]
    return places | ({c: places[str(c)] for c in numbers} or {j: j for j in range(len(names))})


def some(values: Sequence[Any], *, most: int = MAX_NAMED) -> str:
    """The first few values, for a message."""
    shown = ", ".join(str(v) for v in values[:most])
    return shown + (f" and {len(values) - most} more" if len(values) > most else "")
