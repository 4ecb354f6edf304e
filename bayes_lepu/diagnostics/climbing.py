r"""Maximising the log density under a restriction: the tool of profiles and of refits.

Damped scoring on any smooth objective that hands back its value, gradient and a positive
semi-definite curvature. Two objectives are built from a log density:

* ``linear``: z = E w + z₀, coordinates tied or fixed (a = α, a = 0, γ = 0, ...);
* ``held``: :math:`\log p(z) - \tfrac K2 (q(z) - q_0)^2` with q = logit π. Its maximum is the
  profile of π exactly, at the value of π it attains (which is close to the one asked for).
"""

from collections.abc import Callable

import numpy as np

from bayes_lepu.diagnostics.factoring import solve
from bayes_lepu.links import Array
from bayes_lepu.models.density import LogDensity

ENOUGH = 1e-3  # nats per step below which nothing that matters is left to gain

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


def linear(density: LogDensity, E: Array, offset: Array) -> Objective:
    """The log density on z = E w + offset."""

    def objective(w: Array) -> tuple[float, Array, Array]:
        value, grad, curvature = density.logp_grad_info(E @ w + offset)
        return value, E.T @ grad, E.T @ curvature @ E

    return objective


def held(density: LogDensity, target: float, strength: float) -> Objective:
    """The log density with logit π held close to ``target``."""

    def objective(z: Array) -> tuple[float, Array, Array]:
        value, grad, curvature = density.logp_grad_info(z)
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
    X, point = density.data.X, density.unpack(z)
    t = point.t(X)
    pi = float(np.clip(t.mean(), 1e-12, 1 - 1e-12))
    weight = t * (1 - t) / (pi * (1 - pi) * X.shape[0])
    out = np.zeros(density.dim)
    out[density.blocks.a] = (X.T @ weight)[density.data.class_mask]
    out[density.blocks.b] = weight.sum()
    return float(np.log(pi) - np.log1p(-pi)), out
