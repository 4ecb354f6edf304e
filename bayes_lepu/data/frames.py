"""Tables of any kind as pandas frames: narwhals reads polars, pyarrow and others.

Names are kept, so that new rows are matched by name whatever their library. A sparse matrix of
scipy stays sparse.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
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

    ``cells`` is a DataFrame or a sparse matrix of finite numbers; ``named`` whether the names are
    the user's, and so are matched in predictions.
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
        """The table as a sparse matrix if all its columns are sparse columns of numbers."""

        def fits(kind: Any) -> bool:
            sparse = isinstance(kind, pd.SparseDtype)
            return sparse and kind.kind in "fiub" and kind.fill_value == 0

        if self.is_sparse or not self.names or not all(map(fits, self.cells.dtypes)):
            return self
        return self._replace(cells=_checked(self.cells.sparse.to_coo(), self.names))

    def take(self, names: str | Sequence[str], *, option: str) -> Any:
        """The column or columns given by name in an option, such as ``l="marked"``."""
        if not self.named:
            raise DataError(
                f"{option}={names!r} is the name of a column, but X is an array or a matrix "
                f"without column names. Pass a DataFrame that holds the column, or the values of "
                f"{option}."
            )
        return take_column(self.cells, names, option=option)


def read_frame(X: Any, *, like: Sequence[str] = ()) -> Table:
    """Any table, without a copy where possible; ``like`` names the columns of the fit."""
    if isinstance(X, pd.DataFrame):
        names = tuple(map(str, X.columns))
        named = X if names == tuple(X.columns) else X.set_axis(list(names), axis=1)
        return Table(named, names, True, X.index)
    if (frame := by_narwhals(X, "X")) is not None:
        return Table(frame, tuple(frame.columns), True, frame.index)
    if issparse(X) and X.ndim == 2:
        values: Any = X
    else:
        values = _two_dimensions(X, like)
        values = values.astype(float, copy=False) if values.dtype.kind in "fiub" else values
    names, rows = tuple(f"x{j}" for j in range(values.shape[1])), pd.RangeIndex(values.shape[0])
    if issparse(values):
        return Table(_checked(values, names), names, False, rows)
    return Table(pd.DataFrame(values, columns=list(names), copy=False), names, False, rows)


def by_narwhals(X: Any, name: str) -> pd.DataFrame | None:
    """The frame of another library in pandas; None for what is none."""
    if isinstance(X, np.ndarray | list | tuple | pd.Series) or np.isscalar(X) or issparse(X):
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

    def in_pandas(series: Any) -> Any:
        kind = series.dtype
        if isinstance(kind, nw.Decimal):
            return series.cast(nw.Float64).to_numpy()
        if kind.is_numeric():
            return series.to_numpy()
        if isinstance(kind, nw.Enum):  # a Categorical of polars has no order of the user's
            return pd.Categorical(series.to_list(), series.cat.get_categories().to_list())
        return pd.Series(series.to_list(), dtype=object)

    return pd.DataFrame({column: in_pandas(frame[column]) for column in frame.columns})


def take_column(frame: pd.DataFrame, name: str | Sequence[str], *, option: str) -> Any:
    """The column or columns of a frame given by name in an option."""
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
    """Labels, audits and weights given as names of columns of X; and the columns without features.

    A list of several label names means several annotators.
    """
    aside: list[str] = []
    taken = []
    for option, value in (("l", l), ("y", y), ("sample_weight", sample_weight)):
        listed = option == "l" and isinstance(value, list | tuple)
        several = listed and 0 < len(value) < len(table.index)  # not one label in words per row
        several = several and all(isinstance(name, str) for name in value)
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


def take_visits(table: Table, visits: Any) -> tuple[Any, tuple[str, ...]]:
    """The tables of visits, taken from columns of X if given by names; and these names."""
    if not isinstance(visits, Mapping):
        return visits, ()
    named = {
        key: list(given)
        for key, given in visits.items()
        if isinstance(given, list | tuple) and all(isinstance(name, str) for name in given)
    }
    found = {k: table.take(v, option=f"visits[{k!r}]").to_numpy() for k, v in named.items()}
    return {**visits, **found}, tuple(name for names in named.values() for name in names)


def refuse_named(name: str, table: Any) -> None:
    """Refuse tables that narwhals does not know, because their names would be lost."""
    signs = ("columns", "column_names", "schema", "coords", "__dataframe__")
    named = any(hasattr(table, sign) for sign in signs) or isinstance(table, dict)
    several = getattr(table, "ndim", 2) > 1
    if isinstance(table, str | Path):
        raise DataError(
            f"{name} is the text {str(table)!r}; a table is expected. Use "
            f"pd.read_parquet({str(table)!r}) or pd.read_csv first; for more rows than memory "
            "holds dask.dataframe.read_parquet, then fit(X, ..., method='map')."
        )
    if isinstance(table, list | tuple) and any(hasattr(part, "columns") for part in table):
        raise DataError(
            f"{name} is a {type(table).__name__} of data frames; one table is expected. Use "
            "pd.concat(frames), or for more rows than memory dask.dataframe.from_map(read, names)."
        )
    if (named and several) or getattr(getattr(table, "dtype", None), "names", None):
        how = f"{name}.to_pandas()" if hasattr(table, "to_pandas") else f"pd.DataFrame({name})"
        raise DataError(
            f"{name} is a {type(table).__module__}.{type(table).__name__}, whose column names are "
            f"not read here; a pandas table is expected. Use {how}."
        )


def _two_dimensions(X: Any, like: Sequence[str]) -> NDArray[Any]:
    """The array if it has two dimensions; otherwise an error with advice."""
    if isinstance(X, np.ma.MaskedArray):
        X = np.ma.filled(X.astype(float), np.nan)  # a masked cell is a missing one
    refuse_named("X", X)
    try:
        array = X if issparse(X) else np.asarray(X)
    except ValueError as error:
        raise DataError(
            f"X is no table ({type(X).__name__}): its rows differ in length. Give each row as many "
            "cells, NaN where there is none."
        ) from error
    if array.ndim == 2:
        return array
    hint = "Pass a DataFrame or a 2-d array."
    if array.ndim > 2:
        hint = "Use X.reshape(len(X), -1) to make one row of each entry."
    elif array.size and not (like or issparse(X)) and isinstance(array.item(0), str):
        hint = (
            "It holds texts: make columns of them by scikit-learn's TfidfVectorizer, "
            "X = TfidfVectorizer().fit_transform(texts), and pass method='map'."
        )
    elif array.ndim:
        row = len(like) == array.size > 1
        frame = "to_frame().T" if row else "to_frame()"
        how = frame if isinstance(X, pd.Series) else f"reshape({'1, -1' if row else '-1, 1'})"
        hint = f"Use X.{how} for a single {'row' if row else 'column'}."
    raise DataError(
        f"X has {array.ndim} dimension(s), shape {array.shape}; a table of shape (rows, "
        f"columns) is expected. {hint}{'' if like else ' The table comes first: fit(X, l).'}"
    )


def check_table(table: Table) -> None:
    """Refuse a table without rows or columns, and names that do not fit."""
    if min(table.cells.shape) == 0:
        raise DataError(
            f"X is empty: its shape is {table.cells.shape}. At least one row and one column are "
            "needed."
        )
    check_names(table.names)


def check_names(names: Sequence[str]) -> None:
    """Refuse names that occur twice or are no text."""
    if broken := [name for name in names if name.encode(errors="ignore").decode() != name]:
        raise DataError(
            f"A column name holds half of a character, which no file can hold: {broken[0]!a}. "
            "Rename the column."
        )
    if twice := sorted(c for c, count in Counter(names).items() if count > 1):
        raise DataError(
            f"X has duplicate column names: {some(twice)}. Every column needs its own name; "
            "rename or drop the copies."
        )


def match_columns(table: Table, wanted: Sequence[str], *, named: bool) -> Any:
    """The values of the columns ``wanted``: by name where both have names, else in their order."""
    check_table(table)
    if not (named and table.named):
        if len(table.names) != len(wanted):
            raise DataError(
                f"X has {len(table.names)} columns, but the model was fitted on {len(wanted)}: "
                f"{some(wanted)}. Pass the same columns in the same order."
            )
        return table.cells
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
    """Row labels for xarray and files: numbers unchanged, anything else as text."""
    if index.dtype.kind in "iuf":
        return index.to_numpy()
    return np.array([str(row) for row in index])


def _checked(X: Any, names: Sequence[str]) -> Any:
    """A sparse matrix by rows: float64, finite, each cell there once."""
    matrix = csr_array(numbers(X), dtype=float)
    matrix.sum_duplicates()
    if (bad := ~np.isfinite(matrix.data)).any():
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
