"""Different parameters, the same h: the pairs that show what no data can tell apart."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import least_squares

from bayes_lepu import ModelError, Parameters

PAIRS = json.loads((Path(__file__).parents[1] / "stored" / "counterexamples.json").read_text())

# The class priors pi = E t under X ~ N(0, I) of both answers, as tabulated.
CLASS_PRIORS = {
    "S1": (0.500, 0.313),
    "P1": (0.500, 0.400),
    "P1b": (0.500, 0.444),
    "P2": (0.661, 0.495),
    "P2b": (0.612, 0.495),
    "P3": (0.676, 0.495),
    "P4": (0.371, 0.454),
    "P5": (0.201, 0.454),
    "P6": (0.528, 0.830),
    "P7": (0.404, 0.503),
    "P8a": (0.529, 0.798),
    "P8b": (0.529, 0.460),
    "P9": (0.347, 0.563),
    "P2-n1": (0.640, 0.494),
}


def points(p, seed=0, n=2000):
    return np.random.default_rng(seed).normal(0, 3, (n, p))


def test_every_pair_is_here():
    assert {name.split()[0] for name in PAIRS} == set(CLASS_PRIORS)


@pytest.mark.parametrize("name", PAIRS)
def test_pairs_have_the_same_h(name):
    first, second = (Parameters.of(**values) for values in PAIRS[name])
    X = points(len(first.a))
    np.testing.assert_allclose(first.h(X), second.h(X), rtol=0, atol=1e-12)
    np.testing.assert_allclose(np.log(first.h(X)), np.log(second.h(X)), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", PAIRS)
def test_pairs_have_different_classifiers(name):
    """The class priors are those of the table, whose own sample has 2000 points (3 sd = .03)."""
    first, second = (Parameters.of(**values) for values in PAIRS[name])
    X = np.random.default_rng(1).normal(size=(50_000, len(first.a)))
    pi = [float(point.t(X).mean()) for point in (first, second)]
    assert pi == pytest.approx(CLASS_PRIORS[name.split()[0]], abs=0.03)
    assert abs(pi[0] - pi[1]) > 0.04


@pytest.mark.parametrize("name", PAIRS)
def test_a_nudge_breaks_every_pair(name):
    """The comparison has teeth: a change of 1e-6 in one intercept is seen."""
    first, second = (Parameters.of(**values) for values in PAIRS[name])
    nudged = Parameters.of(**{**PAIRS[name][1], "b": PAIRS[name][1]["b"] + 1e-6})
    X = points(len(first.a))
    assert np.abs(second.h(X) - nudged.h(X)).max() > 1e-9
    assert np.abs(first.h(X) - nudged.h(X)).max() > 1e-9


def point_of(z, p):
    """A point from unconstrained coordinates (a, b, alpha, beta, log gamma/rho, log lambda/rho)."""
    gamma, lam, _ = np.exp([z[-2], z[-1], 0.0]) / np.exp([z[-2], z[-1], 0.0]).sum()
    return Parameters.of(
        a=z[:p], b=z[p], alpha=z[p + 1 : 2 * p + 1], beta=z[2 * p + 1], gamma=gamma, lam=lam
    )


def all_solutions(truth, n_starts, seed=0):
    """Distinct points with the same log h, by least squares from many random starts."""
    p = truth.a.size
    rng = np.random.default_rng(seed)
    X = rng.normal(0, 2.5, (120, p))
    wanted = np.log(truth.h(X))

    def residual(z):
        return np.log(point_of(z, p).h(X)) - wanted

    found = []
    for _ in range(n_starts):
        start = rng.normal(0, 1.5, 2 * p + 4)
        with np.errstate(all="ignore"):
            z = least_squares(residual, start, bounds=(-30, 30), xtol=1e-15, ftol=1e-15).x
        if np.abs(residual(z)).max() < 1e-7:
            pi = float(point_of(z, p).t(X).mean())
            if all(abs(pi - other) > 1e-4 for other in found):
                found.append(pi)
    return found, float(truth.t(X).mean())


UNIQUE = {
    "a = 3 alpha": {"a": [3.0], "b": 1.0, "alpha": [1.0], "beta": 0.0, "gamma": 0.1, "lam": 0.2},
    "a = -2 alpha": {"a": [-2.0], "b": -0.8, "alpha": [1.0], "beta": 0.3, "gamma": 0.1, "lam": 0.2},
    "a = alpha, gamma e^(b-beta) > 1": {
        "a": [1.0],
        "b": np.log(15.0),
        "alpha": [1.0],
        "beta": 0.0,
        "gamma": 0.1,
        "lam": 0.2,
    },
}


@pytest.mark.parametrize("name", UNIQUE)
def test_negative_controls_have_one_answer(name):
    truth = Parameters.of(**UNIQUE[name])
    found, pi = all_solutions(truth, 40)
    assert found == pytest.approx([pi], abs=1e-4)


def test_the_search_of_the_controls_finds_a_twin_where_there_is_one():
    first, second = (Parameters.of(**values) for values in PAIRS["P2-n1 a=alpha n=1"])
    found, pi = all_solutions(first, 40)
    X = np.random.default_rng(0).normal(0, 2.5, (120, 1))
    assert sorted(found) == pytest.approx(sorted([pi, float(second.t(X).mean())]), abs=1e-4)


def test_weights_outside_the_simplex_are_refused():
    for gamma in (1.5, -0.1, np.nan):
        with pytest.raises(ModelError, match="sum to at most 1"):
            Parameters.of(a=[1.0], b=0.0, gamma=gamma, lam=0.2)
    with pytest.raises(ModelError, match=r"one slope per column"):
        Parameters.of(a=[1.0, 2.0], b=0.0, alpha=[1.0])


def test_axis_by_axis_equality_is_not_equality():
    """D1: equal on both axes (so a proof axis by axis says nothing), different off them."""
    first = Parameters.of(a=[1, 2], b=0, alpha=[3, 4], beta=0)
    second = Parameters.of(a=[1, 4], b=0, alpha=[3, 2], beta=0)
    s = np.linspace(-3, 3, 101)[:, None]
    for axis in np.eye(2):
        np.testing.assert_allclose(first.h(s * axis), second.h(s * axis), rtol=0, atol=1e-15)
    off = np.array([[1.0, -1.0]])
    assert float(first.h(off)[0]) == pytest.approx(0.0723, abs=5e-5)
    assert float(second.h(off)[0]) == pytest.approx(0.0347, abs=5e-5)


def test_two_binary_columns_do_not_identify_spm():
    first = Parameters.of(a=[1, -0.5], b=0.2, alpha=[0.8, 1.5], beta=-0.4)
    second = Parameters.of(
        a=[0.81749511, -0.92142237], b=1.2, alpha=[0.99466773, 1.15436532], beta=-0.90943617
    )
    cells = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], dtype=float)
    # The second set is printed with 8 decimals.
    np.testing.assert_allclose(first.h(cells), second.h(cells), rtol=0, atol=1e-8)
    assert first.t(cells).mean() == pytest.approx(0.603, abs=5e-4)
    assert second.t(cells).mean() == pytest.approx(0.742, abs=5e-4)
    assert np.abs(first.h(cells + 0.5) - second.h(cells + 0.5)).max() > 1e-3
