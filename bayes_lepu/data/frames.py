"""Tables of any kind as pandas frames: narwhals reads polars, pyarrow and others.

Names are kept, so that new rows are matched by name whichever library holds them. A matrix of scipy
that is sparse stays one.
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
from bayes_lepu.suggestions import did_you_mean, nearest, some


class Table(NamedTuple):
    """A table as given.

    Attributes
    ----------
    cells : DataFrame or csr_array
        Columns in pandas' types, or finite numbers of a sparse matrix, each there once.
    names : tuple of str
    named : bool
        Whether the names are the user's, and so are matched in predictions.
    index : pandas.Index
        Labels of the rows.
    """

    cells: Any
    names: tuple[str, ...]
    named: bool
    index: pd.Index

    @property
    def is_sparse(self) -> bool:
        """Whether it is a sparse matrix."""
        return bool(issparse(self.cells))

    def without(self, columns: Collection[str]) -> "Table":
        """The table without some of its columns."""
        kept = [name not in columns for name in self.names]
        if all(kept) or not self.named:
            return self
        names = tuple(name for name in self.names if name not in columns)
        return self._replace(cells=self.cells.loc[:, kept], names=names)

    def sparse(self) -> "Table":
        """The same as a sparse matrix where all columns are sparse columns of numbers."""
        kinds = () if self.is_sparse else self.cells.dtypes
        if not len(kinds) or not all(map(_is_sparse_type, kinds)):
            return self
        return self._replace(cells=_checked(self.cells.sparse.to_coo(), self.names))

    def take(self, names: str | Sequence[str], *, option: str) -> Any:
        """The column (or several) that an option names, such as ``l="marked"``."""
        if not self.named:
            raise DataError(
                f"{option}={names!r} is the name of a column, but X is an array or a matrix "
                f"without column names. Pass a DataFrame that holds the column, or the values of "
                f"{option}."
            )
        return take_column(self.cells, names, option=option)


def _is_sparse_type(dtype: Any) -> bool:
    return isinstance(dtype, pd.SparseDtype) and dtype.kind in "fiub" and dtype.fill_value == 0


def read_frame(X: Any, *, name: str = "X", like: Sequence[str] = ()) -> Table:
    """Any table; its rows and columns are views of the user's where they can be.

    ``like`` names the columns that new rows have, if any.
    """
    if isinstance(X, pd.DataFrame):
        names = tuple(map(str, X.columns))
        named = X if names == tuple(X.columns) else X.set_axis(list(names), axis=1)
        return Table(named, names, True, X.index)
    if issparse(X):
        if X.ndim != 2:
            raise DataError(
                f"{name} is a sparse array of shape {X.shape}; a table of shape (rows, columns) is "
                "expected."
            )
        names = numbered(X.shape[1])
        return Table(_checked(X, names), names, False, pd.RangeIndex(X.shape[0]))
    if (frame := by_narwhals(X, name)) is not None:
        return Table(frame, tuple(frame.columns), True, frame.index)
    values = _two_dimensions(X, name, like)
    if values.dtype.kind in "fiub":
        values = np.asarray(values, dtype=float)
    names, rows = numbered(values.shape[1]), pd.RangeIndex(values.shape[0])
    return Table(pd.DataFrame(values, columns=list(names), copy=False), names, False, rows)


def numbered(width: int) -> tuple[str, ...]:
    """Names of the columns of a table that has none."""
    return tuple(f"x{j}" for j in range(width))


def by_narwhals(X: Any, name: str) -> pd.DataFrame | None:
    """The frame of another library in pandas; None for what is none."""
    if isinstance(X, np.ndarray | list | tuple | pd.Series) or np.isscalar(X):
        return None  # narwhals is loaded only for what is no plain array
    import narwhals.stable.v2 as nw

    frame = nw.from_native(X, pass_through=True)
    if isinstance(frame, nw.LazyFrame):
        raise DataError(
            f"{name} is a lazy frame ({type(X).__module__}.{type(X).__name__}); rows in memory are "
            "expected. Use X.collect() (polars, narwhals) or X.compute() (dask) first; lepu.fit "
            "and lepu.dask.predict_proba take Dask frames as they are."
        )
    if not isinstance(frame, nw.DataFrame):
        return None
    columns = {column: _in_pandas(frame[column]) for column in frame.columns}
    return pd.DataFrame(columns, index=pd.RangeIndex(len(frame)))


def _in_pandas(series: Any) -> Any:
    """A column of narwhals in pandas' own types, missing cells kept."""
    import narwhals.stable.v2 as nw

    kind = series.dtype
    if isinstance(kind, nw.Decimal):
        return series.cast(nw.Float64).to_numpy()
    if kind.is_numeric():
        return series.to_numpy()
    if isinstance(kind, nw.Enum):  # a Categorical of polars has no order of the user's
        return pd.Categorical(series.to_list(), categories=series.cat.get_categories().to_list())
    return pd.Series(series.to_list(), dtype=object)


def take_column(frame: pd.DataFrame, name: str | Sequence[str], *, option: str) -> Any:
    """The column (or several) of a frame that an option names."""
    known = list(map(str, frame.columns))
    for one in [name] if isinstance(name, str) else name:
        if one not in known:
            raise DataError(
                f"{option} names {one!r}, which is not a column of X.{did_you_mean(one, known)} "
                f"Columns: {some(known, most=12)}."
            )
    frame = frame.set_axis(known, axis=1)
    return frame[name] if isinstance(name, str) else frame[list(name)]


def take_roles(
    table: Table, l: Any, y: Any, sample_weight: Any, exclude: Sequence[str]
) -> tuple[Any, Any, Any, tuple[str, ...]]:
    """Labels, audits and weights, from the columns of X they name; and what is no feature.

    Several names of labels, as a list, are several annotators.
    """
    aside: list[str] = []
    taken = []
    for option, value in (("l", l), ("y", y), ("sample_weight", sample_weight)):
        several = option == "l" and _are_names(value, len(table.index))
        names = [value] if isinstance(value, str) else value if several else []
        if both := set(names) & set(aside):
            raise DataError(
                f"{option} names {min(both)!r}, which is l or y already. Labels are who was "
                "marked, audits the class that a row turned out to have; each is a column."
            )
        taken.append(table.take(value, option=option) if names else value)
        aside += names
    if isinstance(exclude, str):
        raise DataError(f"exclude={exclude!r} is a single value; pass a list: [{exclude!r}].")
    if len(exclude):
        table.take([str(name) for name in exclude], option="exclude")
    return taken[0], taken[1], taken[2], (*aside, *map(str, exclude))


def _are_names(value: Any, n: int) -> bool:
    """Whether this is a list of column names rather than a list of labels in words."""
    several = isinstance(value, list | tuple) and 0 < len(value) < n
    return several and all(isinstance(v, str) for v in value)


def refuse_swapped(X: Any, l: Any) -> None:
    """Refuse a vector where the table belongs."""
    first: tuple[int, ...] = getattr(X, "shape", ())
    second: tuple[int, ...] = getattr(l, "shape", ())
    if len(first) == 1 and len(second) == 2 and second[-1] > 1:
        raise DataError(
            f"X has shape {first} and l has shape {second}: the two seem to be swapped. "
            "The table comes first: fit(X, l)."
        )


def _refuse_others(X: Any) -> None:
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


def _two_dimensions(X: Any, name: str, like: Sequence[str]) -> NDArray[Any]:
    """An array of two dimensions, or advice that depends on what it has instead."""
    if isinstance(X, np.ma.MaskedArray):
        X = np.ma.filled(X.astype(float), np.nan)  # a masked cell is a missing one
    _refuse_others(X)
    refuse_named(name, X)
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
    elif len(like) == len(array) > 1:
        how = "to_frame().T" if isinstance(X, pd.Series) else "reshape(1, -1)"
        hint = f"Use X.{how} for a single row."
    else:
        how = "to_frame()" if isinstance(X, pd.Series) else "reshape(-1, 1)"
        hint = f"Use X.{how} for a single column."
    raise DataError(
        f"X has {array.ndim} dimension(s), shape {array.shape}; a table of shape (rows, "
        f"columns) is expected. {hint}"
    )


def check_names(names: Sequence[str]) -> None:
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


def refuse_empty(table: Table) -> None:
    """Refuse tables without rows or columns."""
    if min(table.cells.shape) == 0:
        raise DataError(
            f"X is empty: its shape is {table.cells.shape}. At least one row and one column are "
            "needed."
        )


def match_columns(table: Table, wanted: Sequence[str], *, named: bool) -> Any:
    """The values of the columns ``wanted``: by name where both have names, else in their order."""
    refuse_empty(table)
    if not (named and table.named):
        if len(table.names) != len(wanted):
            raise DataError(
                f"X has {len(table.names)} columns, but the model was fitted on {len(wanted)}: "
                f"{some(wanted)}. Pass the same columns in the same order."
            )
        return table.cells
    check_names(table.names)
    position, known = {c: j for j, c in enumerate(table.names)}, set(wanted)
    missing = [c for c in wanted if c not in position]
    extra = [c for c in table.names if c not in known]
    if missing or extra:
        parts = [f"missing column(s) {some(missing)}"] if missing else []
        parts += [f"unknown column(s) {some(extra)}"] if extra else []
        near = nearest(missing[0], extra) if missing else None
        rename = f" Rename {near!r} to {missing[0]!r}?" if near else ""
        raise DataError(
            f"X does not match the fitted columns: {'; '.join(parts)}.{rename} "
            "Select them with X[list(fit.data.user_columns)]."
        )
    order = [position[c] for c in wanted]
    return table.cells[:, order] if table.is_sparse else table.cells.iloc[:, order]


def as_coordinate(index: pd.Index) -> NDArray[Any]:
    """Row labels as xarray and files keep them: numbers as they are, anything else as text."""
    if index.dtype.kind in "iuf":
        return index.to_numpy()
    return np.array([str(row) for row in index])


def _checked(X: Any, names: Sequence[str]) -> Any:
    """A sparse matrix by rows: float64, finite, each cell there once."""
    matrix = csr_array(numbers(X), dtype=float)
    matrix.sum_duplicates()
    bad = ~np.isfinite(matrix.data)
    if bad.any():
        named = [names[j] for j in np.unique(matrix.indices[bad])]
        raise DataError(
            f"X is a sparse matrix with {int(bad.sum())} missing or infinite cell(s), in "
            f"column(s) {some(named)}; finite numbers are expected. Fill them first, for example "
            "X.data[~np.isfinite(X.data)] = 0."
        )
    return matrix


def numbers(array: Any) -> Any:
    """The array if it holds real numbers."""
    if array.dtype.kind not in "fiub":
        raise DataError(
            f"X holds {array.dtype} values; numbers are expected. Convert with X.astype(float), "
            "or pass a DataFrame, whose columns of text become categories."
        )
    return array
