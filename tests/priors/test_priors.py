"""Priors and penalties: densities against SciPy, the paper's coefficients, and refusals."""

import math

import numpy as np
import pytest
from scipy.stats import beta, dirichlet, halfnorm, laplace, norm

import bayes_lepu as lepu
from bayes_lepu import ModelError, Prior
from bayes_lepu.priors.prior import (
    DEFAULT_C,
    penalty_prior,
    penalty_priors,
    weak_priors,
)
from tests.tiny import tiny_table

SCIPY = {
    "normal": (Prior("normal", scale=0.7, loc=-0.3), norm(-0.3, 0.7)),
    "laplace": (Prior("laplace", scale=0.4, loc=0.2), laplace(0.2, 0.4)),
}


@pytest.mark.parametrize("family", SCIPY)
def test_density_is_scipys(family):
    prior, reference = SCIPY[family]
    x = np.random.default_rng(0).normal(size=6)
    assert prior.logpdf(x) + prior.log_normalizer(size=6) == pytest.approx(
        reference.logpdf(x).sum()
    )


@pytest.mark.parametrize("family", SCIPY)
def test_gradient_by_finite_differences(family):
    prior, _ = SCIPY[family]
    x = np.random.default_rng(1).normal(size=4)
    h = 1e-6
    wanted = [(prior.logpdf(x + e) - prior.logpdf(x - e)) / (2 * h) for e in h * np.eye(4)]
    np.testing.assert_allclose(prior.grad(x), wanted, rtol=1e-7)


DERIVED = [
    Prior("normal", scale=0.7, loc=-0.3),
    Prior("laplace", scale=0.4, loc=0.2),
    Prior("student-t", scale=0.7, loc=0.3, nu=4),
    Prior("positive", scale=0.7),
    Prior("negative", scale=0.7),
    Prior("halfnormal", scale=0.7),
    Prior("beta", concentration=(2.5, 4.0)),
]


@pytest.mark.parametrize("prior", DERIVED, ids=lambda prior: prior.family)
def test_slope_and_curvature_of_every_family_are_the_derivatives(prior):
    """By central differences, in the middle of every support."""
    h, form = 1e-6, prior.form
    x = np.array([0.15, 0.35, 0.62, 0.85]) * (-1 if prior.family == "negative" else 1)
    slope = (form.logpdf(prior, x + h) - form.logpdf(prior, x - h)) / (2 * h)
    bend = -(form.grad(prior, x + h) - form.grad(prior, x - h)) / (2 * h)
    np.testing.assert_allclose(form.grad(prior, x), slope, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(form.curvature(prior, x), bend, rtol=1e-6, atol=1e-7)


def test_slope_and_curvature_of_a_dirichlet_are_the_derivatives():
    prior, x, h = Prior("dirichlet", concentration=(1.5, 2, 4)), np.array([0.2, 0.3, 0.5]), 1e-6
    form = prior.form
    slope = [
        (form.logpdf(prior, x + e) - form.logpdf(prior, x - e)) / (2 * h) for e in h * np.eye(3)
    ]
    bend = -(form.grad(prior, x + h) - form.grad(prior, x - h)) / (2 * h)
    np.testing.assert_allclose(form.grad(prior, x), slope, rtol=1e-6)
    np.testing.assert_allclose(form.curvature(prior, x), bend, rtol=1e-6)


def test_columns_of_one_prior_are_written_once():
    same, other = Prior("normal", scale=1.5), Prior("laplace", scale=0.5)
    assert Prior("columns", parts=(same, same)).short() == "Normal(0, 1.5)"
    assert Prior("columns", parts=(same, other)).short() == "[Normal(0, 1.5), Laplace(0, 0.5)]"


def test_normalizers_of_bounded_priors():
    half, b, d = halfnorm(scale=2.0), beta(2, 3), dirichlet([1.5, 2, 4])
    assert Prior("halfnormal", scale=2.0).log_normalizer() == pytest.approx(half.logpdf(0.0))
    kernel = math.log(0.3) + 2 * math.log(0.7)
    assert kernel + Prior("beta", concentration=(2, 3)).log_normalizer() == pytest.approx(
        b.logpdf(0.3)
    )
    w = np.array([0.2, 0.3, 0.5])
    kernel = float(np.array([0.5, 1, 3]) @ np.log(w))
    assert kernel + Prior("dirichlet", concentration=(1.5, 2, 4)).log_normalizer() == pytest.approx(
        float(d.logpdf(w))
    )


def test_flat_prior():
    flat = Prior("flat")
    assert flat.logpdf(np.ones(3)) == 0
    np.testing.assert_array_equal(flat.grad(np.ones(3)), 0)
    assert flat.log_normalizer(size=3) == 0
    assert not flat.proper
    with pytest.raises(ModelError, match=r"flat prior cannot be sampled.*proper"):
        flat.sample(np.random.default_rng(0), (3,))


@pytest.mark.parametrize(
    ("prior", "mean", "sd"),
    [
        (Prior("normal", scale=2.0, loc=1.0), 1.0, 2.0),
        (Prior("laplace", scale=1.5, loc=-1.0), -1.0, 1.5 * math.sqrt(2)),
        (
            Prior("halfnormal", scale=2.0),
            2 * math.sqrt(2 / math.pi),
            2 * math.sqrt(1 - 2 / math.pi),
        ),
        (Prior("beta", concentration=(2, 3)), 0.4, 0.2),
    ],
)
def test_samples_have_the_right_moments(prior, mean, sd):
    n = 40_000
    draws = prior.sample(np.random.default_rng(2), (n,))
    assert draws.shape == (n,)
    assert draws.mean() == pytest.approx(mean, abs=4 * sd / math.sqrt(n))
    assert draws.std() == pytest.approx(sd, rel=4 * 1.5 / math.sqrt(n))


def test_dirichlet_samples():
    draws = Prior("dirichlet", concentration=(1, 1, 2)).sample(np.random.default_rng(3), (20_000,))
    np.testing.assert_allclose(draws.sum(axis=1), 1)
    np.testing.assert_allclose(draws.mean(axis=0), [0.25, 0.25, 0.5], atol=4 * 0.23 / 141)


# Penalties ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("C", [1e-3, 0.08, 5.0])
def test_penalties_are_minus_the_log_kernels(C):
    a = np.random.default_rng(4).normal(size=5)
    assert penalty_prior("l2", C).logpdf(a) == pytest.approx(-C * float(a @ a), rel=1e-12)
    assert penalty_prior("l1", C).logpdf(a) == pytest.approx(-C * float(np.abs(a).sum()), rel=1e-12)
    assert penalty_prior("l2", C).scale == pytest.approx(1 / math.sqrt(2 * C))
    assert penalty_prior("l1", C).scale == pytest.approx(1 / C)


def test_no_penalty_is_flat():
    assert penalty_prior("none", 3.0) == penalty_prior("l2", 0) == Prior("flat")


def test_the_papers_loss_leaves_intercepts_and_weights_alone():
    priors = penalty_priors("l2", 0.1)
    assert priors["b"] == priors["beta"] == Prior("flat")
    assert priors["c"].concentration == (1, 1)
    assert priors["rates"].concentration == (1, 1, 1)


def test_penalties_of_each_factor():
    priors = penalty_priors({"a": "l2", "alpha": "l1"}, {"alpha": 2.0})
    assert priors["a"] == penalty_prior("l2", DEFAULT_C)
    assert priors["alpha"] == penalty_prior("l1", 2.0)


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
        ({"family": "cauchy"}, "Unknown prior family 'cauchy'.*normal, laplace"),
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
    assert prior.family in repr(prior)
    with pytest.raises(AttributeError):
        prior.family = "flat"


def test_unknown_scales_have_no_density_of_their_own():
    prior = Prior("normal", scale=Prior("halfnormal", scale=2.0))
    assert prior.hierarchical
    with pytest.raises(ModelError, match="no known scale"):
        prior.logpdf(np.zeros(2))
    assert prior.with_scale(0.5) == Prior("normal", scale=0.5)


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


def test_concentration_may_be_any_sequence():
    wanted = Prior("beta", concentration=(2.0, 3.0))
    assert Prior("beta", concentration=np.array([2, 3])) == wanted
    assert Prior("beta", concentration=[2, 3]) == wanted


# Families from outside ----------------------------------------------------------------------------


def test_student_t_is_scipys():
    from scipy.stats import t

    prior = Prior("student-t", scale=0.7, loc=0.2, nu=3.0)
    x = np.random.default_rng(6).normal(size=5)
    wanted = t(3.0, 0.2, 0.7).logpdf(x).sum()
    assert prior.logpdf(x) + prior.log_normalizer(size=5) == pytest.approx(wanted)
    h = 1e-6
    slopes = [(prior.logpdf(x + e) - prior.logpdf(x - e)) / (2 * h) for e in h * np.eye(5)]
    np.testing.assert_allclose(prior.grad(x), slopes, rtol=1e-6)
    bends = (prior.grad(x - h) - prior.grad(x + h)) / (2 * h)
    np.testing.assert_allclose(prior.form.curvature(prior, x), bends, rtol=1e-5)


@pytest.mark.parametrize("method", ["map", "laplace", pytest.param("nuts", marks=pytest.mark.slow)])
def test_posterior_under_student_t_is_that_of_a_grid(method):
    """Mode and means of a logistic regression with heavy tails, by SciPy's densities on a grid."""
    from scipy.stats import t

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


@pytest.mark.parametrize("prior", ALL, ids=repr)
def test_repr_is_the_call(prior):
    assert eval(repr(prior)) == prior


def test_numbers_of_other_types_become_floats():
    """A prior goes to a file as JSON, which knows no NumPy numbers."""
    prior = Prior("normal", scale=np.float32(1.5), loc=np.int8(2))
    assert (type(prior.scale), type(prior.loc)) == (float, float)
    assert type(penalty_prior("l1", np.float32(0.25)).scale) is float


@pytest.mark.parametrize("scale", [1e-100, 1e100])
def test_the_widest_and_the_narrowest_scale(scale):
    assert Prior("normal", scale=scale).scale == scale
    assert 0 < penalty_prior("l1", scale).scale < np.inf


@pytest.mark.parametrize("scale", [1e-300, 1e-101, 1e101, 1e300])
def test_scales_whose_squares_cannot_be_computed_are_refused(scale):
    with pytest.raises(ModelError, match=r"1e-100 to 1e\+100"):
        Prior("normal", scale=scale)
    with pytest.raises(ModelError, match=r"1e-100 to 1e\+100"):
        penalty_prior("l2", scale)


def test_the_rate_of_labelling_is_uniform_unless_asked_otherwise():
    for priors in (penalty_priors("l2"), weak_priors(3, 2)):
        assert priors["c"] == Prior("beta", concentration=(1, 1))
        assert priors["rates"] == Prior("dirichlet", concentration=(1, 1, 1))


@pytest.mark.parametrize("nu", [0, -1.0, np.nan, "3"])
def test_degrees_of_freedom_are_positive(nu):
    with pytest.raises(ModelError, match="needs nu > 0"):
        Prior("student-t", scale=1.0, nu=nu)


@pytest.mark.parametrize("penalty", ["l1", "l2"])
def test_penalties_have_bounds(penalty):
    assert penalty_prior("l1", 1e100).scale == pytest.approx(1e-100)
    for C in (1.5e100, 0.5e-100):
        with pytest.raises(ModelError, match=r"1e-100 to 1e\+100 is expected"):
            penalty_prior(penalty, C)


def test_default_priors_share_their_scale_among_the_columns():
    priors = weak_priors(4, 9, class_scale=5.0, selection_scale=2.0)
    scales = [priors[name].scale for name in ("a", "alpha", "b", "beta")]
    assert scales == pytest.approx([5 / 2, 2 / 3, 0.6 * 5, 2.5])
