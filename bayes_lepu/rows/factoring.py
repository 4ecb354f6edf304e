"""Solving with information matrices that may be singular or not finite, without errors."""

import numpy as np
import scipy.linalg

from bayes_lepu.links import Array


def solve(A: Array, b: Array) -> Array:
    r"""A⁻¹ b for a symmetric positive semi-definite A.

    By Cholesky on the matrix scaled to unit diagonal. If that fails, by its eigenvalues, which are
    raised to at least 1e-10, so that unidentified directions get a very large variance. Entries
    that are not finite count as no information.
    """
    A = np.where(np.isfinite(A), A, 0.0)
    b = np.where(np.isfinite(b), b, 0.0)
    diagonal = np.diag(A)
    root = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    scaled = np.clip(A / root / root[:, None], -1.0, 1.0)  # beyond: rounding
    right = b / (root if b.ndim == 1 else root[:, None])
    try:
        found = scipy.linalg.cho_solve(scipy.linalg.cho_factor(scaled), right)
        if not np.all(np.isfinite(found)):
            raise np.linalg.LinAlgError
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh((scaled + scaled.T) / 2)
        inner = vectors.T @ right
        values = np.maximum(values, 1e-10)
        found = vectors @ (inner / (values if b.ndim == 1 else values[:, None]))
    return found / (root if b.ndim == 1 else root[:, None])


def inverse(A: Array) -> Array:
    """A⁻¹ as `solve` gives it, symmetric."""
    found = solve(A, np.eye(len(A)))
    return (found + found.T) / 2


def inverse_curvature(curvature: Array) -> Array:
    """Covariance; directions without positive curvature get a unit variance."""
    values, vectors = np.linalg.eigh(np.where(np.isfinite(curvature), curvature, 0.0))
    covariance = (vectors / np.where(values > 1e-3, values, 1.0)) @ vectors.T
    return 0.5 * (covariance + covariance.T)


def inverse_root(curvature: Array) -> Array | None:
    """Lower Cholesky factor of the inverse; None where the curvature is not positive definite.

    With curvature = U U', U upper triangular, it is the inverse of U'.
    """
    try:
        upper = np.linalg.cholesky(curvature[::-1, ::-1])[::-1, ::-1]
        root = scipy.linalg.solve_triangular(upper, np.eye(len(upper)), check_finite=False).T
    except np.linalg.LinAlgError:
        return None
    return root if np.all(np.isfinite(root)) else None
