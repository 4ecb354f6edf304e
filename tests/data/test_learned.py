"""Learned columns: the class may bend."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from scipy.special import expit
from sklearn.datasets import make_moons
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

import bayes_lepu as lepu
from bayes_lepu.data.learned import FEWEST_MARKS, Kernel, Trees, as_arrays, trained, with_learned
from bayes_lepu.data.reading import read_data
from bayes_lepu.errors import DataError, FileFormatError, ModelError

MAP = {"method": "map", "random_seed": 1, "progressbar": False}


def ring_table(n: int, seed: int = 0):
    """A class inside a ring, marks at random: no straight line separates it."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 3)), columns=["u", "v", "w"])
    X["kind"] = rng.choice(["red", "blue"], size=n)
    y = (X.u**2 + X.v**2 < 1.2).astype(int).to_numpy()
    return X, (y * (rng.random(n) < 0.5)).astype(int), y


@pytest.fixture(scope="module")
def curved():
    X, l, _ = ring_table(1200)
    return lepu.fit(X, l, model="scar", class_learner=["boosting", "trees"], **MAP)


@pytest.mark.parametrize(
    "classifier",
    [
        HistGradientBoostingClassifier(max_iter=30, random_state=0),
        ExtraTreesClassifier(20, min_samples_leaf=3, random_state=0),
        RandomForestClassifier(20, random_state=0),
    ],
    ids=lambda c: type(c).__name__,
)
def test_trees_as_arrays_predict_what_the_classifier_does(classifier, rng):
    X = rng.normal(size=(400, 5))
    classifier.fit(X, (X[:, 0] * X[:, 1] + 0.5 * rng.normal(size=400) > 0).astype(int))
    new = rng.normal(size=(300, 5))
    trees = as_arrays(classifier)
    again = Trees.from_arrays(trees._asdict(), 5)
    expected = classifier.predict_proba(new)[:, 1]
    np.testing.assert_allclose(again.probability(new), expected, atol=1e-12)


def test_scores_of_the_rows_are_of_classifiers_that_did_not_see_them(rng):
    X, noise = rng.normal(size=(600, 4)), (rng.random(600) < 0.3).astype(np.int8)
    data = with_learned(read_data(X, noise), ["boosting", "kernel", "trees"], 3)
    own = [roc_auc_score(noise, column) for column in data.X[:, 4:].T]
    seen = [roc_auc_score(noise, column) for column in data.learned.log_odds(data.X).T]
    assert max(own) < 0.6  # labels are noise; the standard error of an AUC is .025 here
    assert min(seen[0], seen[2]) > 0.8


def test_rows_of_a_group_are_left_out_together(rng):
    X = pd.DataFrame({"x": rng.normal(size=900), "place": np.repeat(np.arange(90), 10)})
    target = rng.choice([0, 1], size=90, p=[0.7, 0.3])[X["place"]]
    aucs = []
    for formula in ("~ x + place", "~ x + place + (1 | place)"):  # place gives the group away
        data = with_learned(read_data(X, target, class_features=formula), ["boosting"], 3)
        aucs.append(roc_auc_score(target, data.X[:, -1]))
    assert aucs[0] > 0.95
    assert aucs[1] < 0.75


def test_a_curved_class_is_learned():
    X, l, _ = ring_table(1200)
    new, _, y = ring_table(2000, seed=1)
    straight = lepu.fit(X, l, model="scar", **MAP).predict_proba(new)[:, 1]
    for model in ("scar", "spm", "psychm"):
        fit = lepu.fit(X, l, model=model, class_learner="boosting", **MAP)
        bent = fit.predict_proba(new)[:, 1]
        assert roc_auc_score(y, bent) > 0.95
        assert float(fit.pi_draws.mean()) == pytest.approx(y.mean(), abs=0.06)
    assert roc_auc_score(y, straight) < 0.65


def test_a_straight_class_of_many_columns_and_few_marks_loses_nothing_to_scores():
    """A score made without its row, taken from what the columns say with it, tells the row's label.

    With weights of either sign the fit found that: AUC .66 and π = .15, the share of marks.
    """
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 60))
    X[:, 20:] = X[:, 20:] > 1.2
    y = rng.random(1500) < expit(X[:, :6] @ [1, -0.8, 0.6, 0.5, -0.5, 0.4] - 1)
    l = (y & (rng.random(1500) < 0.4)).astype(int)[:750]
    aucs = []
    for learner in (None, ["kernel", "trees"]):
        fit = lepu.fit(X[:750], l, model="scar", class_learner=learner, **MAP)
        aucs.append(roc_auc_score(y[750:], fit.predict_proba(X[750:])[:, 1]))
    assert aucs[1] > aucs[0] - 0.025  # standard error of their difference, by resampled rows: .012
    assert float(fit.pi_draws.mean()) == pytest.approx(y.mean(), abs=0.1)


def test_the_propensity_has_no_learned_column_and_users_columns_keep_their_names(curved):
    data = curved.data
    assert data.feature_names[-2:] == ("score(boosting)", "score(trees)")
    assert not data.selection_mask[-2:].any()
    assert data.class_mask.all()
    assert data.user_columns == ("u", "v", "w", "kind")
    assert set(data.terms) == {"u", "v", "w", "kind"}


def test_saved_without_pickle_and_the_same_in_another_process(curved, tmp_path):
    new, _, _ = ring_table(200, seed=2)
    new.to_csv(tmp_path / "new.csv", index=False)
    curved.save(tmp_path / "fit.nc")
    curved.save(tmp_path / "small.nc", data=False)
    code = (
        "import sys, numpy as np, pandas as pd, bayes_lepu as lepu\n"
        f"new = pd.read_csv({str(tmp_path / 'new.csv')!r}, float_precision='round_trip')\n"
        "for name in ('fit', 'small'):\n"
        f"    fit = lepu.load({str(tmp_path)!r} + f'/{{name}}.nc')\n"
        f"    np.save({str(tmp_path)!r} + f'/{{name}}.npy', fit.predict_proba(new))\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    expected = curved.predict_proba(new)
    for name in ("fit", "small"):
        np.testing.assert_allclose(np.load(tmp_path / f"{name}.npy"), expected, atol=1e-14)


def test_a_classifier_that_is_no_tree_fits_but_is_not_saved(tmp_path):
    X, l, _ = ring_table(400)
    fit = lepu.fit(X, l, model="scar", class_learner=LogisticRegression(), **MAP)
    assert fit.data.feature_names[-1] == "score(LogisticRegression)"
    with pytest.raises(ModelError, match=r"LogisticRegression cannot be saved.*'boosting'"):
        fit.save(tmp_path / "fit.nc")


def test_audited_rows_count_as_their_class():
    X, l, y = ring_table(600)
    options = MAP | {"model": "scar", "class_learner": "boosting"}
    audited = np.where(np.arange(600) < 300, y, np.nan)
    fit = lepu.fit(X, l, y=audited, **options)
    without = lepu.fit(X, l, **options)
    known = roc_auc_score(y, fit.data.X[:, -1]), roc_auc_score(y, without.data.X[:, -1])
    assert known[0] > known[1]
    rows = pd.Series(audited).dropna()
    updated = without.update(y=rows)
    np.testing.assert_allclose(updated.data.X, fit.data.X, atol=1e-12)


def test_several_annotators_reach_the_classifier():
    X, l, y = ring_table(600)
    rng = np.random.default_rng(3)
    L = np.column_stack([l, y * (rng.random(600) < 0.4)])
    fit = lepu.fit(X, L, model="scar", class_learner="boosting", **MAP)
    assert roc_auc_score(y, fit.predict_proba(X)[:, 1]) > 0.9


def test_few_marks_and_sparse_tables_are_refused():
    X, l, _ = ring_table(200)
    few = l.copy()
    few[np.flatnonzero(l)[FEWEST_MARKS - 1 :]] = 0
    with pytest.raises(DataError, match=rf"{FEWEST_MARKS - 1} marked.*Leave class_learner out"):
        lepu.fit(X, few, model="scar", class_learner="boosting", **MAP)
    with pytest.raises(DataError, match="sparse"):
        lepu.fit(csr_array(X[["u", "v"]]), l, model="scar", class_learner="boosting", **MAP)


@pytest.mark.parametrize(
    "damage",
    [
        lambda t: t._replace(left=t.left * 0),
        lambda t: t._replace(right=t.right + 10**6),
        lambda t: t._replace(feature=t.feature + 7),
        lambda t: t._replace(value=t.value * np.nan),
        lambda t: t._replace(roots=t.roots - 1),
        lambda t: t._replace(threshold=t.threshold[:-1]),
    ],
)
def test_damaged_trees_are_refused(curved, damage):
    trees = damage(curved.data.learned.scorers[0])
    with pytest.raises(FileFormatError, match="damaged"):
        Trees.from_arrays(trees._asdict(), 5)


def test_a_kernel_leaves_rows_out_as_a_refit_does():
    """One Newton step against fits without the row, for both λ."""
    X, y = make_moons(300, noise=0.25, random_state=0)
    weight, centres = np.where(np.arange(300) % 3 == 0, 2.0, 1.0), X[::2]
    whole = trained(X, y, weight, centres, 1.0)
    for row in range(0, 300, 60):
        rest = np.arange(300) != row
        alone = trained(X[rest], y[rest], weight[rest], centres, 1.0)
        for (_, _, left_out), (_, kernel, _) in zip(whole, alone, strict=True):
            assert expit(left_out[row]) == pytest.approx(kernel.probability(X[[row]])[0], abs=0.01)


def test_a_kernel_follows_smooth_shapes_better_than_trees(tmp_path):
    X, y = make_moons(1200, noise=0.25, random_state=1)
    new, truth = make_moons(4000, noise=0.25, random_state=2)
    l = y * (np.random.default_rng(3).random(1200) < 0.4)
    scores = {}
    for learner in ("kernel", "trees", "boosting"):
        fit = lepu.fit(X, l, model="scar", class_learner=learner, **MAP)
        scores[learner] = roc_auc_score(truth, fit.predict_proba(new)[:, 1])
        if learner == "kernel":
            loaded = lepu.load(fit.save(tmp_path / "fit.nc")).predict_proba(new)
            np.testing.assert_allclose(loaded, fit.predict_proba(new), atol=1e-14)
            (kernel,) = fit.data.learned.scorers
    assert scores["kernel"] > max(scores["trees"], scores["boosting"])
    for damage in ({"heights": np.ones(3)}, {"centres": kernel.centres * np.nan}):
        with pytest.raises(FileFormatError, match="damaged"):
            Kernel.from_arrays(kernel._replace(**damage)._asdict(), 2)
