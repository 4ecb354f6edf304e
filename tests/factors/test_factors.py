"""Links and propensities: NumPy, numba and PyTensor against 60-digit arithmetic and each other."""

import mpmath
import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from scipy.special import log_softmax

from bayes_lepu.errors import ModelError
from bayes_lepu.factors import REGISTRY, Factor, ceiling, get_factor
from bayes_lepu.factors.dispatch import code_of, factor_values, link_logs

LINKS = {p.link.name: p.link for p in REGISTRY.values()}
PROPENSITIES = [*REGISTRY.values(), ceiling(0.9)]
GRID = np.array(
    [-750.0, -320, -40, -21, -19, -6, -3, -1.5, -1, 0, 0.2, 0.7, 1, 4.9, 5.1, 29, 31, 40, 750]
)


def exact(name, z):
    """F and 1 - F to the working precision, neither by subtraction in its small tail."""
    z, e = mpmath.mpf(z), mpmath.exp
    if name == "logistic":
        return 1 / (1 + e(-z)), 1 / (1 + e(z))
    if name == "probit":
        return mpmath.erfc(-z / mpmath.sqrt(2)) / 2, mpmath.erfc(z / mpmath.sqrt(2)) / 2
    if name == "cauchit":
        return mpmath.atan2(1, -z) / mpmath.pi, mpmath.atan2(1, z) / mpmath.pi
    if name == "loglog":
        z = max(z, mpmath.mpf(-700))
        return e(-e(-z)), -mpmath.expm1(-e(-z))
    down, up = exact("loglog", -z)
    return up, down


def exact_log(value, complement):
    return float(mpmath.log1p(-complement) if value > 0.5 else mpmath.log(value))


def coordinates(propensity):
    return np.array([-1.3, 0.4])[: propensity.n_coordinates]


@pytest.mark.parametrize("name", LINKS)
def test_logarithms_in_the_far_tails(name):
    with mpmath.workdps(60):
        wanted = [[exact_log(*exact(name, z)), exact_log(*exact(name, z)[::-1])] for z in GRID]
    log_up, log_down, log_slope = LINKS[name].logs(GRID)
    np.testing.assert_allclose(np.column_stack([log_up, log_down]), wanted, rtol=1e-12, atol=1e-300)
    assert np.isfinite(log_slope).all()


@pytest.mark.parametrize("name", LINKS)
def test_slope_and_bend_are_derivatives(name):
    link = LINKS[name]
    for z in (-3.0, -0.4, 0.0, 1.1, 2.5):
        with mpmath.workdps(40):
            first = mpmath.diff(lambda x: exact(name, x)[0], z)
            second = mpmath.diff(lambda x: exact(name, x)[0], z, 2)
        assert float(np.exp(link.logs(np.array(z))[2])) == pytest.approx(float(first), rel=1e-12)
        assert float(link.bend(np.array(z))) == pytest.approx(float(second / first), abs=1e-12)


@pytest.mark.parametrize("name", LINKS)
def test_compiled_link_is_numpys(name):
    link, near = LINKS[name], np.abs(GRID) <= 300
    expected = np.column_stack(link.logs(GRID))
    got = np.array([link_logs(code_of(link), z) for z in GRID])
    np.testing.assert_allclose(got, expected, rtol=1e-13, atol=1e-300)
    linear = np.column_stack(factor_values(link, GRID[near], [-np.inf, -np.inf, 0.0]))
    np.testing.assert_allclose(linear, np.exp(expected[near]), rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize("propensity", PROPENSITIES, ids=lambda p: p.name)
def test_graph_is_numpys_with_finite_gradients(propensity):
    z = pt.dvector("z")
    log_rates = propensity.log_rates(coordinates(propensity))
    outputs = propensity.graph(z, pt.constant(log_rates))
    slopes = [pytensor.grad(out.sum(), z, disconnected_inputs="ignore") for out in outputs]
    values = pytensor.function([z], [*outputs, *slopes], mode="FAST_COMPILE")(GRID)
    expected = propensity.logs(GRID, log_rates)
    # Where guesses and the curve add up to almost 1, the logarithm of the sum has no more digits.
    for mine, numpys in zip(values[:2], expected[:2], strict=True):
        np.testing.assert_allclose(mine, numpys + 0 * GRID, rtol=1e-12, atol=1e-16)
    assert np.isfinite(values[2]).all()
    assert np.isfinite(values[3]).all()


@pytest.mark.parametrize("propensity", PROPENSITIES, ids=lambda p: p.name)
def test_value_and_complement_are_a_distribution(propensity):
    log_rates = propensity.log_rates(coordinates(propensity))
    log_psi, log_not_psi, _ = propensity.logs(GRID, log_rates)
    np.testing.assert_allclose(np.exp(log_psi) + np.exp(log_not_psi), 1, rtol=1e-14)
    assert np.all(np.diff(log_psi) >= 0)


@pytest.mark.parametrize("propensity", PROPENSITIES, ids=lambda p: p.name)
def test_coordinates_and_rates_are_inverse(propensity):
    u = np.random.default_rng(0).normal(size=(4, 3, propensity.n_coordinates))
    log_rates = propensity.log_rates(u)
    np.testing.assert_allclose(np.exp(log_rates).sum(axis=-1), 1, rtol=1e-14)
    back = propensity.coordinates(log_rates) if u.size else u
    np.testing.assert_allclose(back, u, atol=1e-13)
    assert len(propensity.coordinate_names) == propensity.n_coordinates


def test_the_rates_of_the_four_models():
    log_rates = {name: REGISTRY[name].log_rates for name in REGISTRY}
    np.testing.assert_array_equal(log_rates["one"](), [0, -np.inf, -np.inf])
    np.testing.assert_array_equal(log_rates["logistic"](), [-np.inf, -np.inf, 0])
    np.testing.assert_allclose(np.exp(log_rates["constant"]([np.log(3.0)])), [0.75, 0.25, 0])
    expected = log_softmax([-1.0, 0.5, 0.0])
    np.testing.assert_allclose(log_rates["psychometric"]([-1.0, 0.5]), expected, rtol=1e-14)
    np.testing.assert_allclose(np.exp(ceiling(0.8).log_rates()), [0, 0.2, 0.8])
    assert REGISTRY["constant"].coordinates([0, -np.inf, -np.inf]) == 700
    assert not REGISTRY["constant"].has_predictor


def test_a_wrong_description_is_refused():
    link = LINKS["logistic"]
    with pytest.raises(ModelError, match="in this order"):
        Factor("mine", "", link, free=("rho", "gamma"))
    with pytest.raises(ModelError, match="sum to one"):
        Factor("mine", "", link, fixed=(0.0, 0.5, 0.6))
    with pytest.raises(ModelError, match="at most 1"):
        ceiling(1.5)
    with pytest.raises(ModelError, match="rates_name"):
        Factor("mine", "", link, free=("gamma", "rho"))
    with pytest.raises(ModelError, match="Known: one, constant"):
        get_factor("two")
