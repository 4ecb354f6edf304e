"""Elkan and Noto's estimator with its penalty chosen by cross-validation, as the paper chose it."""

from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from bayes_lepu.errors import DataError
from bayes_lepu.links import Array

Fold = tuple[NDArray[np.intp], NDArray[np.intp]]


class SearchedElkanNoto:
    """Elkan and Noto at the penalty with the best Brier score of held-out labels.

    Parameters
    ----------
    penalties : sequence of float
    folds : int or iterable of (train, test)
        A number of folds, stratified by label, or the folds themselves.
    seed : int
        Of the rows kept back for c.
    """

    def __init__(self, penalties: Sequence[float], folds: int | Iterable[Fold], seed: int) -> None:
        self.penalties = sorted(penalties)
        self.folds = folds
        self.seed = seed

    def fit(self, X: Array, l: NDArray[np.int64]) -> Self:
        """Choose the penalty, then fit all rows; ``classifier`` has the result."""
        from bayes_lepu.estimators import ElkanNotoClassifier

        folds = _split(self.folds, l)
        scores = np.zeros(len(self.penalties))
        for k, penalty in enumerate(self.penalties):
            for train, test in folds:
                one = ElkanNotoClassifier(class_penalty=penalty, random_state=self.seed)
                scores[k] += one.fit(X[train], l[train]).score(X[test], l[test])
        # Of equal scores, the strongest penalty.
        best = int(np.flatnonzero(scores >= scores.max() - 1e-12)[-1])
        self.classifier: Any = ElkanNotoClassifier(
            class_penalty=self.penalties[best], random_state=self.seed
        ).fit(X, l)
        return self

    def decision_function(self, X: Array) -> Array:
        """What ranks the rows."""
        return self.classifier.decision_function(X)

    def predict_proba(self, X: Array) -> Array:
        """P(y | x), shape (n, 2)."""
        return self.classifier.predict_proba(X)


def _split(folds: int | Iterable[Fold], l: NDArray[np.int64]) -> list[Fold]:
    from sklearn.model_selection import StratifiedKFold

    if not isinstance(folds, int):
        return list(folds)
    rarest = int(min(l.sum(), len(l) - l.sum()))
    if rarest < folds:
        raise DataError(f"{folds} folds need at least {folds} rows of each label; got {rarest}.")
    return list(StratifiedKFold(folds).split(l, l))
