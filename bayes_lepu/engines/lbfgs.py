r"""L-BFGS on the fused log density, in coordinates in which it is round, and with L1 penalties.

Columns in the user's own units are centred and scaled for the climb, and a climb from near a
maximum is made in the coordinates u of :math:`z = m + L u`, where :math:`L L'` is the inverse of a
curvature at its start m: the ridge between the two intercepts becomes round, and some ten gradients
are enough.

With L1 penalties :math:`z = m + u - v` with :math:`u, v \ge 0` around their centres m, where the
penalty C (u + v) is smooth and zeros are exact.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from bayes_lepu.engines.newton import FLAT
from bayes_lepu.links import Array
from bayes_lepu.model.density import LogDensity
from bayes_lepu.rows.factoring import inverse_root

Objective = Callable[[Array], tuple[float, Array]]

ITERATIONS = 5000  # far more than a climb takes: a bound for densities without a maximum
MEMORY = 20  # pairs of steps and gradients: with SciPy's 10 a climb takes more of them
RESTARTS = 10  # of an L1 climb whose line search failed: new curvature estimates mend it
ROUNDING = 1e-15  # share of the log density below which no step can be told from none
ENOUGH_ROWS = 20_000  # for means and standard deviations of columns that only set the units


class Units(NamedTuple):
    """A linear change of coordinates: to those of the climb, back, and of the gradient."""

    forward: Callable[[Array], Array]
    back: Callable[[Array], Array]
    pull: Callable[[Array], Array]


def lbfgs(
    density: LogDensity, start: Array, *, curvature: Array | None = None, least: float = 0.0
) -> Array:
    """Where L-BFGS ends: a step gives less than ``least`` nats, or than rounding.

    Parameters
    ----------
    curvature : (dim, dim) array, optional
        About minus the Hessian at the start, which is near a maximum.
    """
    if density.is_kinked:
        return lbfgs_l1(density, start, density.logp_grad, least=least)
    steepest = 1e-6
    if curvature is None:
        units = units_of(density)
    else:
        # A vanished rate has no curvature; its log-odds still move by about one at a time.
        curvature = curvature.copy()
        diagonal, rates = np.einsum("ii->i", curvature), density.blocks.rates
        diagonal[rates] = np.maximum(diagonal[rates], 1.0)
        root = inverse_root(curvature)
        if root is None:
            root = np.diag(np.maximum(np.diag(curvature), FLAT) ** -0.5)
        # SciPy's first step has length one: in these units it leads to the top of the parabola.
        # The gradient is then in units of the posterior's width, and 1e-5 of it is next to nothing.
        size = float(np.linalg.norm(root.T @ density.logp_grad(start)[1]))
        if size == 0.0:
            return start
        root *= size
        steepest = 1e-5 * size
        units = Units(np.zeros_like, lambda u: start + root @ u, lambda grad: root.T @ grad)

    def loss(u: Array) -> tuple[float, Array]:
        value, grad = density.logp_grad(units.back(u))
        return -value, -units.pull(grad)

    return units.back(_minimize(loss, units.forward(start), least=least, steepest=steepest).x)


def lbfgs_free(density: LogDensity, start: Array, free: NDArray[np.bool_]) -> Array:
    """Where L-BFGS ends if only the coordinates ``free`` move."""

    def point(x: Array) -> Array:
        z = start.copy()
        z[free] = x
        return z

    def loss(x: Array) -> tuple[float, Array]:
        value, grad = density.logp_grad(point(x))
        return -value, -grad[free]

    return point(_minimize(loss, start[free], least=0.0, steepest=1e-7).x)


def lbfgs_l1(
    density: LogDensity, start: Array, objective: Objective, *, least: float = 0.0
) -> Array:
    """Where L-BFGS ends on a density with L1 penalties.

    ``objective`` is the log density with its gradient, in coordinates that leave the slopes as
    they are.
    """
    units, rate = units_of(density), density.l1_rate
    split = np.flatnonzero(rate)
    k, width = start.size, units.forward(np.where(rate > 0, 1.0, 0.0))[split]
    C, center = rate[split] / width, density.loc[split] * width

    def join(x: Array) -> Array:
        u = x[:k].copy()
        u[split] += center - x[k:]
        return u

    def loss(x: Array) -> tuple[float, Array]:
        u = join(x)
        value, grad = objective(units.back(u))
        away = u[split] - center
        smooth = -units.pull(grad)
        smooth[split] -= C * np.sign(away)
        out = np.concatenate([smooth, C - smooth[split]])
        out[split] += C
        return -value - float(C @ np.abs(away)) + float(C @ (x[split] + x[k:])), out

    bounded = np.zeros(k + split.size, dtype=bool)
    bounded[split], bounded[k:] = True, True
    bounds = [(0.0, None) if b else (None, None) for b in bounded]
    u = units.forward(start)
    for _ in range(RESTARTS):
        away = u[split] - center
        x = np.concatenate([u, np.maximum(-away, 0.0)])
        x[split] = np.maximum(away, 0.0)
        found = _minimize(loss, x, bounds=bounds, least=least, steepest=1e-7)
        u = join(found.x)
        left = np.where(bounded & (found.x <= 0), np.minimum(found.jac, 0.0), found.jac)
        if least > 0 or np.max(np.abs(left)) < 1e-3 * max(1.0, float(C.max())):
            break
    z = units.back(u)
    at_center = split[u[split] == center]
    z[at_center] = density.loc[at_center]  # exactly, whatever the units
    return z


def _minimize(
    loss: Objective, start: Array, *, least: float, steepest: float, bounds: Any = None
) -> Any:
    """SciPy's L-BFGS-B, ended by a small step or by small gradients, whichever comes first."""
    before = np.inf

    def look(intermediate_result: Any) -> None:
        nonlocal before
        if before - intermediate_result.fun < least:
            raise StopIteration
        before = intermediate_result.fun

    options: dict[str, Any] = {"maxiter": ITERATIONS, "maxfun": 4 * ITERATIONS, "maxcor": MEMORY}
    options |= {"ftol": ROUNDING, "gtol": steepest}
    callback = look if least > 0 else None
    return minimize(
        loss,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        callback=callback,
        options=options,
    )


def units_of(density: LogDensity) -> Units:
    """Slopes of columns with mean 0 and standard deviation 1, and the intercepts that go with them.

    Standardised columns are left as they are.
    """
    data, at = density.data, density.blocks
    if np.any(data.scale != 1) or np.any(data.center != 0):
        return Units(np.array, np.array, np.array)
    mean, sd = data.evenly(ENOUGH_ROWS).column_moments
    sd = np.where(sd > 0, sd, 1.0)
    width, factors = np.ones(density.dim), []
    for slope, intercept, mask in (
        (at.a, at.b, data.class_mask),
        (at.alpha, at.beta, data.selection_mask),
    ):
        alone = intercept.stop - intercept.start == 1 and not density.l1_rate[intercept].any()
        if alone and slope.stop - slope.start == mask.sum():
            width[slope] = sd[mask]
            factors.append((slope, intercept, mean[mask]))

    def forward(z: Array) -> Array:
        u = z * width
        for slope, intercept, center in factors:
            u[intercept] += center @ z[slope]
        return u

    def back(u: Array) -> Array:
        z = u / width
        for slope, intercept, center in factors:
            z[intercept] -= center @ z[slope]
        return z

    def pull(grad: Array) -> Array:
        out = grad.copy()
        for slope, intercept, center in factors:
            out[slope] -= center * grad[intercept]
        return out / width

    return Units(forward, back, pull)
