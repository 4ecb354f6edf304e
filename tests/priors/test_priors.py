"""Priors and penalties: densities against SciPy, the paper's coefficients, and refusals."""

import math

import numpy as np
import pytest
from scipy.stats import beta, dirichlet, halfnorm, kstest, laplace, norm, skewnorm, t

import bayes_lepu as lepu
from bayes_lepu import ModelError, Prior
from bayes_lepu.priors.prior import (
    SIGN_SHAPE,
    penalty_prior,
    penalty_priors,
    weak_priors,
)
from tests.tiny import tiny_table

BETA, DIRICHLET = (2.5, 4.0), (1.5, 2.0, 4.0)
MIDDLE = np.array([0.15, 0.35, 0.62, 0.85])
SCIPY = [
    (Prior("normal", scale=0.7, loc=-0.3), norm(-0.3, 0.7)),
    (Prior("laplace", scale=0.4, loc=0.2), laplace(0.2, 0.4)),
    (Prior("student-t", scale=0.7, loc=0.2, nu=3.0), t(3.0, 0.2, 0.7)),
    (Prior("positive", scale=1.7), skewnorm(SIGN_SHAPE, scale=1.7)),
    (Prior("negative", scale=1.7), skewnorm(-SIGN_SHAPE, scale=1.7)),
    (Prior("halfnormal", scale=2.0), halfnorm(scale=2.0)),
    (Prior("beta", concentration=BETA), beta(*BETA)),
]


@pytest.mark.parametrize(("prior", "reference"), SCIPY, ids=lambda p: getattr(p, "family", ""))
def test_densities_and_draws_are_scipys(prior, reference):
    x = MIDDLE if prior.form.support != "real" else np.array([-3.0, -0.02, 0.0, 0.01, 0.5, 4.0])
    wanted = reference.logpdf(x)
    np.testing.assert_allclose(prior.entry_logpdf(x) + prior.log_normalizer(), wanted, rtol=1e-7)
    whole = prior.logpdf(x) + prior.log_normalizer(size=x.size)
    assert whole == pytest.approx(wanted.sum(), rel=1e-7)
    draws = prior.sample(np.random.default_rng(2), (20_000,))
    assert kstest(draws, reference.cdf).pvalue > 1e-4


def test_dirichlet_is_scipys():
    prior, reference = Prior("dirichlet", concentration=DIRICHLET), dirichlet(DIRICHLET)
    x = np.array([[0.2, 0.3, 0.5], [0.05, 0.9, 0.05]])
    got = prior.entry_logpdf(x) + prior.log_normalizer()
    np.testing.assert_allclose(got, reference.logpdf(x.T))
    draws = prior.sample(np.random.default_rng(3), (20_000,))
    np.testing.assert_allclose(draws.sum(axis=1), 1)
    error = 4 * np.sqrt(reference.var() / 20_000)
    assert (np.abs(draws.mean(axis=0) - reference.mean()) < error).all()


# Penalties ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("C", [1e-3, 0.08, 5.0])
def test_penalties_are_minus_the_log_kernels(C):
    a = np.random.default_rng(4).normal(size=5)
    assert penalty_prior("l2", C).logpdf(a) == pytest.approx(-C * float(a @ a), rel=1e-12)
    assert penalty_prior("l1", C).logpdf(a) == pytest.approx(-C * float(np.abs(a).sum()), rel=1e-12)
    assert penalty_prior("l2", C).scale == pytest.approx(1 / math.sqrt(2 * C))
    assert penalty_prior("l1", C).scale == pytest.approx(1 / C)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: penalty_prior("ridge", 1.0), "Unknown penalty 'ridge'.*l2, l1, none"),
        (lambda: penalty_prior("l2", -1.0), "C = -1.0.*>= 0"),
        (lambda: penalty_prior("l2", math.nan), "C = nan.*finite"),
        (lambda: penalty_prior("l2", "1"), "C = '1'.*finite number"),
        (lambda: penalty_priors("l2", {"b": 1.0}), r"C has unknown key.*\['b'\].*'a'.*'alpha'"),
        (lambda: penalty_priors({"x": "l1"}), r"penalty has unknown key.*\['x'\]"),
    ],
)
def test_penalties_that_do_not_exist(call, message):
    with pytest.raises(ModelError, match=f"(?s){message}"):
        call()


# Values -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"family": "cauchy"}, "Unknown prior family 'cauchy'.*normal, laplace.*build_model"),
        ({"family": "laplace", "scale": Prior("halfnormal", scale=1.0)}, "hierarchical scale is"),
        ({"family": "normal"}, "normal prior needs a positive, finite scale; got None.*flat"),
        ({"family": "normal", "scale": -1.0}, "positive, finite scale; got -1.0"),
        ({"family": "laplace", "scale": math.inf}, "positive, finite scale; got inf"),
        ({"family": "laplace", "scale": "big"}, "positive, finite scale; got 'big'"),
        (
            {"family": "normal", "scale": Prior("normal", scale=1.0)},
            "hierarchical scale is written",
        ),
        ({"family": "halfnormal", "scale": Prior("halfnormal", scale=1.0)}, "hierarchical scale"),
        ({"family": "beta"}, "beta prior takes 2 positive numbers"),
        ({"family": "beta", "concentration": (1, 1, 1)}, "beta prior takes 2 positive"),
        ({"family": "dirichlet", "concentration": (1, 0, 1)}, "dirichlet prior takes 3 positive"),
        ({"family": "dirichlet", "concentration": (1, math.nan, 1)}, "3 positive numbers"),
        ({"family": "beta", "concentration": 2.0}, "2 positive numbers"),
        ({"family": "normal", "scale": 1.0, "loc": math.inf}, "loc is inf; a finite number"),
        ({"family": "beta", "concentration": (1, 1), "scale": 2.0}, "beta prior takes no scale"),
        ({"family": "normal", "scale": 1.0, "concentration": (1, 1)}, "takes no concentration"),
    ],
)
def test_priors_that_do_not_exist(arguments, message):
    with pytest.raises(ModelError, match=f"(?s){message}"):
        Prior(**arguments)


ALL = [
    Prior("flat"),
    Prior("normal", scale=2.5),
    Prior("laplace", scale=0.5, loc=1.0),
    Prior("normal", scale=Prior("halfnormal", scale=2.0)),
    Prior("beta", concentration=(2, 3)),
    Prior("dirichlet", concentration=(1, 1, 8)),
]


@pytest.mark.parametrize("prior", ALL, ids=repr)
def test_round_trip_through_plain_values(prior):
    import json

    assert Prior.from_dict(json.loads(json.dumps(prior.to_dict()))) == prior
    assert eval(repr(prior)) == prior
    with pytest.raises(AttributeError):
        prior.family = "flat"


def test_weak_priors_make_the_propensity_smoother():
    """Assumption 3 as a prior: α below a, both shrinking so that π stays wide for any p and A."""
    for p, scale in ((1, 2.5), (5, 2.5), (5, 10.0), (4, 40.0), (100, 2.5)):
        priors = weak_priors(p, p, class_scale=scale)
        assert priors["alpha"].scale < priors["a"].scale
        assert all(prior.proper for prior in priors.values())
        rng = np.random.default_rng(5)
        X = rng.normal(size=(200, p))
        a, b = priors["a"].sample(rng, (800, p)), priors["b"].sample(rng, (800,))
        pi = (1 / (1 + np.exp(-(a @ X.T + b[:, None])))).mean(axis=1)
        lower, upper = np.quantile(pi, (0.025, 0.975))
        assert lower < 0.2
        assert upper > 0.8


@pytest.mark.parametrize("method", ["map", "laplace", pytest.param("nuts", marks=pytest.mark.slow)])
def test_posterior_under_student_t_is_that_of_a_grid(method):
    """Mode and means of a logistic regression with heavy tails, by SciPy's densities on a grid."""
    X, l, _ = tiny_table()
    priors = {"a": Prior("student-t", scale=0.3, nu=3.0), "b": Prior("normal", scale=1.0)}
    options = {} if method == "map" else {"draws": 500, "chains": 2, "random_seed": 1}
    fit = lepu.fit(X, l, model="naive", method=method, priors=priors, progressbar=False, **options)
    axes = np.linspace(-1.0, 3.0, 61), np.linspace(-2.5, 1.5, 61), np.linspace(-3.0, 1.0, 61)
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    eta = grid[:, :2] @ fit.data.X.T + grid[:, 2:]
    logp = eta @ l.to_numpy() - np.logaddexp(0, eta).sum(axis=1)
    logp += t(3.0, 0.0, 0.3).logpdf(grid[:, :2]).sum(axis=1) + norm(0, 1).logpdf(grid[:, 2])
    ours = np.column_stack([fit.draws.a, fit.draws.b])
    if method == "map":
        np.testing.assert_allclose(ours[0], grid[logp.argmax()], atol=0.5 * 4 / 60)
        return
    mass = np.exp(logp - logp.max())
    mean = np.average(grid, axis=0, weights=mass)
    sd = np.sqrt(np.average((grid - mean) ** 2, axis=0, weights=mass))
    np.testing.assert_allclose((ours.mean(axis=0) - mean) / sd, 0, atol=0.2)
    np.testing.assert_allclose(ours.std(axis=0) / sd, 1, atol=0.2)


@pytest.mark.parametrize("scale", [1e-300, 1e-101, 1e101, 1e300])
def test_scales_whose_squares_cannot_be_computed_are_refused(scale):
    with pytest.raises(ModelError, match=r"1e-100 to 1e\+100"):
        Prior("normal", scale=scale)
    with pytest.raises(ModelError, match=r"1e-100 to 1e\+100"):
        penalty_prior("l2", scale)


@pytest.mark.parametrize("nu", [0, -1.0, np.nan, "3"])
def test_degrees_of_freedom_are_positive(nu):
    with pytest.raises(ModelError, match="needs nu > 0"):
        Prior("student-t", scale=1.0, nu=nu)
