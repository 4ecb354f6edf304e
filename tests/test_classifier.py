"""The scikit-learn classifiers: contract, agreement with `fit` and with peers, composition."""

import json
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("sklearn")

import sklearn
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SelectFromModel
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import check_estimator

import bayes_lepu as lepu
from bayes_lepu.data import learned
from bayes_lepu.errors import DataError, ModelError
from bayes_lepu.estimators import (
    ElkanNotoClassifier,
    PUClassifier,
)
from bayes_lepu.links import sigmoid
from tests.patience import slow

DATA = Path(__file__).parent / "stored"

PLAIN = [
    PUClassifier(model="naive"),
    PUClassifier(model="scar"),
    PUClassifier(model="spm", random_state=0),
    PUClassifier(model="psychm", random_state=0),
    ElkanNotoClassifier(random_state=0),
]
LEARNING = [
    PUClassifier(model="scar", class_learner=DecisionTreeClassifier(max_depth=3), random_state=0),
    ElkanNotoClassifier(estimator=LogisticRegression(), random_state=0),
]


def name_of(estimator):
    return f"{type(estimator).__name__}-{getattr(estimator, 'model', '')}"


@pytest.fixture(scope="module")
def sample():
    """Rows with a biased annotator: the second column decides what gets labelled."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 3)) * [1.0, 2.0, 0.5] + [0.0, 1.0, 5.0]
    y = rng.random(1500) < sigmoid(2.5 * X[:, 0] - 0.5)
    l = y & (rng.random(1500) < sigmoid(0.8 * (X[:, 1] - 1)))
    return pd.DataFrame(X, columns=["u", "v", "w"]), l.astype(int), y.astype(int)


# The contract -----------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::bayes_lepu.errors.LepuWarning")
@pytest.mark.parametrize(
    "estimator",
    [slow(e) if name_of(e) == "PUClassifier-psychm" else e for e in (*PLAIN, *LEARNING)],
    ids=str,
)
def test_scikit_learn_checks_pass(estimator, monkeypatch):
    """The tables of these checks have a dozen marks each, hence the smaller minimum.

    With a learner, a row of weight two is in one fold, two equal rows may be in two.
    """
    monkeypatch.setattr(learned, "FEWEST_MARKS", 1)
    folds = {"check_sample_weight_equivalence_on_dense_data": "folds"}
    known = folds if estimator in LEARNING else None
    records = check_estimator(estimator, expected_failed_checks=known, on_fail=None, on_skip=None)
    failed = {r["check_name"]: r["exception"] for r in records if r["status"] == "failed"}
    assert failed == {}
    skipped = {r["check_name"] for r in records if r["status"] == "skipped"}
    assert skipped <= {"check_array_api_input"}
    assert len(records) > 45


@pytest.mark.parametrize("estimator", PLAIN, ids=name_of)
def test_predictions_hang_together(estimator, sample):
    X, l, _ = sample
    fitted = clone(estimator).fit(X, np.where(l == 1, "yes", "no"))
    t, s = fitted.predict_proba(X)[:, 1], fitted.predict_propensity(X)
    h = fitted.predict_label_proba(X)
    np.testing.assert_allclose(h, s * t, rtol=1e-12)
    assert h.min() >= 0
    assert max(t.max(), s.max(), h.max()) <= 1
    np.testing.assert_array_equal(fitted.predict(X) == "yes", fitted.decision_function(X) > 0)
    np.testing.assert_array_equal(fitted.predict(X) == "yes", t > 0.5)
    assert list(fitted.classes_) == ["no", "yes"]
    assert fitted.class_prior_ == pytest.approx(t.mean())
    if not isinstance(estimator, ElkanNotoClassifier):
        assert fitted.label_frequency_ == pytest.approx(h.mean() / t.mean())
        np.testing.assert_allclose(
            fitted.decision_function(X), X.to_numpy() @ fitted.coef_[0] + fitted.intercept_[0]
        )
    assert fitted.score(X, np.where(l == 1, "yes", "no")) == pytest.approx(-np.mean((l - h) ** 2))
    assert list(fitted.feature_names_in_) == ["u", "v", "w"]
    assert fitted.coef_.shape == (1, 3)


@pytest.mark.parametrize("model", ["naive", "scar", "spm", "psychm"])
def test_the_classifiers_are_the_map_fits(model, sample):
    X, l, _ = sample
    estimator = PUClassifier(
        model=model, class_penalty=0.3, selection_penalty=0.7, random_state=1
    ).fit(X, l)
    C = {"a": 0.3, "alpha": 0.7}
    fit = lepu.fit(X, l, model=model, method="map", C=C, random_seed=2)
    np.testing.assert_allclose(estimator.predict_proba(X), fit.predict_proba(X), atol=1e-4)
    np.testing.assert_allclose(
        estimator.predict_propensity(X), fit.propensity(X)["mean"], atol=1e-4
    )
    assert estimator.modes_["logp"].iloc[0] == pytest.approx(fit.modes[0].logp, abs=1e-5)


# A class that bends ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ring():
    """A class inside a ring, in columns of different units, one of them constant."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(1200, 3))
    y = (X[:, 0] ** 2 + X[:, 1] ** 2 < 1.2).astype(int)
    l = y * (rng.random(1200) < sigmoid(X[:, 2] + 0.5))
    table = pd.DataFrame(X * [1, 50, 0.1] + [0, 7, 3], columns=["u", "v", "w"])
    table.insert(1, "same", 4.0)
    return table, l, y


@pytest.mark.parametrize(
    ("model", "learner"),
    [
        ("auto", "auto"),
        ("spm", "boosting"),
        ("scar", ["boosting", "trees"]),
        ("scar", RandomForestClassifier(30, min_samples_leaf=5)),
        ("scar", GaussianNB()),
    ],
    ids=str,
)
def test_a_class_learner_is_that_of_fit(ring, model, learner):
    X, l, y = ring
    old, new = X[:900], X[900:]
    classifier = PUClassifier(
        model=model, class_learner=learner, selection_features=["w"], random_state=5
    ).fit(old, l[:900])
    fit = lepu.fit(
        old.drop(columns="same"),
        l[:900],
        model=model,
        class_learner=learner,
        selection_features=None if model == "scar" else ["w"],
        method="map",
        random_seed=classifier._seed(),
    )
    for name, wanted in {
        "predict_proba": fit.predict_proba(new.drop(columns="same")),
        "predict_propensity": fit.propensity(new.drop(columns="same"))["mean"],
        "predict_label_proba": fit.label_probability(new.drop(columns="same"))["mean"],
    }.items():
        np.testing.assert_allclose(getattr(classifier, name)(new), wanted, atol=1e-9)
    learners = 2 if learner in ("auto", ["boosting", "trees"]) else 1
    assert (classifier.coef_.shape, classifier.learner_coef_.shape) == ((1, 4), (1, learners))
    assert roc_auc_score(y[900:], classifier.decision_function(new)) > 0.9
    again = pickle.loads(pickle.dumps(classifier))
    np.testing.assert_array_equal(again.decision_function(new), classifier.decision_function(new))


def test_learners_compose_with_pipelines_and_searches(ring):
    X, l, _ = ring
    bent = PUClassifier(model="scar", class_learner=DecisionTreeClassifier(), random_state=0)
    search = GridSearchCV(
        make_pipeline(StandardScaler(), bent),
        {"puclassifier__class_learner__max_depth": [1, 6]},
        cv=2,
    ).fit(X, l)
    assert search.best_params_ == {"puclassifier__class_learner__max_depth": 6}
    same = PUClassifier(
        model="scar", class_learner=DecisionTreeClassifier(max_depth=6), random_state=0
    ).fit(StandardScaler().fit_transform(X), l)
    np.testing.assert_allclose(
        search.predict_proba(X), same.predict_proba(StandardScaler().fit_transform(X))
    )
    words = {"class_learner": [None, "boosting"]}
    search = GridSearchCV(PUClassifier(model="scar", random_state=0), words, cv=2).fit(X, l)
    assert search.best_params_ == {"class_learner": "boosting"}


def test_bad_learners_are_refused(ring):
    X, l, _ = ring
    with pytest.raises(ModelError, match="boosting"):
        PUClassifier(class_learner="bosting").fit(X, l)
    with pytest.raises(ModelError, match="predict_proba"):
        ElkanNotoClassifier(estimator="boosting").fit(X, l)


@pytest.mark.parametrize("holdout", [0.2, None])
def test_elkan_noto_takes_any_classifier(ring, holdout):
    X, l, y = ring
    forest = RandomForestClassifier(100, min_samples_leaf=5)
    fitted = ElkanNotoClassifier(estimator=forest, holdout=holdout, random_state=0).fit(X, l)
    t = fitted.predict_proba(X)[:, 1]
    g = fitted.estimator_.predict_proba(X.to_numpy())[:, 1]
    np.testing.assert_allclose(t, np.minimum(g / fitted.label_frequency_, 1))
    np.testing.assert_array_equal(fitted.predict(X) == 1, t > 0.5)
    assert fitted.label_frequency_ == pytest.approx(l.sum() / y.sum(), abs=0.12)
    assert not hasattr(forest, "classes_")


# Elkan and Noto ---------------------------------------------------------------------------------


def test_elkan_noto_equals_pulearn_on_the_same_hold_out():
    reference = json.loads((DATA / "elkan_noto_pulearn.json").read_text())
    X, l = np.array(reference["X"]), np.array(reference["l"])
    held_out = np.zeros(len(l), dtype=bool)
    held_out[reference["held_out"]] = True
    ours = ElkanNotoClassifier(class_penalty=reference["C"], standardize=False)
    ours.fit(X, l, held_out=held_out)
    theirs = np.array(reference["probability"])
    assert ours.label_frequency_ == pytest.approx(reference["c"], abs=1e-6)
    assert theirs.max() > 1  # where the definitions part
    p = ours.predict_proba(X)[:, 1]
    np.testing.assert_allclose(p[theirs <= 1], theirs[theirs <= 1], atol=1e-6)
    np.testing.assert_array_equal(p[theirs > 1], 1.0)
    # Beyond clipping, the ranking is kept.
    order = np.argsort(theirs)
    assert np.all(np.diff(ours.decision_function(X)[order]) >= -1e-9)


def test_elkan_noto_of_all_rows_ranks_like_naive():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(400, 3))
    l = rng.random(400) < 0.5 * sigmoid(3 * X[:, 0])
    naive = PUClassifier(model="naive", class_penalty=0.3).fit(X, l)
    elkan = ElkanNotoClassifier(class_penalty=0.3, holdout=None).fit(X, l)
    np.testing.assert_allclose(elkan.coef_, naive.coef_)
    assert elkan.label_frequency_ == pytest.approx(naive.predict_proba(X)[l, 1].mean())
    seeds = [ElkanNotoClassifier(random_state=k).fit(X, l).label_frequency_ for k in (1, 1, 2)]
    assert seeds[0] == seeds[1] != seeds[2]


def test_elkan_noto_refuses_what_gives_no_c(sample):
    X, l, _ = sample
    lone = (np.arange(len(l)) == 3).astype(int)
    for options, labels, held_out, message in (
        ({}, l, [True, False], "held_out has shape"),
        ({}, l, np.zeros(len(l), dtype=bool), "no labelled row"),
        ({}, lone, None, r"There is 1 labelled row.*holdout=None"),
        ({"holdout": 1.5}, l, None, "holdout is 1.5"),
    ):
        with pytest.raises(DataError, match=message):
            ElkanNotoClassifier(**options).fit(X, labels, held_out=held_out)


# Options and input ------------------------------------------------------------------------------


def test_columns_by_name_and_by_position(sample):
    X, l, _ = sample
    named = PUClassifier(
        model="spm", class_features=["u"], selection_features=["v", "w"], random_state=0
    )
    placed = PUClassifier(
        model="spm", class_features=[0], selection_features=[1, 2], random_state=0
    )
    named, placed = named.fit(X, l), placed.fit(X.to_numpy(), l)
    np.testing.assert_allclose(named.coef_, placed.coef_, rtol=1e-6)
    assert named.coef_[0, 1] == named.coef_[0, 2] == named.propensity_coef_[0, 0] == 0
    with pytest.raises(DataError, match="selection_features names 'z'"):
        PUClassifier(model="spm", selection_features=["z"]).fit(X, l)


def test_constant_columns_get_zero_slopes(sample):
    X, l, _ = sample
    wide = X.assign(one=1.0)[["one", "u", "v", "w"]]
    with_constant = PUClassifier(model="spm", selection_features=["v"], random_state=0).fit(wide, l)
    without = PUClassifier(model="spm", selection_features=["v"], random_state=0).fit(X, l)
    assert with_constant.coef_[0, 0] == with_constant.propensity_coef_[0, 0] == 0
    np.testing.assert_allclose(with_constant.coef_[0, 1:], without.coef_[0], rtol=1e-4)
    with pytest.raises(DataError, match="constant"):
        PUClassifier(model="naive").fit(np.ones((4, 2)), [0, 1, 0, 1])


def test_one_class_and_three_classes_are_refused():
    X = np.random.default_rng(0).normal(size=(9, 2))
    with pytest.raises(ValueError, match="one class only"):
        PUClassifier(model="spm").fit(X, np.ones(9))
    with pytest.raises(ValueError, match="Only binary classification"):
        PUClassifier(model="spm").fit(X, np.arange(9) % 3)
    with pytest.raises(NotFittedError):
        PUClassifier(model="spm").predict(X)


def test_audited_rows_are_routed_through_search_and_pipeline(sample):
    X, l, y = sample
    audited = np.where(np.arange(len(l)) % 3 == 0, y, np.nan)
    with sklearn.config_context(enable_metadata_routing=True):
        step = PUClassifier(model="spm", random_state=0).set_fit_request(audited=True)
        pipeline = make_pipeline(StandardScaler(), step)
        search = GridSearchCV(pipeline, {"puclassifier__class_penalty": [0.01, 1.0]}, cv=2)
        search.fit(X, l, audited=audited)
    best, Z = search.best_estimator_[-1], StandardScaler().fit_transform(X)
    options = {"model": "spm", "method": "map", "C": {"a": best.class_penalty}, "random_seed": 1}
    for y, equal in ((audited, True), (None, False)):
        direct = lepu.fit(Z, l, y=y, **options).predict_proba(Z)
        assert np.allclose(search.predict_proba(X), direct, atol=1e-4) is equal


def test_a_search_over_penalties_finds_what_logistic_regression_cv_finds(sample):
    pytest.importorskip("sklearn", minversion="1.8")  # its attributes had another form before
    X, l, _ = sample
    Z = ((X - X.mean(axis=0)) / X.std(axis=0)).to_numpy()
    Cs = np.logspace(-3, 3, 7)
    peer = LogisticRegressionCV(
        Cs=1 / (2 * Cs[::-1]),
        cv=StratifiedKFold(3),
        scoring="neg_brier_score",
        l1_ratios=(0,),
        use_legacy_attributes=False,
        tol=1e-8,
        max_iter=1000,
    ).fit(Z, l)
    naive = PUClassifier(model="naive", standardize=False)
    ours = GridSearchCV(naive, {"class_penalty": Cs}, cv=3).fit(Z, l)
    splits = [ours.cv_results_[f"split{k}_test_score"] for k in range(3)]
    theirs = np.asarray(peer.scores_).reshape(3, -1)[:, ::-1]
    np.testing.assert_allclose(splits, theirs, atol=2e-6)
    assert pytest.approx(float(peer.C_)) == 1 / (2 * ours.best_params_["class_penalty"])
    np.testing.assert_allclose(ours.best_estimator_.coef_, peer.coef_, atol=1e-3)


def test_a_search_over_models_finds_the_one_that_made_the_labels(sample):
    X, l, _ = sample
    estimator = PUClassifier(random_state=0, selection_features=["v", "w"])
    search = GridSearchCV(estimator, {"model": ["naive", "scar", "spm"]}, cv=3).fit(X, l)
    assert search.best_params_ == {"model": "spm"}
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_a_fitted_classifier_does_not_carry_its_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 300))
    l = (rng.random(6000) < sigmoid(X[:, 0] - 1.0)).astype(int)
    for estimator in (PUClassifier(model="naive"), ElkanNotoClassifier(random_state=0)):
        stored = pickle.dumps(estimator.fit(X, l))
        assert len(stored) < 100_000
        np.testing.assert_array_equal(pickle.loads(stored).predict(X), estimator.predict(X))


def test_l1_slopes_select_features(sample):
    X, l, _ = sample
    fitted = PUClassifier(model="naive", class_norm="l1", class_penalty=60.0).fit(X, l)
    assert fitted.coef_[0, 2] == 0
    kept = SelectFromModel(fitted, prefit=True, threshold=1e-12).get_support()
    np.testing.assert_array_equal(kept, fitted.coef_[0] != 0)


def test_the_verdict_is_within_reach(sample):
    X, l, _ = sample
    fitted = PUClassifier(model="scar", random_state=0).fit(X, l)
    before = dict(vars(fitted))
    fit = fitted.to_fit(X, l)
    assert vars(fitted) == before
    np.testing.assert_allclose(fit.predict_proba(X), fitted.predict_proba(X), rtol=1e-9)
    assert fit.identifiability.level in (1, 2, 3, 4)


def test_knowledge_reaches_the_classifiers():
    """π known from outside and false marks are options here too."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(600, 2))
    y = rng.random(600) < 1 / (1 + np.exp(-2 * X[:, 0]))
    l = (y & (rng.random(600) < 0.5)).astype(int)
    options = {"model": "scar", "random_state": 1}
    known = PUClassifier(class_prior=(0.7, 0.001), **options).fit(X, l)
    assert known.class_prior_ == pytest.approx(0.7, abs=0.02)
    marks = PUClassifier(false_marks=True, **options).fit(X, l)
    h = marks.predict_propensity(X) * marks.predict_proba(X)[:, 1]
    h += marks.false_mark_rate_ * marks.predict_proba(X)[:, 0]
    np.testing.assert_allclose(marks.predict_label_proba(X), h)
