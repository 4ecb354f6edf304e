"""model="auto": the average of the models is what its parts and weights say."""

import numpy as np
import pandas as pd
import pytest

import bayes_lepu as lepu
from bayes_lepu.averaging import PRIOR_WEIGHTS, AveragedFit
from bayes_lepu.models.parameters import Parameters


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(600, 2))
    truth = Parameters.of(a=[3.0, 0.0], b=0.0, alpha=[0.0, 2.0], beta=0.0)
    y, l = truth.simulate(X, rng)
    return X, l, y


@pytest.fixture(scope="module")
def fit(rows):
    X, l, _ = rows
    return lepu.fit(X, l, model="auto", method="laplace", draws=500, chains=2, random_seed=1)


def test_the_average_is_the_weighted_mean_of_its_members(fit, rows):
    assert isinstance(fit, AveragedFit)
    assert set(fit.weights) == set(fit.members) == set(PRIOR_WEIGHTS)
    assert sum(fit.weights.values()) == pytest.approx(1)
    X, _, _ = rows
    parts = {name: member.predict_proba(X)[:, 1] for name, member in fit.members.items()}
    wanted = sum(w * parts[name] for name, w in fit.weights.items())
    # 1000 draws: a standard error of .016 of a weight, and as much between draws of one member.
    np.testing.assert_allclose(fit.predict_proba(X)[:, 1], wanted, atol=0.06)
    assert fit.stats["model"].shape == (2, 500)


def test_weights_follow_the_predictions_and_the_prior(fit):
    table = fit.comparison
    scores = {n: np.log(PRIOR_WEIGHTS[n]) + table.loc[n, "elpd"] / 4 for n in fit.weights}
    best = max(scores.values())
    for name, weight in fit.weights.items():
        ratio = weight / fit.weights[fit.leading.spec.name]
        assert ratio == pytest.approx(np.exp(scores[name] - best), rel=1e-6)
    assert fit.leading.spec.name in ("spm", "psychm")  # the propensity varies: they predict better
    assert fit.weights["naive"] < 0.01


def test_the_verdict_says_what_the_average_rests_on(fit):
    assert f"verdict on {fit.leading.spec.name}" in fit.identifiability.verdict
    assert fit.identifiability.level == fit.leading.identifiability.level
    text = repr(fit)
    assert "average of 4 models" in text
    assert all(name in text for name in PRIOR_WEIGHTS)


def test_points_have_no_weights(rows):
    X, l, _ = rows
    with pytest.raises(lepu.ModelError, match="needs draws"):
        lepu.fit(X, l, model="auto", method="map")
    with pytest.raises(lepu.ModelError, match="without penalty and C"):
        lepu.fit(X, l, model="auto", method="laplace", C=0.1)


def test_audited_rows_leave_naive_out_and_update_averages_anew(fit, rows, tmp_path):
    _, l, y = rows
    audited = np.full(len(y), np.nan)
    audited[np.flatnonzero(l == 0)[:20]] = y[np.flatnonzero(l == 0)[:20]]
    updated = fit.update(y=audited)
    assert isinstance(updated, AveragedFit)
    assert "naive" not in updated.weights
    with pytest.raises(lepu.ModelError, match="Save its members"):
        fit.save(tmp_path / "fit.nc")


def test_formulas_reach_every_member(rows):
    X, l, _ = rows
    frame = pd.DataFrame(X, columns=["u", "v"]).assign(marked=l)
    options = {"method": "laplace", "draws": 50, "chains": 2, "random_seed": 1}
    averaged = lepu.fit(
        frame, "marked", model="auto", class_formula="~ u", selection_formula="~ v", **options
    )
    spm = averaged.members["spm"].data
    assert [spm.feature_names[j] for j in np.flatnonzero(spm.class_mask)] == ["u"]
    assert [spm.feature_names[j] for j in np.flatnonzero(spm.selection_mask)] == ["v"]
