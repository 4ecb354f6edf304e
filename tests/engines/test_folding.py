"""Folded sampling: gradients, exactness against importance sampling, and naming of the factors."""

import numpy as np
import pytest

import bayes_lepu as lepu
from bayes_lepu import Prior
from bayes_lepu.data.reading import read_data
from bayes_lepu.engines import folding
from bayes_lepu.engines.laplace import gaussian_at
from bayes_lepu.engines.nuts import NutsOptions, sample_nuts
from bayes_lepu.model import get_model
from bayes_lepu.model.compiled import Whitened, whitened
from bayes_lepu.model.density import LogDensity, row_terms
from bayes_lepu.priors.prior import weak_priors
from tests.patience import slow


def simulated(n=150, p=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    truth = lepu.Parameters.of(
        a=[2.0, -1.0][:p], b=0.3, alpha=[0.5, 1.5][:p], beta=0.2, gamma=0.1, lam=0.1
    )
    return X, truth.simulate(X, rng)[1], truth


def density(model="psychm", **options):
    X, l, _ = simulated(**options)
    data = read_data(X, l)
    spec = get_model(model)
    priors = spec.complete_priors(weak_priors(data.p, data.p), None)
    return LogDensity(spec, data, priors, jacobian=True)


@pytest.mark.parametrize("model", ["spm", "psychm"])
def test_folded_density_is_symmetric_and_has_the_right_gradient(model):
    d = density(model)
    rng = np.random.default_rng(1)
    state = Whitened(np.zeros(d.dim), np.eye(d.dim), np.zeros(0), d.swap_order, d.constants)
    z = rng.normal(0, 1, d.dim)
    value, grad = whitened(z, state)
    mirrored, grad_mirrored = whitened(d.swap(z), state)
    assert value == pytest.approx(mirrored, rel=1e-12)
    np.testing.assert_allclose(d.swap(grad_mirrored), grad, rtol=1e-9, atol=1e-9)
    assert value == pytest.approx(np.logaddexp(d.logp(z), d.logp(d.swap(z))), rel=1e-12)
    step = 1e-6
    numeric = [
        (whitened(z + step * e, state)[0] - whitened(z - step * e, state)[0]) / (2 * step)
        for e in np.eye(d.dim)
    ]
    np.testing.assert_allclose(grad, numeric, rtol=1e-5, atol=1e-5)


def test_pivot_undoes_random_exchanges():
    d = density()
    rng = np.random.default_rng(2)
    mode = gaussian_at(d, rng.normal(0, 0.5, d.dim))
    z = mode.mean + 0.05 * rng.standard_normal((2, 40, d.dim))
    flipped = rng.random((2, 40)) < 0.5
    mixed = np.where(flipped[..., None], d.swap(z), z)
    folded = folding.pivot(d, mixed, mode.mean)
    np.testing.assert_allclose(folded.z, z)
    np.testing.assert_array_equal(folded.mirrored, flipped)
    here, there = d.logp(z[0, 0]), d.logp(d.swap(z[0, 0]))
    assert folded.weight[0, 0] == pytest.approx(1 / (1 + np.exp(there - here)), rel=1e-9)


def test_spm_with_exchangeable_priors_leaves_the_naming_to_the_rule():
    X, l, _ = simulated(n=300)
    same = {name: Prior("normal", scale=1.5) for name in ("a", "alpha", "b", "beta")}
    options = {"draws": 100, "tune": 200, "chains": 2, "random_seed": 1, "progressbar": False}
    fit = lepu.fit(X, l, model="spm", priors=same, **options)
    assert fit.orientation.probability == pytest.approx(0.5, abs=1e-9)
    assert fit.orientation.settled_by == "rule"
    t, s = fit.orientation.sizes["sigma-norm"]
    assert t > s
    assert "assumption" in repr(fit)


@pytest.mark.parametrize(("model", "rule"), [("spm", "none"), slow("psychm", "sigma-norm")])
def test_labelled_draws_match_importance_sampling_from_the_prior(model, rule):
    """An independent check of exactness: no gradients, no folding, no modes."""
    X, l, _ = simulated(n=40, p=1, seed=5)
    data, spec = read_data(X, l), get_model(model)
    priors = spec.complete_priors(weak_priors(1, 1), None)
    d = LogDensity(spec, data, priors, jacobian=True)
    start = gaussian_at(d, np.full(d.dim, 0.3) * np.arange(1, d.dim + 1))
    options = NutsOptions(1500, 500, 4, None, 0.9, 7, False)
    z, stats = sample_nuts(d, start, options=options)
    sample = folding.label_draws(d, z, stats, start.mean, rule, np.random.default_rng(8))
    draws = d.unpack(sample.z)

    rng = np.random.default_rng(9)
    density = LogDensity(spec, data, priors)
    prior = density.unpack(density.sample_prior(200_000, rng))
    log_weight = row_terms(prior, data)[0].sum(axis=-1)
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    ess_prior = 1 / np.sum(weight**2)
    assert ess_prior > 2000
    for name in ("b", "beta"):
        reference, values = getattr(prior, name), getattr(draws, name)
        mean = weight @ reference
        sd = np.sqrt(weight @ (reference - mean) ** 2)
        # At least 300 effective draws from the sampler: four combined standard errors.
        error = 4 * sd * np.sqrt(1 / ess_prior + 1 / 300)
        assert abs(values.mean() - mean) < error, name
        assert values.std() == pytest.approx(sd, rel=0.2)
    slope = weight @ prior.a[:, 0] ** 2
    assert np.mean(draws.a[..., 0] ** 2) == pytest.approx(slope, rel=0.25)
