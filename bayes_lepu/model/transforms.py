"""Between the natural values of a block of parameters and its unconstrained coordinates."""

from typing import TYPE_CHECKING

import numpy as np

from bayes_lepu.links import Array
from bayes_lepu.priors.prior import Prior

if TYPE_CHECKING:
    from bayes_lepu.model.blocks import Block

LARGEST = 700.0  # log ratios are cut here: e^700 is still a number


def is_known(prior: Prior) -> bool:
    """Whether the value is given, so that no coordinate is spent on it."""
    return prior.family == "known"


def to_natural(block: "Block", z: Array) -> Array:
    """Natural values of a block from its coordinates ``(..., size)``; single ones lose the axis."""
    if block.transform == "log":
        z = np.exp(z)
    if block.transform == "ratios":
        if block.prior.form.support == "simplex":
            return np.exp(ratios_to_logs(z))
        z = 1.0 / (1.0 + np.exp(-z))
    return z if block.dims else z[..., 0]


def to_coordinates(block: "Block", natural: Array) -> Array:
    """Inverse of `to_natural`."""
    x = np.asarray(natural, dtype=float)
    if block.transform == "ratios" and block.prior.form.support == "simplex":
        with np.errstate(divide="ignore"):
            return logs_to_ratios(np.log(x))
    x = x if block.dims else x[..., None]
    if block.transform == "log":
        return np.log(x)
    if block.transform == "ratios":
        with np.errstate(divide="ignore"):
            return np.clip(np.log(x) - np.log1p(-x), -LARGEST, LARGEST)
    return x


def ratios_to_logs(u: Array) -> Array:
    """Logarithms of the components (..., k + 1) of a simplex from its coordinates (..., k)."""
    z = np.concatenate([u, np.zeros((*u.shape[:-1], 1))], axis=-1)
    return z - np.logaddexp.reduce(z, axis=-1, keepdims=True)


def logs_to_ratios(log_w: Array) -> Array:
    """Inverse of `ratios_to_logs`, cut at ±`LARGEST`."""
    with np.errstate(invalid="ignore"):
        ratios = log_w[..., :-1] - log_w[..., -1:]
    return np.clip(np.nan_to_num(ratios), -LARGEST, LARGEST)
