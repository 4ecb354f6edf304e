"""Numbers as one says them: as many digits as the interval leaves meaningful, rare classes too."""

import math
from collections.abc import Mapping

import numpy as np


def say_count(value: float) -> str:
    """A number of rows: whole, with thin spaces between thousands; small expectations keep digits.

    >>> say_count(0.0), say_count(0.04), say_count(12.6)
    ('0', 'fewer than 0.1', '13')
    """
    if value < 0.05:
        return "0" if value == 0 else "fewer than 0.1"
    if value < 2 and value != round(value):
        return f"{value:.1f}"
    return f"{round(value):,}".replace(",", "\u2009")


def say_share(value: float) -> str:
    """A share in per cent: whole, with more digits below one per cent and above 99.

    >>> say_share(0.714), say_share(0.0153), say_share(0.00042), say_share(0.9996)
    ('71%', '1.5%', '0.042%', '99.96%')
    """
    if not math.isfinite(value):
        return "–"
    rest = min(value, 1 - value)
    if rest < 5e-5 and value > 0.5:
        return "100%"
    if rest <= 0 or rest >= 0.1:
        return f"{100 * value:.0f}%"
    if value > 0.5:
        return f"{100 * value:.{0 if rest >= 0.01 else 1 if rest >= 0.001 else 2}f}%"
    places = 1 - math.floor(math.log10(100 * value))
    return f"{100 * value:.{max(places, 0)}f}%"


def has_interval(row: Mapping[str, float]) -> bool:
    """Whether a summary comes from draws."""
    return "lower" in row and not np.isnan(row["lower"])


def rounded_count(row: Mapping[str, float]) -> str:
    """A number with its interval."""
    if not has_interval(row):
        return say_count(row["mean"])
    return f"{say_count(row['mean'])} ({say_count(row['lower'])} to {say_count(row['upper'])})"


def rounded_share(row: Mapping[str, float]) -> str:
    """A share with its interval."""
    if not has_interval(row):
        return say_share(row["mean"])
    return f"{say_share(row['mean'])} ({say_share(row['lower'])} to {say_share(row['upper'])})"
