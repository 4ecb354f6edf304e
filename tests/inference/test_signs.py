"""Signs that the priors give slopes: Gaussians that obey them, and the naming that they settle."""

from functools import cache

import numpy as np
import pytest

import bayes_lepu as lepu
from bayes_lepu.data.reading import read_data
from bayes_lepu.inference.optimizers import optimise
from bayes_lepu.inference.signs import CutGaussian, cut_gaussian
from bayes_lepu.models import get_model
from bayes_lepu.models.density import LogDensity
from bayes_lepu.options import choose_priors
from tests.tiny import tiny_table

Prior = lepu.Prior
EQUAL = {name: Prior("normal", scale=2.0) for name in ("a", "alpha", "b", "beta")}
ONE = {"alpha": {"x0": Prior("positive", scale=2.0)}}
BOTH = {"a": {"x0": Prior("negative", scale=2.0)}, **ONE}


def test_a_cut_gaussian_has_the_moments_of_what_is_left(rng):
    """Against draws of the whole Gaussian of which those with other signs are thrown away."""
    A = rng.normal(size=(3, 3))
    root = np.linalg.cholesky(A @ A.T + np.eye(3))
    center = np.array([-0.5, 1.0, 0.3])
    order, sign = np.array([2, 0, 1]), np.array([1.0, -1.0])
    cut = CutGaussian(np.zeros(3), root, 0.0, center, order, sign)
    whole = np.empty((400_000, 3))
    whole[:, order] = center + rng.standard_normal((400_000, 3)) @ root.T
    left = whole[(whole[:, 2] > 0) & (whole[:, 0] < 0)]
    drawn = cut.sample(rng, 200_000)
    assert (drawn[:, 2] > 0).all()
    assert (drawn[:, 0] < 0).all()
    # Sequential draws are a proposal; weighted by what they leave out they are exact.
    log_w = -0.5 * np.sum(np.linalg.solve(root, (drawn[:, order] - center).T) ** 2, axis=0)
    weight = np.exp(log_w - cut.logpdf(drawn))
    error = 5 * left.std(axis=0) / np.sqrt(len(left) / 4)
    assert (np.abs(np.average(drawn, axis=0, weights=weight) - left.mean(axis=0)) < error).all()
    normal = (2 * np.pi) ** 1.5 * np.prod(np.diag(root))
    assert weight.mean() / normal == pytest.approx(len(left) / len(whole), rel=0.02)


def test_evidence_next_to_a_wall_is_that_of_the_cut_density():
    X, l, _ = tiny_table()
    data, spec = read_data(X, l), get_model("naive")
    wrong = {"a": {"heat": Prior("negative", scale=1.0)}}  # the data say positive
    priors = choose_priors(spec, data, priors=wrong)
    density = LogDensity(spec, data, priors, jacobian=True)
    cut = cut_gaussian(density, optimise(density, density.sample_prior(1, _rng())[0]).z)
    z = cut.sample(_rng(), 4000)
    weight = np.exp([density.logp(point) for point in z] - cut.logpdf(z) - cut.log_evidence)
    assert (z[:, 0] < 0).all()
    assert weight.mean() == pytest.approx(1.0, abs=0.3)
    assert weight.sum() ** 2 / (weight**2).sum() > 0.8 * len(z)


def _rng():
    return np.random.default_rng(0)


@cache
def labelled():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(3000, 2))
    truth = lepu.Parameters.of(a=[-2.5, 1.5], b=0.3, alpha=[2.0, 1.5], beta=0.5)
    return X, truth.simulate(X, rng)[1]


CASES = [
    ("spm", "map"),
    pytest.param("spm", "laplace", marks=pytest.mark.slow),
    pytest.param("spm", "nuts", marks=pytest.mark.slow),
    pytest.param("psychm", "map", marks=pytest.mark.slow),
    pytest.param("psychm", "nuts", marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("model", "method"), CASES)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_signs_settle_which_factor_is_the_class(model, method):
    """Equal priors leave the naming open; a sign does not, and the verdict says so."""
    options = {"model": model, "method": method, "random_seed": 1, "progressbar": False}
    if method != "map":
        options |= {"draws": 250, "tune": 300}
    without = lepu.fit(*labelled(), priors=EQUAL, **options)
    assert without.identifiability.level == 3
    for signs in (ONE, BOTH):
        fit = lepu.fit(*labelled(), priors={**EQUAL, **signs}, **options)
        verdict = fit.identifiability
        assert fit.orientation.settled_by == "priors"
        assert fit.orientation.probability > 0.99
        assert verdict.level < 3
        assert "prior" in verdict.carried_by
        assert "orientation rule" not in verdict.carried_by
        assert "given the signs of the slopes in the priors" in verdict.verdict
        assert (fit.draws.alpha[:, 0] > 0).all()
        assert fit.draws.a[:, 0].mean() == pytest.approx(-2.5, abs=0.5)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_other_signs_exchange_the_factors():
    wrong = {"a": {"x0": Prior("positive", scale=2.0)}, "alpha": {"x0": Prior("negative", scale=2)}}
    fit = lepu.fit(*labelled(), model="spm", method="map", priors={**EQUAL, **wrong})
    assert fit.orientation.settled_by == "priors"
    assert fit.draws.a[0, 0] == pytest.approx(2.0, abs=0.5)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_signs_that_both_factors_have_settle_nothing():
    same = {name: {"x1": Prior("positive", scale=2.0)} for name in ("a", "alpha")}
    fit = lepu.fit(*labelled(), model="spm", method="map", priors={**EQUAL, **same})
    assert fit.orientation.settled_by == "rule"
    assert fit.identifiability.level == 3
