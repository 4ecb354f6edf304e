r"""Sums over rows for a dense or sparse X; with a sparse X only products are computed.

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

from bayes_lepu.factors.dispatch import factor_values
from bayes_lepu.links import Array
from bayes_lepu.rows import evaluation, formula
from bayes_lepu.rows.arguments import Links, Point, Rows, flat_order


def is_sparse(X: Any) -> bool:
    """Whether a table is a sparse matrix."""
    return bool(issparse(X))


def as_dense(X: Any) -> Array:
    """A table with all its cells."""
    return X.toarray() if is_sparse(X) else X


def predict(slopes: Array, X: Any) -> Array:
    """Linear predictors ``(..., n)`` of slopes ``(..., p)``, without their intercepts."""
    if not is_sparse(X) or slopes.ndim == 1:
        return slopes @ X.T
    return (X @ slopes.reshape(-1, X.shape[1]).T).T.reshape(*slopes.shape[:-1], X.shape[0])


def with_predictors(rows: Rows, point: Point) -> tuple[Rows, Point]:
    """Dense rows whose columns are the predictors, the class last, with a point of unit slopes."""
    slopes = np.vstack([point.alpha, point.a])
    each = np.eye(len(slopes))
    narrow = np.ascontiguousarray(predict(slopes, rows.X).T)
    return rows._replace(X=narrow), point._replace(a=each[-1], alpha=each[:-1])


def loglik_grad(rows: Rows, links: Links, point: Point) -> tuple[float, Array]:
    """Log-likelihood and its gradient in the flat order."""
    if not is_sparse(rows.X):
        return evaluation.loglik_grad(rows, links.codes, point)
    narrow, at = with_predictors(rows, point)
    loglik, d, rest = evaluation.row_slopes(narrow, links.codes, at)
    where, within = flat_order(rows), flat_order(narrow)
    slopes, grad = np.vstack([rows.X.T @ d.T, d.sum(axis=1)]), np.zeros(where.size)
    grad[where.of_class()] = slopes[:, -1]
    for j in range(where.J):
        grad[where.own(j)] = rest[within.own(j)]
        grad[where.of_selection(j)] = slopes[:, j]
    return loglik, grad


def row_terms(rows: Rows, links: Links, point: Point) -> tuple[Array, Array]:
    """Log-likelihood of every row (without its weight), and P(y=1 | x, labels)."""
    rows, point = with_predictors(rows, point) if is_sparse(rows.X) else (rows, point)
    return evaluation.row_terms(rows, links.codes, point)


def row_slopes(rows: Rows, links: Links, point: Point) -> Array:
    """Slopes (J + 1, n) of every row's log-likelihood in its predictors, the class last."""
    return evaluation.row_slopes(rows, links.codes, point)[1]


def loglik_grad_info(rows: Rows, links: Links, point: Point) -> tuple[float, Array, Array]:
    """Log-likelihood, gradient and an information matrix that is never negative.

    The expected information for one annotator, the complete-data information for several.
    """
    return *loglik_grad(rows, links, point), *information(rows, links, point)


def information(rows: Rows, links: Links, point: Point) -> tuple[Array]:
    """The information matrix of `loglik_grad_info` alone."""
    if is_sparse(rows.X):
        return _in_dense_blocks(information, rows, links, point)
    return (formula.information(rows, links, point),)


def observed_information(rows: Rows, links: Links, point: Point) -> tuple[Array]:
    """Minus the Hessian of the log-likelihood in the flat order."""
    if is_sparse(rows.X):
        return _in_dense_blocks(observed_information, rows, links, point)
    return (formula.observed_information(rows, links, point),)


def outside_moments(
    rows: Rows, links: Links, point: Point
) -> tuple[float, float, Array, Array, Array]:
    r"""Sums that a known class prior or label frequency needs, with their gradients.

    W = :math:`\sum w_i`; T = :math:`\sum w_i t_i`, so that π = T / W, and its gradient (size,);
    M (J,) = :math:`\sum w_i t_i \psi_{ij}`, so that c_j = M_j / T, and their gradients (J, size).
    """
    where, w = flat_order(rows), rows.weight
    t, _, d_tau = factor_values(links.of_class, rows.X @ point.a + point.b, point.class_rates)
    t, d_tau = w * t, w * d_tau
    dT, M, dM = np.zeros(where.size), np.zeros(where.J), np.zeros((where.J, where.size))
    dT[where.of_class()] = *(d_tau @ rows.X), d_tau.sum()
    for j, rates in enumerate(point.rates):
        omega = rows.X @ point.alpha[j] + point.beta[j]
        psi, not_psi, slope = factor_values(links.of_selection, omega, rates)
        M[j], by_class, by_omega = t @ psi, d_tau * psi, t * slope
        dM[j, where.of_class()] = *(by_class @ rows.X), by_class.sum()
        dM[j, where.of_selection(j)] = *(by_omega @ rows.X), by_omega.sum()
        dM[j, where.own(j)] = np.exp(rates[0]) * (t @ not_psi), -np.exp(rates[1]) * M[j], 0.0
    return float(w.sum()), float(t.sum()), dT, M, dM


def _in_dense_blocks(
    function: Callable[..., tuple[Any, ...]], rows: Rows, links: Links, point: Point
) -> tuple[Any, ...]:
    size = max(1, 2_000_000 // rows.X.shape[1])  # 16 MB
    parts = [
        function(block._replace(X=as_dense(block.X)), links, point)
        for block in formula.blocks_of_rows(rows, size)
    ]
    return tuple(sum(values) for values in zip(*parts, strict=True))
