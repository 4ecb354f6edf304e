"""Priors and penalties: densities against SciPy, the paper's coefficients, and refusals."""

import json
import math

import numpy as np
import pytest
from scipy.stats import beta, dirichlet, halfnorm, kstest, laplace, norm, skewnorm, t

import bayes_lepu as lepu
from bayes_lepu import ModelError, Prior
from bayes_lepu.data.reading import read_data
from bayes_lepu.model import get_model
from bayes_lepu.model.density import LogDensity
from bayes_lepu.options import choose_priors
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
        (lambda: penalty_prior("l2", -1.0), "C = -1.0; 0 .no penalty."),
        (lambda: penalty_prior("l2", math.nan), "C = nan.*finite"),
        (lambda: penalty_prior("l2", "1"), "C = '1'.*finite number"),
        (lambda: penalty_prior("l2", 1e300), r"1e-100 to 1e\+100"),
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
        ({"family": "normal", "scale": 1e-101}, r"1e-100 to 1e\+100"),
        ({"family": "normal", "scale": 1e101}, r"1e-100 to 1e\+100"),
        ({"family": "student-t", "scale": 1.0}, "needs nu > 0"),
        ({"family": "student-t", "scale": 1.0, "nu": math.nan}, "needs nu > 0"),
        ({"family": "student-t", "scale": 1.0, "nu": "3"}, "needs nu > 0"),
        ({"family": "columns", "parts": (Prior("beta", concentration=BETA),)}, "of a column"),
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


# By column and by sign ----------------------------------------------------------------------------

MIXED = {
    "a": {"heat": Prior("positive", scale=2.0), "light": Prior("laplace", scale=0.5)},
    "alpha": {"light": Prior("student-t", scale=1.0, nu=3.0)},
}


def density_of(priors, **options):
    X, l, _ = tiny_table()
    data = read_data(X, l)
    spec = get_model("spm")
    return LogDensity(spec, data, choose_priors(spec, data, priors=priors), **options)


def test_graph_of_mixed_columns():
    import pymc as pm  # noqa: F401 - its graph is built

    density = density_of(MIXED)
    z = np.array([0.05, -1.0, 0.2, 0.1, 0.3, -0.5])
    model = density.spec.build(density.data, density.priors)
    logp = model.compile_logp(mode="FAST_COMPILE")
    points = [z, np.array([1.0, 0.5, -0.2, 0.0, 0.7, 0.3])]
    theirs = [float(logp({"a": p[:2], "b": p[2], "alpha": p[3:5], "beta": p[5]})) for p in points]
    assert theirs[1] - theirs[0] == pytest.approx(density.logp(points[1]) - density.logp(z))


@pytest.mark.parametrize("method", ["map", "laplace", "nuts"])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_fit_keeps_the_sign(method, tmp_path):
    X, l, _ = tiny_table()
    negative = {"heat": Prior("negative", scale=1.0)}
    priors = {"a": Prior("normal", scale=1.8), "alpha": negative}
    options = {} if method == "map" else {"draws": 50, "chains": 2, "tune": 200}
    fit = lepu.fit(
        X, l, model="spm", method=method, priors=priors, random_seed=1, progressbar=False, **options
    )
    beyond = 0.0 if method == "map" else 0.1  # draws may cross the wall a little
    assert fit.draws.alpha[:, 0].max() < beyond
    assert fit.quality.trusted is not False
    again = lepu.load(fit.save(tmp_path / "fit.nc"))
    assert again.priors == fit.priors
    assert eval(repr(fit.priors["alpha"])) == fit.priors["alpha"]


@pytest.mark.parametrize(
    ("priors", "message"),
    [
        ({"a": {"haet": Prior("normal", scale=1.0)}}, r"column in priors\['a'\] 'haet'.*'heat'"),
        ({"a": {"heat": 3.0}}, r"priors\['a'\]\['heat'\] is 3.0; a Prior"),
        ({"a": 3.0}, r"priors\['a'\] is 3.0; a Prior is expected"),
        (3.0, "priors = 3.0; a mapping of parameters to priors is expected"),
        ({"a": Prior("columns", parts=(Prior("flat"),))}, "has 1 parts; one for each of the 2"),
        ({"b": Prior("columns", parts=(Prior("flat"),))}, "b cannot have a prior for every column"),
    ],
)
def test_priors_that_are_none_of_a_column(priors, message):
    with pytest.raises(lepu.ModelError, match=message):
        density_of(priors)
