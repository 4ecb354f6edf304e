"""The horseshoe: its density and draws, and a posterior under it."""

import warnings

import arviz as az
import numpy as np
import pytest
from scipy import integrate, stats

import bayes_lepu as lepu
from bayes_lepu.data.reading import read_data
from bayes_lepu.models import get_model
from bayes_lepu.models.density import LogDensity
from bayes_lepu.models.variables import free_variables
from bayes_lepu.options import choose_priors
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


@pytest.mark.parametrize(
    ("prior", "nu"),
    [(Prior("half-cauchy", scale=0.3), 1), (Prior("half-student-t", scale=0.3, nu=3), 3)],
)
def test_a_global_scale_has_the_density_of_its_family(prior, nu, rng):
    t = stats.t(nu, scale=0.3)
    x = np.array([0.01, 0.3, 7.0])
    ours = [prior.logpdf(v) + prior.log_normalizer() for v in x]
    np.testing.assert_allclose(ours, t.logpdf(x) + np.log(2), rtol=1e-12)
    step = 1e-6
    slopes = [(prior.logpdf(v + step) - prior.logpdf(v - step)) / (2 * step) for v in x]
    np.testing.assert_allclose(prior.grad(x), slopes, rtol=1e-5)
    assert stats.kstest(prior.sample(rng, (4000,)), lambda v: 2 * t.cdf(v) - 1).pvalue > 1e-4


KNOWN = Prior("horseshoe", scale=0.3, slab=2.0)
LEARNED = Prior("horseshoe", scale=Prior("half-student-t", scale=0.3, nu=3), slab=2.0)
BLOCKS = {
    "a number": {"alpha": KNOWN},
    "learned": {"alpha": LEARNED},
    "both factors": {"a": LEARNED, "alpha": LEARNED},
    "columns": {"a": {"heat": LEARNED, "light": KNOWN}},
}


def sparse_density(priors):
    X, l, _ = tiny_table()
    data, spec = read_data(X, l), get_model("spm")
    return LogDensity(spec, data, choose_priors(spec, data, priors=priors), jacobian=True)


@pytest.mark.parametrize("priors", BLOCKS.values(), ids=BLOCKS)
def test_the_density_is_that_of_the_pymc_model(priors):
    """Log density up to a constant, and its gradient."""
    density = sparse_density(priors)
    graph = density.spec.build(density.data, density.priors)
    logp = graph.compile_fn(
        [graph.logp(), graph.dlogp()], inputs=graph.value_vars, mode="FAST_COMPILE"
    )
    names = [v.name.removesuffix("_log__") for v in graph.value_vars]
    assert set(names) == {block.name for block in density.layout.blocks}
    places = [np.r_[density.layout.slices[name]] for name in names]
    rng, gaps = np.random.default_rng(1), []
    for _ in range(3):
        z = rng.normal(size=density.dim)
        values = [z[at] if graph[n].ndim else z[at[0]] for n, at in zip(names, places, strict=True)]
        theirs, slopes = logp(dict(zip(map(str, graph.value_vars), values, strict=True)))
        ours, grad = density.logp_grad(z)
        np.testing.assert_allclose(slopes, grad[np.concatenate(places)], atol=1e-9)
        gaps.append(theirs - ours)
    np.testing.assert_allclose(gaps, gaps[0], atol=1e-9)


@pytest.mark.parametrize("priors", BLOCKS.values(), ids=BLOCKS)
def test_gradient_curvature_and_coordinates(priors, rng):
    density = sparse_density(priors)
    for z in rng.normal(size=(3, density.dim)):
        step = 1e-5 * np.eye(density.dim)
        slope = [(density.logp(z + e) - density.logp(z - e)) / 2e-5 for e in step]
        np.testing.assert_allclose(density.logp_grad(z)[1], slope, rtol=1e-5, atol=1e-5)
        H = [(density.logp_grad(z + e)[1] - density.logp_grad(z - e)[1]) / 2e-5 for e in step]
        np.testing.assert_allclose(
            density.observed_information(z), -np.array(H), rtol=1e-6, atol=1e-5
        )
        np.testing.assert_allclose(density.pack(density.unpack(z)), z, atol=1e-12)


def test_a_horseshoe_is_printed_as_one():
    nested = Prior("half-cauchy", scale=Prior("half-cauchy", scale=0.3), slab=2.0)
    assert Prior("normal", scale=nested, block="w").short() == "Horseshoe(HalfCauchy(0.3), 2)"
    priors = sparse_density(BLOCKS["learned"]).priors
    assert priors["alpha"].short() == "Horseshoe(HalfStudentT(3, 0.3), 2)"
    assert sparse_density(BLOCKS["a number"]).priors["alpha"].short() == "Horseshoe(0.3, 2)"


def test_scales_are_drawn_given_the_global_one(rng):
    """As by hand: τ first, then every σ from its density on a grid."""
    density = sparse_density(BLOCKS["learned"])
    z = np.exp(density.sample_prior(3000, rng))
    tau, sigma = (z[:, density.layout.slices[f"{n}_alpha"]] for n in ("global_scale", "sigma"))
    assert stats.kstest(tau[:, 0] / 0.3, lambda x: 2 * stats.t(3).cdf(x) - 1).pvalue > 1e-4
    x = np.geomspace(1e-5, 20, 4000)
    mass = x * np.exp(-0.5 * (x / 2) ** 2) / (1 + (x / tau) ** 2)
    cdf = np.cumsum(mass, axis=1) / mass.sum(axis=1, keepdims=True)
    for j in range(2):
        u = [np.interp(s, x, row) for s, row in zip(sigma[:, j], cdf, strict=True)]
        assert stats.kstest(u, "uniform").pvalue > 1e-4


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
    with pytest.raises(lepu.ModelError, match=r"Possible: half-cauchy, half-student-t, halfnormal"):
        Prior("horseshoe", scale=Prior("beta", concentration=(1, 1)), slab=1.0)
    other = Prior("horseshoe", scale=Prior("halfnormal", scale=0.1), slab=2.0)
    with pytest.raises(lepu.ModelError, match="one is learned for all of them"):
        lepu.build_model(X, l, model="spm", priors={"a": {"heat": LEARNED, "light": other}})


def test_a_learned_global_scale_is_a_variable_of_the_fit(tmp_path):
    """In the tree, in its log prior (that of PyMC), in a saved file."""
    X, l, _ = tiny_table()
    options = {"draws": 20, "tune": 100, "chains": 1, "cores": 1, "progressbar": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lepu.LepuWarning)
        fit = lepu.fit(X, l, model="spm", priors=BLOCKS["learned"], random_seed=1, **options)
    posterior, weighed = fit.tree["posterior"], fit.tree["log_prior"]
    names = ["global_scale_alpha", "sigma_alpha", "z_alpha"]
    logp = fit.model.compile_logp(
        [fit.model[name] for name in names], jacobian=False, sum=False, mode="FAST_COMPILE"
    )
    at = {"chain": 0, "draw": 7}
    values = {name: posterior[name].isel(at).to_numpy() for name in names[:2]}
    inside = {f"{name}_log__": np.log(x) for name, x in values.items()}
    inside |= {name: posterior[name].isel(at).to_numpy() for name in ("z_alpha", "a", "b", "beta")}
    for name, theirs in zip(names, logp(inside), strict=True):
        # PyMC takes the logarithm of 2 in a half-Student-t in single precision.
        np.testing.assert_allclose(weighed[name].isel(at), theirs, rtol=1e-9, atol=1e-8)
    again = lepu.load(fit.save(tmp_path / "fit.nc"))
    assert again.priors == fit.priors
    for name in names:
        np.testing.assert_array_equal(again.tree["posterior"][name], posterior[name])


def test_a_point_of_several_annotators_has_no_unknown_scales():
    """A mode, found with known scales, among the variables of a model that has unknown ones."""
    X, _, L = tiny_table()
    data, spec = read_data(X, L), get_model("spm")
    known, learned = (
        LogDensity(spec, data, choose_priors(spec, data, priors=priors), jacobian=True)
        for priors in ({}, {"alpha_mean": LEARNED})
    )
    z = np.random.default_rng(1).normal(size=(2, learned.dim))
    assert {"sigma_alpha_mean", "global_scale_alpha_mean", "z_alpha_mean"} <= set(
        free_variables(learned, learned.unpack(z))
    )
    point = known.unpack(z[..., : known.dim])
    assert "sigma_alpha_mean" not in free_variables(learned, point)


def sparse_table(slopes, seed=3):
    """600 rows of 8 columns; these slopes of t, two of s."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(600, 8))
    truth = lepu.Parameters.of(a=slopes, b=0.0, alpha=[0, 0, 0, 1.5, 1, 0, 0, 0], beta=0.3)
    return X, truth.simulate(X, rng)[1]


@pytest.mark.slow
def test_the_global_scale_is_learned():
    """Chains mix, and τ is smaller where fewer columns matter."""
    medians = []
    prior = Prior("horseshoe", scale=Prior("half-student-t", scale=0.1, nu=3), slab=2.0)
    for slopes in ([2.5, 0, 0, 0, 0, 0, 0, 0], [1.5, -1.2, 1, 1, -1, 1.2, -1, 1]):
        X, l = sparse_table(slopes)
        given = {"model": "spm", "priors": {"a": prior, "alpha": prior}, "random_seed": 1}
        fit = lepu.fit(X, l, draws=300, tune=400, progressbar=False, **given)
        names = ["a", "b", "alpha", "beta", "pi", "sigma_a", "global_scale_a", "sigma_alpha"]
        rhat = az.rhat(fit.tree["posterior"].to_dataset()[names])
        assert max(float(rhat[name].max()) for name in names) < 1.03
        assert fit.stats["diverging"].mean() < 0.02
        medians.append(float(fit.tree["posterior"]["global_scale_a"].median()))
    assert medians[0] < 0.7 * medians[1]


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
    level = Prior("normal", scale=2.5)
    alike = {"a": prior, "alpha": prior, "b": level, "beta": level}
    sparse, usual = lepu.fit(X, l, priors=alike, **options), lepu.fit(X, l, **options)
    assert sparse.stats["diverging"].mean() < 0.02
    assert sparse.orientation.probability == pytest.approx(0.5)

    def error(fit):
        means = np.r_[fit.draws.a.mean(axis=0) - a, fit.draws.alpha.mean(axis=0) - alpha]
        return np.sqrt(np.mean(means**2))

    assert error(sparse) < error(usual)
