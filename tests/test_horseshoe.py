"""The horseshoe: its density and draws, and a posterior under it."""

import numpy as np
import pytest
from scipy import integrate, stats

import bayes_lepu as lepu
from bayes_lepu.models import get_model
from bayes_lepu.models.density import LogDensity
from bayes_lepu.options import choose_priors
from bayes_lepu.reading import read_data
from tests.tiny import tiny_table

Prior = lepu.Prior
SCALE = Prior("half-cauchy", scale=0.3, slab=2.0)


def density_of(scale):
    return lambda x: np.exp(scale.logpdf(np.array([x])) + scale.log_normalizer())


@pytest.mark.parametrize("scale", [SCALE, Prior("half-cauchy", scale=2.0, slab=0.5)])
def test_the_scale_has_a_density(scale, rng):
    total, _ = integrate.quad(density_of(scale), 0, np.inf)
    assert total == pytest.approx(1.0, rel=1e-6)
    drawn = scale.sample(rng, (50, 80)).ravel()
    at = np.quantile(drawn, [0.1, 0.5, 0.9])
    for x, share in zip(at, (0.1, 0.5, 0.9), strict=True):
        below, _ = integrate.quad(density_of(scale), 0, x)
        assert below == pytest.approx(share, abs=0.03)
    for x in (0.01, 0.3, 4.0):
        step = 1e-5
        up, down = (scale.logpdf(np.array([x + e])) for e in (step, -step))
        assert scale.grad(np.array([x]))[0] == pytest.approx((up - down) / (2 * step), rel=1e-4)
        up, down = (scale.grad(np.array([x + e]))[0] for e in (step, -step))
        curvature = scale.form.curvature(scale, np.array([x]))[0]
        assert curvature == pytest.approx(-(up - down) / (2 * step), rel=1e-4)


def sparse_density(model="spm"):
    X, l, _ = tiny_table()
    given = {"alpha": Prior("horseshoe", scale=0.3, slab=2.0)}
    data, spec = read_data(X, l), get_model(model)
    return LogDensity(spec, data, choose_priors(spec, data, priors=given), jacobian=True)


def test_the_density_is_that_of_the_pymc_model():
    density = sparse_density()
    graph = density.spec.build(density.data, density.priors)
    logp = graph.compile_logp(mode="FAST_COMPILE")
    rng, gaps = np.random.default_rng(1), []
    for _ in range(3):
        z = rng.normal(size=density.dim)
        at = density.layout.slices
        names = [v.name for v in graph.value_vars]
        assert "sigma_alpha_log__" in names
        point = {n: z[at[n.removesuffix("_log__")]] for n in names}
        point |= {n: point[n][0] for n in ("b", "beta")}
        gaps.append(logp(point) - density.logp(z))
    np.testing.assert_allclose(gaps, gaps[0], atol=1e-8)
    sigma = np.exp(density.sample_prior(4000, rng)[:, density.layout.slices["sigma_alpha"]])
    assert stats.ks_2samp(sigma.ravel(), SCALE.sample(rng, (8000,))).pvalue > 1e-4


def test_a_horseshoe_needs_its_slab_and_a_sampler():
    X, l, _ = tiny_table()
    with pytest.raises(lepu.ModelError, match=r"needs a slab > 0, .* got 0.0"):
        Prior("horseshoe", scale=0.1)
    given = {"model": "spm", "priors": {"alpha": Prior("horseshoe", scale=0.1, slab=1.0)}}
    for method in ("map", "laplace"):
        with pytest.raises(lepu.ModelError, match=r"horseshoe prior of alpha has no mode"):
            lepu.fit(X, l, method=method, **given)
    with pytest.raises(lepu.ModelError, match="b cannot have a horseshoe prior; only slopes can"):
        lepu.fit(X, l, model="spm", priors={"b": Prior("horseshoe", scale=0.1, slab=1.0)})


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_horseshoe_finds_the_columns_that_matter(seed):
    """Slopes come closer to the truth than under normal priors where most of them are zero."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(1500, 12))
    a, alpha = np.zeros(12), np.zeros(12)
    a[:3], alpha[3:5] = [2.5, -1.5, 1.0], [1.5, 1.0]
    truth = lepu.Parameters.of(a=a, b=0.0, alpha=alpha, beta=0.3)
    _, l = truth.simulate(X, rng)
    options = {"model": "spm", "draws": 500, "tune": 500, "random_seed": 1, "progressbar": False}
    prior = Prior("horseshoe", scale=0.1, slab=2.0)
    sparse = lepu.fit(X, l, priors={"a": prior, "alpha": prior}, **options)
    usual = lepu.fit(X, l, **options)
    assert sparse.stats["diverging"].mean() < 0.02
    assert sparse.orientation.probability == pytest.approx(0.5)

    def error(fit):
        means = np.r_[fit.draws.a.mean(axis=0) - a, fit.draws.alpha.mean(axis=0) - alpha]
        return np.sqrt(np.mean(means**2))

    assert error(sparse) < error(usual)
