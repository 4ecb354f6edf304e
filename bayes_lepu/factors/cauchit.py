r"""The cauchit link, :math:`F(z) = 1/2 + \arctan(z)/\pi`: tails that fall off like 1/z.

F is the angle of the point (-z, 1) divided by π, which needs no subtraction in either tail.
"""

import math
from typing import Any

import numpy as np

from bayes_lepu.factors.arithmetic import jit
from bayes_lepu.factors.factor import Factor, Link
from bayes_lepu.links import Array


def logs(z: Array) -> tuple[Array, Array, Array]:
    """Log F, log(1 - F) and log F'."""
    up, down = np.arctan2(1.0, -z) / np.pi, np.arctan2(1.0, z) / np.pi
    return np.log(up), np.log(down), -np.log1p(z * z) - math.log(math.pi)


def bend(z: Array) -> Array:
    """F''/F' = -2z / (1 + z²)."""
    return -2 * z / (1 + z * z)


@jit
def scalar(z: float) -> tuple[float, float]:
    """F and 1 - F."""
    return math.atan2(1.0, -z) / math.pi, math.atan2(1.0, z) / math.pi


@jit
def scalar_slope(z: float, up: float, down: float) -> float:
    """F' = 1 / (π (1 + z²))."""
    return 1.0 / (math.pi * (1.0 + z * z))


@jit
def scalar_logs(z: float) -> tuple[float, float, float]:
    """`logs` of one number."""
    up, down = scalar(z)
    return math.log(up), math.log(down), math.log(scalar_slope(z, up, down))


def graph(z: Any) -> tuple[Any, Any]:
    """Log F and log(1 - F) in PyTensor."""
    import pytensor.tensor as pt

    pi = np.float64(np.pi)
    return pt.log(pt.arctan2(1.0, -z) / pi), pt.log(pt.arctan2(1.0, z) / pi)


LINK = Link("cauchit", logs, bend, scalar_logs, graph, scalar, scalar_slope)

FACTORS = (Factor("cauchit", "1/2 + arctan(η)/π", LINK),)
