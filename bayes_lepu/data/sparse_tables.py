"""Sparse matrices as tables: only the cells that differ from zero are held."""

from collections.abc import Collection
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.sparse import csr_array, issparse

from bayes_lepu.errors import DataError
from bayes_lepu.links import Array
from bayes_lepu.suggestions import some


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


def scaled(matrix: Any, factor: Array) -> Any:
    """The same with every column multiplied by its factor."""
    parts = matrix.data * factor[matrix.indices], matrix.indices, matrix.indptr
    return csr_array(parts, shape=matrix.shape)


def moments(matrix: Any, share: Array) -> tuple[Array, Array]:
    """Mean and standard deviation of every column, with the rows' shares of the weight."""
    p = matrix.shape[1]
    of_cell = np.repeat(share, np.diff(matrix.indptr))
    mean = share @ matrix
    away = np.square(matrix.data - mean[matrix.indices])
    squares = np.bincount(matrix.indices, weights=of_cell * away, minlength=p)
    empty = 1.0 - np.bincount(matrix.indices, weights=of_cell, minlength=p)
    return mean, np.sqrt(squares + np.maximum(empty, 0.0) * mean**2)


def tells(matrix: Any, marks: Array) -> Array:
    """Columns with one value in the marked rows, and zeros in all others."""
    p = matrix.shape[1]
    of_cell = np.repeat(np.asarray(marks, dtype=float), np.diff(matrix.indptr))
    filled = np.bincount(matrix.indices, minlength=p)
    among_marked = np.bincount(matrix.indices, weights=of_cell, minlength=p)
    same = np.flatnonzero((filled == np.sum(marks)) & (among_marked == filled))
    return np.array([j for j in same if np.ptp(matrix[:, [j]].data) == 0.0], dtype=np.intp)
