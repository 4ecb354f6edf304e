r"""The complementary log-log link, :math:`F(z) = 1 - \exp(-e^{z})`, and its mirror image.

It is what a count with a log-linear mean gives when only "at least one" is seen. The log-log link
:math:`F(z) = \exp(-e^{-z})`, with :math:`F' = e^{-z} F`, has a sharp rise and a long approach to
one; its predictor is cut at -700, below which log F itself is beyond the largest float.
"""

import math
from typing import Any

import numpy as np

from bayes_lepu.factors.arithmetic import jit
from bayes_lepu.factors.factor import Factor, Link
from bayes_lepu.links import Array

LOWEST = -700.0  # exp(-LOWEST) is still a number
SMALL = 30.0  # from here on log(1 - exp(-e)) = log e - e/2 to all digits, e = exp(-z)


def loglog_logs(z: Array) -> tuple[Array, Array, Array]:
    """Log F, log(1 - F) and log F'."""
    z = np.maximum(z, LOWEST)
    e = np.exp(-z)
    with np.errstate(divide="ignore"):
        down = np.where(
            e < 0.5, np.log(-np.expm1(-np.minimum(e, 0.5))), np.log1p(-np.exp(-np.maximum(e, 0.5)))
        )
    return -e, np.where(z > SMALL, -z - 0.5 * e, down), -z - e


def loglog_bend(z: Array) -> Array:
    """F''/F' = e^{-z} - 1."""
    return np.expm1(-np.maximum(z, LOWEST))


@jit
def loglog_scalar_logs(z: float) -> tuple[float, float, float]:
    """`loglog_logs` of one number."""
    z = max(z, LOWEST)
    e = math.exp(-z)
    if z > SMALL:
        down = -z - 0.5 * e
    elif e < 0.5:
        down = math.log(-math.expm1(-e))
    else:
        down = math.log1p(-math.exp(-e))
    return -e, down, -z - e


@jit
def loglog_scalar(z: float) -> tuple[float, float]:
    """F and 1 - F."""
    e = math.exp(-z)
    return math.exp(-e), -math.expm1(-e)


@jit
def loglog_scalar_slope(z: float, up: float, down: float) -> float:
    """F' = e^{-z} F."""
    return math.exp(-z) * up


def loglog_graph(z: Any) -> tuple[Any, Any]:
    """Log F and log(1 - F) in PyTensor."""
    import pytensor.tensor as pt

    z = pt.maximum(z, LOWEST)
    e = pt.exp(-pt.minimum(z, SMALL))
    small, large = pt.minimum(e, 0.5), pt.maximum(e, 0.5)
    near = pt.switch(e < 0.5, pt.log(-pt.expm1(-small)), pt.log1p(-pt.exp(-large)))
    return -pt.exp(-z), pt.switch(z > SMALL, -z - 0.5 * pt.exp(-z), near)


def logs(z: Array) -> tuple[Array, Array, Array]:
    """Log F, log(1 - F) and log F'."""
    up, down, slope = loglog_logs(-z)
    return down, up, slope


def bend(z: Array) -> Array:
    """F''/F' = 1 - e^z."""
    return -loglog_bend(-z)


@jit
def scalar_logs(z: float) -> tuple[float, float, float]:
    """`logs` of one number."""
    up, down, slope = loglog_scalar_logs(-z)
    return down, up, slope


@jit
def scalar(z: float) -> tuple[float, float]:
    """F and 1 - F."""
    up, down = loglog_scalar(-z)
    return down, up


@jit
def scalar_slope(z: float, up: float, down: float) -> float:
    """F' = e^z (1 - F)."""
    return loglog_scalar_slope(-z, down, up)


def graph(z: Any) -> tuple[Any, Any]:
    """Log F and log(1 - F) in PyTensor."""
    up, down = loglog_graph(-z)
    return down, up


LINK = Link("cloglog", logs, bend, scalar_logs, graph, scalar, scalar_slope)
LOGLOG = Link(
    "loglog",
    loglog_logs,
    loglog_bend,
    loglog_scalar_logs,
    loglog_graph,
    loglog_scalar,
    loglog_scalar_slope,
)

FACTORS = (
    Factor("cloglog", "1 - exp(-exp(η))", LINK),
    Factor("loglog", "exp(-exp(-(η)))", LOGLOG),
)
