"""The highest point of a parabola with kinks, against its optimality conditions."""

import numpy as np
import pytest

from bayes_lepu.inference.quadratic import highest


@pytest.mark.parametrize("seed", range(20))
def test_the_optimality_conditions_hold(seed):
    rng = np.random.default_rng(seed)
    k = int(rng.integers(1, 30 if seed % 2 else 12))
    root = rng.normal(size=(k, k))
    H, g, z = root @ root.T + 0.01 * np.eye(k), 3 * rng.normal(size=k), rng.normal(size=k)
    z[rng.random(k) < 0.3] = 0.0
    C = np.where(rng.random(k) < 0.7, rng.uniform(0.5, 3, size=k), 0.0)
    solved, x = highest(g, H, z, C)
    assert solved
    slope = g - H @ (x - z)
    np.testing.assert_allclose(slope[x != 0], (C * np.sign(x))[x != 0], atol=1e-7)
    assert np.all(np.abs(slope[x == 0]) <= C[x == 0] + 1e-7)


def test_without_kinks_it_is_a_linear_system():
    H, g = np.array([[2.0, 0.5], [0.5, 1.0]]), np.array([1.0, -1.0])
    x = highest(g, H, np.ones(2), np.zeros(2))[1]
    np.testing.assert_allclose(x, 1 + np.linalg.solve(H, g))


def test_a_matrix_that_is_not_positive_definite_is_told():
    for last in (-1.0, 0.0):
        assert not highest(np.ones(2), np.diag([1.0, last]), np.zeros(2), np.zeros(2))[0]
