"""Unknown scales of blocks of slopes: coordinates, marginal likelihood, terms of formulas."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize_scalar

import bayes_lepu as lepu
from bayes_lepu import Prior
from bayes_lepu.data.formulas import is_group
from bayes_lepu.data.reading import read_data
from bayes_lepu.engines import pooling
from bayes_lepu.engines.optimizers import optimise
from bayes_lepu.links import sigmoid
from bayes_lepu.model import compiled, get_model
from bayes_lepu.model.density import LogDensity
from bayes_lepu.options import choose_priors
from tests.densities import BLOCKS, make_density


def grouped(n=600, groups=12, seed=1):
    """A table with a curve and groups; who is marked depends on another column."""
    rng = np.random.default_rng(seed)
    x, w, g = rng.uniform(-2, 2, n), rng.normal(size=n), rng.integers(0, groups, n)
    t = sigmoid(1.5 * (x**2 - 1.3) + rng.normal(0, 1.0, groups)[g])
    marked = (rng.random(n) < t) & (rng.random(n) < sigmoid(0.7 + w))
    names = pd.Categorical([f"g{k:02d}" for k in g])
    return pd.DataFrame({"x": x, "w": w, "g": names, "marked": marked.astype(int)})


FORMULAS = {"class_features": "~ bs(x, df=5) + (1 | g)", "selection_features": "~ w"}


def several(blocks):
    """Two annotators; what they share has unknown scales too."""
    rng = np.random.default_rng(5)
    data = read_data(rng.normal(size=(40, 3)), (rng.random((40, 2)) < 0.3).astype(float))
    spec = get_model("spm")
    priors = choose_priors(spec, data, priors={"a": blocks["a"], "alpha_mean": blocks["alpha"]})
    return LogDensity(spec, data, priors, jacobian=True)


@pytest.mark.parametrize(
    "make", [lambda: make_density("spm", priors=BLOCKS), lambda: several(BLOCKS)]
)
def test_sampling_coordinates_carry_density_and_gradient(make):
    """The density of v = c mean + sigma^c z is that of z times the Jacobian, by differences."""
    density = make()
    rng = np.random.default_rng(3)
    z, centring = 0.5 * rng.normal(size=density.dim), rng.uniform(size=density.dim)
    v = pooling.to_centred(density, z, centring)
    np.testing.assert_allclose(pooling.from_centred(density, v, centring), z, atol=1e-12)
    np.testing.assert_allclose(compiled.uncentre(v, centring, density.constants), z, atol=1e-12)
    eye = np.eye(density.dim)
    none = np.zeros(0, dtype=np.intp)
    state = compiled.Whitened(np.zeros(density.dim), eye, centring, none, density.constants)

    def carried(at):
        return compiled.whitened(at, state)

    forward = [
        (
            pooling.to_centred(density, z + e, centring)
            - pooling.to_centred(density, z - e, centring)
        )
        / 2e-6
        for e in 1e-6 * eye
    ]
    log_det = np.linalg.slogdet(np.array(forward))[1]
    value, grad = carried(v)
    assert value == pytest.approx(density.logp(z) - log_det, abs=1e-6)
    numeric = [(carried(v + e)[0] - carried(v - e)[0]) / 2e-6 for e in 1e-6 * eye]
    np.testing.assert_allclose(grad, numeric, rtol=1e-5, atol=1e-5)
    jacobian = pooling._jacobian(density, z, centring)
    np.testing.assert_allclose(jacobian, np.array(forward).T, rtol=1e-6, atol=1e-6)


def test_scales_of_a_point_estimate_maximise_the_marginal_likelihood():
    """EM ends where Laplace's marginal likelihood plus the log prior of log sigma is highest."""
    rng = np.random.default_rng(4)
    n, groups = 800, 10
    g = rng.integers(0, groups, n)
    y = rng.random(n) < sigmoid(rng.normal(0, 1.0, groups)[g])
    frame = pd.DataFrame({"g": pd.Categorical(g.astype(str)), "marked": y.astype(int)})
    data = read_data(frame, "marked", class_features="~ (1 | g)")
    spec = get_model("naive")
    priors = choose_priors(spec, data, point=True, C=0.01)
    density = LogDensity(spec, data, priors)
    start = density.unpack(np.zeros(density.dim))
    found = pooling.estimate_scales(density, start)[0]["a"].parts[0].known_scale

    def marginal(log_sigma):
        held = {**priors, "a": pooling.with_scales(priors["a"], {"1 | g": np.exp(log_sigma)})}
        known = LogDensity(spec, data, held)
        z = optimise(known, known.pack(start)).z
        sign, log_det = np.linalg.slogdet(known.observed_information(z))
        assert sign == 1
        of_sigma = log_sigma - 0.5 * np.exp(2 * log_sigma)  # half-normal of scale 1, log sigma
        return -(known.logp(z) - groups * log_sigma - 0.5 * log_det + of_sigma)

    best = float(np.exp(minimize_scalar(marginal, bounds=(-3, 2), method="bounded").x))
    assert found == pytest.approx(best, rel=0.05)
    assert 0.5 < found < 1.6


def test_terms_of_formulas_have_scales_of_their_own():
    frame = grouped()
    fit = lepu.fit(
        frame, "marked", model="spm", method="laplace", draws=50, random_seed=1, **FORMULAS
    )
    posterior = fit.tree["posterior"]
    assert posterior["class_block"].to_numpy().tolist() == ["bs(x, df=5)", "1 | g"]
    assert posterior["sigma_a"].dims == ("chain", "draw", "class_block")
    assert "sigma_alpha" not in posterior  # w is a plain column
    assert "Normal(0, HalfNormal(1)) in 1 | g" in repr(fit)
    z = posterior["z_a"].to_numpy()[..., 5:]
    sigma = posterior["sigma_a"].to_numpy()[..., 1:]
    np.testing.assert_allclose(posterior["a"].to_numpy()[..., 5:], sigma * z)
    point = lepu.fit(frame, "marked", model="spm", method="map", random_seed=1, **FORMULAS)
    scales = {part.block: part.known_scale for part in point.priors["a"].parts}
    assert set(scales) == {"bs(x, df=5)", "1 | g"}
    given = {"a": {"1 | g": Prior("normal", scale=0.01)}}
    pooled = lepu.fit(
        frame, "marked", model="spm", method="map", random_seed=1, priors=given, **FORMULAS
    )
    assert pooled.parameters.a[..., 5:].std() < 0.1 * point.parameters.a[..., 5:].std()


def test_group_intercepts_keep_their_units():
    """A rare group is pooled more: its column is not divided by its standard deviation."""
    data = read_data(grouped(), "marked", class_features="~ x + (1 | g)")
    places = list(data.blocks["1 | g"])
    np.testing.assert_array_equal(data.scale[places], 1.0)
    assert is_group("1 | g")
    assert not is_group("x")
    assert data.scale[data.terms["x"][0]] == pytest.approx(2 / np.sqrt(3) * 1.0, rel=0.1)
