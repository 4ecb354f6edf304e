r"""Cross-validated classifiers: the paper's choice of (C_α, C_a).

.. math:: \mathrm{Brier}(C_\alpha, C_a) = \frac1m \sum_{i \in \text{held out}} (l_i - h(x_i))^2

averaged over folds stratified by l. The score depends on h = s·t alone, so it cannot see which
factor is the classifier; exact ties (SPM: every pair and its mirror image) go to C_α >= C_a. The
chosen pair is fitted again on all rows with the full search for modes.
"""

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from bayes_lepu.estimators.base import Columns, PUClassifier
from bayes_lepu.estimators.fitting import (
    elkan_noto_decision,
    elkan_noto_probability,
    fit_elkan_noto,
    fit_factors,
    fit_into,
    set_weights,
)
from bayes_lepu.estimators.search import choose_elkan_noto, choose_pair, choose_single
from bayes_lepu.links import Array


class NaiveClassifierCV(PUClassifier):
    r"""`NaiveClassifier` with C chosen by cross-validation; on true classes, the paper's "Real".

    Parameters
    ----------
    Cs : int or sequence of float
        Values of C, or how many of them: between 1e-4 and 1e2 for L2; for L1 from just below the
        value that leaves no slope, down by a factor of 2500.
    penalty : {"l2", "l1"}
    cv : int, splitter or iterable
        Folds; an int is stratified by label.
    scoring : {"brier", "log_loss"} or callable
        Score of h on held-out labels; a callable ``f(l, h)`` where greater is better.
    standardize : bool
    n_jobs : int, optional
        Folds in parallel, by joblib.

    Attributes
    ----------
    C_ : float
        The chosen coefficient.
    Cs_ : array
    scores_ : array of shape (folds, C)
        Minus the Brier score (or log-loss): greater is better.
    cv_results_ : dict
        One row per coefficient, as in `GridSearchCV`.
    coef_, intercept_, class_prior_, label_frequency_, classes_, n_features_in_,
    feature_names_in_, result_, modes_
        As in `NaiveClassifier`, of the fit on all rows.
    """

    def __init__(
        self,
        *,
        Cs: int | ArrayLike = 25,
        penalty: str = "l2",
        cv: Any = 3,
        scoring: str | Callable = "brier",
        standardize: bool = True,
        n_jobs: int | None = None,
    ) -> None:
        self.Cs = Cs
        self.penalty = penalty
        self.cv = cv
        self.scoring = scoring
        self.standardize = standardize
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any) -> Self:
        """Choose C and learn from rows X and visible labels y (the paper's l)."""
        X, l = self._read(X, y)
        C = choose_single(self, "naive", X, l)
        return fit_into(self, "naive", X, l, penalty={"a": self.penalty}, C={"a": C})

    def _propensity(self, X: Array) -> Array:
        return np.ones(X.shape[0])


class SCARClassifierCV(PUClassifier):
    r"""`SCARClassifier` with C chosen by cross-validation.

    Parameters
    ----------
    Cs, penalty, cv, scoring, standardize, n_jobs
        As in `NaiveClassifierCV`.

    Attributes
    ----------
    C_, Cs_, scores_, cv_results_
        As in `NaiveClassifierCV`; the others as in `SCARClassifier`.
    """

    def __init__(
        self,
        *,
        Cs: int | ArrayLike = 25,
        penalty: str = "l2",
        cv: Any = 3,
        scoring: str | Callable = "brier",
        standardize: bool = True,
        n_jobs: int | None = None,
    ) -> None:
        self.Cs = Cs
        self.penalty = penalty
        self.cv = cv
        self.scoring = scoring
        self.standardize = standardize
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, *, audited: Any = None) -> Self:
        """Choose C and learn from rows X, labels y, and true classes where known (else NaN)."""
        X, l = self._read(X, y)
        C = choose_single(self, "scar", X, l, audited=audited)
        return fit_into(
            self, "scar", X, l, audited=audited, penalty={"a": self.penalty}, C={"a": C}
        )


class SPMClassifierCV(PUClassifier):
    r"""`SPMClassifier` with (C_α, C_a) chosen by cross-validation, as in the paper.

    Parameters
    ----------
    Cs : int or sequence of float
        Values of C_a, or how many of them: between 1e-4 and 1e2 for L2; for L1 from just below
        the value that leaves no slope, down by a factor of 2500.
    C_alphas : int or sequence of float, optional
        Values of C_α, likewise. Default: as ``Cs``.
    penalty_a, penalty_alpha : {"l2", "l1"}
    cv : int, splitter or iterable
        Folds; an int is stratified by label.
    scoring : {"brier", "log_loss"} or callable
        Score of h on held-out labels; a callable ``f(l, h)`` where greater is better.
    class_features, selection_features, standardize, orientation, n_starts, random_state
        As in `SPMClassifier`.
    n_jobs : int, optional
        Folds in parallel, by joblib.

    Attributes
    ----------
    C_a_, C_alpha_ : float
        The chosen pair.
    Cs_, C_alphas_ : arrays
    scores_ : array of shape (folds, C_α, C_a)
        Minus the Brier score (or log-loss): greater is better.
    cv_results_ : dict
        One row per pair, as in `GridSearchCV`: ``pandas.DataFrame(clf.cv_results_)``.
    coef_, intercept_, propensity_coef_, propensity_intercept_, class_prior_, label_frequency_,
    modes_, result_, parameters_, classes_, n_features_in_, feature_names_in_
        As in `SPMClassifier`, of the fit on all rows.
    """

    def __init__(
        self,
        *,
        Cs: int | ArrayLike = 5,
        C_alphas: int | ArrayLike | None = None,
        penalty_a: str = "l2",
        penalty_alpha: str = "l2",
        cv: Any = 3,
        scoring: str | Callable = "brier",
        class_features: Columns = None,
        selection_features: Columns = None,
        standardize: bool = True,
        orientation: str = "sigma-norm",
        n_starts: int | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.Cs = Cs
        self.C_alphas = C_alphas
        self.penalty_a = penalty_a
        self.penalty_alpha = penalty_alpha
        self.cv = cv
        self.scoring = scoring
        self.class_features = class_features
        self.selection_features = selection_features
        self.standardize = standardize
        self.orientation = orientation
        self.n_starts = n_starts
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any, *, audited: Any = None) -> Self:
        """Choose (C_α, C_a) and learn from rows X, labels y, and true classes where known."""
        X, l = self._read(X, y)
        C = choose_pair(self, "spm", X, l, audited, rule=self.orientation)
        return fit_factors(self, "spm", X, l, audited, C, orientation=self.orientation)


class PsychMClassifierCV(PUClassifier):
    r"""`PsychMClassifier` with (C_α, C_a) chosen by cross-validation, as in the paper.

    Parameters
    ----------
    Cs, C_alphas, penalty_a, penalty_alpha, cv, scoring, class_features, selection_features,
    standardize, n_starts, n_jobs, random_state
        As in `SPMClassifierCV`.

    Attributes
    ----------
    C_a_, C_alpha_, Cs_, C_alphas_, scores_, cv_results_
        As in `SPMClassifierCV`; the others as in `PsychMClassifier`.
    """

    def __init__(
        self,
        *,
        Cs: int | ArrayLike = 5,
        C_alphas: int | ArrayLike | None = None,
        penalty_a: str = "l2",
        penalty_alpha: str = "l2",
        cv: Any = 3,
        scoring: str | Callable = "brier",
        class_features: Columns = None,
        selection_features: Columns = None,
        standardize: bool = True,
        n_starts: int | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.Cs = Cs
        self.C_alphas = C_alphas
        self.penalty_a = penalty_a
        self.penalty_alpha = penalty_alpha
        self.cv = cv
        self.scoring = scoring
        self.class_features = class_features
        self.selection_features = selection_features
        self.standardize = standardize
        self.n_starts = n_starts
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any, *, audited: Any = None) -> Self:
        """Choose (C_α, C_a) and learn from rows X, labels y, and true classes where known."""
        X, l = self._read(X, y)
        C = choose_pair(self, "psychm", X, l, audited)
        return set_weights(fit_factors(self, "psychm", X, l, audited, C))


class ElkanNotoClassifierCV(PUClassifier):
    r"""`ElkanNotoClassifier` with C chosen by cross-validation.

    Parameters
    ----------
    Cs : int or sequence of float
        Values of C, or how many between 1e-4 and 1e2.
    holdout : float in (0, 1) or None
        As in `ElkanNotoClassifier`, within every fold and in the final fit.
    cv, scoring, standardize, n_jobs
        As in `NaiveClassifierCV`; the score is of h(x) = c·min(1, g(x)/c).
    random_state : int, RandomState or None
        Seed of the splits.

    Attributes
    ----------
    C_, Cs_, scores_, cv_results_
        As in `NaiveClassifierCV`; the others as in `ElkanNotoClassifier`.
    """

    def __init__(
        self,
        *,
        Cs: int | ArrayLike = 25,
        holdout: float | None = 0.2,
        cv: Any = 3,
        scoring: str | Callable = "brier",
        standardize: bool = True,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.Cs = Cs
        self.holdout = holdout
        self.cv = cv
        self.scoring = scoring
        self.standardize = standardize
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Choose C and learn from rows X and visible labels y (the paper's l)."""
        X, l = self._read(X, y)
        C = choose_elkan_noto(self, X, l)
        return fit_elkan_noto(self, X, l, C=C)

    def _propensity(self, X: Array) -> Array:
        return np.full(X.shape[0], self.label_frequency_)

    def _class_probability(self, X: Array) -> Array:
        return elkan_noto_probability(self, X)

    def _decision(self, X: Array) -> Array:
        return elkan_noto_decision(self, X)
