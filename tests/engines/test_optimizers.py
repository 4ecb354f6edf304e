"""Climbs end at maxima, whatever the number of rows, and with L1 at exact zeros."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from bayes_lepu import Prior
from bayes_lepu.data.reading import read_data
from bayes_lepu.engines.optimizers import kkt_residual, lbfgs, optimise, subsample
from bayes_lepu.model import Parameters, get_model
from bayes_lepu.model.density import LogDensity
from bayes_lepu.priors.prior import penalty_priors

TRUTH = Parameters.of(
    a=[3.0, -2.0, 0.5], b=0.5, alpha=[0.5, 1.5, -1.0], beta=0.5, gamma=0.15, lam=0.1
)


def simulated(point, n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, point.a.size))
    return read_data(X, point.simulate(X, rng)[1])


@pytest.fixture(scope="module")
def data():
    return simulated(TRUTH, 1500)


def density_of(model, data, penalty="l2", C=0.1):
    spec = get_model(model)
    return LogDensity(spec, data, spec.complete_priors(penalty_priors(penalty, C), None))


def near_truth(density):
    point = {
        "naive": replace(TRUTH, log_w=np.array([0.0, -np.inf, -np.inf])),
        "scar": replace(TRUTH, log_w=np.array([np.log(0.4), np.log(0.6), -np.inf])),
    }.get(density.spec.name, TRUTH)
    return density.pack(point)


# Smooth -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["naive", "scar", "spm", "psychm"])
def test_a_climb_ends_where_a_general_optimiser_ends(data, model):
    density = density_of(model, data)
    optimum = optimise(density, near_truth(density))
    by_values = minimize(
        lambda z: -density.logp(z), near_truth(density), method="BFGS", options={"gtol": 1e-4}
    )
    assert optimum.converged
    assert optimum.logp == pytest.approx(-by_values.fun, abs=1e-6)
    assert optimum.logp >= -by_values.fun - 1e-9
    np.testing.assert_allclose(optimum.z, by_values.x, atol=2e-3)
    assert kkt_residual(density, optimum.z) < 1e-6


def test_many_rows_with_few_labels():
    """Ten labelled rows among 150,000: the subsample holds all of them."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(150_000, 3))
    l = np.zeros(150_000, dtype=int)
    l[:10] = 1
    density = density_of("spm", read_data(X, l), C=1.0)
    start = density.pack(TRUTH)
    led, plain = optimise(density, start), lbfgs(density, start)
    assert led.logp == pytest.approx(density.logp(plain), abs=1e-6)
    np.testing.assert_allclose(led.z, plain, atol=2e-3)


def test_a_vanished_weight_is_no_trap(data):
    """At λ = e^-50 the slope in log λ/ρ is nil, though the density rises in λ itself."""
    density = density_of("psychm", data)
    best = optimise(density, near_truth(density))
    for weight in (0, 1):
        start = best.z.copy()
        start[density.blocks.rates][weight] = -50.0
        trapped = optimise(density, start)
        assert trapped.logp == pytest.approx(best.logp, abs=1e-5)


# L1 -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sparse_data():
    a = np.zeros(12)
    alpha = np.zeros(12)
    a[:3], alpha[2:5] = [2.0, -1.5, 1.0], [1.0, -1.0, 0.8]
    return simulated(Parameters.of(a=a, b=0.2, alpha=alpha, beta=0.3, gamma=0.1, lam=0.05), 800)


@pytest.mark.parametrize("C", [6.0, 15.0])
@pytest.mark.parametrize("model", ["naive", "scar", "spm", "psychm"])
def test_l1_has_exact_zeros_and_satisfies_kkt(sparse_data, model, C):
    density = density_of(model, sparse_data, "l1", C)
    rng = np.random.default_rng(4)
    optimum = optimise(density, 0.3 * rng.normal(size=density.dim))
    slopes = optimum.z[density.prior.rate > 0]
    assert np.sum(slopes == 0) >= 2
    assert np.sum(slopes != 0) >= 2
    assert optimum.converged
    assert kkt_residual(density, optimum.z) < 1e-5


def test_l1_equals_an_independent_proximal_gradient_method(sparse_data):
    density = density_of("spm", sparse_data, "l1", 4.0)
    optimum = optimise(density, 0.3 * np.random.default_rng(5).normal(size=density.dim))
    rate, step = density.prior.rate, 2.0 / sparse_data.n
    z = optimum.z + 0.05 * np.random.default_rng(6).normal(size=density.dim)
    for _ in range(6000):
        smooth = density.logp_grad(z)[1] + rate * np.sign(z)
        z = z + step * smooth
        z = np.sign(z) * np.maximum(np.abs(z) - step * rate, 0.0)
    np.testing.assert_allclose(optimum.z, z, atol=1e-5)
    np.testing.assert_array_equal(optimum.z == 0, z == 0)


def test_a_strong_l1_on_alpha_is_scar(sparse_data):
    """Above C_max every α is exactly 0, and SPM's optimum is SCAR's."""
    spec = get_model("spm")
    priors = penalty_priors({"a": "l2", "alpha": "l1"}, {"a": 0.1, "alpha": 500.0})
    density = LogDensity(spec, sparse_data, spec.complete_priors(priors, None))
    optimum = optimise(density, 0.1 * np.random.default_rng(7).normal(size=density.dim))
    np.testing.assert_array_equal(optimum.z[density.blocks.alpha], 0.0)
    scar = density_of("scar", sparse_data, "l2", 0.1)
    best = optimise(scar, np.array([*np.zeros(12), 0.0, 0.0]))
    assert optimum.logp == pytest.approx(best.logp, abs=1e-6)


def test_laplace_priors_with_another_centre(sparse_data):
    """The kink, and hence the exact values, are at the centre of the prior, not at zero."""
    spec = get_model("naive")
    priors = {"a": Prior("laplace", scale=0.02, loc=0.25), "b": Prior("flat")}
    density = LogDensity(spec, sparse_data, priors)
    optimum = optimise(density, np.zeros(density.dim))
    slopes = optimum.z[:-1]
    assert np.sum(slopes == 0.25) >= 3
    assert kkt_residual(density, optimum.z) < 1e-3
    assert optimum.converged
    for j in range(density.dim):
        for step in (-1e-3, 1e-3):
            moved = optimum.z.copy()
            moved[j] += step
            assert density.logp(moved) < optimum.logp + 1e-9


def test_rare_rows_are_all_in_a_part_and_weights_add_up():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50_000, 2))
    l = (rng.random(50_000) < 0.004).astype(int)
    y = np.full(50_000, np.nan)
    unlabelled = np.flatnonzero(l == 0)
    y[unlabelled[:30]], y[unlabelled[30:80]] = 1, 0
    weight = rng.uniform(1, 3, size=50_000)
    data = read_data(X, l, y=y, sample_weight=weight)
    part = subsample(data, 2000)
    assert part.n == pytest.approx(2000, abs=3)
    assert part.l.sum() == data.l.sum()
    assert part.n_audited == 80
    for kind in np.unique(data.kind):
        assert part.weight[part.kind == kind].sum() == pytest.approx(
            weight[data.kind == kind].sum(), rel=0.02
        )
