"""The log density: by hand, by finite differences, and in the far tails."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import beta as beta_distribution
from scipy.stats import dirichlet, halfnorm, laplace, norm, skewnorm
from scipy.stats import t as student

from bayes_lepu.dask import PartitionedData
from bayes_lepu.data.reading import read_data
from bayes_lepu.model import REGISTRY, get_model
from bayes_lepu.model.density import LogDensity
from bayes_lepu.options import choose_priors
from bayes_lepu.priors.prior import SIGN_SHAPE, Prior, weak_priors
from tests.densities import HIERARCHICAL, VARIANTS, constant, extreme_points, make_density
from tests.likelihoods import differences


def by_hand(density, z):
    """The posterior density from SciPy's distributions and the probabilities of the cells."""
    point, data = density.unpack(z), density.data
    t, s = point.t(data.X), point.s(data.X)
    cells = {0: 1 - s * t, 1: s * t, 2: (1 - s) * t, 3: 1 - t}
    total = sum(float(np.log(cells[k][i])) for i, k in enumerate(data.kind))
    scaled = [sigma.stem for _, sigma, _ in density.layout.hyper]
    sigmas = dict(zip(scaled, np.exp(z[len(density.layout.free) :]), strict=True))
    for name in ("a", "b", "alpha", "beta"):
        if name not in density.priors:
            continue
        values, prior = np.atleast_1d(getattr(point, name)), density.priors[name]
        if name in ("a", "alpha"):
            values = values[getattr(data, {"a": "class_mask", "alpha": "selection_mask"}[name])]
        for x, part in zip(values, prior.parts or (prior,) * values.size, strict=True):
            if part.hierarchical:  # the coordinate is (x - loc) / sigma
                total += norm(part.loc, sigmas[name]).logpdf(x) + math.log(sigmas[name])
            elif part.family == "normal":
                total += norm(part.loc, part.scale).logpdf(x)
            elif part.family == "laplace":
                total += laplace(part.loc, part.scale).logpdf(x)
            elif part.family == "student-t":
                total += student(part.nu, part.loc, part.scale).logpdf(x)
            elif part.form.sign:
                total += skewnorm(part.form.sign * SIGN_SHAPE, scale=part.scale).logpdf(x)
        for scale in {p.scale for p in prior.parts or (prior,) if p.hierarchical}:
            sigma = sigmas[name]
            total += halfnorm(scale=scale.scale).logpdf(sigma) + math.log(sigma)
    w = np.exp(point.log_w)
    if "c" in density.priors:
        total += beta_distribution(*density.priors["c"].concentration).logpdf(w[0])
        total += density.jacobian * math.log(w[0] * w[1])
    if "rates" in density.priors:
        total += dirichlet(density.priors["rates"].concentration).logpdf(w)
        total += density.jacobian * np.log(w).sum()
    return total


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("model", REGISTRY)
def test_value_is_the_posterior_density_written_out(model, variant):
    density = make_density(model, **VARIANTS[variant])
    rng = np.random.default_rng(1)
    for _ in range(5):
        z = rng.normal(size=density.dim)
        assert density.logp(z) + constant(density) == pytest.approx(by_hand(density, z), rel=1e-11)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("model", REGISTRY)
def test_gradient_and_curvature_by_finite_differences(model, variant):
    density = make_density(model, **VARIANTS[variant])
    rng = np.random.default_rng(2)
    for _ in range(3):
        z = rng.normal(size=density.dim)
        value, grad = density.logp_grad(z)
        assert value == density.logp(z)
        np.testing.assert_allclose(grad, differences(density.logp, z), rtol=1e-6, atol=1e-6)
        observed = -differences(lambda x: density.logp_grad(x)[1], z)
        np.testing.assert_allclose(density.observed_information(z), observed, rtol=1e-6, atol=1e-6)
        prior = density.observed_information(z) - density.observed_information(z, with_prior=False)
        np.testing.assert_allclose(prior, density.prior_precision(z), atol=1e-10)


@pytest.mark.parametrize("model", REGISTRY)
def test_expected_information_is_the_mean_of_the_observed_one(model):
    """Sum over both labels of P(l) times the observed information of that label."""
    density = make_density(model, jacobian=False)
    z = np.random.default_rng(3).normal(size=density.dim)
    value, grad, information = density.logp_grad_info(z)
    assert value == pytest.approx(density.logp(z), rel=1e-12)
    np.testing.assert_allclose(grad, density.logp_grad(z)[1], rtol=1e-10, atol=1e-12)
    h, data = density.unpack(z).h(density.data.X), density.data
    wanted = density.prior_precision(z)
    for i in range(data.n):
        row = data.rows(np.array([i]))
        for label, chance in ((1, h[i]), (0, 1 - h[i])):
            one = replace(density, data=replace(row, labels=np.array([[label]], dtype=np.int8)))
            wanted = wanted + chance * one.observed_information(z, with_prior=False)
    np.testing.assert_allclose(information, wanted, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize(
    "variant", ["plain", "audited", "hierarchical", "blocks", "laplace", "mixed"]
)
@pytest.mark.parametrize("model", REGISTRY)
def test_far_tails_stay_finite(model, variant):
    """Predictors up to ±750 in every combination, weights down to e^-750."""
    density = make_density(model, scale=1e-3, **VARIANTS[variant])
    rng = np.random.default_rng(4)
    for z in extreme_points(density, rng, (36.0, 38.0, 40.0, 299.0, 301.0, 745.0, 750.0)):
        for sign in (-1, 1):
            far = sign * abs(z[density.blocks.b])
            z[density.blocks.rates] = far * rng.uniform(size=density.spec.n_rates)
            value, grad, information = density.logp_grad_info(z)
            assert np.isfinite(value)
            assert np.isfinite(grad).all()
            assert np.isfinite(information).all()
            assert np.isfinite(density.observed_information(z)).all()


@pytest.mark.parametrize("variant", ["plain", "laplace", "hierarchical", "blocks", "mixed"])
@pytest.mark.parametrize("model", ["spm", "psychm"])
def test_fold_is_the_density_at_both_orientations(model, variant):
    density = make_density(model, **{**VARIANTS[variant], "masks": False})
    z = np.random.default_rng(6).normal(size=density.dim)
    here, grad, there, grad_there = density.fold(z)
    assert here == pytest.approx(density.logp(z), rel=1e-12)
    assert there == pytest.approx(density.logp(density.swap(z)), rel=1e-12)
    np.testing.assert_allclose(grad, density.logp_grad(z)[1], rtol=1e-9, atol=1e-12)
    wanted = differences(lambda x: density.logp(density.swap(x)), z)
    np.testing.assert_allclose(grad_there, wanted, rtol=1e-6, atol=1e-6)


def test_swap_is_its_own_inverse_and_exchanges_the_factors():
    density = make_density("psychm", priors=HIERARCHICAL)
    z = np.random.default_rng(7).normal(size=density.dim)
    swapped = density.swap(z)
    np.testing.assert_array_equal(density.swap(swapped), z)
    point, other = density.unpack(z), density.unpack(swapped)
    np.testing.assert_array_equal(point.a, other.alpha)
    assert point.b == other.beta
    np.testing.assert_array_equal(point.log_w, other.log_w)
    assert swapped[-1] == z[-2]


def test_what_can_be_exchanged():
    """Two factors of the same columns and one annotator; the likelihood stays in the SPM alone."""
    assert make_density("spm").can_exchange
    assert make_density("spm").is_symmetric
    assert make_density("psychm").can_exchange
    assert not make_density("psychm").is_symmetric
    assert not make_density("spm", audited=True).is_symmetric
    assert not make_density("spm", masks=True).can_exchange
    assert not make_density("scar").can_exchange
    data = read_data(np.arange(8.0)[:, None] % 3, np.tile([[0, 1], [1, 0], [0, 0], [1, 1]], (2, 1)))
    several = LogDensity(get_model("spm"), data, choose_priors(get_model("spm"), data))
    assert not several.can_exchange


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("model", REGISTRY)
def test_pack_inverts_unpack(model, variant):
    density = make_density(model, **VARIANTS[variant])
    z = np.random.default_rng(8).normal(size=density.dim)
    np.testing.assert_allclose(density.pack(density.unpack(z)), z, rtol=1e-12)
    assert len(density.names) == len(set(density.names)) == density.dim


@pytest.mark.parametrize("known", [{}, {"class_prior": (0.3, 0.1)}])
def test_rows_in_parts_have_the_density_of_the_whole(known):
    pytest.importorskip("dask")
    rng = np.random.default_rng(11)
    data = read_data(rng.normal(size=(50, 2)), np.arange(50) % 3 == 0, **known)
    parts = [data.rows(np.arange(20)), data.rows(np.arange(20, 50))]
    sums = {"kind_counts": data.kind_counts, "kind_weights": data.kind_weights}
    priors = {**weak_priors(2, 2), "a": Prior("student-t", nu=4.0, scale=2.0)}
    whole = LogDensity(get_model("spm"), data, priors)
    apart = LogDensity(
        get_model("spm"), PartitionedData.of(data.rows([0]), partitions=parts, **sums), priors
    )
    z = rng.normal(size=(3, whole.dim))
    np.testing.assert_allclose(apart.logps(z), [whole.logp(point) for point in z], rtol=1e-12)
    for ask in ("logp_grad", "logp_grad_info", "fold"):
        for got, want in zip(getattr(apart, ask)(z[0]), getattr(whole, ask)(z[0]), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(
        apart.observed_information(z[0]), whole.observed_information(z[0]), rtol=1e-9, atol=1e-9
    )
    assert whole.fold(z[0])[2] == pytest.approx(whole.logp(whole.swap(z[0])), rel=1e-12)


@pytest.mark.parametrize("model", ["scar", "psychm", "false_marks"])
def test_draws_of_the_prior_have_its_means(model):
    density, count = make_density(model, priors=HIERARCHICAL), 4000
    draws = density.unpack(density.sample_prior(count, np.random.default_rng(12)))
    beta, rates = (2 / 5, 3 / 5), np.array([1.5, 2, 5]) / 8.5
    found = {"scar": np.exp(draws.log_w[:, :2]), "psychm": np.exp(draws.log_w)}.get(model)
    found = draws.epsilon[:, None] if model == "false_marks" else found
    wanted = {"scar": beta, "psychm": rates, "false_marks": [0.01]}[model]
    error = 4 * found.std(axis=0) / math.sqrt(count)
    assert (np.abs(found.mean(axis=0) - wanted) < error).all()
    # a = σ z with σ ~ HalfNormal(2): E a² = E σ² = 4, and E |a| = E σ E |z| = 2 · 2/π.
    assert np.mean(draws.a**2) == pytest.approx(4.0, rel=0.15)
    assert np.mean(np.abs(draws.a)) == pytest.approx(4 / math.pi, rel=0.05)
    assert np.mean(draws.a) == pytest.approx(0.0, abs=0.1)
