r"""Elkan and Noto's two-step estimator as a classifier.

.. math:: P(y=1 \mid x) = \min\{1, g(x)/c\}, \qquad g(x) = P(l=1 \mid x)
"""

from typing import Any, Self

import numpy as np

from bayes_lepu import baselines
from bayes_lepu.data.reading import read_data
from bayes_lepu.estimators.shared import LabelClassifier, usable_columns
from bayes_lepu.links import Array, sigmoid
from bayes_lepu.runtime.interruption import stops_at_once


class ElkanNotoClassifier(LabelClassifier):
    r"""Elkan and Noto's two-step estimator: P(y=1 | x) = min(1, g(x)/c), g = P(l=1 | x).

    Parameters
    ----------
    class_penalty : float
        Weight of the penalty on the squared slopes of g, above 0. *Larger is stronger*: the
        opposite of scikit-learn's ``C``, which is 1/(2 ``class_penalty``).
    holdout : float in (0, 1) or None
        Share of the rows kept back to estimate c. None uses every row for both steps, and the
        ranking is then exactly that of ``PUClassifier(model="naive")`` with the same penalty.
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

    _accept_sparse = False

    def __init__(
        self,
        *,
        class_penalty: float = 0.01,
        holdout: float | None = 0.2,
        standardize: bool = True,
        random_state: Any = None,
    ) -> None:
        self.class_penalty = class_penalty
        self.holdout = holdout
        self.standardize = standardize
        self.random_state = random_state

    @stops_at_once
    def fit(self, X: Any, y: Any, *, held_out: Any = None) -> Self:
        """Learn from rows X and visible labels y.

        ``held_out`` (bool, one per row) names the rows kept back for c instead of ``holdout``.
        """
        rows = self._read(X, y)
        keep = usable_columns(rows.X)
        data = read_data(rows.X[:, keep], rows.l, standardize=self.standardize)
        found = baselines.elkan_noto(
            data.X,
            data.l,
            C=self.class_penalty,
            holdout=self.holdout,
            held_out=held_out,
            random_seed=self._seed(),
        )
        slopes, intercept = data.original_scale(found.coef, np.array(found.intercept))
        self.coef_ = np.zeros((1, keep.size))
        self.coef_[0, keep] = slopes
        self.intercept_ = np.atleast_1d(intercept)
        self.label_frequency_ = found.c
        self.class_prior_ = float(self._class_probability(rows.X).mean())
        return self

    def _propensity(self, X: Array) -> Array:
        return np.full(X.shape[0], self.label_frequency_)

    def _class_probability(self, X: Array) -> Array:
        g = sigmoid(X @ self.coef_[0] + self.intercept_[0])
        return np.minimum(g / self.label_frequency_, 1.0)

    def _decision(self, X: Array) -> Array:
        """Logit g - logit(c/2): the ranking of g, without the ties of clipping, zero at t = 1/2."""
        half = self.label_frequency_ / 2
        return X @ self.coef_[0] + self.intercept_[0] - (np.log(half) - np.log1p(-half))
