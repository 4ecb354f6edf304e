r"""Laplace priors (L1): exact zeros, and the optimality conditions that prove them.

L-BFGS-B on z = m + u - v with u, v >= 0, where the penalty C (u + v) is smooth and zeros are
exact; then Newton steps on the coordinates that are not zero, where the density is smooth, because
values of the objective alone cannot tell residuals below about 1e-4 apart.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy.optimize import minimize

from bayes_lepu.inference.ascent import SMALLEST, slopes
from bayes_lepu.links import Array
from bayes_lepu.models.density import LogDensity

MAX_RESTARTS = 10
DONE = 1e-10
EXACT = 1e-15  # share of the log density, below which no step can be told from rounding
MAX_SUPPORT = 1000  # Newton steps on more coordinates than this would cost more than they give


def kkt_residual(density: LogDensity, z: Array) -> float:
    r"""Largest violation of the optimality conditions.

    For L1 coordinates: :math:`|g_j| \le C_j` where z_j is at its centre (0 for the paper's
    penalty), :math:`g_j = C_j\,\mathrm{sign}(z_j)` elsewhere, with g the gradient of the smooth
    part; for the others :math:`|g_j| = 0`.
    """
    return float(np.max(np.abs(slopes(density, z, density.logp_grad(z)[1]))))


def climb_sparse(
    density: LogDensity,
    start: Array,
    objective: Callable[[Array], tuple[float, Array]],
    *,
    enough: float = EXACT,
    max_iterations: int = 5000,
) -> Array:
    """Where the search ends.

    ``objective`` is the log density with its gradient, in coordinates that leave the slopes as
    they are. The search ends where a step gives less than the share ``enough`` of the log density.
    """
    rate = density.l1_rate
    split = np.flatnonzero(rate)
    k, C, center = start.size, rate[split], density.loc[split]

    def join(x: Array) -> Array:
        z = x[:k].copy()
        z[split] += center - x[k:]
        return z

    def smooth_loss(x: Array) -> tuple[float, Array]:
        z = join(x)
        logp, grad = objective(z)
        away = z[split] - center
        grad = -grad
        grad[split] -= C * np.sign(away)
        value = -(logp + float(C @ np.abs(away))) + float(C @ (x[split] + x[k:]))
        out = np.concatenate([grad, C - grad[split]])
        out[split] += C
        return value, out

    def separate(z: Array) -> Array:
        away = z[split] - center
        x = np.concatenate([z, np.maximum(-away, 0.0)])
        x[split] = np.maximum(away, 0.0)
        return x

    bounded = np.zeros(k + split.size, dtype=bool)
    bounded[split], bounded[k:] = True, True
    z = start
    for _ in range(MAX_RESTARTS):
        result = minimize(
            smooth_loss,
            separate(z),
            jac=True,
            method="L-BFGS-B",
            bounds=[(0.0, None) if b else (None, None) for b in bounded],
            options={
                "maxiter": max_iterations,
                "maxfun": 4 * max_iterations,
                "maxcor": 30,
                "ftol": enough,
                "gtol": 1e-7,
            },
        )
        z = join(result.x)
        left = np.where(bounded & (result.x <= 0), np.minimum(result.jac, 0.0), result.jac)
        if enough > EXACT or np.max(np.abs(left)) < 1e-3 * max(1.0, float(C.max())):
            break  # otherwise a line search failed, which new curvature estimates mend
    return z


def polish(density: LogDensity, z: Array, max_steps: int = 10) -> Array:
    """Newton steps on the coordinates away from their centres, none of which may cross it."""
    rate, loc = density.l1_rate, density.loc
    keep = (rate == 0) | (z != loc)
    if keep.sum() > MAX_SUPPORT or np.any(loc[~keep]) or density.data.n_annotators > 1:
        return z
    small = _support(density, keep)
    x = z[keep]
    signs = np.where(rate[keep] > 0, np.sign(x - loc[keep]), 0.0)
    gradient = small.logp_grad(x)[1]
    for _ in range(max_steps):
        if np.max(np.abs(gradient)) < DONE:
            break
        information = small.observed_information(x)
        flat = np.diag(information) < SMALLEST  # rates that have vanished
        information[flat, flat] = 1.0
        try:
            np.linalg.cholesky(information)
            candidate = x + np.linalg.solve(information, gradient)
        except np.linalg.LinAlgError:
            break  # not a strict maximum: Newton would walk towards a saddle
        new = small.logp_grad(candidate)[1]
        crossed = np.any(signs * (candidate - loc[keep]) < 0)
        if crossed or not np.max(np.abs(new)) < np.max(np.abs(gradient)):
            break
        x, gradient = candidate, new
    out = z.copy()
    out[keep] = x
    return out if kkt_residual(density, out) < kkt_residual(density, z) else z


def _support(density: LogDensity, keep: Array) -> LogDensity:
    """The same density with every coordinate outside ``keep`` held at zero."""
    order = density.layout.order
    free = np.zeros(order.size, dtype=bool)
    free[density.free[keep]] = True
    at = order.entries(free).of_annotator(0)
    a, alpha = at.a, at.alpha
    columns = a | alpha
    columns[0] |= not columns.any()
    masked = density.with_masks(a, alpha)
    return replace(masked, data=masked.data.columns(columns))
