"""Solving with matrices that are singular or not finite ends in numbers, never in an error."""

import numpy as np
import pytest

from bayes_lepu.rows import factoring

BAD = {
    "zero": np.zeros((3, 3)),
    "singular": np.ones((3, 3)),
    "indefinite": np.diag([1.0, -2.0, 1.0]),
    "infinite": np.diag([1.0, 0.0, np.inf]),
    "nan": np.full((3, 3), np.nan),
}


@pytest.mark.parametrize("A", BAD.values(), ids=BAD)
def test_solving_never_ends_in_an_error(A):
    assert np.all(np.isfinite(factoring.solve(A, np.ones(3))))
    assert np.all(np.isfinite(factoring.inverse(A)))
    covariance = factoring.inverse_curvature(A)
    assert np.all(np.isfinite(covariance))
    assert np.linalg.eigvalsh(covariance).min() > 0
    assert factoring.inverse_root(A) is None


def test_solving_is_exact_where_it_can_be():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(5, 5))
    A, b = root @ root.T * 10.0 ** rng.uniform(-1, 4), rng.normal(size=5)
    inverse = np.linalg.inv(A)
    np.testing.assert_allclose(factoring.solve(A, b), np.linalg.solve(A, b), rtol=1e-6)
    np.testing.assert_allclose(factoring.inverse(A), inverse, rtol=1e-6)
    np.testing.assert_allclose(factoring.inverse_curvature(A), inverse, rtol=1e-6)
    lower = factoring.inverse_root(A)
    np.testing.assert_array_equal(lower, np.tril(lower))
    np.testing.assert_allclose(lower @ lower.T, inverse, rtol=1e-6)
