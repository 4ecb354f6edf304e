"""Shared difficulty: the gradient, and π where annotators find the same rows hard."""

import numpy as np
import pytest
from scipy.special import expit

from bayes_lepu.diagnostics.difficulty import Panel, difficulty_curve, loglik_grad

A, B = np.array([2.0, -1.0, 0.0]), 0.3


def made(J, spread, *, n=3000, seed=0, share=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    alpha = np.array([0.0, 0.5, 1.0]) + rng.normal(0, 0.5, size=(J, 3))
    beta = rng.normal(0, 0.3, J)
    t = expit(X @ A + B)
    y = rng.random(n) < t
    u = spread * rng.normal(size=n)
    s = expit(X @ alpha.T + beta + u[:, None])
    labels = (y[:, None] & (rng.random((n, J)) < s)).astype(np.int8)
    labels[rng.random((n, J)) > share] = -1
    every = np.ones(3, dtype=bool)
    panel = Panel(X, labels, np.full(n, -1, dtype=np.int8), every, every)
    return panel, {"a": A, "b": B, "alpha": alpha, "beta": beta}, float(t.mean())


@pytest.mark.parametrize("spread", [0.0, 1.0])
def test_gradient(spread):
    panel, _, _ = made(2, 1.0, n=60, share=0.7)
    known = np.array(panel.known)
    free = np.flatnonzero(~(panel.labels == 1).any(axis=1))
    known[free[:5]], known[free[5:9]] = 0, 1
    panel = Panel(panel.X, panel.labels, known, panel.class_mask, panel.selection_mask)
    rng = np.random.default_rng(1)
    z = rng.normal(size=4 + 2 * 4)
    _, grad = loglik_grad(panel, z, spread)
    numeric = [
        (loglik_grad(panel, z + e, spread)[0] - loglik_grad(panel, z - e, spread)[0]) / 2e-6
        for e in 1e-6 * np.eye(z.size)
    ]
    np.testing.assert_allclose(grad, numeric, rtol=1e-5, atol=1e-5)


def test_rows_that_are_hard_for_both_annotators():
    """Without a spread π is too low, and with the true one it is right."""
    panel, at, pi = made(2, 1.5)
    curve = difficulty_curve(panel, **at)
    assert curve["pi"].iloc[0] < pi - 0.03
    assert curve["pi"].is_monotonic_increasing
    assert curve["pi"].iloc[-1] == pytest.approx(pi, abs=0.05)
    assert curve["kept"].iloc[-1]


def test_many_annotators_tell_the_spread():
    panel, at, pi = made(8, 0.0)
    curve = difficulty_curve(panel, **at)
    assert not curve["kept"].iloc[-1]
    assert curve["pi"].iloc[0] == pytest.approx(pi, abs=0.03)
