"""The row likelihood in NumPy: against enumeration, finite differences and its own symmetries."""

import itertools

import numpy as np
import pytest
from scipy.special import expit

from bayes_lepu.factors import REGISTRY, ceiling
from bayes_lepu.rows import (
    CERTAIN_LINK,
    NOT_SHOWN,
    Links,
    flat_order,
    formula,
    make_point,
    make_rows,
    outside_moments,
)
from tests.likelihoods import (
    certain,
    differences,
    expected_by_labels,
    links_of,
    make_data,
    unpack,
    used,
)

CASES = [
    pytest.param(propensity, false_marks, id=f"{name}{'-false marks' if false_marks else ''}")
    for name, propensity in REGISTRY.items()
    for false_marks in (False, True)
]


def problem(propensity, false_marks, **options):
    rows = make_data(false_marks=false_marks, **options)
    if propensity.name == "one":
        rows = certain(rows)
    theta = np.random.default_rng(1).normal(0, 0.5, flat_order(rows).size)
    of_class = ceiling(0.9) if propensity.name == "logistic" else propensity
    of_class = of_class if of_class.has_predictor and not of_class.n_coordinates else None
    of_class = of_class or REGISTRY["logistic"]

    def at(theta):
        return unpack(theta, rows, propensity, false_marks=false_marks, of_class=of_class)

    return rows, links_of(propensity, of_class), theta, at


def test_every_pattern_of_labels_by_enumeration():
    rng = np.random.default_rng(2)
    patterns = np.array(list(itertools.product((1, 0, NOT_SHOWN), repeat=3)))
    X = rng.normal(size=(len(patterns), 2))
    eps, rates = np.array([0.02, 0.1, 0.3]), np.array([0.1, 0.2, 0.7])
    point = make_point(
        a=[1.0, -0.5],
        b=0.3,
        alpha=rng.normal(size=(3, 2)),
        beta=rng.normal(size=3),
        rates=np.log(rates),
        epsilon=eps,
    )
    t = expit(X @ point.a + point.b)
    psi = 0.1 + 0.7 * expit(X @ point.alpha.T + point.beta)
    cells = np.where(patterns == 1, psi, np.where(patterns == 0, 1 - psi, 1.0))
    false = np.where(patterns == 1, eps, np.where(patterns == 0, 1 - eps, 1.0))
    positive, negative = t * cells.prod(axis=1), (1 - t) * false.prod(axis=1)
    for known, wanted in ((-1, positive + negative), (1, positive), (0, negative)):
        rows = make_rows(X, patterns, known=np.full(len(X), known))
        loglik, m = formula.row_terms(rows, Links(), point)
        np.testing.assert_allclose(np.exp(loglik), wanted, rtol=1e-13)
        expected = positive / wanted if known < 0 else float(known)
        np.testing.assert_allclose(m, expected, rtol=1e-13)


@pytest.mark.parametrize(("propensity", "false_marks"), CASES)
def test_gradient_by_differences(propensity, false_marks):
    rows, links, theta, at = problem(propensity, false_marks)
    keep = used(rows, propensity)
    gradient = formula.loglik_grad(rows, links, at(theta))[1]
    expected = differences(lambda x: formula.loglik_grad(rows, links, at(x))[0], theta)
    np.testing.assert_allclose(gradient[keep], expected[keep], rtol=1e-7, atol=2e-8)
    if not false_marks:
        assert not gradient[[flat_order(rows).own(j).stop - 1 for j in range(2)]].any()


@pytest.mark.parametrize(("propensity", "false_marks"), CASES)
def test_observed_information_by_differences(propensity, false_marks):
    rows, links, theta, at = problem(propensity, false_marks)
    keep = np.ix_(*[used(rows, propensity)] * 2)
    info = formula.observed_information(rows, links, at(theta))
    expected = -differences(lambda x: formula.loglik_grad(rows, links, at(x))[1], theta)
    np.testing.assert_allclose(info[keep], expected[keep], rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(info, info.T, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("propensity", "false_marks"), CASES)
def test_expected_information_is_the_mean_of_the_observed(propensity, false_marks):
    rows, links, theta, at = problem(propensity, false_marks, annotators=1)
    expected = expected_by_labels(rows, links, at(theta))
    np.testing.assert_allclose(
        formula.information(rows, links, at(theta)), expected, rtol=1e-8, atol=1e-8
    )


@pytest.mark.parametrize(("propensity", "false_marks"), CASES)
def test_moments_and_their_gradients(propensity, false_marks):
    rows, links, theta, at = problem(propensity, false_marks)
    W, T, dT, M, dM = outside_moments(rows, links, at(theta))
    assert pytest.approx(rows.weight.sum()) == W
    expected = differences(lambda x: np.r_[outside_moments(rows, links, at(x))[1]], theta)[:, 0]
    keep = used(rows, propensity)
    np.testing.assert_allclose(dT[keep], expected[keep], rtol=1e-7, atol=1e-8)
    expected = differences(lambda x: outside_moments(rows, links, at(x))[3], theta).T
    np.testing.assert_allclose(dM[:, keep], expected[:, keep], rtol=1e-7, atol=1e-8)
    assert np.all(T * (1 + 1e-12) >= M)


@pytest.mark.parametrize("false_marks", [False, True])
def test_complete_data_information_is_above_the_observed(false_marks):
    """Louis: what the unknown classes hide is a sum of squares (in τ and ω of logistic links)."""
    rows, links, theta, at = problem(REGISTRY["logistic"], false_marks)
    links = Links()
    point = at(theta)._replace(class_rates=CERTAIN_LINK)
    complete = formula.information(rows, links, point)
    hidden = complete - formula.observed_information(rows, links, point)
    keep = used(rows, REGISTRY["logistic"])
    assert np.linalg.eigvalsh(hidden[np.ix_(keep, keep)]).min() > -1e-10
    assert np.linalg.eigvalsh(complete).min() > -1e-10
