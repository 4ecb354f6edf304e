"""Columns that differ between the annotators of a row."""

import numpy as np
import pandas as pd
import pytest
from model.test_pooled_density import points
from scipy.special import expit

import bayes_lepu as lepu
from bayes_lepu.data.reading import read_data
from bayes_lepu.model import get_model
from bayes_lepu.model.density import LogDensity
from bayes_lepu.options import choose_priors
from tests.densities import graph_gaps

DELTA = 1.2
SLOPES = np.array([1.6, 1.0, 0.0])


def surveys(n: int, *, seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """X, labels of three observers and the hours each spent; a fifth of the visits not made."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.standard_normal((n, 3)), columns=["heat", "motion", "light"])
    y = rng.random(n) < expit(X.to_numpy() @ SLOPES + 0.2)
    hours = rng.gamma(2.0, 1.0, (n, 3))
    s = expit(X[["light"]].to_numpy() + DELTA * (hours - 2) + [0.3, -0.3, 0.6])
    L = (y[:, None] & (rng.random(s.shape) < s)).astype(float)
    L[rng.random(L.shape) < 0.2] = np.nan
    who = ["anna", "ben", "cleo"]
    return X, pd.DataFrame(L, columns=who), pd.DataFrame(hours, columns=who)


@pytest.fixture(scope="module")
def fitted():
    X, L, hours = surveys(600)
    return X, L, hours, lepu.fit(X, L, visits={"hours": hours}, model="spm", method="laplace",
                                 draws=25, random_seed=1)  # fmt: skip


@pytest.mark.parametrize("model", ["spm", "psychm"])
def test_density_is_that_of_the_formula_and_of_the_pymc_model(model):
    X, L, hours = surveys(40, seed=3)
    data = read_data(X, L, visits={"hours": hours}, standardize=False)
    spec = get_model(model)
    density = LogDensity(spec, data, choose_priors(spec, data), jacobian=True)
    np.testing.assert_allclose(graph_gaps(density, points(density)), 0, atol=1e-9)
    for z in points(density):
        p = density.unpack(z)
        delta = z[density.layout.slices["delta"]][0]
        omega = X.to_numpy() @ p.alpha[:, :3].T + p.beta + delta * hours.to_numpy()
        psi = p.gamma + p.rho * expit(omega)
        cells = np.where(L == 1, psi, np.where(L == 0, 1 - psi, 1.0)).prod(axis=1)
        t = expit(X.to_numpy() @ p.a[:3] + p.b)
        by_hand = np.log(t * cells + (1 - t) * ~(L == 1).any(axis=1).to_numpy()).sum()
        assert density.logp(z) - density.log_prior(z) == pytest.approx(by_hand, abs=1e-8)
        _, gradient = density.logp_grad(z)
        for i, step in enumerate(1e-5 * np.eye(density.dim)):
            slope = (density.logp(z + step) - density.logp(z - step)) / 2e-5
            assert gradient[i] == pytest.approx(slope, rel=1e-5, abs=1e-5)


def test_the_slope_is_found_and_travels(fitted, tmp_path):
    X, _, _, fit = fitted
    delta = fit.tree["posterior"]["delta"].to_numpy().ravel() / fit.data.scale[-1]
    assert abs(delta.mean() - DELTA) < 4 * delta.std()
    assert fit.predict_proba(X).shape == (len(X), 2)
    again = lepu.load(fit.save(tmp_path / "fit.nc"))
    np.testing.assert_array_equal(again.parameters.alpha, fit.parameters.alpha)
    assert again.data.visit_names == ("hours",)
    pd.testing.assert_frame_equal(again.missed(), fit.missed())


def test_visits_alone_may_enter_the_propensity_and_be_columns_of_x(fitted):
    X, L, hours, _ = fitted
    table = pd.concat([X, L, hours.add_prefix("hours of ")], axis=1)
    how = {"model": "spm", "method": "laplace", "draws": 25, "random_seed": 1}
    named = {"hours": [f"hours of {who}" for who in L]}
    fit = lepu.fit(table, list(L), visits=named, selection_features="~ 1", **how)
    same = lepu.fit(X, L, visits={"hours": hours}, selection_features=[], **how)
    np.testing.assert_array_equal(fit.pi_draws, same.pi_draws)
    density = LogDensity(fit.spec, fit.data, fit.priors, jacobian=True)
    np.testing.assert_allclose(graph_gaps(density, points(density)), 0, atol=1e-9)
    assert "hours of anna" in fit.call
    assert "visits=visits" not in fit.call
    curve = fit.propensity(X.head(6), visits={"hours": np.linspace(0.5, 4, 6)})["mean"]
    assert (curve.xs("ben", level="annotator").diff().dropna() > 0).all()
    own = fit.propensity(table, visits=named)
    pd.testing.assert_frame_equal(own, fit.propensity(X, visits={"hours": hours}))
    known = L.eq(1).any(axis=1).mean()  # nobody takes these back
    assert known <= same.identifiability.pi_range[0] <= fit.class_prior().loc["pi", "mean"]
    for wrong, said in ({"hour": 1.0}, "hours"), ({"hours": [1.0, 2.0]}, "600 rows"):
        with pytest.raises(lepu.errors.DataError, match=said):
            fit.propensity(X, visits=wrong)


def test_draws_of_its_pymc_model_come_back(fitted):
    X, L, hours, fit = fitted
    options = {"visits": {"hours": hours}, "model": "spm", "priors": dict(fit.priors)}
    assert "delta" in lepu.build_model(X, L, **options).named_vars
    again = lepu.from_trace(fit.tree, X, L, random_seed=1, **options)
    np.testing.assert_allclose(again.pi_draws, fit.pi_draws, atol=1e-9)


def test_visits_explain_the_labels_and_are_kept_by_an_update():
    X, L, hours = surveys(300, seed=5)
    without = lepu.fit(X, L, model="spm", method="map")
    fit = lepu.fit(X, L, visits={"hours": hours}, model="spm", method="map")
    assert fit.modes[0].logp > without.modes[0].logp + 20
    same = fit.update()
    np.testing.assert_allclose(same.parameters.alpha, fit.parameters.alpha, atol=1e-6)
    assert same.feature_names == fit.feature_names
