"""Signs that the priors give slopes: draws that have them, and the orientation they support."""

from functools import cache

import numpy as np
import pytest

import bayes_lepu as lepu
from bayes_lepu.data.reading import read_data
from bayes_lepu.engines import laplace
from bayes_lepu.engines.laplace import mixture_at, one_sided, resample
from bayes_lepu.model import get_model
from bayes_lepu.model.density import LogDensity
from bayes_lepu.model.parameters import Parameters
from bayes_lepu.options import choose_priors
from tests.tiny import tiny_table

Prior = lepu.Prior
EQUAL = {name: Prior("normal", scale=2.0) for name in ("a", "alpha", "b", "beta")}
ONE = {"alpha": {"x0": Prior("positive", scale=2.0)}}
BOTH = {"a": {"x0": Prior("negative", scale=2.0)}, **ONE}


def next_to_a_wall():
    """A logistic regression whose first slope the data make positive and the prior negative."""
    X, l, _ = tiny_table()
    data, spec = read_data(X, l), get_model("naive")
    priors = choose_priors(spec, data, priors={"a": {"heat": Prior("negative", scale=1.0)}})
    density = LogDensity(spec, data, priors, jacobian=True)
    return density, one_sided(density, mixture_at(density, [Parameters.of(a=[-1, 0], b=0)]))


def test_gaussians_next_to_a_wall_are_as_wide_as_the_posterior(rng):
    """Weighted draws against sums of the density over a grid."""
    density, proposal = next_to_a_wall()
    axes = [np.linspace(-1.2, 0.25, 59), np.linspace(-2, 3, 26), np.linspace(-3, 2, 26)]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    logp = density.logps(grid)
    mass = np.exp(logp - logp.max())
    mean = np.average(grid, axis=0, weights=mass)
    sd = np.sqrt(np.average((grid - mean) ** 2, axis=0, weights=mass))
    z, k = resample(density, proposal, rng, 2000)
    assert k < 0.7
    assert (z[:, 0] < 0.25).all()
    np.testing.assert_allclose((z.mean(axis=0) - mean) / sd, 0, atol=0.15)
    np.testing.assert_allclose(z.std(axis=0) / sd, 1, atol=0.15)


def test_signs_that_no_draw_has_are_refused(monkeypatch, rng):
    monkeypatch.setattr(laplace, "KEPT_ROUNDS", 1)
    with pytest.raises(lepu.ModelError, match=r"1 slope\(s\) a sign.*Use method='nuts'"):
        next_to_a_wall()[1].sample(rng, 100)


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
    for known in (ONE, BOTH):
        fit = lepu.fit(*labelled(), priors={**EQUAL, **known}, **options)
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
def test_signs_that_both_factors_have_settle_nothing():
    same = {name: {"x1": Prior("positive", scale=2.0)} for name in ("a", "alpha")}
    fit = lepu.fit(*labelled(), model="spm", method="map", priors={**EQUAL, **same})
    assert fit.orientation.settled_by == "rule"
    assert fit.identifiability.level == 3
