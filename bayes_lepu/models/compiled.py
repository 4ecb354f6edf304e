r"""The log posterior density as one compiled function, for samplers that call it from threads.

The formulas are those of `density` and `kernel`; everything that depends on the data, the priors or
the model arrives in one tuple of `Constants`, so that an evaluation never returns to Python.

``models``: 0 naive, 1 SCAR, 2 SPM, 3 PsychM, which decides how (u, v) become the weights.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayes_lepu import kernel
from bayes_lepu.compilation import compiled
from bayes_lepu.links import Array

MODEL_CODES = {"naive": 0, "scar": 1, "spm": 2, "psychm": 3}

_jit = compiled()


class Constants(NamedTuple):
    """All that an evaluation needs besides the coordinates."""

    X: Array
    kind: NDArray[np.int8]
    model: int
    free: NDArray[np.intp]  # positions of the free coordinates in the common vector
    loc: Array  # location, normal precision and Laplace rate of every coordinate
    precision: Array
    rate: Array
    kappa: Array  # exponents of the weights
    hyper: NDArray[np.intp]  # (first, last + 1) of the slopes under each unknown scale
    hyper_scale: Array  # scale of each half-normal hyperprior


@_jit
def log_weights(model: int, u: float, v: float) -> Array:
    """(log γ, log λ, log ρ) from the coordinates."""
    out = np.empty(3)
    if model == 3:
        top = max(u, v, 0.0)
        total = top + math.log(math.exp(u - top) + math.exp(v - top) + math.exp(-top))
        out[0], out[1], out[2] = u - total, v - total, -total
    elif model == 2:
        out[0], out[1], out[2] = -math.inf, -math.inf, 0.0
    elif model == 1:
        tail = math.log1p(math.exp(-abs(u)))
        out[0], out[1], out[2] = min(u, 0.0) - tail, min(-u, 0.0) - tail, -math.inf
    else:
        out[0], out[1], out[2] = 0.0, -math.inf, -math.inf
    return out


@_jit
def log_prior(z: Array, log_w: Array, k: Constants, grad: Array) -> float:
    """Log prior density of the coordinates; adds its gradient to grad."""
    value = 0.0
    for j in range(z.size):
        r = z[j] - k.loc[j]
        value -= 0.5 * k.precision[j] * r * r + k.rate[j] * abs(r)
        grad[j] -= k.precision[j] * r + k.rate[j] * np.sign(r)
    if k.kappa.size > 0:
        total, first = k.kappa.sum(), k.free.size - (k.kappa.size - 1)
        for j in range(k.kappa.size):
            value += k.kappa[j] * log_w[j]
            if j < k.kappa.size - 1:
                grad[first + j] += k.kappa[j] - math.exp(log_w[j]) * total
    for h in range(k.hyper_scale.size):
        # Normal(0, σ) slopes, half-normal σ, and the Jacobian of log σ.
        i = k.free.size + h
        first, last = k.hyper[2 * h], k.hyper[2 * h + 1]
        sigma, size = math.exp(z[i]), last - first
        quad = 0.0
        for j in range(first, last):
            r = (z[j] - k.loc[j]) / sigma
            quad += r * r
            grad[j] -= r / sigma
        ratio = (sigma / k.hyper_scale[h]) ** 2
        value += -0.5 * quad - size * z[i] - 0.5 * ratio + z[i]
        grad[i] += quad - size - ratio + 1.0
    return value


@_jit
def _expand(z: Array, k: Constants) -> Array:
    full = np.zeros(2 * k.X.shape[1] + 4)
    for j in range(k.free.size):
        full[k.free[j]] = z[j]
    return full


@_jit
def _collect(full_grad: Array, dim: int, k: Constants) -> Array:
    grad = np.zeros(dim)
    for j in range(k.free.size):
        grad[j] = full_grad[k.free[j]]
    return grad


@_jit
def logp_grad(z: Array, k: Constants) -> tuple[float, Array]:
    """Log density and gradient."""
    p, full = k.X.shape[1], _expand(z, k)
    log_w = log_weights(k.model, full[2 * p + 2], full[2 * p + 3])
    ll, full_grad = kernel.loglik_grad(
        k.X, k.kind, full[:p], full[p], full[p + 1 : 2 * p + 1], full[2 * p + 1], log_w
    )
    grad = _collect(full_grad, z.size, k)
    return ll + log_prior(z, log_w, k, grad), grad


@_jit
def fold(z: Array, order: NDArray[np.intp], k: Constants) -> tuple[float, Array, float, Array]:
    """Log density at θ and at S θ, each with its gradient with respect to z."""
    p, full = k.X.shape[1], _expand(z, k)
    log_w = log_weights(k.model, full[2 * p + 2], full[2 * p + 3])
    ll, full_grad, ll_s, full_grad_s = kernel.loglik_grad_pair(
        k.X, k.kind, full[:p], full[p], full[p + 1 : 2 * p + 1], full[2 * p + 1], log_w
    )
    grad, grad_s = _collect(full_grad, z.size, k), _collect(full_grad_s, z.size, k)
    here = ll + log_prior(z, log_w, k, grad)
    there = ll_s + log_prior(z[order], log_w, k, grad_s)
    return here, grad, there, grad_s[order]


@_jit
def whitened(u: Array, mean: Array, root: Array, k: Constants) -> tuple[float, Array]:
    """Log density and gradient in the coordinates u of z = mean + root u."""
    value, grad = logp_grad(mean + root @ u, k)
    return value, root.T @ grad


@_jit
def whitened_fold(
    u: Array, mean: Array, root: Array, order: NDArray[np.intp], k: Constants
) -> tuple[float, Array]:
    """The same for the folded density p(θ) + p(Sθ)."""
    here, grad, there, grad_there = fold(mean + root @ u, order, k)
    top = max(here, there)
    total = top + math.log(math.exp(here - top) + math.exp(there - top))
    w = math.exp(here - total)
    return total, root.T @ (w * grad + (1.0 - w) * grad_there)
