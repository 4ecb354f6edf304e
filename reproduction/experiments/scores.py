"""The five models of the paper, and its four scores on true classes."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayes_lepu.links import Array

MODELS = ("SPM", "PsychM", "Naive", "Elkan", "Real")
"""In the order of the paper's tables; Real is trained on the true classes."""

SCORES = ("f1", "AUC", "accuracy", "Brier")
"""Greater is better, except for Brier."""

LOWER_IS_BETTER = frozenset({"Brier"})


def class_scores(
    y: NDArray[np.int64], probability: Array, decision: Array | None = None
) -> dict[str, float]:
    r"""Scores of a class probability against the truth.

    .. math:: \mathrm{Brier} = \frac1n \sum_i (t(x_i) - y_i)^2

    Accuracy and f1 are those of the class with probability above 1/2.

    Parameters
    ----------
    y : array of 0/1
    probability : array
        P(y=1 | x).
    decision : array, optional
        What ranks the rows for the AUC, where ``probability`` has ties that clipping made.

    Returns
    -------
    dict
        By the names in `SCORES`; AUC is NaN where all rows have one class.
    """
    positive = y == 1
    guess = probability > 0.5
    hits = float(np.sum(guess & positive))
    named = float(guess.sum() + positive.sum())
    return {
        "f1": 2.0 * hits / named if named else 0.0,
        "AUC": auc(positive, probability if decision is None else decision),
        "accuracy": float(np.mean(guess == positive)),
        "Brier": float(np.mean((probability - positive) ** 2)),
    }


def auc(positive: NDArray[np.bool_], rank_by: Array) -> float:
    """P(a positive ranks above a negative), ties counted half (Mann-Whitney)."""
    from scipy.stats import rankdata

    n1 = int(positive.sum())
    n0 = positive.size - n1
    if n1 == 0 or n0 == 0:
        return float("nan")
    ranks = rankdata(rank_by)
    return float((ranks[positive].sum() - n1 * (n1 + 1) / 2) / (n1 * n0))


def classifier_scores(classifier: Any, X: Array, y: NDArray[np.int64]) -> dict[str, float]:
    """`class_scores` of a fitted scikit-learn classifier."""
    return class_scores(y, classifier.predict_proba(X)[:, 1], classifier.decision_function(X))
