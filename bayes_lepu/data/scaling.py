"""The internal scale of the columns: centred, in units of the standard deviation (ddof = 0)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from bayes_lepu.errors import DataError
from bayes_lepu.links import Array
from bayes_lepu.rows.sparse_matrices import as_dense
from bayes_lepu.suggestions import some

# Range of standard deviations whose squares, and sums of these, neither vanish nor overflow.
SMALLEST, LARGEST = 1e-100, 1e100


def is_constant(center: Array, spread: Array) -> NDArray[np.bool_]:
    """Mask of columns that are constant up to rounding, from mean and standard deviation."""
    # Relative to the centre alone, so that the units of a column do not matter.
    return spread <= 1e-12 * np.abs(center)


def standardise(
    values: Any,
    names: tuple[str, ...],
    weight: Array,
    *,
    standardize: bool,
    unscaled: Sequence[int] = (),
) -> tuple[Array, Array, Any]:
    """Centre, scale and a copy of the columns on the internal scale; constant ones are refused.

    Columns that are ``unscaled`` are centred only. The columns of a sparse matrix are divided by
    their largest values and not centred, so zeros stay zeros; the intercepts absorb the centres.
    Standard deviations are not used there: they are tiny for rare words, which would get the
    largest values. Sparse columns with more values than zeros, such as a length, are centred first.
    """
    center, spread = column_moments(values, weight)
    if (constant := is_constant(center, spread) & np.isfinite(center)).any():
        how = ": keep = np.diff(X.tocsc().indptr) > 0, then X[:, keep], also of new rows"
        raise DataError(
            f"Constant column(s): {some([names[j] for j in np.flatnonzero(constant)])}. They "
            f"carry no information and duplicate the intercept; drop them"
            f"{how if issparse(values) else ''}."
        )
    fits = (spread > SMALLEST) & (spread < LARGEST)
    if standardize:  # no value is further from the mean
        with np.errstate(over="ignore"):
            fits = np.isfinite(np.abs(center) + spread * np.sqrt(values.shape[0]))
    if not fits.all():
        raise too_extreme([names[j] for j in np.flatnonzero(~fits)], standardize=not standardize)
    if not standardize:
        center, spread = np.zeros_like(center), np.ones_like(spread)
    if issparse(values):
        if standardize:
            of_cell = np.repeat(weight, np.diff(values.indptr))
            filled = np.bincount(values.indices, of_cell, values.shape[1]) > weight.sum() / 2
            center = np.where(filled, center, 0.0)
            values = scaled(values, np.ones_like(center), center)
            spread = as_dense(abs(values[weight > 0]).max(axis=0)).ravel()
        return center, spread, scaled(values, 1 / spread)
    spread[list(unscaled)] = 1.0
    centred = np.subtract(values, center, order="C")
    centred *= 1 / spread
    return center, spread, centred


def too_extreme(names: Sequence[str], *, standardize: bool = False) -> DataError:
    """The error for a variance that cannot be computed; advises ``standardize`` if not yet set."""
    remedy = ", or standardize=True, of a table in memory." if standardize else "."
    return DataError(
        f"The values of column(s) {some(names)} are too large or too small: their variance cannot "
        f"be computed. Change the units{remedy}"
    )


def scaled(matrix: Any, factor: Array, center: Array | float = 0.0) -> Any:
    """A sparse matrix with every column centred and multiplied by a factor.

    Columns whose centre is not 0 are filled.
    """
    if (columns := np.flatnonzero(center)).size:
        rows, each = matrix.shape[0], np.asarray(center)[columns]
        ends = columns.size * np.arange(rows + 1)
        filled = np.tile(each, rows), np.tile(columns, rows), ends
        matrix = csr_array(matrix - csr_array(filled, shape=matrix.shape))
    parts = matrix.data * factor[matrix.indices], matrix.indices, matrix.indptr
    return csr_array(parts, shape=matrix.shape)


def column_moments(X: Any, weight: Array | None = None) -> tuple[Array, Array]:
    """Mean and standard deviation of the columns of a table, dense or sparse."""
    share = np.ones(X.shape[0]) if weight is None else weight
    share = share / share.sum()
    # In units whose squares neither vanish nor overflow, and which round nothing.
    unit = np.ldexp(1.0, np.frexp(as_dense(abs(X).max(axis=0)).ravel())[1] - 1)
    unit = np.maximum(unit, np.finfo(float).tiny)
    if not issparse(X):
        inside = X / unit
        mean = share @ inside
        inside -= mean
        return unit * mean, unit * np.sqrt(np.einsum("i,ij,ij->j", share, inside, inside))
    p, of_cell = X.shape[1], np.repeat(share, np.diff(X.indptr))
    inside = scaled(X, 1 / unit)
    mean = share @ inside
    away = np.square(inside.data - mean[X.indices])
    squares = np.bincount(X.indices, weights=of_cell * away, minlength=p)
    empty = 1.0 - np.bincount(X.indices, weights=of_cell, minlength=p)
    return unit * mean, unit * np.sqrt(squares + np.maximum(empty, 0.0) * mean**2)
