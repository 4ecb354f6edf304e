"""Scores of label probabilities (more to come)."""

import numpy as np
from numpy.typing import NDArray

from bayes_lepu.links import Array


def label_brier(l: NDArray[np.int8], h: Array) -> float:
    """Mean squared difference between the label and its probability h; smaller is better."""
    return float(np.mean((np.asarray(l) - np.asarray(h)) ** 2))


def label_log_loss(l: NDArray[np.int8], h: Array) -> float:
    """Minus the mean log probability of the label under h; smaller is better."""
    p = np.clip(h, 1e-300, 1 - 1e-16)
    return -float(np.mean(np.where(np.asarray(l) == 1, np.log(p), np.log1p(-p))))
