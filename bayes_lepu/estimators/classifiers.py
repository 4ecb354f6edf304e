r"""The classifiers at given penalties: Naive, Elkan-Noto, SCAR, SPM, PsychM.

.. math::
    \min \; -\log L + C_a \lVert a\rVert + C_\alpha \lVert\alpha\rVert

with squared Euclidean norms (``penalty="l2"``) or sums of absolute values (``"l1"``), a sum over
rows, and free intercepts: the paper's loss. Penalties refer to standardised columns unless
``standardize=False``.
"""

from typing import Any, Self

import numpy as np

from bayes_lepu.estimators.base import Columns, PUClassifier
from bayes_lepu.estimators.fitting import (
    elkan_noto_decision,
    elkan_noto_probability,
    fit_elkan_noto,
    fit_factors,
    fit_into,
    set_weights,
)
from bayes_lepu.links import Array
from bayes_lepu.priors import DEFAULT_C


class NaiveClassifier(PUClassifier):
    r"""Logistic regression of the label: s(x) = 1, unlabelled rows pass for negative.

    Fitted on true classes instead of labels it is the paper's "Real" classifier.

    Parameters
    ----------
    penalty : {"l2", "l1", "none"}, optional
        Penalty of the slopes a; "l2" where only C is given.
    C : float, optional
        The paper's coefficient; scikit-learn's is 1/(2C). Neither: the defaults of `fit`.
    standardize : bool
        Penalise the slopes of standardised columns.

    Attributes
    ----------
    coef_, intercept_ : arrays of shape (1, p) and (1,)
    class_prior_, label_frequency_ : float
        π = mean of t over the training rows; c = P(l=1 | y=1), here 1.
    classes_, n_features_in_, feature_names_in_, result_, modes_
    """

    def __init__(
        self,
        *,
        penalty: str | None = None,
        C: float | None = None,
        standardize: bool = True,
    ) -> None:
        self.penalty = penalty
        self.C = C
        self.standardize = standardize

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from rows X and visible labels y (the paper's l)."""
        X, l = self._read(X, y)
        return fit_into(self, "naive", X, l, penalty={"a": self.penalty}, C={"a": self.C})

    def _propensity(self, X: Array) -> Array:
        return np.ones(X.shape[0])


class SCARClassifier(PUClassifier):
    r"""Labelled completely at random: s(x) = c, estimated jointly with t.

    Parameters
    ----------
    penalty : {"l2", "l1", "none"}, optional
        Penalty of the slopes a; "l2" where only C is given.
    C : float, optional
        The paper's coefficient C_a. Neither: the defaults of `fit`.
    standardize : bool
        Penalise the slopes of standardised columns.

    Attributes
    ----------
    coef_, intercept_, class_prior_, label_frequency_, classes_, n_features_in_,
    feature_names_in_, result_, modes_
        As in `SPMClassifier`; ``label_frequency_`` is c.
    """

    def __init__(
        self,
        *,
        penalty: str | None = None,
        C: float | None = None,
        standardize: bool = True,
    ) -> None:
        self.penalty = penalty
        self.C = C
        self.standardize = standardize

    def fit(self, X: Any, y: Any, *, audited: Any = None) -> Self:
        """Learn from rows X, visible labels y, and true classes where known (NaN elsewhere)."""
        X, l = self._read(X, y)
        return fit_into(
            self, "scar", X, l, audited=audited, penalty={"a": self.penalty}, C={"a": self.C}
        )


class SPMClassifier(PUClassifier):
    r"""Sigmoidal product model: s(x) = σ(α·x + β).

    Parameters
    ----------
    penalty_a, penalty_alpha : {"l2", "l1", "none"}, optional
        Penalties of the slopes of t and s; "l2" where only coefficients are given.
    C_a, C_alpha : float, optional
        The paper's coefficients, 0.01 where the other one is given. None of the four: the defaults
        of `fit`, which shrink the propensity towards a constant. For SPM keep C_alpha >= C_a: the
        factor with the larger slopes is the classifier, and should not be shrunk more.
    class_features, selection_features : sequence of names or positions, optional
        Columns that may enter t and s.
    standardize : bool
        Penalise the slopes of standardised columns.
    orientation : {"sigma-norm", "norm", "energy", "none"}
        How the factors are told apart where the data cannot.
    n_starts : int, optional
        Number of random starts of the search for modes.
    random_state : int, RandomState or None

    Attributes
    ----------
    coef_, intercept_ : arrays of shape (1, p) and (1,)
        Of t, on the scale of X.
    propensity_coef_, propensity_intercept_ : arrays of shape (1, p) and (1,)
        Of s, on the scale of X.
    class_prior_ : float
        π, the mean of t over the training rows.
    label_frequency_ : float
        c = P(l=1 | y=1), the mean of h over the mean of t.
    modes_ : DataFrame
        All local optima found, the answer first.
    result_ : Fit
        The full result, with tables, summaries and ``save``.
    parameters_ : Parameters
        All parameters on the scale of X.
    classes_, n_features_in_, feature_names_in_
    """

    def __init__(
        self,
        *,
        penalty_a: str | None = None,
        penalty_alpha: str | None = None,
        C_a: float | None = None,
        C_alpha: float | None = None,
        class_features: Columns = None,
        selection_features: Columns = None,
        standardize: bool = True,
        orientation: str = "sigma-norm",
        n_starts: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.penalty_a = penalty_a
        self.penalty_alpha = penalty_alpha
        self.C_a = C_a
        self.C_alpha = C_alpha
        self.class_features = class_features
        self.selection_features = selection_features
        self.standardize = standardize
        self.orientation = orientation
        self.n_starts = n_starts
        self.random_state = random_state

    def fit(self, X: Any, y: Any, *, audited: Any = None) -> Self:
        """Learn from rows X, visible labels y, and true classes where known (NaN elsewhere)."""
        X, l = self._read(X, y)
        C = {"a": self.C_a, "alpha": self.C_alpha}
        return fit_factors(self, "spm", X, l, audited, C, orientation=self.orientation)


class PsychMClassifier(PUClassifier):
    r"""Psychometric model: s(x) = γ + (1-γ-λ) σ(α·x + β), with guesses γ and lapses λ.

    Parameters
    ----------
    penalty_a, penalty_alpha, C_a, C_alpha, class_features, selection_features, standardize,
    n_starts, random_state
        As in `SPMClassifier`.

    Attributes
    ----------
    guess_rate_, lapse_rate_ : float
        γ and λ.
    coef_, intercept_, propensity_coef_, propensity_intercept_, class_prior_, label_frequency_,
    modes_, result_, parameters_, classes_, n_features_in_, feature_names_in_
        As in `SPMClassifier`.
    """

    def __init__(
        self,
        *,
        penalty_a: str | None = None,
        penalty_alpha: str | None = None,
        C_a: float | None = None,
        C_alpha: float | None = None,
        class_features: Columns = None,
        selection_features: Columns = None,
        standardize: bool = True,
        n_starts: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.penalty_a = penalty_a
        self.penalty_alpha = penalty_alpha
        self.C_a = C_a
        self.C_alpha = C_alpha
        self.class_features = class_features
        self.selection_features = selection_features
        self.standardize = standardize
        self.n_starts = n_starts
        self.random_state = random_state

    def fit(self, X: Any, y: Any, *, audited: Any = None) -> Self:
        """Learn from rows X, visible labels y, and true classes where known (NaN elsewhere)."""
        X, l = self._read(X, y)
        C = {"a": self.C_a, "alpha": self.C_alpha}
        return set_weights(fit_factors(self, "psychm", X, l, audited, C))


class ElkanNotoClassifier(PUClassifier):
    r"""Elkan and Noto's two-step estimator: P(y=1 | x) = min(1, g(x)/c), g = P(l=1 | x).

    Parameters
    ----------
    C : float
        Penalty C·|a|² of g, above 0.
    holdout : float in (0, 1) or None
        Share of the rows kept back to estimate c. None uses every row for both steps, and the
        ranking is then exactly that of `NaiveClassifier` with the same C.
    standardize : bool
        Penalise the slopes of standardised columns.
    random_state : int, RandomState or None
        Seed of the split.

    Attributes
    ----------
    coef_, intercept_ : arrays of shape (1, p) and (1,)
        Of g, which is no classifier of y; `decision_function` is zero where g(x) = c/2.
    label_frequency_ : float
        c.
    class_prior_ : float
        Mean of min(1, g/c) over the training rows.
    classes_, n_features_in_, feature_names_in_

    References
    ----------
    Elkan and Noto (2008), doi 10.1145/1401890.1401920.
    """

    def __init__(
        self,
        *,
        C: float = DEFAULT_C,
        holdout: float | None = 0.2,
        standardize: bool = True,
        random_state: Any = None,
    ) -> None:
        self.C = C
        self.holdout = holdout
        self.standardize = standardize
        self.random_state = random_state

    def fit(self, X: Any, y: Any, *, held_out: Any = None) -> Self:
        """Learn from rows X and visible labels y.

        ``held_out`` (bool, one per row) names the rows kept back for c instead of ``holdout``.
        """
        X, l = self._read(X, y)
        return fit_elkan_noto(self, X, l, C=self.C, held_out=held_out)

    def _propensity(self, X: Array) -> Array:
        return np.full(X.shape[0], self.label_frequency_)

    def _class_probability(self, X: Array) -> Array:
        return elkan_noto_probability(self, X)

    def _decision(self, X: Array) -> Array:
        return elkan_noto_decision(self, X)
