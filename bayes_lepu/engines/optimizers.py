r"""The local maximum next to a point, by L-BFGS and, on small tables, final Newton steps.

With many rows the search starts on a part of them. Near the maximum it continues with all rows in
coordinates u of :math:`z = m + L u`, with :math:`L L'` the inverse curvature at m on that part;
about ten gradients are then enough. On small tables Newton steps :math:`H d = g` follow.

With L1 penalties :math:`z = m + u - v` with :math:`u, v \ge 0` around their centres m, where the
penalty C (u + v) is smooth and zeros are exact.

The gradient in the log-odds of a rate vanishes with the rate. A search may therefore stop at γ = 0
or λ = 0 although the density is higher elsewhere. So its end is compared with points just inside,
and the search continues from there if they are higher.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from scipy.optimize import minimize

from bayes_lepu.data.pu_data import PUData
from bayes_lepu.factors.factor import logs_to_ratios, ratios_to_logs
from bayes_lepu.links import Array
from bayes_lepu.model.density import LogDensity
from bayes_lepu.rows.factoring import inverse_root

# Nats in the last step: of a climb that finds a start only; before Newton steps; without them.
ROUGH, NEARLY, FINE = 1e-3, 1e-6, 1e-10
FLAT = 1e-8  # curvature below which a coordinate counts as flat: that of a rate that has vanished
# Cells of X up to which Newton steps are cheap, with an L1 penalty and without one. L-BFGS alone
# ends some 1e-6 away, where a row of weight 2 is not quite the same as two rows.
MANY_CELLS, FEW_CELLS, MAX_DIM = 400_000, 10_000, 1000


@dataclass(frozen=True, eq=False)
class Optimum:
    """The end of a local search."""

    z: Array
    logp: float
    converged: bool
    hits: int = 1  # starts that ended here


def optimise(
    density: LogDensity, start: Array, *, rough: bool = False, near: bool = False
) -> Optimum:
    """Search from one start for a local maximum of the log density.

    ``rough`` stops some hundredths of a nat below it; ``near``: the start is already that close.
    """
    z = start if near else _from_afar(density, start)
    if rough:
        return Optimum(z, density.logp(z), converged=False)
    z, curvature = _finish(density, z)
    for _ in range(density.spec.n_rates):
        inside = _off_the_face(density, z)
        if inside is None:
            break
        z, curvature = _finish(density, _from_afar(density, inside))
    logp, grad = density.logp_grad(z)
    grad = _slopes(density, z, grad)
    scale = density.data.n_all if curvature is None else np.maximum(np.diag(curvature), FLAT)
    left = np.max(grad**2) / scale if curvature is None else np.sum(grad**2 / scale)
    # Converged if the remaining error is negligible relative to the width of the posterior.
    return Optimum(z, logp, bool(left < 0.05**2))


def _from_afar(density: LogDensity, start: Array) -> Array:
    """Near the maximum; over many rows, near that of a part of them."""
    return lbfgs(part_of(density), start, least=ROUGH)


def _finish(density: LogDensity, z: Array) -> tuple[Array, Array | None]:
    """The maximum, and the curvature near it if it was computed."""
    cells = density.data.n_all * density.data.p
    if density.is_kinked:
        z = lbfgs(density, z, least=NEARLY)
        if cells <= MANY_CELLS:
            z = polish(density, z)
            if kkt_residual(density, z) > NEARLY:  # not all zeros were found yet
                z = polish(density, lbfgs(density, z))
        return z, None
    part = part_of(density)
    # A curvature saves some 40 gradients, and takes as long as 40 of 200 coordinates.
    dear = density.dim * part.data.n > 200 * density.data.n_all
    if dear or density.data.n_annotators > 1:
        return lbfgs(density, z, least=FINE), None
    curvature = part.logp_grad_info(z)[2]
    z = lbfgs(density, z, curvature=curvature)
    return polish(density, z) if cells <= FEW_CELLS else z, curvature


def _off_the_face(density: LogDensity, z: Array) -> Array | None:
    """The best point with a vanished weight raised a little, if it is higher than z."""
    w = np.exp(ratios_to_logs(z[density.blocks.rates]))
    best, highest = None, density.logp(z) + 1e-8
    for i in np.flatnonzero(w < 1e-5):
        for small in (1e-4, 1e-3, 1e-2, 5e-2):
            raised = w * (1 - small)
            raised[i] = small
            candidate = z.copy()
            with np.errstate(divide="ignore"):
                candidate[density.blocks.rates] = logs_to_ratios(np.log(raised))
            if (value := density.logp(candidate)) <= highest:
                break  # the log-likelihood is concave in the weights: no larger one is better
            best, highest = candidate, value
    return best


# L-BFGS -------------------------------------------------------------------------------------------


class Units(NamedTuple):
    """A linear change of coordinates: to those of the climb, back, and of the gradient."""

    forward: Callable[[Array], Array]
    back: Callable[[Array], Array]
    pull: Callable[[Array], Array]


def lbfgs(
    density: LogDensity,
    start: Array,
    *,
    curvature: Array | None = None,
    least: float = 0.0,
) -> Array:
    """The end of L-BFGS: the last step gained less than ``least`` nats, or than rounding.

    ``curvature`` is about minus the Hessian, at a start near the maximum of a smooth density.
    """
    units, steepest = units_of(density), 1e-7 if density.is_kinked else 1e-6
    if curvature is not None:
        root = _root_of(density, curvature)
        # SciPy's first step has length one: in these units it leads to the top of the parabola.
        size = float(np.linalg.norm(root.T @ density.logp_grad(start)[1]))
        if size == 0.0:
            return start
        root, steepest = size * root, 1e-5 * size
        units = Units(np.zeros_like, lambda u: start + root @ u, lambda grad: root.T @ grad)
    rate, k = density.prior.rate, start.size
    split = np.flatnonzero(rate)
    width = units.forward(np.where(rate > 0, 1.0, 0.0))[split]
    C, center = rate[split] / width, density.prior.loc[split] * width

    def join(x: Array) -> Array:
        u = x[:k].copy()
        u[split] += center - x[k:]
        return u

    def loss(x: Array) -> tuple[float, Array]:
        u = join(x)
        value, grad = density.logp_grad(units.back(u))
        smooth = -units.pull(grad)
        if not split.size:
            return -value, smooth
        away = u[split] - center
        smooth[split] -= C * np.sign(away)
        out = np.concatenate([smooth, C - smooth[split]])
        out[split] += C
        return -value - float(C @ np.abs(away)) + float(C @ (x[split] + x[k:])), out

    bounded = np.zeros(k + split.size, dtype=bool)
    bounded[split], bounded[k:] = True, True
    bounds = [(0.0, None) if b else (None, None) for b in bounded] if split.size else None
    u = units.forward(start)
    for _ in range(10):  # a line search may fail; new curvature estimates mend it
        away = u[split] - center
        x = np.concatenate([u, np.maximum(-away, 0.0)])
        x[split] = np.maximum(away, 0.0)
        found = _minimize(loss, x, bounds=bounds, least=least, steepest=steepest)
        u = join(found.x)
        left = np.where(bounded & (found.x <= 0), np.minimum(found.jac, 0.0), found.jac)
        if least > 0 or not split.size or np.max(np.abs(left)) < 1e-3 * max(1.0, C.max()):
            break
    z = units.back(u)
    at_center = split[u[split] == center]
    z[at_center] = density.prior.loc[at_center]  # exactly, whatever the units
    return z


def _root_of(density: LogDensity, curvature: Array) -> Array:
    """A root of the inverse curvature."""
    # A vanished rate has no curvature; its log-odds still move by about one at a time.
    curvature = curvature.copy()
    diagonal, rates = np.einsum("ii->i", curvature), density.blocks.rates
    diagonal[rates] = np.maximum(diagonal[rates], 1.0)
    root = inverse_root(curvature)
    return np.diag(np.maximum(diagonal, FLAT) ** -0.5) if root is None else root


def _minimize(
    loss: Callable[[Array], tuple[float, Array]],
    start: Array,
    *,
    least: float,
    steepest: float,
    bounds: Any = None,
) -> Any:
    """SciPy's L-BFGS-B, ended by a small step or by small gradients, whichever comes first."""
    before = np.inf

    def look(intermediate_result: Any) -> None:
        nonlocal before
        if before - intermediate_result.fun < least:
            raise StopIteration
        before = intermediate_result.fun

    # The bounds on steps are for densities without a maximum; 20 pairs of steps and gradients save
    # some of SciPy's steps with 10; 1e-15 is rounding.
    options = {"maxiter": 5000, "maxfun": 20_000, "maxcor": 20, "ftol": 1e-15, "gtol": steepest}
    stop = look if least > 0 else None
    return minimize(
        loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options, callback=stop
    )


def units_of(density: LogDensity) -> Units:
    """The coordinates that standardised columns would have; of standardised ones these."""
    data, at = density.data, density.blocks
    if np.any(data.scale != 1) or np.any(data.center != 0):
        return Units(np.array, np.array, np.array)
    mean, sd = data.evenly(20_000).column_moments
    sd = np.where(sd > 0, sd, 1.0)
    width, factors = np.ones(density.dim), []
    for slope, intercept, mask in (
        (at.a, at.b, data.class_mask),
        (at.alpha, at.beta, data.selection_mask),
    ):
        alone = intercept.stop - intercept.start == 1 and not density.prior.rate[intercept].any()
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


# Newton -------------------------------------------------------------------------------------------


def _slopes(density: LogDensity, z: Array, grad: Array) -> Array:
    """The gradient; 0 where an L1 penalty keeps a coordinate at its centre."""
    rate = density.prior.rate
    beyond = np.sign(grad) * np.maximum(np.abs(grad) - rate, 0.0)
    return np.where((z == density.prior.loc) & (rate > 0), beyond, grad)


def kkt_residual(density: LogDensity, z: Array) -> float:
    r"""Largest violation of the optimality conditions.

    They are :math:`g_j = 0` for the gradient g, and :math:`|g_j| \le C_j` for that of the smooth
    part where an L1 penalty keeps z_j at its centre.
    """
    return float(np.max(np.abs(_slopes(density, z, density.logp_grad(z)[1]))))


def polish(density: LogDensity, z: Array, max_steps: int = 10) -> Array:
    """Newton steps, as long as they reduce the gradient, for an optimum exact up to rounding.

    Only coordinates away from their L1 centres move, and none may cross its centre.
    """
    rate, loc = density.prior.rate, density.prior.loc
    if density.dim > MAX_DIM or density.data.n_annotators > 1:
        return z
    keep = (rate == 0) | (z != loc)
    side = np.where(rate > 0, np.sign(z - loc), 0.0)[keep]
    x, grad = z.copy(), density.logp_grad(z)[1][keep]
    for _ in range(max_steps):
        if np.max(np.abs(grad), initial=0.0) < 1e-10:
            break  # further steps would move the last digits only
        curvature = density.observed_information(x)[np.ix_(keep, keep)]
        flat = np.diag(curvature) < FLAT
        curvature[flat, flat] = 1.0
        new = x.copy()
        try:
            np.linalg.cholesky(curvature)
            new[keep] += np.linalg.solve(curvature, grad)
        except np.linalg.LinAlgError:
            break  # not a strict maximum: Newton would walk towards a saddle
        new_grad = density.logp_grad(new)[1][keep]
        crossed = np.any(side * (new - loc)[keep] < 0)
        if crossed or not np.max(np.abs(new_grad)) < np.max(np.abs(grad)):
            break
        x, grad = new, new_grad
    return x if kkt_residual(density, x) < kkt_residual(density, z) else z


# Parts of the rows --------------------------------------------------------------------------------

_drawn: WeakKeyDictionary[PUData, dict[int, PUData]] = WeakKeyDictionary()


def part_of(density: LogDensity, size: int | None = None) -> LogDensity:
    """The density over a weighted sample of the rows; the density itself if there are few rows."""
    size = max(2_000, 50 * density.dim) if size is None else size  # enough for a curvature
    if 3 * size >= density.data.n_all or density.data.n_annotators > 1:
        return density
    return replace(density, data=subsample(density.data, size))


def subsample(data: PUData, size: int) -> PUData:
    """A fixed random sample of about ``size`` rows, weighted by inverse sampling probabilities.

    Marked, unmarked and each kind of audited rows are drawn in equal numbers where there are
    enough. So rare labels are kept, and weighted sums estimate sums over all rows.
    """
    known = _drawn.setdefault(data, {})
    if size not in known:
        known[size] = _draw(data, size)
    return known[size]


def _draw(data: PUData, size: int) -> PUData:
    pool, keys = data.pool
    weight, taken, left = np.zeros(pool.n), [], size
    kinds = sorted(np.flatnonzero(data.kind_counts), key=lambda kind: data.kind_counts[kind])
    for done, kind in enumerate(kinds):  # the rarest first, which may leave more to the others
        count = int(data.kind_counts[kind])
        share = min(count, left // (len(kinds) - done))
        left -= share
        places = np.flatnonzero(pool.kind == kind)
        if share < places.size:
            places = places[np.argpartition(keys[places], share)[:share]]
        weight[places] = count / places.size
        taken.append(places)
    weight *= pool.weight
    rows = np.sort(np.concatenate(taken))
    return replace(pool.rows(rows), weight=weight[rows])
