"""Axis ranges that fit what is shown: a class of one per cent needs another axis than a half."""

from itertools import cycle

import numpy as np

from bayes_lepu.links import Array

WIDE = 0.4  # what reaches further than this is shown on the whole axis from 0 to 1
ROOM = 1.35
RARE = 0.15  # what stays below it is a line on the floor of an axis from 0 to 1


def share_range(values: Array) -> tuple[float, float]:
    """From 0 to somewhat beyond the largest share, or to 1 where that is not far."""
    top = float(np.max(values)) if len(values) else 1.0
    return (0.0, 1.0) if not np.isfinite(top) or top > WIDE else (0.0, max(ROOM * top, 1e-6))


def enlarged(top: float) -> int:
    """How many times as large a rare class is drawn beside the propensity: 1, 5, 10, 50, ..."""
    times, steps = 1, cycle((5, 2))
    while 0 < times * top < RARE:
        times *= next(steps)
    return times


def height(values: Array) -> tuple[float, float]:
    """From 0 to a little above the largest probability."""
    top = float(np.max(values)) if len(values) else 1.0
    return 0.0, min(1.02, 1.15 * max(top, 1e-6))
