"""The models: PyMC graph equal to the compiled density, simulators, and the registry."""

from functools import cache

import numpy as np
import pymc as pm
import pytensor
import pytest
from pytensor.compile.mode import Mode

import bayes_lepu as lepu
from bayes_lepu import ModelError, Prior
from bayes_lepu.data.reading import read_data
from bayes_lepu.model import REGISTRY, Parameters, get_model
from bayes_lepu.model.density import row_terms
from bayes_lepu.model.parameters import stack
from tests.densities import VARIANTS, block_of, constant, extreme_points, make_density, rows_by_hand
from tests.patience import slow

GRAPH_VARIANTS = {k: v for k, v in VARIANTS.items() if k != "no jacobian"}
# A graph takes a second to build; "both" and "mixed" hold what these have.
EASIER = ("masks", "laplace", "one scale")


@cache
def graph(model, variant, compiled=False):
    """A density, its PyMC model, and the graph's logp and dlogp on the density's coordinates."""
    density = make_density(model, scale=0.02, **GRAPH_VARIANTS[variant])
    pymc_model = density.spec.build(density.data, density.priors)
    outputs = [pymc_model.logp(), pymc_model.dlogp()]
    quick = {"cxx": ""} if not compiled else {}
    mode = None if compiled else Mode(linker="py", optimizer="fast_compile")
    with pytensor.config.change_flags(**quick):
        f = pymc_model.compile_fn(outputs, inputs=pymc_model.value_vars, mode=mode, point_fn=False)
    blocks = _value_blocks(density, pymc_model)
    to_value, ends = np.concatenate(blocks), np.cumsum([len(b) for b in blocks])

    def evaluate(z):
        parts = np.split(to_value @ z, ends[:-1])
        values = {
            v.name: part if v.ndim else part[0]
            for v, part in zip(pymc_model.value_vars, parts, strict=True)
        }
        with np.errstate(all="ignore"):  # Python mode evaluates both branches of every switch
            logp, dlogp = f(**values)
        return float(logp), to_value.T @ dlogp

    # PyMC's simplex coordinates are a linear map of (u, v) with determinant 1/3.
    volume = np.log(3.0) if density.spec.n_rates == 2 else 0.0
    return density, pymc_model, evaluate, constant(density) + volume


def _value_blocks(density, pymc_model):
    """The linear map from z to PyMC's value variables, one block of rows for each."""
    eye = np.eye(density.dim)
    rows = []
    for v in pymc_model.value_vars:
        own = eye[density.layout.slices[block_of(v.name)]]
        if v.name.endswith("_simplex__"):
            u, w = own
            own = np.stack([(2 * u - w) / 3, (2 * w - u) / 3])
        rows.append(own)
    return rows


@pytest.mark.parametrize("variant", [slow(v) if v in EASIER else v for v in GRAPH_VARIANTS])
@pytest.mark.parametrize("model", REGISTRY)
def test_graph_equals_density(model, variant):
    density, _, evaluate, left_out = graph(model, variant)
    rng = np.random.default_rng(11)
    points = [rng.normal(0, 2, density.dim) for _ in range(10)]
    points += list(extreme_points(density, rng))
    for z in points:
        logp, dlogp = evaluate(z)
        wanted, gradient = density.logp_grad(z)
        assert logp == pytest.approx(wanted + left_out, rel=1e-9)
        np.testing.assert_allclose(dlogp, gradient, rtol=1e-9, atol=1e-9 * np.abs(gradient).max())


@pytest.mark.parametrize("model", REGISTRY)
def test_names_and_coordinates_of_the_graph(model):
    _, pymc_model, _, _ = graph(model, "plain")
    assert [v.name for v in pymc_model.free_RVs] == list(get_model(model).parameters)
    assert [v.name for v in pymc_model.observed_RVs] == ["l"]
    assert list(pymc_model.coords["feature"]) == ["x0", "x1", "x2"]
    assert len(pymc_model.coords["obs"]) == 40
    dims = pymc_model.named_vars_to_dims
    assert dims["a"] == ("feature",)
    assert dims["l"] == ("obs",)
    if model == "psychm":
        assert list(pymc_model.coords["rate"]) == ["gamma", "lambda", "rho"]


def test_the_graph_prints_as_it_is_written():
    _, pymc_model, _, _ = graph("psychm", "plain")
    lines = {line.strip() for line in pymc_model.str_repr().splitlines()}
    assert {"rates ~ Dirichlet([1.5, 2, 5])", "h = f(t, s)", "l ~ Bernoulli(h)"} <= lines
    assert r"\operatorname{Bernoulli}(h)" in pymc_model._repr_latex_()
    assert "l ~ Bernoulli" in pymc_model.str_repr(include_params=False)
    assert not {"t", "s", "h"} & {v.name for v in pymc_model.deterministics}  # not stored


@pytest.mark.parametrize("model", REGISTRY)
def test_labels_drawn_by_the_graph(model):
    """Labels are 0/1 with mean h; audited rows follow l | y: s where y=1, never where y=0."""
    density, pymc_model, _, _ = graph(model, "audited")
    point = density.unpack(np.random.default_rng(3).normal(size=density.dim))
    given = {"a": point.a, "b": point.b, "alpha": point.alpha, "beta": point.beta}
    given |= {"c": point.gamma, "rates": np.exp(point.log_w)}
    given = {name: given[name] for name in density.spec.parameters}
    with pytensor.config.change_flags(mode="FAST_COMPILE", cxx=""):
        l = pm.draw(pm.do(pymc_model, given)["l"], draws=400, random_seed=2)
    assert set(np.unique(l)) <= {0, 1}
    X, y = density.data.X, density.data.y
    wanted = np.where(y == 1, point.s(X), np.where(y == 0, 0.0, point.h(X)))
    error = np.sqrt(wanted * (1 - wanted) / len(l))
    assert (np.abs(l.mean(axis=0) - wanted) <= 4.5 * error + 1e-12).all()
    assert abs((l.mean(axis=0) - wanted).sum()) <= 4 * np.sqrt((error**2).sum())


# Simulators ---------------------------------------------------------------------------------------

POINTS = {
    "naive": Parameters.of(a=[1.0, -2.0], b=0.3, gamma=1.0),
    "scar": Parameters.of(a=[1.0, -2.0], b=0.3, gamma=0.4, lam=0.6),
    "spm": Parameters.of(a=[1.0, -2.0], b=0.3, alpha=[0.5, 1.5], beta=-0.5),
    "psychm": Parameters.of(a=[1.0, -2.0], b=0.3, alpha=[0.5, 1.5], beta=-0.5, gamma=0.1, lam=0.2),
}


@pytest.mark.parametrize("model", POINTS)
def test_simulator_matches_its_probabilities(model):
    point, rng = POINTS[model], np.random.default_rng(21)
    X, repeats = rng.normal(size=(30, 2)), 4000
    rows = np.repeat(X, repeats, axis=0)
    y, l = point.simulate(rows, rng)
    assert set(np.unique(y)) <= {0, 1}
    assert not np.any((l == 1) & (y == 0))
    for draws, wanted in ((y, point.t(X)), (l, point.h(X))):
        share = draws.reshape(30, repeats).mean(axis=1)
        error = np.sqrt(wanted * (1 - wanted) / repeats)
        assert (np.abs(share - wanted) <= 4.5 * error).all()
    unlabelled = l.reshape(30, repeats) == 0
    missed = (y.reshape(30, repeats) * unlabelled).sum(axis=1) / np.maximum(
        unlabelled.sum(axis=1), 1
    )
    wanted = point.missed(X)
    error = np.sqrt(wanted * (1 - wanted) / np.maximum(unlabelled.sum(axis=1), 1))
    assert (np.abs(missed - wanted) <= 4.5 * error + 1e-12).all()


def test_functions_broadcast_over_draws():
    point = POINTS["psychm"]
    other = Parameters.of(a=[0.2, 0.1], b=-1.0, alpha=[2.0, 0.0], beta=1.0, gamma=0.3, lam=0.1)
    X = np.random.default_rng(0).normal(size=(7, 2))
    draws = stack([stack([point, other, point]), stack([other, other, point])])
    for name in ("tau", "omega", "t", "s", "h", "missed"):
        values = getattr(draws, name)(X)
        assert values.shape == (2, 3, 7)
        np.testing.assert_allclose(values[0, 1], getattr(other, name)(X))
        np.testing.assert_allclose(values[1, 2], getattr(point, name)(X))
    flat = draws.take_flat()
    np.testing.assert_allclose(flat.h(X), draws.h(X).reshape(6, 7))
    data = read_data(X, [0, 1, 0, 0, 0, 1, 0], y=[np.nan, np.nan, 1, 0, np.nan, np.nan, 1])
    rows, positive = row_terms(draws, data)
    np.testing.assert_allclose(rows[0, 1], rows_by_hand(other, data.X, data.kind))
    np.testing.assert_allclose(positive[1, 2], row_terms(point, data)[1])
    chosen = flat.choose(np.array([True, False] * 3), flat.swap())
    np.testing.assert_array_equal(chosen.a[1], flat.alpha[1])
    np.testing.assert_array_equal(chosen.a[2], flat.a[2])


# Registry -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("priors", "message"),
    [
        ({"c": Prior("beta", concentration=(1, 1))}, "names 'c'.*not a parameter of spm.*alpha"),
        ({"a": Prior("beta", concentration=(1, 1))}, "a cannot have a beta prior.*normal"),
        ({"b": Prior("normal", scale=Prior("halfnormal", scale=1.0))}, "b cannot have a hierarch"),
    ],
)
def test_priors_that_do_not_fit_the_model(priors, message):
    X, l = np.random.default_rng(0).normal(size=(20, 2)), np.arange(20) % 2
    with pytest.raises(ModelError, match=f"(?s){message}"):
        lepu.build_model(X, l, model="spm", priors=priors)
