r"""The log posterior density as one compiled function, for samplers that call it from threads.

The formulas are those of `density` and `likelihood`; everything that depends on the data, the
priors or the model arrives in one tuple of `Constants`, so that an evaluation never returns to
Python.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayes_lepu.links import Array
from bayes_lepu.rows import Links, Point, Rows
from bayes_lepu.rows import loglik_grad as row_loglik_grad
from bayes_lepu.rows import loglik_grad_pair as row_loglik_grad_pair
from bayes_lepu.rows.arguments import OWN
from bayes_lepu.runtime.compilation import compiled

_jit = compiled()

ROOT_2, ROOT_PI, ROOT_2PI = math.sqrt(2.0), math.sqrt(math.pi), math.sqrt(2 * math.pi)
FAR = 10.0  # erfc keeps all digits to 26; from 10 on twelve terms of its series do


class Terms(NamedTuple):
    """The log prior density in numbers."""

    loc: Array  # of every coordinate, `priors.families.Numbers`
    precision: Array
    rate: Array
    nu: Array
    wall: Array
    is_log: NDArray[np.bool_]  # coordinates log σ with a half-normal prior on σ
    simplex: NDArray[np.intp]  # (groups, 2): first coordinate and number of coordinates
    exponents: Array  # (groups, components), of the components of each simplex


class Constants(NamedTuple):
    """All that an evaluation needs besides the coordinates."""

    rows: Rows
    links: Links
    class_rates: Array  # (3,) log rates of the class probability
    rates: Array  # (3,): 0 where a rate is free, its logarithm where it is fixed
    has_free_rates: bool
    false_marks: bool
    symmetric: bool  # whether t and s swapped have the same likelihood
    place: NDArray[np.intp]  # see `coordinates.Layout`
    base: NDArray[np.intp]
    scale: NDArray[np.intp]
    deviation: NDArray[np.intp]
    spread: Array
    stretch: NDArray[np.intp]
    shift: Array
    terms: Terms


@_jit
def log_normal_cdf(u: float) -> tuple[float, float]:
    """Log Φ(u) and φ(u)/Φ(u); far below zero by the asymptotic series of e^(x²) erfc(x)."""
    x = -u / ROOT_2
    if x < FAR:
        tail = 0.5 * math.erfc(x)
        return math.log(tail), math.exp(-x * x) / (ROOT_2PI * tail)
    term, total = 1.0, 1.0
    for n in range(1, 13):
        term *= -(2 * n - 1) / (2.0 * x * x)
        total += term
    scaled = total / (x * ROOT_PI)
    return math.log(0.5 * scaled) - x * x, 2.0 / (ROOT_2PI * scaled)


@_jit
def log_prior(z: Array, k: Terms, grad: Array) -> float:
    """Log prior density of the coordinates; adds its gradient to grad."""
    value = 0.0
    for j in range(z.size):
        if k.is_log[j]:  # half-normal σ, and the Jacobian of log σ
            ratio = k.precision[j] * math.exp(2.0 * z[j])
            value += z[j] - 0.5 * ratio
            grad[j] += 1.0 - ratio
            continue
        r, nu = z[j] - k.loc[j], k.nu[j]
        if nu > 0.0:
            square = k.precision[j] * r * r
            value -= 0.5 * (nu + 1.0) * math.log1p(square / nu)
            grad[j] -= (nu + 1.0) * k.precision[j] * r / (nu + square)
        else:
            value -= 0.5 * k.precision[j] * r * r + k.rate[j] * abs(r)
            grad[j] -= k.precision[j] * r + k.rate[j] * np.sign(r)
        if k.wall[j] != 0.0:
            log_side, hazard = log_normal_cdf(k.wall[j] * z[j])
            value += log_side
            grad[j] += k.wall[j] * hazard
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
    return value


@_jit
def expand(z: Array, k: Constants) -> Array:
    """The full vector of the row formula."""
    p, J = k.rows.X.shape[1], k.rows.labels.shape[0]
    full = np.zeros(p + 1 + J * (p + 1 + OWN))
    for i in range(k.place.size):
        value = z[k.base[i]]
        if k.stretch[i] >= 0:
            value = k.shift[i] + math.exp(z[k.stretch[i]]) * value
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
        if k.stretch[i] >= 0:
            size = math.exp(z[k.stretch[i]])
            grad[k.base[i]] += size * d
            grad[k.stretch[i]] += size * z[k.base[i]] * d
        else:
            grad[k.base[i]] += d
        if k.deviation[i] >= 0:
            sigma = math.exp(z[k.scale[i]]) if k.scale[i] >= 0 else k.spread[i]
            grad[k.deviation[i]] += sigma * d
            if k.scale[i] >= 0:
                grad[k.scale[i]] += sigma * z[k.deviation[i]] * d
    return grad


@_jit
def point_of(full: Array, k: Constants) -> Point:
    """The point of the row formula that a full vector stands for."""
    p, J = k.rows.X.shape[1], k.rows.labels.shape[0]
    width = p + 1 + OWN
    alpha, beta = np.empty((J, p)), np.empty(J)
    rates, epsilon = np.empty((J, 3)), np.zeros(J)
    for j in range(J):
        at = p + 1 + j * width
        for i in range(p):
            alpha[j, i] = full[at + i]
        beta[j] = full[at + p]
        if k.has_free_rates:
            # softmax of (u, v, 0) over the rates that are free
            u = full[at + p + 1] + k.rates[0]
            v = full[at + p + 2] + k.rates[1]
            r = k.rates[2]
            top = max(u, v, r)
            total = top + math.log(math.exp(u - top) + math.exp(v - top) + math.exp(r - top))
            rates[j, 0], rates[j, 1], rates[j, 2] = u - total, v - total, r - total
        else:
            rates[j, 0], rates[j, 1], rates[j, 2] = k.rates[0], k.rates[1], k.rates[2]
        if k.false_marks:
            epsilon[j] = 1.0 / (1.0 + math.exp(-full[at + p + OWN]))
    return Point(full[:p], full[p], k.class_rates, alpha, beta, rates, epsilon)  # type: ignore[arg-type]


@_jit
def logp_grad(z: Array, k: Constants) -> tuple[float, Array]:
    """Log density and gradient."""
    point = point_of(expand(z, k), k)
    ll, full_grad = row_loglik_grad(k.rows, k.links, point)
    grad = collect(full_grad, z, k)
    return ll + log_prior(z, k.terms, grad), grad


@_jit
def fold(z: Array, order: NDArray[np.intp], k: Constants) -> tuple[float, Array, float, Array]:
    """Log density at θ and at S θ, each with its gradient with respect to z."""
    point, swapped = point_of(expand(z, k), k), z[order]
    if k.symmetric:  # one pass over the rows serves both
        ll, full_grad = row_loglik_grad(k.rows, k.links, point)
        grad = collect(full_grad, z, k)
        ll_s, grad_s = ll, grad[order]
    else:
        ll, full_grad, ll_s, full_grad_s = row_loglik_grad_pair(k.rows, k.links, point)
        grad, grad_s = collect(full_grad, z, k), collect(full_grad_s, swapped, k)
    here = ll + log_prior(z, k.terms, grad)
    there = ll_s + log_prior(swapped, k.terms, grad_s)
    return here, grad, there, grad_s[order]


@_jit
def uncentre(v: Array, centring: Array, k: Constants) -> Array:
    """The coordinates z from those of sampling: v = σ^c z, of annotators v = c mean + σ^c z."""
    z = v.copy()
    for i in range(k.place.size):
        at = k.base[i]
        if k.stretch[i] >= 0:
            z[at] = v[at] * math.exp(-centring[at] * v[k.stretch[i]])
    for i in range(k.place.size):
        at = k.deviation[i]
        if at >= 0 and k.scale[i] >= 0 and centring[at] != 0.0:
            c = centring[at]
            z[at] = (v[at] - c * v[k.base[i]]) * math.exp(-c * v[k.scale[i]])
    return z


@_jit
def centred_grad(
    value: float, grad: Array, z: Array, centring: Array, k: Constants
) -> tuple[float, Array]:
    """Log density and gradient carried over to the sampling coordinates, Jacobian included."""
    out, done = grad.copy(), np.zeros(grad.size, dtype=np.bool_)
    for i in range(k.place.size):
        at, scale = k.base[i], k.stretch[i]
        if scale >= 0 and not done[at]:  # annotators share it
            done[at] = True
            out[at] = grad[at] * math.exp(-centring[at] * z[scale])
            out[scale] -= centring[at] * (grad[at] * z[at] + 1.0)
            value -= centring[at] * z[scale]
    for i in range(k.place.size):
        at, mean, scale = k.deviation[i], k.base[i], k.scale[i]
        if at >= 0 and scale >= 0 and centring[at] != 0.0:
            c = centring[at]
            shrink = math.exp(-c * z[scale])
            out[at] = grad[at] * shrink
            out[mean] -= c * grad[at] * shrink
            out[scale] -= c * (grad[at] * z[at] + 1.0)
            value -= c * z[scale]
    return value, out


@_jit
def whitened(
    u: Array, mean: Array, root: Array, centring: Array, k: Constants
) -> tuple[float, Array]:
    """Log density and gradient in the coordinates u of v = mean + root u."""
    v = mean + root @ u
    if centring.size == 0:
        value, grad = logp_grad(v, k)
        return value, root.T @ grad
    z = uncentre(v, centring, k)
    value, grad = logp_grad(z, k)
    value, grad = centred_grad(value, grad, z, centring, k)
    return value, root.T @ grad


@_jit
def whitened_fold(
    u: Array, mean: Array, root: Array, centring: Array, order: NDArray[np.intp], k: Constants
) -> tuple[float, Array]:
    """The same for the folded density p(θ) + p(Sθ)."""
    z = mean + root @ u
    if centring.size:
        z = uncentre(z, centring, k)
    here, grad, there, grad_there = fold(z, order, k)
    top = max(here, there)
    total = top + math.log(math.exp(here - top) + math.exp(there - top))
    w = math.exp(here - total)
    grad = w * grad + (1.0 - w) * grad_there
    if centring.size:
        total, grad = centred_grad(total, grad, z, centring, k)
    return total, root.T @ grad
