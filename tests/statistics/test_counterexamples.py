"""Different parameters, the same h: the pairs that show what no data can tell apart."""

import json
from pathlib import Path

import numpy as np
import pytest

from bayes_lepu import Parameters

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
