"""Rows that count for more or less than one.

Whole numbers count rows that are alike; other weights say how much a row stands for.
"""

import numpy as np

from bayes_lepu.links import Array


def are_counts(weight: Array) -> bool:
    """Whether the weights are whole numbers."""
    return bool(np.all(weight == np.round(weight)))


def total_and_error(values: Array, weight: Array) -> tuple[float, float]:
    """Weighted sum of a value per row, and its standard error.

    A row that counts for several has their independent errors; one of any other weight has its own,
    enlarged.
    """
    off = values - np.average(values, weights=weight)
    squares = weight if are_counts(weight) else weight**2
    return float(weight @ values), float(np.sqrt(squares @ off**2))
