r"""The probit link, :math:`F(z) = \Phi(z)`, the distribution function of the standard normal."""

import math
from typing import Any

import numpy as np
from scipy.special import log_ndtr

from bayes_lepu.factors.arithmetic import jit
from bayes_lepu.factors.factor import Factor, Link
from bayes_lepu.links import Array

LOG_ROOT_2PI = 0.5 * math.log(2 * math.pi)
ROOT_HALF = math.sqrt(0.5)


def logs(z: Array) -> tuple[Array, Array, Array]:
    """Log Φ(z), log Φ(-z) and the log density."""
    return log_ndtr(z), log_ndtr(-z), -0.5 * np.square(z) - LOG_ROOT_2PI


def bend(z: Array) -> Array:
    """φ'/φ = -z."""
    return -z


@jit
def scalar_log(z: float) -> float:
    """Log Φ(z): by erfc, and below -20, long before erfc underflows, by its asymptotic series."""
    if z > 0.0:
        return math.log1p(-0.5 * math.erfc(z * ROOT_HALF))
    if z > -20.0:
        return math.log(0.5 * math.erfc(-z * ROOT_HALF))
    r = 1.0 / (z * z)
    series = -r * (1.0 - 3.0 * r * (1.0 - 5.0 * r * (1.0 - 7.0 * r * (1.0 - 9.0 * r))))
    return -0.5 * z * z - LOG_ROOT_2PI - math.log(-z) + math.log1p(series)


@jit
def scalar_logs(z: float) -> tuple[float, float, float]:
    """`logs` of one number."""
    return scalar_log(z), scalar_log(-z), -0.5 * z * z - LOG_ROOT_2PI


@jit
def scalar(z: float) -> tuple[float, float]:
    """Φ(z) and Φ(-z)."""
    return 0.5 * math.erfc(-z * ROOT_HALF), 0.5 * math.erfc(z * ROOT_HALF)


@jit
def scalar_slope(z: float, up: float, down: float) -> float:
    """The standard normal density."""
    return math.exp(-0.5 * z * z - LOG_ROOT_2PI)


def graph(z: Any) -> tuple[Any, Any]:
    """Log Φ(z) and log Φ(-z) in PyTensor.

    Constants are float64: PyMC's own `normal_lcdf` takes the root of a float32 and keeps 8 digits.
    """
    return _log_graph(z), _log_graph(-z)


def _log_graph(z: Any) -> Any:
    import pytensor.tensor as pt

    # each branch sees only arguments at which its own gradient is finite
    low, high = pt.minimum(z, -1.0), pt.maximum(z, -1.0)
    root, half = np.float64(ROOT_HALF), np.float64(0.5)
    far = pt.log(half * pt.erfcx(-low * root)) - half * pt.sqr(low)
    return pt.switch(z < -1.0, far, pt.log1p(-half * pt.erfc(high * root)))


LINK = Link("probit", logs, bend, scalar_logs, graph, scalar, scalar_slope)

FACTORS = (Factor("probit", "Φ(η)", LINK),)
