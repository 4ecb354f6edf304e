"""What a method's answer is worth: scores against the true classes.

``accuracy``, ``balanced accuracy``, ``AUC`` and ``Brier`` are of P(y=1 | x) on the test rows, cut
at one half; ``MAE of t`` is its mean distance from a logistic regression of the true classes of the
training rows; ``pi`` is the estimated share of positives among the training rows.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from bayes_lepu.baselines import naive
from benchmarks.real.labelling import ORACLE_C, Trial

Array = NDArray[np.float64]


def class_scores(trial: Trial, t: Array) -> dict[str, float]:
    """Scores of class probabilities on the test rows."""
    y = trial.y_test == 1
    said = t > 0.5
    oracle = naive(trial.X, trial.y, C=ORACLE_C).predict_proba(trial.X_test)[:, 1]
    return {
        "accuracy": float(np.mean(said == y)),
        "balanced accuracy": float(0.5 * (said[y].mean() + (~said[~y]).mean())),
        "AUC": auc(y, t),
        "Brier": float(np.mean((t - y) ** 2)),
        "MAE of t": float(np.mean(np.abs(t - oracle))),
    }


def auc(y: NDArray[np.bool_], score: Array) -> float:
    """Share of (positive, negative) pairs in the right order; ties count half."""
    positives = int(y.sum())
    above = rankdata(score)[y].sum() - positives * (positives + 1) / 2
    return float(above / (positives * (y.size - positives)))


def prior_scores(
    trial: Trial, pi: float, interval: tuple[float, float] | None = None
) -> dict[str, float]:
    """Error of the class prior, and whether a 95 % interval covers it."""
    truth = float(trial.y.mean())
    scores = {"pi": pi, "true pi": truth, "error of pi": abs(pi - truth)}
    if interval is not None:
        scores |= {"lower": interval[0], "upper": interval[1]}
        scores["covered"] = float(interval[0] <= truth <= interval[1])
    return scores
