r"""The links of the library, each for NumPy, numba and PyTensor, and the factors made of them.

F and 1 - F are computed separately, so that both tails keep all their digits.
"""

import math
from typing import Any

import numpy as np
from scipy.special import expit, log_expit, log_ndtr

from bayes_lepu.errors import ModelError
from bayes_lepu.factors.arithmetic import exp, jit
from bayes_lepu.factors.factor import Factor, Link
from bayes_lepu.links import Array

# Logistic: F(z) = σ(z) = 1 / (1 + e^-z) ----------------------------------------------------------


def logistic_logs(z: Array) -> tuple[Array, Array, Array]:
    """Log σ(z), log σ(-z) and their sum, which is log σ'(z)."""
    up, down = log_expit(z), log_expit(-z)
    return up, down, up + down


def logistic_complement(z: Array) -> Array:
    """σ(-z) in three passes over one array, by NumPy's exponential, which is the fastest way."""
    out = np.exp(z)
    out += 1.0
    return np.reciprocal(out, out=out)


@jit
def logistic_scalar_logs(z: float) -> tuple[float, float, float]:
    """`logistic_logs` of one number."""
    tail = math.log1p(math.exp(-abs(z)))
    up, down = min(z, 0.0) - tail, min(-z, 0.0) - tail
    return up, down, up + down


@jit
def logistic_scalar(z: float) -> tuple[float, float, float]:
    """σ(z), σ(-z) and σ'(z) = σ(z) σ(-z)."""
    e = exp(-z)
    up = 1.0 / (1.0 + e)
    down = e * up
    return up, down, up * down


def logistic_graph(z: Any) -> tuple[Any, Any]:
    """Log σ(z) and log σ(-z) in PyTensor."""
    import pytensor.tensor as pt

    return -pt.softplus(-z), -pt.softplus(z)


LOGISTIC = Link(
    "logistic",
    logistic_logs,
    lambda z: -np.tanh(z / 2),  # 1 - 2σ
    logistic_scalar_logs,
    logistic_graph,
    logistic_scalar,
    value=expit,
    complement=logistic_complement,
    log_odds=lambda z: z,
)

# Probit: F(z) = Φ(z), the distribution function of the standard normal ---------------------------

LOG_ROOT_2PI = 0.5 * math.log(2 * math.pi)
ROOT_HALF = math.sqrt(0.5)


def probit_logs(z: Array) -> tuple[Array, Array, Array]:
    """Log Φ(z), log Φ(-z) and the log density."""
    return log_ndtr(z), log_ndtr(-z), -0.5 * np.square(z) - LOG_ROOT_2PI


@jit
def log_normal_cdf(z: float) -> float:
    """Log Φ(z): by erfc, and below -20, long before erfc underflows, by its asymptotic series."""
    if z > 0.0:
        return math.log1p(-0.5 * math.erfc(z * ROOT_HALF))
    if z > -20.0:
        return math.log(0.5 * math.erfc(-z * ROOT_HALF))
    r = 1.0 / (z * z)
    series = -r * (1.0 - 3.0 * r * (1.0 - 5.0 * r * (1.0 - 7.0 * r * (1.0 - 9.0 * r))))
    return -0.5 * z * z - LOG_ROOT_2PI - math.log(-z) + math.log1p(series)


@jit
def probit_scalar_logs(z: float) -> tuple[float, float, float]:
    """`probit_logs` of one number."""
    return log_normal_cdf(z), log_normal_cdf(-z), -0.5 * z * z - LOG_ROOT_2PI


@jit
def probit_scalar(z: float) -> tuple[float, float, float]:
    """Φ(z), Φ(-z) and the density."""
    density = math.exp(-0.5 * z * z - LOG_ROOT_2PI)
    return 0.5 * math.erfc(-z * ROOT_HALF), 0.5 * math.erfc(z * ROOT_HALF), density


def probit_graph(z: Any) -> tuple[Any, Any]:
    """Log Φ(z) and log Φ(-z) in PyTensor.

    Constants are float64: PyMC's own `normal_lcdf` takes the root of a float32 and keeps 8 digits.
    """
    import pytensor.tensor as pt

    def log_cdf(z: Any) -> Any:
        # each branch sees only arguments at which its own gradient is finite
        low, high = pt.minimum(z, -1.0), pt.maximum(z, -1.0)
        root, half = np.float64(ROOT_HALF), np.float64(0.5)
        far = pt.log(half * pt.erfcx(-low * root)) - half * pt.sqr(low)
        return pt.switch(z < -1.0, far, pt.log1p(-half * pt.erfc(high * root)))

    return log_cdf(z), log_cdf(-z)


PROBIT = Link("probit", probit_logs, lambda z: -z, probit_scalar_logs, probit_graph, probit_scalar)

# Cauchit: F(z) = 1/2 + arctan(z)/π, the angle of the point (-z, 1) divided by π ------------------


def cauchit_logs(z: Array) -> tuple[Array, Array, Array]:
    """Log F, log(1 - F) and log F'."""
    up, down = np.arctan2(1.0, -z) / np.pi, np.arctan2(1.0, z) / np.pi
    return np.log(up), np.log(down), -np.log1p(z * z) - math.log(math.pi)


@jit
def cauchit_scalar(z: float) -> tuple[float, float, float]:
    """F, 1 - F and F' = 1 / (π (1 + z²))."""
    slope = 1.0 / (math.pi * (1.0 + z * z))
    return math.atan2(1.0, -z) / math.pi, math.atan2(1.0, z) / math.pi, slope


@jit
def cauchit_scalar_logs(z: float) -> tuple[float, float, float]:
    """`cauchit_logs` of one number."""
    up, down, slope = cauchit_scalar(z)
    return math.log(up), math.log(down), math.log(slope)


def cauchit_graph(z: Any) -> tuple[Any, Any]:
    """Log F and log(1 - F) in PyTensor."""
    import pytensor.tensor as pt

    pi = np.float64(np.pi)
    return pt.log(pt.arctan2(1.0, -z) / pi), pt.log(pt.arctan2(1.0, z) / pi)


CAUCHIT = Link(
    "cauchit",
    cauchit_logs,
    lambda z: -2 * z / (1 + z * z),
    cauchit_scalar_logs,
    cauchit_graph,
    cauchit_scalar,
)

# Log-log: F(z) = exp(-e^-z), F' = e^-z F; and its mirror image, the complementary log-log link ---
# F(z) = 1 - exp(-e^z): the probability that a Poisson count with a log-linear mean is not zero.

LOWEST = -700.0  # predictors are cut here: exp(-LOWEST) is still a number
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
    """F''/F' = e^-z - 1."""
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
def loglog_scalar(z: float) -> tuple[float, float, float]:
    """F, 1 - F and F'."""
    e = math.exp(-z)
    up = math.exp(-e)
    return up, -math.expm1(-e), e * up


def loglog_graph(z: Any) -> tuple[Any, Any]:
    """Log F and log(1 - F) in PyTensor."""
    import pytensor.tensor as pt

    z = pt.maximum(z, LOWEST)
    e = pt.exp(-pt.minimum(z, SMALL))
    small, large = pt.minimum(e, 0.5), pt.maximum(e, 0.5)
    near = pt.switch(e < 0.5, pt.log(-pt.expm1(-small)), pt.log1p(-pt.exp(-large)))
    return -pt.exp(-z), pt.switch(z > SMALL, -z - 0.5 * pt.exp(-z), near)


def mirrored(function: Any) -> Any:
    """A function of the link 1 - F(-z), from the one of F."""

    def mirror(z):  # type: ignore[no-untyped-def]
        up, down, slope = function(-z)
        return down, up, slope

    return mirror


LOGLOG = Link("loglog", loglog_logs, loglog_bend, loglog_scalar_logs, loglog_graph, loglog_scalar)
CLOGLOG = Link(
    "cloglog",
    mirrored(loglog_logs),
    lambda z: -loglog_bend(-z),
    mirrored(loglog_scalar_logs),
    lambda z: loglog_graph(-z)[::-1],
    mirrored(loglog_scalar),
)

# Factors: a link alone, or the logistic one with rates -------------------------------------------

LOGISTIC_FACTOR = Factor("logistic", "σ(η)", LOGISTIC)
FACTORS = (
    Factor("one", "1", LOGISTIC, free=("gamma",), note="every positive row is labelled"),
    Factor(
        "constant",
        "c",
        LOGISTIC,
        free=("gamma", "lambda"),
        rates_name="c",
        components=("c",),
        note="labelled completely at random",
    ),
    Factor(
        "psychometric",
        "γ + (1-γ-λ) σ(η)",
        LOGISTIC,
        free=("gamma", "lambda", "rho"),
        rates_name="rates",
        note="logistic with guesses γ and lapses λ",
    ),
    LOGISTIC_FACTOR,
    Factor("probit", "Φ(η)", PROBIT),
    Factor("cloglog", "1 - exp(-exp(η))", CLOGLOG),
    Factor("loglog", "exp(-exp(-(η)))", LOGLOG),
    Factor("cauchit", "1/2 + arctan(η)/π", CAUCHIT),
)


def ceiling(highest: float) -> Factor:
    """A logistic curve that ends below one: the highest probability is ``highest``."""
    if not 0 < highest <= 1:
        raise ModelError(f"ceiling({highest!r}); a number above 0 and at most 1 is expected.")
    rates = (0.0, 1.0 - np.float64(highest).item(), float(highest))
    return Factor(f"logistic up to {highest:g}", f"{highest:g} σ(η)", LOGISTIC, fixed=rates)
