"""Averages of models are what their parts and weights say."""

import pickle

import arviz as az
import numpy as np
import pandas as pd
import pytest

import bayes_lepu as lepu
from bayes_lepu.averaging import PRIOR_WEIGHTS, AveragedFit
from bayes_lepu.models.parameters import Parameters
from tests.tiny import tiny_table


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


# A few draws of a rare row may weigh much; how many do is no matter here.
@pytest.mark.filterwarnings("ignore:Estimated shape parameter:UserWarning")
def test_weights_follow_the_predictions_and_the_prior(fit):
    loos = {name: az.loo(member.tree, reff=1.0) for name, member in fit.members.items()}
    dims = {"naive": 3, "scar": 4, "spm": 6, "psychm": 8}  # no more effective parameters than these
    elpd = {name: loo.elpd + max(loo.p - dims[name], 0) for name, loo in loos.items()}
    scores = {n: np.log(PRIOR_WEIGHTS[n]) + elpd[n] / 4 for n in fit.weights}
    best = max(scores.values())
    for name, weight in fit.weights.items():
        ratio = weight / fit.weights[fit.leading.spec.name]
        assert ratio == pytest.approx(np.exp(scores[name] - best), rel=1e-6)
    assert fit.leading.spec.name in ("spm", "psychm")  # the propensity varies: they predict better
    assert fit.weights["naive"] < 0.01


def test_a_failed_loo_does_not_hand_the_average_to_naive():
    """Separable classes: the Gaussians are far too wide, and PSIS finds hundreds of parameters."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    l = ((X[:, 0] > 0) & (rng.random(400) < 0.3)).astype(int)
    fit = lepu.fit(X, l, model="auto", method="laplace", draws=200, random_seed=1)
    assert fit.weights["naive"] < 0.1
    assert abs(float(fit.pi_draws.mean()) - np.mean(X[:, 0] > 0)) < 0.1


def test_the_verdict_says_what_the_average_rests_on(fit):
    assert f"verdict on {fit.leading.spec.name}" in fit.identifiability.verdict
    assert fit.identifiability.level == fit.leading.identifiability.level
    text = repr(fit)
    assert "average of 4 models" in text
    assert all(name in text for name in PRIOR_WEIGHTS)


@pytest.mark.filterwarnings("ignore::bayes_lepu.LepuWarning")
def test_several_annotators_rule_naive_out(tmp_path):
    X, _, L = tiny_table()
    fit = lepu.fit(X, L, model="auto", method="laplace", draws=50, chains=2, random_seed=1)
    assert set(fit.members) == {"scar", "spm", "psychm"}
    assert fit.class_probability(X)["mean"].between(0, 1).all()
    again = lepu.load(fit.save(tmp_path / "average.nc"))
    np.testing.assert_array_equal(again.pi_draws, fit.pi_draws)


def test_points_have_no_weights(rows):
    X, l, _ = rows
    with pytest.raises(lepu.ModelError, match="needs draws"):
        lepu.fit(X, l, model="auto", method="map")
    with pytest.raises(lepu.ModelError, match="without penalty and C"):
        lepu.fit(X, l, model="auto", method="laplace", C=0.1)


def test_audited_rows_leave_naive_out_and_update_averages_anew(fit, rows):
    _, l, y = rows
    audited = np.full(len(y), np.nan)
    audited[np.flatnonzero(l == 0)[:20]] = y[np.flatnonzero(l == 0)[:20]]
    updated = fit.update(y=audited)
    assert isinstance(updated, AveragedFit)
    assert "naive" not in updated.weights


def test_an_average_comes_back_from_its_file(fit, rows, tmp_path):
    X, _, _ = rows
    loaded = lepu.load(fit.save(tmp_path / "fit.nc"))
    assert isinstance(loaded, AveragedFit)
    np.testing.assert_array_equal(loaded.predict_proba(X), fit.predict_proba(X))
    pd.testing.assert_frame_equal(loaded.comparison, fit.comparison, check_dtype=False)
    assert loaded.options.random_seed == fit.options.random_seed
    assert str(loaded) == str(fit)
    with pytest.raises(lepu.ModelError, match=r"fit.members\['\w+'\].save\(.*all_groups=True"):
        fit.save(tmp_path / "other.nc", all_groups=True)


def test_an_average_without_its_rows(fit, rows, tmp_path):
    X, _, _ = rows
    shipped = lepu.load(fit.save(tmp_path / "fit.nc", data=False))
    assert shipped.class_probability(X).equals(fit.class_probability(X))
    assert shipped.missed(X).equals(fit.missed(X))
    assert shipped.class_prior().equals(fit.class_prior())
    assert str(shipped) == str(fit)
    assert f"weights of the members: {fit.leading.spec.name} 0." in str(shipped)
    assert fit.data.X[5].tobytes() not in (tmp_path / "fit.nc").read_bytes()
    again = lepu.load(shipped.save(tmp_path / "again.nc"))
    assert again.class_probability(X).equals(fit.class_probability(X))
    assert str(again) == str(fit)
    for needs_rows in ("identifiability", "tree"):
        with pytest.raises(lepu.ModelError, match="saved without its rows"):
            getattr(shipped, needs_rows)
    with pytest.raises(lepu.ModelError, match="saved without its rows"):
        shipped.update(random_seed=3)


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
    # Members whose propensity has no columns keep v out of t as well.
    for member in averaged.members.values():
        assert member.data.feature_names == spm.feature_names
        assert (member.draws.a[:, 1] == 0).all()
    assert (averaged.draws.a[:, 1] == 0).all()


def test_an_average_can_be_pickled_and_takes_unseen_levels(tmp_path):
    X, l, _ = tiny_table()
    X = X.assign(place=np.where(np.arange(len(X)) % 3, "a", "b"))
    fit = lepu.fit(X, l, model="auto", method="laplace", draws=50, chains=2, random_seed=1)
    _ = fit.tree
    again = pickle.loads(pickle.dumps(fit))
    np.testing.assert_array_equal(again.predict_proba(X), fit.predict_proba(X))
    fit = fit.accept_unseen("average")
    new = X.assign(place="c")
    loaded = lepu.load(fit.save(tmp_path / "fit.nc"))
    np.testing.assert_array_equal(loaded.predict_proba(new), fit.predict_proba(new))
