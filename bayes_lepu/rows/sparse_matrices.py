r"""Sparse rows: the same sums, with X in two products only.

.. math:: \tau = X a + b, \quad \omega_j = X \alpha_j + \beta_j, \qquad
    \nabla_a \log L = X' d_\tau, \quad \nabla_{\alpha_j} \log L = X' d_{\omega_j}

What lies between, the slopes d of every row, is that of dense rows whose columns are the
predictors. Information matrices are sums over blocks of rows that are made dense one at a time, so
that they are for few columns.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import issparse

from bayes_lepu.links import Array
from bayes_lepu.rows.arguments import Links, Point, Rows, flat_order
from bayes_lepu.rows.evaluation import row_slopes
from bayes_lepu.rows.information import blocks_of_rows

BLOCK_CELLS = 2_000_000  # of a block of rows that is made dense


def is_sparse(X: Any) -> bool:
    """Whether a table is a sparse matrix."""
    return bool(issparse(X))


def as_dense(X: Any) -> Array:
    """A table with all its cells."""
    return X.toarray() if is_sparse(X) else X


def predict(slopes: Array, X: Any) -> Array:
    """Linear predictors ``(..., n)`` of slopes ``(..., p)``, without their intercepts."""
    if not is_sparse(X):
        return slopes @ X.T
    if slopes.ndim == 1:
        return X @ slopes
    return (X @ slopes.reshape(-1, X.shape[1]).T).T.reshape(*slopes.shape[:-1], X.shape[0])


def with_predictors(rows: Rows, point: Point) -> tuple[Rows, Point]:
    """Rows whose columns are their own predictors, the class last, and the point that says so."""
    J = len(point.beta)
    predictors = np.zeros((rows.X.shape[0], J + 1))
    predictors[:, J] = rows.X @ point.a
    if _varies(point):
        predictors[:, :J] = predict(point.alpha, rows.X).T
    each = np.eye(J + 1)
    return rows._replace(X=predictors), point._replace(a=each[J], alpha=each[:J])


def loglik_grad(rows: Rows, links: Links, point: Point) -> tuple[float, Array]:
    """Log-likelihood and its gradient in the flat order."""
    narrow = with_predictors(rows, point)
    loglik, d, rest = row_slopes(narrow[0], links, narrow[1])
    where, within = flat_order(rows), flat_order(narrow[0])
    used = d if _varies(point) else d[-1:]
    slopes = np.vstack([rows.X.T @ used.T, used.sum(axis=1)])
    grad = np.zeros(where.size)
    grad[where.of_class()] = slopes[:, -1]
    for j in range(where.J):
        grad[where.own(j)] = rest[within.own(j)]
        if _varies(point):
            grad[where.of_selection(j)] = slopes[:, j]
    return loglik, grad


def in_dense_blocks(
    function: Callable[..., tuple[Any, ...]], rows: Rows, links: Links, point: Point
) -> tuple[Any, ...]:
    """Sums over rows, of which some are made dense at a time."""
    size = max(1, BLOCK_CELLS // rows.X.shape[1])
    parts = [
        function(block._replace(X=as_dense(block.X)), links, point)
        for block in blocks_of_rows(rows, size)
    ]
    return tuple(sum(values) for values in zip(*parts, strict=True))


def _varies(point: Point) -> bool:
    """Whether a propensity depends on x."""
    return bool(np.isfinite(point.rates[:, 2]).any())
