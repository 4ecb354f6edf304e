"""Naive and Elkan-Noto against scikit-learn, and the errors they raise."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from bayes_lepu.baselines import elkan_noto, naive
from bayes_lepu.errors import ConvergenceError, DataError
from reproduction.datasets import simulate_paper


def scar(n: int, c: float, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, labels and classes under a constant propensity c."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    y = rng.random(n) < 1 / (1 + np.exp(-(X @ [4.0, -2.0, 1.0] + 0.5)))
    return X, (y & (rng.random(n) < c)).astype(int), y.astype(int)


def same_as_sklearn(X: np.ndarray, z: np.ndarray, C: float, coef: np.ndarray, b: float) -> None:
    # Its default L-BFGS stops a little short of six digits; this solver is Newton as well.
    other = LogisticRegression(C=1 / (2 * C), solver="newton-cholesky", tol=1e-12)
    other.fit(X, z)
    np.testing.assert_allclose(coef, other.coef_[0], rtol=1e-6, atol=1e-6)
    assert b == pytest.approx(other.intercept_[0], rel=1e-6, abs=1e-6)


# --- one logistic regression --------------------------------------------------------------------


@pytest.mark.parametrize("C", [1e-2, 0.5, 10.0])
def test_logistic_equals_sklearn(C: float) -> None:
    X, l, y = scar(800, 0.5, seed=0)
    fit = naive(X, l, C=C)
    same_as_sklearn(X, l, C, fit.coef, fit.intercept)
    fit = naive(X, y, C=C)
    same_as_sklearn(X, y, C, fit.coef, fit.intercept)


def test_logistic_equals_sklearn_with_more_columns_than_rows() -> None:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((40, 200)) + 0.7
    y = (X[:, 0] + rng.standard_normal(40) > 0.7).astype(int)
    fit = naive(X, y, C=0.3)
    assert fit.coef.shape == (200,)
    same_as_sklearn(X, y, 0.3, fit.coef, fit.intercept)


def test_logistic_on_separable_rows() -> None:
    X = np.linspace(-1, 1, 20)[:, None]
    y = (X[:, 0] > 0).astype(int)
    fit = naive(X, y, C=1e-3)
    assert ((fit.predict_proba(X)[:, 1] > 0.5) == y).all()
    same_as_sklearn(X, y, 1e-3, fit.coef, fit.intercept)
    with pytest.raises(ConvergenceError, match="take a larger C"):
        naive(X, y, C=1e-300)


@pytest.mark.parametrize("unit", [1e-300, 1e-160, 1e-30, 1e30, 1e138])
def test_logistic_in_any_units(unit: float) -> None:
    X = np.random.default_rng(0).normal(size=(60, 2)) * unit
    p = naive(X, np.arange(60) % 3 == 0).predict_proba(X)
    assert np.isfinite(p).all()
    assert p[:, 1].mean() == pytest.approx(1 / 3, abs=0.01)


def test_predictions_match_columns_by_name() -> None:
    X, l, _ = scar(300, 0.5, seed=5)
    table = pd.DataFrame(X, columns=["u", "v", "w"])
    for fit in (naive(table, l), elkan_noto(table, l, random_seed=0)):
        expected = fit.predict_proba(X)
        np.testing.assert_allclose(fit.predict_proba(table[["w", "u", "v"]]), expected, rtol=1e-12)
        with pytest.raises(DataError, match=r"missing column.*v"):
            fit.predict_proba(table[["w", "u"]])
        with pytest.raises(DataError, match=r"2 columns.*3"):
            fit.predict_proba(X[:, :2])


# --- Elkan and Noto -----------------------------------------------------------------------------


@pytest.mark.parametrize("c", [0.3, 0.7])
def test_elkan_estimates_c_where_its_assumptions_hold(c: float) -> None:
    """One binary column, so that the logistic curve fits g exactly, and nearly certain classes.

    The estimator tends to E[g | l=1] = c E[t²] / E[t], which is c for certain classes.
    """
    n = 20_000
    rng = np.random.default_rng(6)
    x = rng.integers(0, 2, size=n)
    t = np.where(x == 1, 1.0, 0.02)
    y = rng.random(n) < t
    l = y & (rng.random(n) < c)
    fit = elkan_noto(x[:, None].astype(float), l, random_seed=0)
    error = np.sqrt(c * (1 - c) / (0.8 * y.sum()))
    assert fit.c == pytest.approx(c * (1 + 0.02**2) / 1.02, abs=4 * error)
    assert fit.predict_proba([[1.0]])[0, 1] == pytest.approx(1, abs=0.03)


def test_elkan_falls_short_of_c_where_classes_overlap() -> None:
    """A known bias: E[t | y=1] < 1 pulls the estimate down; the correction still helps."""
    X, l, y = scar(20_000, 0.7, seed=6)
    fit = elkan_noto(X, l, random_seed=0)
    assert 0.5 < fit.c < 0.65
    p, q = fit.predict_proba(X)[:, 1], naive(X, l).predict_proba(X)[:, 1]
    assert np.mean((p - y) ** 2) < np.mean((q - y) ** 2)
    assert ((p > 0.5) == y).mean() > ((q > 0.5) == y).mean()


def test_elkan_c_is_the_mean_over_labelled_rows_kept_back() -> None:
    """With c from the training rows the estimator can be written down in one line."""
    X, l, _ = scar(500, 0.5, seed=7)
    g = naive(X, l, C=0.1)
    fit = elkan_noto(X, l, C=0.1, holdout=None)
    np.testing.assert_array_equal(fit.coef, g.coef)
    assert fit.c == pytest.approx(g.predict_proba(X)[l == 1, 1].mean(), rel=1e-12)
    p = fit.predict_proba(X)
    np.testing.assert_allclose(p[:, 1], np.minimum(g.predict_proba(X)[:, 1] / fit.c, 1))
    np.testing.assert_allclose(p.sum(axis=1), 1)


def test_elkan_probabilities_stay_within_zero_and_one() -> None:
    X, l, _ = scar(500, 0.3, seed=8)
    fit = elkan_noto(X, l, random_seed=0)
    extreme = 100 * np.vstack([X, -X])
    p = fit.predict_proba(extreme)
    assert p.min() == 0
    assert p.max() == 1
    assert p.shape == (1000, 2)
    # The test means something only where the unclipped quotient leaves the interval.
    assert (1 / (1 + np.exp(-fit.decision_function(X))) / fit.c).max() > 1


def test_elkan_ranks_exactly_like_naive_without_holdout() -> None:
    data = simulate_paper(2000, random_seed=9)
    plain, elkan = naive(data.X, data.l), elkan_noto(data.X, data.l, holdout=None)
    auc = roc_auc_score(data.y, plain.predict_proba(data.X)[:, 1])
    assert roc_auc_score(data.y, elkan.decision_function(data.X)) == auc
    kept_back = elkan_noto(data.X, data.l, random_seed=0)
    assert roc_auc_score(data.y, kept_back.decision_function(data.X)) != auc


def test_elkan_seed() -> None:
    X, l, _ = scar(400, 0.5, seed=10)
    assert elkan_noto(X, l, random_seed=1).c == elkan_noto(X, l, random_seed=1).c
    assert elkan_noto(X, l, random_seed=1).c != elkan_noto(X, l, random_seed=2).c


def test_ordering_of_the_baselines_on_the_stated_generator() -> None:
    """Real > Elkan > Naive in accuracy, on average over data sets (halves for training)."""
    accuracy = []
    for seed in range(20):
        data = simulate_paper(5000, random_seed=seed)
        train, test = slice(0, 2500), slice(2500, None)
        X, l, y = data.X, data.l, data.y
        fits = (
            naive(X[train], y[train]),
            elkan_noto(X[train], l[train], random_seed=seed),
            naive(X[train], l[train]),
        )
        accuracy.append([((f.predict_proba(X[test])[:, 1] > 0.5) == y[test]).mean() for f in fits])
    scores = np.array(accuracy)
    for better, worse in ((0, 1), (1, 2)):
        difference = scores[:, better] - scores[:, worse]
        assert difference.mean() > 2 * difference.std(ddof=1) / np.sqrt(20)
    assert scores[:, 0].mean() == pytest.approx(0.957, abs=0.01)


# --- errors -------------------------------------------------------------------------------------

FITS = [naive, elkan_noto]
X3 = np.arange(12.0).reshape(6, 2)
L3 = np.array([0, 1, 0, 1, 0, 1])


@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize(
    ("X", "l", "message"),
    [
        (X3[:, 0], L3, r"X has 1 dimension\(s\), shape \(6,\)"),
        (X3[:, :0], L3, "X is empty"),
        (np.where(X3 == 4, np.nan, X3), L3, "Cells without a value"),
        (np.where(X3 > 9, np.inf, X3), L3, "Infinite values"),
        (X3, L3[:5], r"X has 6 rows but [ly] has 5 values"),
        (X3, np.column_stack([L3, np.roll(L3, 2)]), "labels of one annotator"),
        (pd.DataFrame(X3), pd.Series(L3)[::-1], r"index of [ly] differs .*\.loc\[X\.index\]"),
        (X3, L3 + 1, "l holds the values"),
        (X3, np.array(["no", "yes"] * 3), "no"),
        (X3, np.where(L3 == 1, np.nan, 0), "l holds the values 0, nan"),
        (X3, np.zeros(6, dtype=int), "l is 0 everywhere"),
        (X3, np.ones(6, dtype=bool), "l is 1 everywhere"),
        (X3 * 1e160, L3, "squares cannot be added up"),
    ],
)
def test_refuses_bad_data(fit, X, l, message: str) -> None:
    with pytest.raises(DataError, match=message):
        fit(X, l)


@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize("C", [0.0, -1.0, np.nan, np.inf, True])
def test_refuses_bad_penalty(fit, C: float) -> None:
    with pytest.raises(DataError, match="C is "):
        fit(X3, L3, C=C)


@pytest.mark.parametrize("holdout", [0, 1, 1.5, -0.2, "half"])
def test_refuses_bad_holdout(holdout) -> None:
    with pytest.raises(DataError, match="holdout is "):
        elkan_noto(X3, L3, holdout=holdout)


def test_refuses_to_hold_back_the_only_row_of_a_kind() -> None:
    with pytest.raises(DataError, match=r"There is 1 labelled row.*holdout=None"):
        elkan_noto(X3, np.array([1, 0, 0, 0, 0, 0]))
    with pytest.raises(DataError, match=r"There is 1 unlabelled row"):
        elkan_noto(X3, np.array([1, 1, 1, 1, 1, 0]))
