r"""The log posterior density as one compiled function, for samplers that call it from threads.

The formulas are those of `density` and `kernel`; everything that depends on the data, the priors or
the model arrives in one tuple of `Constants`, so that an evaluation never returns to Python.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayes_lepu import kernel
from bayes_lepu.compilation import compiled
from bayes_lepu.links import Array

_jit = compiled()

# How the coordinates (u, v) of the rates become (log γ, log λ, log ρ).
NO_RATES, CONSTANT, PSYCHOMETRIC = 0, 1, 2


class Terms(NamedTuple):
    """The log prior density, as far as it has one of the compiled forms."""

    loc: Array  # location, normal precision and Laplace rate of every coordinate
    precision: Array
    rate: Array
    simplex: NDArray[np.intp]  # (groups, 2): first coordinate and number of coordinates
    exponents: Array  # (groups, components), of the components of each simplex
    positive: NDArray[np.intp]  # coordinates log σ with a half-normal prior on σ
    positive_scale: Array
    hyper: NDArray[np.intp]  # (scales, 3): first and last + 1 of the slopes, and their log σ


class Constants(NamedTuple):
    """All that an evaluation needs besides the coordinates."""

    X: Array
    kind: NDArray[np.int8]
    form: int  # of the rates
    log_w: Array  # rates that are not free
    place: NDArray[np.intp]  # see `blocks.Layout`
    base: NDArray[np.intp]
    scale: NDArray[np.intp]
    deviation: NDArray[np.intp]
    spread: Array
    terms: Terms


@_jit
def log_weights(k: Constants, u: float, v: float) -> Array:
    """(log γ, log λ, log ρ) from the coordinates."""
    out = np.empty(3)
    if k.form == PSYCHOMETRIC:
        top = max(u, v, 0.0)
        total = top + math.log(math.exp(u - top) + math.exp(v - top) + math.exp(-top))
        out[0], out[1], out[2] = u - total, v - total, -total
    elif k.form == CONSTANT:
        tail = math.log1p(math.exp(-abs(u)))
        out[0], out[1], out[2] = min(u, 0.0) - tail, min(-u, 0.0) - tail, -math.inf
    else:
        out[0], out[1], out[2] = k.log_w[0], k.log_w[1], k.log_w[2]
    return out


@_jit
def log_prior(z: Array, k: Terms, grad: Array) -> float:
    """Log prior density of the coordinates; adds its gradient to grad."""
    value = 0.0
    for j in range(z.size):
        r = z[j] - k.loc[j]
        value -= 0.5 * k.precision[j] * r * r + k.rate[j] * abs(r)
        grad[j] -= k.precision[j] * r + k.rate[j] * np.sign(r)
    for g in range(k.simplex.shape[0]):
        # Σ κ log w with w the softmax of the coordinates and 0.
        first, size = k.simplex[g, 0], k.simplex[g, 1]
        top, total, weight = 0.0, 0.0, 0.0
        for j in range(size):
            top = max(top, z[first + j])
        for j in range(size):
            total += math.exp(z[first + j] - top)
            weight += k.exponents[g, j]
        log_total = top + math.log(total + math.exp(-top))
        weight += k.exponents[g, size]
        value -= weight * log_total
        for j in range(size):
            value += k.exponents[g, j] * z[first + j]
            grad[first + j] += k.exponents[g, j] - weight * math.exp(z[first + j] - log_total)
    for h in range(k.positive.size):
        # Half-normal σ, and the Jacobian of log σ.
        i = k.positive[h]
        ratio = (math.exp(z[i]) / k.positive_scale[h]) ** 2
        value += z[i] - 0.5 * ratio
        grad[i] += 1.0 - ratio
    for h in range(k.hyper.shape[0]):
        # Normal(loc, σ) slopes.
        first, last, i = k.hyper[h, 0], k.hyper[h, 1], k.hyper[h, 2]
        sigma, size, quad = math.exp(z[i]), last - first, 0.0
        for j in range(first, last):
            r = (z[j] - k.loc[j]) / sigma
            quad += r * r
            grad[j] -= r / sigma
        value -= 0.5 * quad + size * z[i]
        grad[i] += quad - size
    return value


@_jit
def expand(z: Array, k: Constants) -> Array:
    """The full vector of the row formula."""
    full = np.zeros(2 * k.X.shape[1] + 5)
    for i in range(k.place.size):
        value = z[k.base[i]]
        if k.deviation[i] >= 0:
            sigma = math.exp(z[k.scale[i]]) if k.scale[i] >= 0 else k.spread[i]
            value += sigma * z[k.deviation[i]]
        full[k.place[i]] = value
    return full


@_jit
def collect(full_grad: Array, z: Array, k: Constants) -> Array:
    """The gradient by the coordinates, from the one by the full vector."""
    grad = np.zeros(z.size)
    for i in range(k.place.size):
        d = full_grad[k.place[i]]
        grad[k.base[i]] += d
        if k.deviation[i] >= 0:
            sigma = math.exp(z[k.scale[i]]) if k.scale[i] >= 0 else k.spread[i]
            grad[k.deviation[i]] += sigma * d
            if k.scale[i] >= 0:
                grad[k.scale[i]] += sigma * z[k.deviation[i]] * d
    return grad


@_jit
def logp_grad(z: Array, k: Constants) -> tuple[float, Array]:
    """Log density and gradient."""
    p, full = k.X.shape[1], expand(z, k)
    log_w = log_weights(k, full[2 * p + 2], full[2 * p + 3])
    ll, full_grad = kernel.loglik_grad(
        k.X, k.kind, full[:p], full[p], full[p + 1 : 2 * p + 1], full[2 * p + 1], log_w
    )
    grad = collect(full_grad, z, k)
    return ll + log_prior(z, k.terms, grad), grad


@_jit
def fold(z: Array, order: NDArray[np.intp], k: Constants) -> tuple[float, Array, float, Array]:
    """Log density at θ and at S θ, each with its gradient with respect to z."""
    p, full = k.X.shape[1], expand(z, k)
    log_w = log_weights(k, full[2 * p + 2], full[2 * p + 3])
    ll, full_grad, ll_s, full_grad_s = kernel.loglik_grad_pair(
        k.X, k.kind, full[:p], full[p], full[p + 1 : 2 * p + 1], full[2 * p + 1], log_w
    )
    grad, grad_s = collect(full_grad, z, k), collect(full_grad_s, z, k)
    here = ll + log_prior(z, k.terms, grad)
    there = ll_s + log_prior(z[order], k.terms, grad_s)
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
