"""Weights, false marks and knowledge from outside: terms of one density, for every method."""

from dataclasses import replace

import numpy as np
import pytest
from annotated import simulate

import bayes_lepu as lepu
from bayes_lepu import Prior
from bayes_lepu.data.reading import read_data
from bayes_lepu.model import REGISTRY, get_model
from bayes_lepu.model.density import LogDensity
from bayes_lepu.options import choose_priors
from tests.densities import graph_gaps
from tests.likelihoods import differences

QUICK = {"draws": 100, "tune": 150, "chains": 2, "cores": 1, "progressbar": False}
OUTSIDE = {"class_prior": (0.4, 0.05), "label_frequency": (0.6, 0.1)}


def make_density(model, *, several=False, marks=False, n=50, **options):
    X, y, L = simulate(n, seed=3, hidden=0.2)
    if model == "naive" and several:
        L = L.mul(0).add(y, axis=0)  # annotators who never differ
    labels = L if several else L["anna"].fillna(0)
    data = read_data(X, labels, standardize=False, false_marks=marks, **options)
    spec = replace(get_model(model), false_marks=marks)
    return LogDensity(spec, data, choose_priors(spec, data), jacobian=True)


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("model", REGISTRY)
def test_gradient_with_every_term(model, several):
    rng = np.random.default_rng(1)
    weight = rng.integers(0, 4, 50).astype(float)
    density = make_density(model, several=several, marks=True, sample_weight=weight, **OUTSIDE)
    for _ in range(2):
        z = rng.normal(0, 0.5, density.dim)
        value, gradient = density.logp_grad(z)
        np.testing.assert_allclose(gradient, differences(density.logp, z), rtol=1e-3, atol=2e-3)
        again, _, curvature = density.logp_grad_info(z)
        assert again == pytest.approx(value, rel=1e-12)
        assert np.linalg.eigvalsh(curvature).min() > 0


@pytest.mark.parametrize("several", [False, True])
def test_figures_from_outside_add_their_information(several):
    """Minus the Hessian, where the figures are those of the point itself."""
    z = np.random.default_rng(4).normal(0, 0.5, make_density("spm", several=several).dim)
    point, X = (bare := make_density("spm", several=several)).unpack(z), bare.data.X
    pi, c = point.t(X).mean(), (point.s(X) * point.t(X)).mean() / point.t(X).mean()
    known = {"class_prior": (pi, 0.05), "label_frequency": (c, 0.1)}
    density = make_density("spm", several=several, **known)
    information = density.observed_information(z)
    observed = -differences(lambda x: density.logp_grad(x)[1], z)
    np.testing.assert_allclose(information, observed, rtol=1e-5, atol=1e-4)
    added = np.linalg.eigvalsh(information - bare.observed_information(z))
    assert added[-1] > 1.0
    assert added[-2] > 1.0  # one direction for each of the two
    expected = density.logp_grad_info(z)[2] - bare.logp_grad_info(z)[2]
    np.testing.assert_allclose(np.linalg.eigvalsh(expected), added, atol=1e-6)


def test_a_known_class_prior_pulls_the_estimate():
    X, _, L = simulate(800, seed=4)
    options = {"model": "spm", "method": "map", "random_seed": 1, "C": 0.05}
    free = lepu.fit(X, L["anna"], **options)
    target = float(free.pi_draws[0]) + 0.1
    held = lepu.fit(X, L["anna"], class_prior=(target, 0.001), **options)
    loose = lepu.fit(X, L["anna"], class_prior=(target, 0.28), **options)
    assert held.pi_draws[0] == pytest.approx(target, abs=0.01)
    assert loose.pi_draws[0] == pytest.approx(float(free.pi_draws[0]), abs=0.01)
    c = float(free.c_draws[0]) * 0.8
    paced = lepu.fit(X, L["anna"], label_frequency=(c, 0.001), **options)
    assert paced.c_draws[0] == pytest.approx(c, abs=0.01)
    exact = lepu.fit(X, L["anna"], class_prior=(target, 1e-5), **options)
    np.testing.assert_allclose(exact.draws.take(0).a, held.draws.take(0).a, atol=0.05)


def test_false_marks_are_learned_from_audits():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(3000, 1))
    y = rng.random(3000) < 1 / (1 + np.exp(-2 * X[:, 0]))
    l = np.where(y, rng.random(3000) < 0.6, rng.random(3000) < 0.1)
    audited = np.where(rng.random(3000) < 0.3, y, np.nan)
    with pytest.raises(lepu.DataError, match="false_marks=True"):
        lepu.fit(X, l, y=audited, model="scar", method="map")
    wide = Prior("beta", concentration=(1, 9))
    fit = lepu.fit(
        X, l, y=audited, model="scar", method="laplace", false_marks=wide, random_seed=1, **QUICK
    )
    epsilon = fit.draws.epsilon
    assert abs(epsilon.mean() - 0.1) < 4 * epsilon.std()
    assert abs(fit.pi_draws.mean() - y.mean()) < 4 * fit.pi_draws.std()
    assert fit.tree["posterior"]["epsilon"].shape == (2, 100)
    again = lepu.fit(X, l, model="scar", method="map", random_seed=1)
    assert again.draws.epsilon is None


def test_the_graph_has_the_same_terms():
    """PyMC's log density with weights, false marks and outside knowledge is ours."""
    weight = np.random.default_rng(4).integers(1, 4, 50)
    for several in (False, True):
        density = make_density("spm", several=several, marks=True, sample_weight=weight, **OUTSIDE)
        gaps = graph_gaps(density, np.random.default_rng(9).normal(0, 0.5, (3, density.dim)))
        np.testing.assert_allclose(gaps, gaps[0], atol=1e-9)  # constants of what is known apart
