r"""Maximising the log density under a restriction: the tool of profiles and of refits.

Damped scoring on any smooth objective that hands back its value, gradient and a positive
semi-definite curvature. Two objectives are built from a log density:

* ``linear``: z = E w + z₀, coordinates tied or fixed (a = α, a = 0, γ = 0, ...);
* ``held``: :math:`\log p(z) - \tfrac K2 (q(z) - q_0)^2` with q = logit π. Its maximum is the
  profile of π exactly, at the value of π it attains (which is close to the one asked for).

Over many rows the curvature is that of a weighted subsample: it sets the steps, while values and
gradients, which say where the maximum is, come from all rows.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from bayes_lepu.inference.subsample import subsample
from bayes_lepu.likelihood import outside_moments
from bayes_lepu.likelihood.factoring import solve
from bayes_lepu.links import Array
from bayes_lepu.models.compiled import collect
from bayes_lepu.models.density import LogDensity

ENOUGH = 1e-3  # nats per step below which nothing that matters is left to gain
CURVATURE_ROWS = 20_000

Objective = Callable[[Array], tuple[float, Array, Array]]


def climb(objective: Objective, start: Array, *, max_iterations: int = 200) -> tuple[Array, float]:
    """The local maximum next to ``start`` and its value, by Levenberg's damping."""
    w, mu = start.copy(), 1e-3
    value, grad, curvature = objective(w)
    for _ in range(max_iterations):
        scale = np.maximum(np.diag(curvature), 1e-8)
        if float(grad @ (grad / scale)) < 1e-8:
            break
        root = np.sqrt(scale)
        damped = curvature / np.outer(root, root) + mu * np.eye(root.size)
        step = solve(damped, grad / root) / root
        new_value, new_grad, new_curvature = objective(w + step)
        if not np.isfinite(new_value) or new_value < value:
            if mu > 1e10:
                break
            mu = max(4 * mu, 1e-6)
            continue
        gain = new_value - value
        w, value, grad, curvature = w + step, new_value, new_grad, new_curvature
        mu = max(mu / 5, 1e-9)
        if gain < ENOUGH:
            break
    return w, value


def curved(density: LogDensity) -> Objective:
    """The log density and its gradient, with a curvature from at most `CURVATURE_ROWS` rows."""
    if density.data.n <= CURVATURE_ROWS or density.data.n_annotators > 1:
        return density.logp_grad_info
    small = replace(density, data=subsample(density.data, CURVATURE_ROWS))
    return lambda z: (*density.logp_grad(z), small.logp_grad_info(z)[2])


def linear(density: LogDensity, E: Array, offset: Array) -> Objective:
    """The log density on z = E w + offset."""
    evaluate = curved(density)

    def objective(w: Array) -> tuple[float, Array, Array]:
        value, grad, curvature = evaluate(E @ w + offset)
        return value, E.T @ grad, E.T @ curvature @ E

    return objective


def held(density: LogDensity, target: float, strength: float) -> Objective:
    """The log density with logit π held close to ``target``."""
    evaluate = curved(density)

    def objective(z: Array) -> tuple[float, Array, Array]:
        value, grad, curvature = evaluate(z)
        q, slope = logit_pi(density, z)
        off = q - target
        return (
            value - 0.5 * strength * off**2,
            grad - strength * off * slope,
            curvature + strength * np.outer(slope, slope),
        )

    return objective


def logit_pi(density: LogDensity, z: Array) -> tuple[float, Array]:
    """Logit of π = mean of t over the rows, and its gradient in the coordinates."""
    k = density.constants
    rows = density.data.as_rows
    total, positive, slope, _, _ = outside_moments(rows, k.links, density.point(z))
    pi = float(np.clip(positive / total, 1e-12, 1 - 1e-12))
    gradient = collect(slope / (total * pi * (1 - pi)), z, k)
    return float(np.log(pi) - np.log1p(-pi)), gradient
