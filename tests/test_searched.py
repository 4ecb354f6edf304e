"""Cross-validated classifiers and the penalty paths behind them."""

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("sklearn")

from joblib import parallel_config
from scipy import stats
from sklearn.base import clone
from sklearn.linear_model import LogisticRegressionCV
from sklearn.model_selection import KFold, StratifiedKFold

from bayes_lepu.data.reading import read_data
from bayes_lepu.engines.map import fit_map
from bayes_lepu.engines.optimizers import kkt_residual
from bayes_lepu.engines.paths import PenaltyGrid, fit_path
from bayes_lepu.errors import DataError, ModelError
from bayes_lepu.estimators import (
    PUClassifier,
    PUClassifierCV,
)
from bayes_lepu.model import get_model
from bayes_lepu.model.density import LogDensity
from bayes_lepu.model.parameters import Parameters
from bayes_lepu.priors.prior import Prior
from reproduction.datasets import simulate_paper
from tests.patience import slow

CS = np.array([1e-3, 1e-1, 10.0])


@pytest.fixture(scope="module")
def sample():
    """A steep classifier and a gentle annotator: both readings of the norm rule agree."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(1200, 5)) * [1.0, 2.0, 1.0, 0.5, 1.0] + [0.0, 1.0, 0.0, 0.0, 3.0]
    point = Parameters.of(
        a=[3.0, -1.0, 1.0, 0.0, 0.0], b=1.0, alpha=[0.0, 0.2, 0.0, 1.6, -0.8], beta=2.2
    )
    y, l = point.simulate(X, rng)
    return X, l.astype(int), y.astype(int)


def brier(l, h):
    return -float(np.mean((l - h) ** 2))


# The choice -------------------------------------------------------------------------------------


@pytest.mark.slow
def test_scores_are_those_of_separate_fits_on_the_folds(sample):
    X, l, _ = sample
    folds = list(StratifiedKFold(3).split(X, l))
    search = PUClassifierCV(model="spm", class_penalties=CS, random_state=0).fit(X, l)
    for i, j in [(0, 0), (2, 0), (1, 1), (2, 2)]:
        for k, (train, test) in enumerate(folds):
            one = PUClassifier(
                model="spm", selection_penalty=CS[i], class_penalty=CS[j], random_state=1
            ).fit(X[train], l[train])
            assert search.scores_[k, i, j] == pytest.approx(one.score(X[test], l[test]), abs=1e-5)


def test_the_grid_is_symmetric_and_ties_go_to_the_stronger_penalty_of_alpha(sample):
    X, l, _ = sample
    search = PUClassifierCV(model="spm", class_penalties=CS, random_state=0).fit(X, l)
    np.testing.assert_array_equal(search.scores_, search.scores_.transpose(0, 2, 1))
    assert search.selection_penalty_ >= search.class_penalty_
    mean = search.scores_.mean(axis=0)
    i, j = (
        np.flatnonzero(search.selection_penalty_ == CS)[0],
        np.flatnonzero(search.class_penalty_ == CS)[0],
    )
    assert mean[i, j] == mean.max()


def test_the_final_fit_is_the_classifier_at_the_chosen_pair(sample):
    X, l, _ = sample
    search = PUClassifierCV(model="spm", class_penalties=CS, random_state=0).fit(X, l)
    direct = PUClassifier(
        model="spm",
        class_penalty=search.class_penalty_,
        selection_penalty=search.selection_penalty_,
        random_state=5,
    ).fit(X, l)
    np.testing.assert_allclose(search.predict_proba(X), direct.predict_proba(X), atol=1e-4)
    assert int(search.modes_["hits"].sum()) == int(direct.modes_["hits"].sum()) >= 10


def test_results_form_a_table(sample):
    X, l, _ = sample
    search = PUClassifierCV(
        model="psychm",
        class_penalties=[0.1, 1.0],
        selection_penalties=[0.1, 1.0, 10.0],
        random_state=0,
        cv=2,
    )
    table = pd.DataFrame(search.fit(X, l).cv_results_)
    assert len(table) == 6
    splits = table[["split0_test_score", "split1_test_score"]].to_numpy()
    behind = splits[table["rank_test_score"].idxmin()] - splits
    as_well = behind.mean(axis=1) <= 1.001 * behind.std(axis=1, ddof=1) / np.sqrt(2) + 1e-12
    ordered = table["param_selection_penalty"] >= table["param_class_penalty"]
    best = table[as_well & ordered]["mean_test_score"].idxmax()
    assert table["params"][best] == {
        "selection_penalty": search.selection_penalty_,
        "class_penalty": search.class_penalty_,
    }
    assert search.scores_.shape == (2, 3, 2)
    assert table["params"][0] == {"selection_penalty": 0.1, "class_penalty": 0.1}


def test_naive_search_finds_what_logistic_regression_cv_finds(sample):
    pytest.importorskip("sklearn", minversion="1.8")  # its attributes had another form before
    X, l, _ = sample
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
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
    ours = PUClassifierCV(model="naive", class_penalties=Cs, standardize=False).fit(Z, l)
    theirs = np.asarray(peer.scores_).reshape(3, -1)[:, ::-1]
    np.testing.assert_allclose(ours.scores_, theirs, atol=2e-6)
    assert pytest.approx(float(peer.C_)) == 1 / (2 * ours.class_penalty_)
    np.testing.assert_allclose(ours.coef_, peer.coef_, atol=1e-3)


def test_a_model_without_slopes_in_s_has_one_penalty(sample):
    X, l, _ = sample
    scar = PUClassifierCV(model="scar", class_penalties=CS, selection_penalties="unused").fit(X, l)
    assert scar.class_penalty_ in CS
    assert scar.scores_.shape == (3, 3)
    assert not hasattr(scar, "selection_penalty_")
    assert scar.cv_results_["params"][0] == {"class_penalty": CS[0]}


def test_splitters_scores_and_workers(sample):
    X, l, _ = sample
    model = PUClassifierCV(
        model="scar", class_penalties=CS, cv=KFold(2, shuffle=True, random_state=0)
    )
    alone = clone(model).fit(X, l)
    with parallel_config(backend="threading"):
        together = clone(model).set_params(n_jobs=2).fit(X, l)
    np.testing.assert_array_equal(alone.scores_, together.scores_)
    assert alone.scores_.shape[0] == 2
    by_callable = clone(model).set_params(scoring=brier).fit(X, l)
    np.testing.assert_allclose(by_callable.scores_, alone.scores_)


def test_a_column_constant_in_one_fold_is_no_obstacle(sample):
    X, l, _ = sample
    rare = np.zeros(len(X))
    rare[-3:] = 1.0
    fitted = PUClassifierCV(model="spm", class_penalties=[0.1, 1.0], random_state=0).fit(
        np.column_stack([rare, X]), l
    )
    assert np.isfinite(fitted.scores_).all()


def test_audited_rows_enter_the_folds(sample):
    X, l, y = sample
    audited = np.where(np.arange(len(l)) % 2 == 0, y, np.nan)
    known = PUClassifierCV(model="spm", class_penalties=[0.1, 1.0], random_state=0).fit(
        X, l, audited=audited
    )
    unknown = PUClassifierCV(model="spm", class_penalties=[0.1, 1.0], random_state=0).fit(X, l)
    assert np.abs(known.scores_ - unknown.scores_).max() > 1e-6
    # Audited classes break the symmetry between the factors.
    assert np.abs(known.scores_ - known.scores_.transpose(0, 2, 1)).max() > 1e-6


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"class_penalties": 0}, ModelError, "at least one"),
        ({"class_penalties": [0.1, -1.0]}, ModelError, "above 0"),
        ({"scoring": "accuracy"}, ModelError, r"scoring = 'accuracy'; a function"),
        ({"cv": 9}, DataError, "9 folds need"),
        ({"cv": [(np.arange(8), np.arange(8, 40))]}, DataError, "one class only"),
    ],
)
def test_bad_options_are_refused(options, error, message):
    rng = np.random.default_rng(0)
    X, l = rng.normal(size=(40, 2)), (np.arange(40) >= 33).astype(int)
    with pytest.raises(error, match=message):
        PUClassifierCV(model="spm", random_state=0).set_params(**options).fit(X, l)


# The paths --------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["spm", slow("psychm")])
def test_paths_end_where_a_full_search_ends(model):
    """Weak to strong from both neighbours: no pair may end more than 0.01 nats below the search."""
    spec = get_model(model)
    for seed in (1, 2):
        sim = simulate_paper(900, random_seed=seed, distribution=("uniform", "normal")[seed - 1])
        data = read_data(np.asarray(sim.X), np.asarray(sim.l))
        grid = PenaltyGrid(np.array([1e-2, 1.0, 30.0]), np.array([1e-2, 1.0, 30.0]))
        points = fit_path(spec, data, grid, rng=np.random.default_rng(0))
        for i, j in [(0, 0), (2, 0), (1, 1), (0, 2)]:
            density = LogDensity(spec, data, grid.priors(spec, i, j))
            rng = np.random.default_rng(1)
            best = fit_map(spec, data, grid.priors(spec, i, j), rule="none", rng=rng)
            assert density.logp(density.pack(points[i, j])) > best.modes[0].logp - 0.01


# Many columns -----------------------------------------------------------------------------------


def wide_data(n, p, rng, informative=6):
    X = rng.normal(size=(n, p))
    a, alpha = np.zeros(p), np.zeros(p)
    a[:informative], alpha[informative : informative + 2] = 1.5, 2.0
    point = Parameters.of(a=a, b=0.5, alpha=alpha, beta=0.5)
    _, l = point.simulate(X, rng)
    return X, l


@pytest.mark.parametrize("penalties", [("l2", "l2"), ("l2", "l1"), ("l1", "l1"), ("l1", "l2")])
@pytest.mark.parametrize("model", ["spm", "psychm"])
def test_paths_of_more_columns_than_rows_end_at_optima(model, penalties):
    X, l = wide_data(60, 150, np.random.default_rng(2))
    data, spec = read_data(X, l), get_model(model)
    grid = PenaltyGrid(np.array([1.0, 3.0]), np.array([1.0, 3.0]), penalties[1], penalties[0])
    for k, point in fit_path(spec, data, grid, rng=np.random.default_rng(1)).items():
        density = LogDensity(spec, data, grid.priors(spec, *k))
        z = density.pack(point)
        assert kkt_residual(density, z) < 1e-5
        for block, penalty in zip((density.blocks.a, density.blocks.alpha), penalties, strict=True):
            assert np.any(z[block] == 0) == (penalty == "l1")


def test_an_l1_search_starts_below_the_value_that_leaves_no_slope(sample):
    X, l, _ = sample
    search = PUClassifierCV(model="naive", class_penalties=4, class_norm="l1").fit(X, l)
    top = search.class_penalties_.max() * 10**0.1
    assert np.all(
        PUClassifier(model="naive", class_norm="l1", class_penalty=1.001 * top).fit(X, l).coef_ == 0
    )
    assert np.any(
        PUClassifier(model="naive", class_norm="l1", class_penalty=0.999 * top).fit(X, l).coef_ != 0
    )


@pytest.mark.slow
def test_500_rows_by_4096_columns_finish_and_select():
    rng = np.random.default_rng(1)
    n, p, k = 500, 4096, 20
    X = rng.normal(size=(n, p))
    columns = rng.permutation(p)[:k]
    a, alpha = np.zeros(p), np.zeros(p)
    a[columns], alpha[columns[:5]] = 1.5 * rng.choice([-1, 1], size=k), 1.5
    _, l = Parameters.of(a=a, b=0.5, alpha=alpha, beta=1.0).simulate(X, rng)
    search = PUClassifierCV(
        model="spm",
        class_penalties=[10.0, 20.0, 40.0],
        class_norm="l1",
        selection_norm="l1",
        random_state=0,
    ).fit(X, l)
    assert search.modes_["converged"].iloc[0]
    chosen = np.flatnonzero((search.coef_[0] != 0) | (search.propensity_coef_[0] != 0))
    assert 0 < len(chosen) < 300
    hits = np.isin(chosen, columns).sum()
    # By chance about len(chosen) * 20 / 4096 hits.
    assert stats.hypergeom.sf(hits - 1, p, k, len(chosen)) < 1e-4


def test_penalties_are_scored_by_the_model_that_is_fitted(sample):
    """With false marks the scores are those of separate fits on the folds."""
    X, l, y = (values[:500] for values in sample)
    X, audited = X[:, :2], np.where(np.arange(500) % 4 == 0, y, np.nan)
    l = np.where((y == 0) & (np.arange(500) % 12 == 0), 1, l)
    folds = list(StratifiedKFold(2).split(X, l))
    marks = Prior("beta", concentration=(2, 30))
    fixed = {"model": "scar", "random_state": 0, "false_marks": marks}
    search = PUClassifierCV(class_penalties=[0.1, 10.0], cv=2, **fixed)
    search.fit(X, l, audited=audited)
    for i, (train, test) in enumerate(folds):
        for j, C in enumerate(search.class_penalties_):
            one = PUClassifier(class_penalty=C, **fixed)
            one.fit(X[train], l[train], audited=audited[train])
            expected = brier(l[test], one.predict_label_proba(X[test]))
            assert search.scores_[i, j] == pytest.approx(expected, abs=1e-6)


def test_labels_that_mark_every_positive_name_the_class():
    """Held-out labels say as much for a steep annotator of a constant class."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 100)
    X = rng.normal(size=(200, 2)) + 2.5 * y[:, None]
    search = PUClassifierCV(model="psychm", random_state=0).fit(X, y)
    assert search.selection_penalty_ >= search.class_penalty_
    assert np.mean(search.predict(X) == y) > 0.9
