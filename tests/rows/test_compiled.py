"""The compiled likelihood against NumPy, the paper's formula, and itself on other arrangements."""

import math

import numpy as np
import pytensor.tensor as pt
import pytest
from scipy.special import log_expit

from bayes_lepu import rows as likelihood
from bayes_lepu.factors import CURVES, REGISTRY, Factor, Link, ceiling
from bayes_lepu.rows import Links, evaluation, flat_order, formula, make_point, make_rows
from bayes_lepu.rows.tiles import TILE_ROWS
from tests.likelihoods import certain, links_of, make_data, unpack
from tools.row_formula import row_loglik

EXTREMES = np.array([-750.0, -301, -299, -40, 0.3, 5, 299, 301, 750])


def _logs(z):
    """A skewed curve, F = σ(z)², which the library does not have."""
    log_up = 2 * log_expit(z)
    log_down = np.logaddexp(log_expit(-z), log_expit(z) + log_expit(-z))
    return log_up, log_down, math.log(2) + 2 * log_expit(z) + log_expit(-z)


def _scalar_logs(z):
    tail = math.log1p(math.exp(-abs(z)))
    up, down = min(z, 0.0) - tail, min(-z, 0.0) - tail
    return 2 * up, down + math.log1p(math.exp(up)), math.log(2.0) + 2 * up + down


def _bend(z):
    return 2 - 3 * np.exp(log_expit(z))


def _graph(z):
    up, down = -pt.softplus(-z), -pt.softplus(z)
    return 2 * up, down + pt.log1p(pt.exp(up))


LINK = Link("squared", _logs, _bend, _scalar_logs, _graph)
SQUARED = Factor("squared", "s(x) = σ(α·x + β)²", LINK)
PROPENSITIES = {**REGISTRY, "squared": SQUARED}


def problem(name, *, false_marks=False, scale=0.5, of_class="logistic", **options):
    propensity = PROPENSITIES[name]
    rows = make_data(false_marks=false_marks, **options)
    if name == "one":
        rows = certain(rows)
    theta = np.random.default_rng(5).normal(0, scale, flat_order(rows).size)
    factor = ceiling(0.9) if of_class == "ceiling" else PROPENSITIES[of_class]
    point = unpack(theta, rows, propensity, false_marks=false_marks, of_class=factor)
    return rows, links_of(propensity, factor), point


def assert_equal(rows, links, point):
    """Every compiled function against its NumPy twin, relative to the size of the terms."""
    loglik, gradient = likelihood.loglik_grad(rows, links, point)
    expected, wanted = formula.loglik_grad(rows, links, point)
    assert loglik == pytest.approx(expected, rel=1e-12, abs=1e-12)
    size = 1 + np.abs(wanted).max() + np.abs(rows.X).max(initial=0) * len(rows.X)
    np.testing.assert_allclose(gradient, wanted, rtol=1e-10, atol=1e-14 * size)
    for mine, theirs in zip(
        likelihood.row_terms(rows, links, point),
        formula.row_terms(rows, links, point),
        strict=True,
    ):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("annotators", [1, 2])
@pytest.mark.parametrize("name", PROPENSITIES)
def test_every_propensity(name, annotators):
    assert_equal(*problem(name, n=60, annotators=annotators))
    assert_equal(*problem(name, n=60, annotators=annotators, false_marks=True))


@pytest.mark.parametrize("of_class", ["ceiling", "squared", *CURVES])
def test_every_link_of_the_class_with_the_same_code(of_class):
    for annotators in (1, 2):
        args = problem("psychometric", of_class=of_class, annotators=annotators)
        assert_equal(*args)
    assert_pair_is_two_evaluations(*problem("psychometric", of_class=of_class, annotators=1))
    assert len(evaluation.loglik_grad.signatures) == 1


@pytest.mark.parametrize("false_marks", [False, True])
@pytest.mark.parametrize("name", ["logistic", "psychometric"])
def test_pair_is_two_evaluations(name, false_marks):
    args = problem(name, n=1030, annotators=1, false_marks=false_marks)
    assert_pair_is_two_evaluations(*args)


def assert_pair_is_two_evaluations(rows, links, point):
    swapped = point._replace(
        a=point.alpha[0], b=point.beta[0], alpha=point.a[None], beta=np.array([point.b])
    )
    wanted = *formula.loglik_grad(rows, links, point), *formula.loglik_grad(rows, links, swapped)
    pair = evaluation.loglik_grad_pair(rows, links.codes, point)
    for mine, expected in zip(pair, wanted, strict=True):
        np.testing.assert_allclose(mine, expected, rtol=1e-11, atol=1e-10)


@pytest.mark.parametrize("annotators", [1, 3])
@pytest.mark.parametrize("name", ["logistic", "psychometric"])
def test_steep_slopes_mix_near_and_far_rows(name, annotators):
    for false_marks in (False, True):
        assert_equal(
            *problem(name, n=600, scale=200.0, annotators=annotators, false_marks=false_marks)
        )


@pytest.mark.parametrize("name", ["logistic", "psychometric", "squared"])
def test_far_tails_row_by_row(name):
    """One row at a time: a sum would hide the small ones.

    Linear space loses slopes of less than 1e-120, where products of two of them underflow.
    """
    propensity = PROPENSITIES[name]
    logistic = REGISTRY["logistic"]
    rates = propensity.log_rates(np.array([-690.0, 0.3])[: propensity.n_coordinates])
    for tau in EXTREMES:
        for omega in EXTREMES:
            for label, known in ((0, -1), (1, -1), (0, 1), (0, 0), (-1, 1)):
                for J in (1, 2):
                    rows = make_rows([[tau, omega]], [[label, 0][:J]], known=[known])
                    point = make_point(
                        a=[1, 0], b=0, alpha=[[0, 1], [0, 0.5]][:J], beta=np.zeros(J), rates=rates
                    )
                    links = links_of(propensity, logistic)
                    loglik, gradient = likelihood.loglik_grad(rows, links, point)
                    expected, wanted = formula.loglik_grad(rows, links, point)
                    assert np.isfinite(expected)
                    assert loglik == pytest.approx(expected, rel=1e-12, abs=1e-15)
                    np.testing.assert_allclose(gradient, wanted, rtol=1e-10, atol=1e-120)


@pytest.mark.parametrize("annotators", [1, 4])
@pytest.mark.parametrize("n", [0, 1, 5, TILE_ROWS - 1, TILE_ROWS + 1])
def test_any_number_of_rows(n, annotators):
    assert_equal(*problem("psychometric", n=n, annotators=annotators))


@pytest.mark.parametrize("name", ["one", "constant", "logistic", "psychometric"])
def test_one_annotator_is_the_formula_of_the_paper(name):
    """Ψ t, 1 - Ψ t and the two audited kinds of rows, as 60 digits confirm them."""
    rows, links, point = problem(name, n=600, annotators=1)
    rows = rows._replace(labels=np.abs(rows.labels))
    rows = certain(rows) if name == "one" else rows
    marked, audited = rows.labels[0] == 1, rows.known
    rows = rows._replace(known=np.where(marked, -1, audited).astype(np.int8))
    kind = np.where(marked, 1, np.choose(audited + 1, [0, 3, 2]))
    tau, omega = rows.X @ point.a + point.b, rows.X @ point.alpha[0] + point.beta[0]
    expected = row_loglik(kind, tau, omega, point.rates[0])
    for total in (likelihood.loglik_grad, lambda r, k, p: evaluation.several_grad(r, k.codes, p)):
        assert total(rows, links, point)[0] == pytest.approx(rows.weight @ expected, rel=1e-12)
    mine = likelihood.row_terms(rows, links, point)[0]
    np.testing.assert_allclose(mine, expected, rtol=1e-12, atol=1e-14)


def test_annotators_who_saw_nothing_of_a_tile_are_skipped():
    rows, links, point = problem("logistic", n=3 * TILE_ROWS, annotators=3)
    labels = rows.labels.copy()
    labels[1, :TILE_ROWS], labels[:, TILE_ROWS : 2 * TILE_ROWS] = -1, -1
    assert_equal(rows._replace(labels=labels), links, point)


def test_an_impossible_row_is_minus_infinity():
    rows = make_rows(np.ones((3, 1)), [0, 1, 0], known=[1, 1, 1])
    point = make_point(a=[1], b=0, alpha=[1], beta=0, rates=REGISTRY["one"].log_rates())
    for kernel in (evaluation.single_grad, evaluation.several_grad):
        loglik, gradient = kernel(rows, Links().codes, point)
        assert loglik == -np.inf
        assert np.isfinite(gradient).all()


def test_nan_is_not_hidden():
    for annotators in (1, 2):
        rows, links, point = problem("psychometric", n=200, annotators=annotators)
        a = point.a.copy()
        a[1] = np.nan
        loglik, gradient = likelihood.loglik_grad(rows, links, point._replace(a=a))
        assert np.isnan(loglik)
        assert np.isnan(gradient[:4]).all()
