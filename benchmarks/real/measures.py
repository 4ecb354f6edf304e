"""What a method's answer is worth: scores against the true classes.

Of P(y=1 | x) on the test rows: ``accuracy`` (cut at one half), ``AUC``, ``average precision``,
``top 5 %`` (share of positives among the twentieth ranked highest) and ``Brier``. ``pi`` is the
estimated share of positives among the training rows; ``covered`` says whether a 95 % interval
holds the true one.
"""

import numpy as np
from sklearn.metrics import average_precision_score, roc_auc_score

from benchmarks.real.labelling import Trial
from benchmarks.real.public_tables import Array

TOP = 0.05


def class_scores(trial: Trial, score: Array) -> dict[str, float]:
    """Scores of class probabilities; those above 1 (Elkan and Noto's) rank but count as 1."""
    y, t = trial.y_test == 1, np.clip(score, 0, 1)
    ties = np.random.default_rng(0).random(len(y))  # equal rows in an order of their own
    top = np.lexsort((ties, -score))[: int(np.ceil(TOP * len(y)))]
    return {
        "accuracy": float(np.mean((t > 0.5) == y)),
        "AUC": float(roc_auc_score(y, score)),
        "average precision": float(average_precision_score(y, score)),
        "top 5 %": float(np.mean(y[top])),
        "Brier": float(np.mean((t - y) ** 2)),
    }


def prior_scores(
    trial: Trial, pi: float | None, interval: tuple[float, float] | None = None
) -> dict[str, float]:
    """Error of the class prior, where the method gives one."""
    truth = float(trial.y.mean())
    scores = {"true pi": truth}
    if pi is not None:
        scores |= {"pi": pi, "error of pi": abs(pi - truth)}
    if interval is not None:
        scores["covered"] = float(interval[0] <= truth <= interval[1])
    return scores
