r"""The logistic link, :math:`F(z) = \sigma(z) = 1 / (1 + e^{-z})`."""

import math
from typing import Any

import numpy as np
from scipy.special import expit, log_expit

from bayes_lepu.factors.arithmetic import exp, jit
from bayes_lepu.factors.factor import Factor, Link
from bayes_lepu.links import Array


def logs(z: Array) -> tuple[Array, Array, Array]:
    """Log σ(z), log σ(-z) and their sum, which is log σ'(z)."""
    up, down = log_expit(z), log_expit(-z)
    return up, down, up + down


def complement(z: Array) -> Array:
    """σ(-z) in three passes over one array: NumPy's exponential is the quickest of all."""
    out = np.exp(z)
    out += 1.0
    return np.reciprocal(out, out=out)


def log_odds(z: Array) -> Array:
    """The predictor itself."""
    return z


def bend(z: Array) -> Array:
    """σ''/σ' = 1 - 2σ."""
    return -np.tanh(z / 2)


@jit
def scalar_logs(z: float) -> tuple[float, float, float]:
    """`logs` of one number."""
    tail = math.log1p(math.exp(-abs(z)))
    up, down = min(z, 0.0) - tail, min(-z, 0.0) - tail
    return up, down, up + down


@jit
def scalar(z: float) -> tuple[float, float]:
    """σ(z) and σ(-z)."""
    e = exp(-z)
    up = 1.0 / (1.0 + e)
    return up, e * up


@jit
def scalar_slope(z: float, up: float, down: float) -> float:
    """σ' = σ (1 - σ)."""
    return up * down


def graph(z: Any) -> tuple[Any, Any]:
    """Log σ(z) and log σ(-z) in PyTensor."""
    import pytensor.tensor as pt

    return -pt.softplus(-z), -pt.softplus(z)


LINK = Link(
    "logistic",
    logs,
    bend,
    scalar_logs,
    graph,
    scalar,
    scalar_slope,
    value=expit,
    complement=complement,
    log_odds=log_odds,
)

FACTOR = Factor("logistic", "σ(η)", LINK)
FACTORS = (FACTOR,)
