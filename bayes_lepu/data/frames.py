"""Any kind of table: frames by narwhals (polars, pyarrow), arrays of two dimensions of numbers.

Names are kept, so that new rows are matched by name whichever library holds them.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from bayes_lepu.errors import DataError
from bayes_lepu.links import Array
from bayes_lepu.suggestions import did_you_mean, nearest, some


def as_frame(X: Any, *, without: Collection[str] = ()) -> pd.DataFrame | None:
    """A pandas frame with the columns of ``X`` but those in ``without``; None for an array.

    Index and values of a pandas frame are its own, not copies. Columns left out are not converted.
    """
    if isinstance(X, pd.DataFrame):
        return X.loc[:, [str(c) not in without for c in X.columns]] if without else X
    if not _may_be_a_frame(X):
        return None
    import narwhals.stable.v2 as nw

    frame = nw.from_native(X, pass_through=True)
    if isinstance(frame, nw.LazyFrame):
        raise DataError(
            f"X is a lazy frame ({type(X).__module__}.{type(X).__name__}); rows in memory are "
            "expected. Use X.collect() (polars, narwhals) or X.compute() (dask) first; lepu.fit "
            "and lepu.dask.predict_proba take Dask frames as they are."
        )
    if not isinstance(frame, nw.DataFrame):
        return None
    names = [name for name in frame.columns if name not in without]
    columns = {name: _column(frame[name]) for name in names}
    return pd.DataFrame(columns, index=pd.RangeIndex(len(frame)))


def column_names(X: Any) -> tuple[str, ...] | None:
    """The column names of a frame of any kind; None for an array."""
    if isinstance(X, pd.DataFrame):
        return tuple(str(c) for c in X.columns)
    if not _may_be_a_frame(X):
        return None
    import narwhals.stable.v2 as nw

    frame = nw.from_native(X, pass_through=True)
    return tuple(frame.columns) if isinstance(frame, nw.DataFrame) else None


def take_column(X: Any, name: str | Sequence[str], *, option: str) -> Any:
    """The column (or several) of a frame that an option names, such as ``l="marked"``."""
    known = column_names(X)
    if known is None:
        raise DataError(
            f"{option}={name!r} is the name of a column, but X is a {type(X).__name__} without "
            f"column names. Pass a DataFrame that holds the column, or the values of {option}."
        )
    for one in [name] if isinstance(name, str) else name:
        if one not in known:
            raise DataError(
                f"{option} names {one!r}, which is not a column of X.{did_you_mean(one, known)} "
                f"Columns: {some(known, most=12)}."
            )
    wanted = {name} if isinstance(name, str) else set(name)
    frame = as_frame(X, without=set(known) - wanted)
    assert frame is not None  # it has column names
    frame = frame.set_axis([str(c) for c in frame.columns], axis=1)
    return frame[name] if isinstance(name, str) else frame[list(name)]


def take_roles(
    X: Any, l: Any, y: Any, sample_weight: Any, exclude: Sequence[str]
) -> tuple[Any, Any, Any, tuple[str, ...]]:
    """Labels, audits and weights, from the columns of X they name; and what is no feature.

    Several names of labels, as a list, are several annotators.
    """
    aside: list[str] = []
    taken = []
    for option, value in (("l", l), ("y", y), ("sample_weight", sample_weight)):
        several = option == "l" and _are_names(value, X)
        names = [value] if isinstance(value, str) else value if several else []
        if both := set(names) & set(aside):
            raise DataError(
                f"{option} names {min(both)!r}, which is l or y already. Labels are who was "
                "marked, audits the class that a row turned out to have; each is a column."
            )
        taken.append(take_column(X, value, option=option) if names else value)
        aside += names
    if isinstance(exclude, str):
        raise DataError(f"exclude={exclude!r} is a single value; pass a list: [{exclude!r}].")
    if len(exclude):
        take_column(X, [str(name) for name in exclude], option="exclude")
    return taken[0], taken[1], taken[2], (*aside, *map(str, exclude))


def row_count(X: Any) -> int:
    """Number of rows of a frame or array."""
    shape = X.shape if hasattr(X, "shape") else np.shape(X)
    return int(shape[0]) if shape else 0


def _are_names(value: Any, X: Any) -> bool:
    """Whether this is a list of column names rather than a list of labels in words."""
    return (
        isinstance(value, list | tuple)
        and 0 < len(value) < row_count(X)
        and all(isinstance(v, str) for v in value)
    )


def _may_be_a_frame(X: Any) -> bool:
    """Whether X could be a frame: narwhals is loaded only for what is no plain array."""
    return not isinstance(X, np.ndarray | list | tuple | pd.Series) and not np.isscalar(X)


def _column(series: Any) -> Any:
    """One column in pandas' own types, missing cells kept."""
    import narwhals.stable.v2 as nw

    kind = series.dtype
    if isinstance(kind, nw.Decimal):
        return series.cast(nw.Float64).to_numpy()
    if kind.is_numeric():
        return series.to_numpy()
    if isinstance(kind, nw.Boolean):
        return pd.array(series.to_list(), dtype="boolean")
    if isinstance(kind, nw.Enum):  # a Categorical of polars has no order of the user's
        return pd.Categorical(series.to_list(), categories=series.cat.get_categories().to_list())
    return pd.Series(series.to_list(), dtype=object)


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


def refuse_named(name: str, table: Any) -> None:
    """Refuse a table with names of columns that narwhals does not know: names would be lost."""
    signs = ("columns", "column_names", "schema", "coords", "__dataframe__")
    named = any(hasattr(table, sign) for sign in signs) or isinstance(table, dict)
    several = getattr(table, "ndim", 2) > 1
    if (named and several) or getattr(getattr(table, "dtype", None), "names", None):
        how = "X.to_pandas()" if hasattr(table, "to_pandas") else "pd.DataFrame(X)"
        raise DataError(
            f"{name} is a {type(table).__module__}.{type(table).__name__}, whose column names are "
            f"not read here; a pandas table is expected. Use {how.replace('X', name)}."
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
    refuse_named("X", X)
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


def frame_names(X: pd.DataFrame) -> tuple[str, ...]:
    """Names of the columns as text; each must be there once."""
    names = tuple(str(c) for c in X.columns)
    check_names(names)
    return names


def check_names(names: tuple[str, ...]) -> None:
    """Refuse names that occur twice, and those that are no text."""
    try:
        "".join(names).encode()
    except UnicodeEncodeError as error:
        start, stop = error.start, error.end
        raise DataError(
            f"A column name holds {error.object[start:stop]!a}, half of a character, which no file "
            "can hold. Rename the column."
        ) from None
    twice = sorted(c for c, count in Counter(names).items() if count > 1)
    if twice:
        raise DataError(
            f"X has duplicate column names: {some(twice)}. Every column needs its own name; "
            "rename or drop the copies."
        )


def match_columns(X: pd.DataFrame, names: tuple[str, ...]) -> pd.DataFrame:
    """The columns of these names in this order; missing and unknown ones are refused."""
    got = frame_names(X)
    position, known = {c: j for j, c in enumerate(got)}, set(names)
    missing = [c for c in names if c not in position]
    extra = [c for c in got if c not in known]
    if missing or extra:
        parts = [f"missing column(s) {some(missing)}"] if missing else []
        parts += [f"unknown column(s) {some(extra)}"] if extra else []
        near = nearest(missing[0], extra) if missing else None
        rename = f" Rename {near!r} to {missing[0]!r}?" if near else ""
        raise DataError(
            f"X does not match the fitted columns: {'; '.join(parts)}.{rename} "
            "Select them with X[list(fit.data.user_columns)]."
        )
    return X.iloc[:, [position[c] for c in names]]


def check_width(got: int, wanted: Sequence[str]) -> None:
    """Refuse another number of columns than the fit has."""
    if got != len(wanted):
        raise DataError(
            f"X has {got} columns, but the model was fitted on {len(wanted)}: "
            f"{some(wanted)}. Pass the same columns in the same order."
        )


def as_coordinate(index: pd.Index) -> NDArray[Any]:
    """Row labels as xarray and files keep them: numbers as they are, anything else as text."""
    if index.dtype.kind in "iuf":
        return index.to_numpy()
    return np.array([str(row) for row in index])


class SparseTable(NamedTuple):
    """A sparse matrix by rows, the names of its columns if it has any, and the row labels."""

    matrix: Any
    names: tuple[str, ...] | None
    index: pd.Index


def as_sparse(X: Any, *, without: Collection[str] = ()) -> SparseTable | None:
    """A sparse matrix of scipy, or a pandas frame all of whose columns are sparse; else None.

    The columns of a frame in ``without`` are left out. Cells are float64, finite, and each there
    once.
    """
    if issparse(X):
        if X.ndim != 2:
            raise DataError(
                f"X is a sparse array of shape {X.shape}; a table of shape (rows, columns) is "
                "expected."
            )
        return SparseTable(_checked(X, None), None, pd.RangeIndex(X.shape[0]))
    if not isinstance(X, pd.DataFrame) or not any(map(_is_sparse_type, X.dtypes)):
        return None
    frame = X.loc[:, [str(c) not in without for c in X.columns]]
    if frame.empty or not all(map(_is_sparse_type, frame.dtypes)):
        return None
    names = tuple(str(c) for c in frame.columns)
    return SparseTable(_checked(frame.sparse.to_coo(), names), names, frame.index)


def _is_sparse_type(dtype: Any) -> bool:
    return isinstance(dtype, pd.SparseDtype) and dtype.kind in "fiub" and dtype.fill_value == 0


def _checked(X: Any, names: tuple[str, ...] | None) -> Any:
    if X.dtype.kind not in "fiub":
        raise DataError(
            f"X holds {X.dtype} values; numbers are expected. Convert with X.astype(float)."
        )
    matrix = csr_array(X, dtype=float)
    matrix.sum_duplicates()
    bad = ~np.isfinite(matrix.data)
    if bad.any():
        places = np.unique(matrix.indices[bad])
        named = [f"x{j}" if names is None else names[j] for j in places]
        raise DataError(
            f"X is a sparse matrix with {int(bad.sum())} missing or infinite cell(s), in "
            f"column(s) {some(named)}; finite numbers are expected. Fill them first, for example "
            "X.data[~np.isfinite(X.data)] = 0."
        )
    return matrix
