"""Orientation: which factor is called t, by which rule, and what overrides every rule."""

import numpy as np
import pytest

import bayes_lepu as lepu
from bayes_lepu import Parameters
from bayes_lepu.data.reading import read_data
from bayes_lepu.engines.orientation import settled_by, sizes
from bayes_lepu.model import get_model

STEEP = Parameters.of(a=[4.0, 0.0, 1.0], b=0.5, alpha=[0.0, 1.5, 0.5], beta=0.5)


def simulated(point, n=3000, seed=0, scale=None):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, point.a.size))
    y, l = point.simulate(X, rng)
    return (X if scale is None else X * scale), y, l


def rows(X):
    """Rows as they are, with labels that do not matter."""
    return read_data(X, np.arange(len(X)) % 2, standardize=False)


def quick(X, l, **options):
    return lepu.fit(X, l, **{"model": "spm", "method": "map", "random_seed": 0, **options})


def angle(u, v):
    return abs(float(u @ v)) / np.linalg.norm(u) / np.linalg.norm(v)


# The rules ----------------------------------------------------------------------------------------


def test_sizes_are_what_they_are_called():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, 3)) @ rng.normal(size=(3, 3)) + [5.0, 0.0, -3.0]
    measured = sizes(STEEP, rows(X))
    covariance = np.cov(X, rowvar=False, ddof=0)
    for k, slope in enumerate((STEEP.a, STEEP.alpha)):
        quadratic = slope @ covariance @ slope
        assert measured["sigma-norm"][k] == pytest.approx(np.sqrt(quadratic))
        assert measured["norm"][k] == pytest.approx(np.sqrt(slope @ slope))


# In a fit -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", ["sigma-norm", "norm"])
def test_spm_calls_the_steep_factor_t(rule):
    X, _, l = simulated(STEEP)
    for seed in range(3):  # wherever the search happened to end
        fit = quick(X, l, orientation=rule, random_seed=seed)
        assert angle(fit.draws.a[0], STEEP.a) > 0.95
        assert angle(fit.draws.alpha[0], STEEP.alpha) > 0.9
        assert fit.orientation.settled_by == "rule"
        assert fit.orientation.rule == rule
        large, small = fit.orientation.sizes[rule]
        assert large > small


def test_units_do_not_matter_for_sigma_norm_but_do_for_the_raw_norm():
    """maths.md 3.5: one column in other units, sigma-norm right, raw norm wrong."""
    scale = np.array([1.0, 0.01, 1.0])  # the column that only s uses, in units 100 times larger
    X, _, l = simulated(STEEP, scale=scale)
    options = {"standardize": False, "C": 1e-6}
    right = quick(X, l, orientation="sigma-norm", **options)
    assert angle(right.draws.a[0] * scale, STEEP.a) > 0.95
    assert right.orientation.sizes["norm"][0] < right.orientation.sizes["norm"][1]
    wrong = quick(X, l, orientation="norm", **options)
    assert angle(wrong.draws.alpha[0] * scale, STEEP.a) > 0.95
    np.testing.assert_allclose(right.draws.a, wrong.draws.alpha, rtol=1e-3)
    plain, _, _ = simulated(STEEP)
    standard = quick(plain, l, orientation="sigma-norm", **options)
    np.testing.assert_allclose(
        right.orientation.sizes["sigma-norm"], standard.orientation.sizes["sigma-norm"], rtol=1e-3
    )


def test_psychm_is_left_to_its_density():
    """PsychM is not symmetric: no rule is applied, the better mode wins."""
    truth = Parameters.of(
        a=[1.0, 0.5, 0.0], b=0.3, alpha=[0.0, 2.0, 4.0], beta=0.0, gamma=0.25, lam=0.05
    )
    X, _, l = simulated(truth, n=6000)
    fit = quick(X, l, model="psychm", C=0.01)
    assert fit.orientation.settled_by == "density"
    assert fit.modes[0].norm_alpha > fit.modes[0].norm_a  # against the norm rule, and right
    assert angle(fit.draws.alpha[0], truth.alpha) > 0.9
    assert "swapped mode" in repr(fit)


def test_of_two_namings_alike_the_rule_chooses():
    """Without guesses PsychM is SPM: both orders are as high, and rounding must not decide."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    steep = Parameters.of(a=[3.0, 0.5], b=0.0, alpha=[0.0, 1.5], beta=1.0)
    fit = quick(X, steep.simulate(X, rng)[1], model="psychm", penalty="l2", C=0.5)
    best, other = fit.modes[:2]
    assert best.point.gamma < 1e-9
    assert other.role == "swapped"
    assert other.logp == pytest.approx(best.logp, abs=1e-6)
    assert fit.orientation.settled_by == "rule"
    assert best.norm_a > best.norm_alpha


# What overrides the rules -------------------------------------------------------------------------


def test_columns_override_the_rule():
    """s may use only the columns of the steep factor, so the steep factor is s."""
    X, _, l = simulated(STEEP.swap())
    fit = quick(X, l, selection_features=[0, 2])
    assert fit.orientation.settled_by == "columns"
    assert angle(fit.draws.alpha[0], STEEP.a) > 0.95
    assert fit.modes[0].norm_alpha > fit.modes[0].norm_a
    assert fit.draws.alpha[0, 1] == 0.0
    assert "determined by the columns" in repr(fit)


def test_audited_rows_override_the_rule():
    X, y, l = simulated(STEEP.swap())
    known = np.where(np.arange(len(l)) % 4 == 0, y, np.nan).astype(float)
    fit = quick(X, l, y=known)
    assert fit.orientation.settled_by == "audited rows"
    assert angle(fit.draws.alpha[0], STEEP.a) > 0.95
    assert fit.modes[0].norm_alpha > fit.modes[0].norm_a
    assert "determined by the audited rows" in repr(fit)


def test_what_settles_it():
    rng = np.random.default_rng(0)
    X, l = rng.normal(size=(30, 2)), np.arange(30) % 2
    y = np.full(30, np.nan)
    y[0] = 0
    plain, masked = read_data(X, l), read_data(X, l, class_features=[0])
    both, audited = read_data(X, l, class_features=[0], y=y), read_data(X, l, y=y)
    spm, psychm, scar = (get_model(m) for m in ("spm", "psychm", "scar"))
    assert settled_by(scar, plain, "norm") == "model"
    assert settled_by(spm, plain, "norm") == "rule"
    assert settled_by(spm, plain, "none") == "density"
    assert settled_by(psychm, plain, "norm") == "density"
    for spec in (spm, psychm):
        assert settled_by(spec, masked, "norm") == "columns"
        assert settled_by(spec, both, "norm") == "columns"
        assert settled_by(spec, audited, "norm") == "audited rows"
