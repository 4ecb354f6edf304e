r"""Newton steps with the observed curvature, which bring an optimum to rounding.

.. math:: H d = g

They are taken on the coordinates that an L1 penalty leaves free, where the density is smooth:
values of the log density alone cannot tell gradients below about 1e-4 apart.
"""

from dataclasses import replace

import numpy as np

from bayes_lepu.links import Array
from bayes_lepu.model.density import LogDensity

FLAT = 1e-8  # curvature below which a coordinate counts as flat: that of a rate that has vanished
POLISHED = 1e-10  # gradient at which further steps would move the last digits only
MAX_FREE = 1000  # coordinates: the Hessian of more would cost more than all of the climb


def slopes(density: LogDensity, z: Array, grad: Array) -> Array:
    """The gradient; 0 where an L1 penalty holds a coordinate at its centre."""
    if not density.is_kinked:
        return grad
    rate = density.l1_rate
    beyond = np.sign(grad) * np.maximum(np.abs(grad) - rate, 0.0)
    return np.where((z == density.loc) & (rate > 0), beyond, grad)


def kkt_residual(density: LogDensity, z: Array) -> float:
    r"""Largest violation of the optimality conditions.

    For L1 coordinates: :math:`|g_j| \le C_j` where z_j is at its centre (0 for the paper's
    penalty), :math:`g_j = C_j\,\mathrm{sign}(z_j)` elsewhere, with g the gradient of the smooth
    part; for the others :math:`|g_j| = 0`.
    """
    return float(np.max(np.abs(slopes(density, z, density.logp_grad(z)[1]))))


def polish(density: LogDensity, z: Array, max_steps: int = 10) -> Array:
    """Newton steps on the coordinates away from their L1 centres, none of which may cross it."""
    rate, loc = density.l1_rate, density.loc
    keep = (rate == 0) | (z != loc)
    if keep.sum() > MAX_FREE or np.any(loc[~keep]) or density.data.n_annotators > 1:
        return z
    small = density if keep.all() else _support(density, keep)
    x = z[keep]
    side = np.where(rate[keep] > 0, np.sign(x - loc[keep]), 0.0)
    grad = small.logp_grad(x)[1]
    for _ in range(max_steps):
        if np.max(np.abs(grad)) < POLISHED:
            break
        curvature = small.observed_information(x)
        flat = np.diag(curvature) < FLAT
        curvature[flat, flat] = 1.0
        try:
            np.linalg.cholesky(curvature)
        except np.linalg.LinAlgError:
            break  # not a strict maximum: Newton would walk towards a saddle
        new = x + np.linalg.solve(curvature, grad)
        new_grad = small.logp_grad(new)[1]
        crossed = np.any(side * (new - loc[keep]) < 0)
        if crossed or not np.max(np.abs(new_grad)) < np.max(np.abs(grad)):
            break
        x, grad = new, new_grad
    out = z.copy()
    out[keep] = x
    return out if kkt_residual(density, out) < kkt_residual(density, z) else z


def _support(density: LogDensity, keep: Array) -> LogDensity:
    """The same density with every coordinate outside ``keep`` held at zero."""
    order = density.layout.order
    free = np.zeros(order.size, dtype=bool)
    free[density.free[keep]] = True
    at = order.entries(free).of_annotator(0)
    columns = at.a | at.alpha
    columns[0] |= not columns.any()
    masked = density.with_masks(at.a, at.alpha)
    return replace(masked, data=masked.data.columns(columns))
