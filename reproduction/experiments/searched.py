"""Penalties chosen by cross-validation on the labels, as the paper chose them."""

import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import GridSearchCV

from bayes_lepu.errors import DataError, LepuWarning
from bayes_lepu.links import Array

TIE = 1e-12  # of scores that differ by rounding alone


class Searched(GridSearchCV):
    """scikit-learn's search, with the penalties that `chosen_penalties` takes.

    Parameters
    ----------
    estimator : classifier
    param_grid : mapping of str to sequence of float
    cv : int or list of (train, test)
    """

    def __init__(self, estimator: Any, param_grid: Any, *, cv: Any = 3) -> None:
        super().__init__(estimator, param_grid, cv=cv, refit=chosen_penalties, error_score="raise")

    def fit(self, X: Array, y: NDArray[np.int64]) -> Self:
        """Choose the penalties for rows X and labels y, then fit all rows."""
        rarest = int(min(y.sum(), len(y) - y.sum()))
        if isinstance(self.cv, int) and rarest < self.cv:
            raise DataError(
                f"{self.cv} folds need at least {self.cv} rows of each label; got {rarest}."
            )
        with warnings.catch_warnings():  # about fits that nobody looks at
            warnings.simplefilter("ignore", LepuWarning)
            return super().fit(X, y)


def chosen_penalties(results: dict[str, Any]) -> int:
    """Number of the candidate with the best mean score, of equals the strongest.

    Held-out labels cannot show which factor is the class. So where pairs with C_α >= C_a, which
    leave the slopes to the class, do as well as the best (within the standard error of their
    difference over the folds), the choice is among them.
    """
    C_a = np.array(results["param_class_penalty"], dtype=float)
    C_alpha = np.array(results.get("param_selection_penalty", C_a), dtype=float)
    scores = np.array([v for k, v in results.items() if k.startswith("split")])
    mean = scores.mean(axis=0)
    behind = scores[:, [int(mean.argmax())]] - scores
    error = behind.std(axis=0, ddof=1) / np.sqrt(len(scores))
    # A mean of folds of which one differs is its own standard error, but for rounding.
    among = (C_alpha >= C_a) & (behind.mean(axis=0) <= 1.001 * error + TIE)
    eligible = np.where(among if among.any() else True, mean, -np.inf)
    best = np.flatnonzero(eligible >= eligible.max() - TIE)
    return int(max(best, key=lambda k: (C_alpha[k] * C_a[k], C_alpha[k])))
