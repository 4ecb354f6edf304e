r"""The complementary log-log link, :math:`F(z) = 1 - \exp(-e^{z})`, the mirror of the log-log link.

It is what a count with a log-linear mean gives when only "at least one" is seen.
"""

from typing import Any

from bayes_lepu.links import Array
from bayes_lepu.propensities import loglog
from bayes_lepu.propensities.arithmetic import jit
from bayes_lepu.propensities.propensity import Link, Propensity


def logs(z: Array) -> tuple[Array, Array, Array]:
    """Log F, log(1 - F) and log F'."""
    up, down, slope = loglog.logs(-z)
    return down, up, slope


def bend(z: Array) -> Array:
    """F''/F' = 1 - e^z."""
    return -loglog.bend(-z)


@jit
def scalar_logs(z: float) -> tuple[float, float, float]:
    """`logs` of one number."""
    up, down, slope = loglog.scalar_logs(-z)
    return down, up, slope


@jit
def scalar(z: float) -> tuple[float, float]:
    """F and 1 - F."""
    up, down = loglog.scalar(-z)
    return down, up


@jit
def scalar_slope(z: float, up: float, down: float) -> float:
    """F' = e^z (1 - F)."""
    return loglog.scalar_slope(-z, down, up)


def graph(z: Any) -> tuple[Any, Any]:
    """Log F and log(1 - F) in PyTensor."""
    up, down = loglog.graph(-z)
    return down, up


LINK = Link("cloglog", logs, bend, scalar_logs, graph, scalar, scalar_slope)

PROPENSITY = Propensity("cloglog", "s(x) = 1 - exp(-exp(α·x + β))", LINK)
