"""The internal scale of the columns: centred, in units of the standard deviation (ddof = 0)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from bayes_lepu.errors import DataError
from bayes_lepu.links import Array
from bayes_lepu.suggestions import some

TINY = 1e-100  # standard deviations below it are computed in other units: their squares vanish


def is_constant(center: Array, spread: Array) -> NDArray[np.bool_]:
    """Columns that do not vary beyond rounding, by mean and standard deviation."""
    # Relative to the centre alone, so that the units of a column do not matter.
    return spread <= 1e-12 * np.abs(center)


def standardise(
    values: Array,
    names: tuple[str, ...],
    weight: Array,
    *,
    standardize: bool,
    unscaled: Sequence[int] = (),
) -> tuple[Array, Array, Array]:
    """Centre, scale and a copy of the columns on the internal scale; constant ones are refused.

    Columns that are ``unscaled`` are centred only.
    """
    share = weight / weight.sum()
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        center = share @ values
        centred = np.subtract(values, center, order="C")
        spread = np.sqrt(np.einsum("i,ij,ij->j", share, centred, centred))
        # Squares vanish or overflow where the numbers themselves do not.
        extreme = np.flatnonzero((spread < TINY) | ~np.isfinite(spread))
        for j in extreme:
            largest = float(np.max(np.abs(centred[:, j])))
            spread[j] = largest
            if largest and np.isfinite(largest):
                spread[j] *= float(np.sqrt(share @ (centred[:, j] / largest) ** 2))
    _refuse_constant(is_constant(center, spread) & np.isfinite(center), names, "")
    extreme = extreme if not standardize else np.flatnonzero(~np.isfinite(center + spread))
    if extreme.size:
        raise too_extreme([names[j] for j in extreme], standardize=not standardize)
    if not standardize:
        return np.zeros_like(center), np.ones_like(center), np.array(values, order="C")
    spread[list(unscaled)] = 1.0
    centred *= 1 / spread
    return center, spread, centred


def too_extreme(names: Sequence[str], *, standardize: bool = False) -> DataError:
    """The error where a variance cannot be computed; standardize says whether that would help."""
    remedy = ", or standardize=True, of a table in memory." if standardize else "."
    return DataError(
        f"The values of column(s) {some(names)} are too large or too small: their variance cannot "
        f"be computed. Change the units{remedy}"
    )


def standardise_sparse(
    matrix: Any, names: tuple[str, ...], weight: Array, *, standardize: bool
) -> tuple[Array, Array, Any]:
    """The same for a sparse matrix, whose columns are divided by their largest values.

    Zeros stay zeros; the intercepts make up for the centres. A word of few rows has a tiny standard
    deviation; divided by it, rare words would weigh most.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        mean, spread = column_moments(matrix, weight)
    how = ": keep = np.diff(X.tocsc().indptr) > 0, then X[:, keep], also of new rows"
    _refuse_constant(is_constant(mean, spread), names, how)
    if (extreme := np.flatnonzero(~np.isfinite(spread))).size:
        raise too_extreme([names[j] for j in extreme])
    scale = np.ones_like(spread)
    if standardize:
        scale = abs(matrix[weight > 0]).max(axis=0).toarray().ravel()
    return np.zeros_like(spread), scale, scaled(matrix, 1 / scale)


def _refuse_constant(constant: NDArray[np.bool_], names: tuple[str, ...], how: str) -> None:
    if constant.any():
        raise DataError(
            f"Constant column(s): {some([names[j] for j in np.flatnonzero(constant)])}. They "
            f"carry no information and duplicate the intercept; drop them{how}."
        )


def scaled(matrix: Any, factor: Array) -> Any:
    """The same with every column multiplied by its factor."""
    parts = matrix.data * factor[matrix.indices], matrix.indices, matrix.indptr
    return csr_array(parts, shape=matrix.shape)


def column_moments(X: Any, weight: Array | None = None) -> tuple[Array, Array]:
    """Mean and standard deviation of the columns of a table, dense or sparse."""
    weight = np.ones(X.shape[0]) if weight is None else weight
    if not issparse(X):
        mean = np.average(X, axis=0, weights=weight)
        return mean, np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weight))
    share = weight / weight.sum()
    p, of_cell = X.shape[1], np.repeat(share, np.diff(X.indptr))
    mean = share @ X
    away = np.square(X.data - mean[X.indices])
    squares = np.bincount(X.indices, weights=of_cell * away, minlength=p)
    empty = 1.0 - np.bincount(X.indices, weights=of_cell, minlength=p)
    return mean, np.sqrt(squares + np.maximum(empty, 0.0) * mean**2)
