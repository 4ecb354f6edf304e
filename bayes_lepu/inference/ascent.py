r"""Climbing by curvature: damped Fisher scoring, and secant steps over many rows.

Both move to the top of the parabola :math:`g'd - \tfrac12 d'Hd`, less the L1 penalties if there are
any (`quadratic`), so that zeros are exact. Scoring takes H from the expected information, which is
never negative, and damps it (Levenberg). Over many rows an information matrix costs as much as
dozens of gradients: there H is that of a subsample, corrected by what every step shows of the true
curvature (BFGS).
"""

from typing import NamedTuple

import numpy as np

from bayes_lepu.inference.quadratic import highest
from bayes_lepu.links import Array
from bayes_lepu.models.density import LogDensity

SMALLEST = 1e-8  # curvature below which a coordinate counts as flat
LEFT = 1e-8  # nats that secant steps may leave
ROUNDING = 1e-13  # of a log density, relative to it: sums over many rows are no more exact
# Log ratios of a rate below which it moves on its own scale, below which it may fall to nothing at
# once, and of one that has.
SMALL, FALLEN, GONE, NOTHING = -2.0, -7.0, -40.0, -50.0
LARGEST_FALL = 0.9  # of a rate in one step, as a share of it


class Ended(NamedTuple):
    """Where a climb ended, and the curvature in every coordinate there, if it is known."""

    z: Array
    scale: Array | None = None


def slopes(density: LogDensity, z: Array, grad: Array) -> Array:
    """The gradient; 0 where an L1 penalty holds a coordinate at its centre."""
    if not density.is_kinked:
        return grad
    rate, away = density.l1_rate, z - density.loc
    held = np.sign(grad) * np.maximum(np.abs(grad) - rate, 0.0)
    return np.where((away == 0) & (rate > 0), held, grad)


def left_to_gain(density: LogDensity, z: Array, grad: Array, scale: Array) -> float:
    """About twice the log density still to gain: squared slopes in units of the curvature."""
    d = slopes(density, z, grad)
    return float(d @ (d / scale))


def _step(density: LogDensity, z: Array, grad: Array, H: Array, mu: float) -> Array | None:
    """The way to the top of the parabola whose curvature is H, plus mu times its diagonal."""
    loc, rate = density.loc, density.l1_rate
    root = np.sqrt(np.maximum(np.diag(H), SMALLEST))
    damped = H / np.outer(root, root)
    damped.flat[:: root.size + 1] = 1.0 + mu
    away = z - loc
    smooth = grad + rate * np.sign(away)
    solved, found = highest(smooth / root, damped, away * root, rate / root)
    return loc + found / root - z if solved else None


def _after(density: LogDensity, z: Array, step: Array) -> Array:
    """The point that a step leads to.

    Coordinates of rates are logarithms. A small rate w moves on its own scale, to w (1 + step), and
    vanishes where that is not positive: in steps of its logarithm it would never get there.
    """
    new, at = z + step, density.blocks.rates
    if at.start == at.stop:
        return new
    u, relative = z[at], step[at]
    fall = np.where(u < FALLEN, NOTHING, u + np.log1p(-LARGEST_FALL))
    own = np.where(
        relative > -LARGEST_FALL, u + np.log1p(np.maximum(relative, -LARGEST_FALL)), fall
    )
    new[at] = np.where(u < SMALL, np.maximum(own, NOTHING), new[at])
    return new


def _penalty_gain(density: LogDensity, z: Array, new: Array) -> float:
    """What the L1 penalties give from z to new."""
    return float(density.l1_rate @ (np.abs(z - density.loc) - np.abs(new - density.loc)))


def climb_scoring(
    density: LogDensity, start: Array, *, tolerance: float, max_iterations: int = 300
) -> Ended:
    """Where Fisher scoring ends.

    An information matrix costs many gradients. It is kept, and corrected by what a step shows of
    the true curvature, as long as it predicts well what a step gives.
    """
    z, mu, rate = start.copy(), 1e-2, density.l1_rate
    enough = tolerance**2 * float(density.data.kind_weights.sum())
    (logp, grad, H), fresh = density.logp_grad_info(z), True
    for _ in range(max_iterations):
        if left_to_gain(density, z, grad, np.maximum(np.diag(H), SMALLEST)) < enough:
            break
        step = _step(density, z, grad, H, mu)
        if step is None:
            mu = max(10 * mu, 1e-6)
            continue
        smooth = grad + rate * np.sign(z - density.loc)
        slope = float(smooth @ step) + _penalty_gain(density, z, z + step)
        predicted = slope - 0.5 * float(step @ H @ step)
        new = _after(density, z, step)
        new_logp, new_grad = density.logp_grad(new)
        ratio = (new_logp - logp) / max(predicted, 1e-300)
        well = 0.7 < ratio < 1.3
        if np.isfinite(new_logp) and not well:
            # The expected curvature is off along this step; the parabola through both values
            # knows better, and one more log density costs a fraction of an information matrix.
            further = _after(density, z, _parabola(slope, new_logp - logp) * step)
            other, other_grad = density.logp_grad(further)
            if other > new_logp:
                new, new_logp, new_grad = further, other, other_grad
        if not np.isfinite(new_logp) or new_logp < logp:
            if not fresh:
                (logp, grad, H), fresh = density.logp_grad_info(z), True
                continue
            if mu > 1e12 or float(np.max(np.abs(step))) < 1e-13:
                break
            mu = max(4 * mu, 1e-6)
            continue
        gain = new_logp - logp
        if well:
            H = _seen(density, H, (z, grad), (new, new_grad))
            z, logp, grad, fresh = new, new_logp, new_grad, False
        else:
            z = new
            (logp, grad, H), fresh = density.logp_grad_info(z), True
        mu = max(mu / 5, 1e-9) if ratio > 0.6 else (mu if ratio > 0.2 else 3 * mu)
        if gain < 1e-12 * (1 + abs(logp)) and ratio > 0.2:
            break
    return Ended(z, np.maximum(np.diag(H), SMALLEST))


def _parabola(slope: float, gain: float, longest: float = 4.0) -> float:
    """Length of the step, in units of the one tried, at the top of f(t) = slope t - (.) t²."""
    bend = slope - gain
    return 0.5 * slope / bend if bend > 0.5 * slope / longest else longest


def climb_secant(
    density: LogDensity,
    start: Array,
    curvature: Array,
    *,
    left: float = LEFT,
    max_iterations: int = 200,
) -> Ended:
    """Where secant steps from a first guess of the curvature end; one pass over X each.

    They may leave about ``left`` nats.
    """
    z, H, mu = start.copy(), curvature, 0.0
    logp, grad = density.logp_grad(z)
    for _ in range(max_iterations):
        if left_to_gain(density, z, grad, np.maximum(np.diag(H), SMALLEST)) < left:
            break
        step = _step(density, z, grad, H, mu)
        if step is None:
            mu = max(10 * mu, 1e-6)
            continue
        new = _after(density, z, step)
        step = new - z
        new_logp, new_grad = density.logp_grad(new)
        if not np.isfinite(new_logp):
            mu = max(10 * mu, 1e-2)
            continue
        H = _seen(density, H, (z, grad), (new, new_grad))
        if new_logp < logp - ROUNDING * abs(logp):
            if float(np.max(np.abs(step))) < 1e-12:
                break
            mu = max(4 * mu, 1e-2)
            continue
        z, logp, grad, mu = new, new_logp, new_grad, mu / 10 if mu > 1e-6 else 0.0
    return Ended(z)


def _seen(
    density: LogDensity, H: Array, old: tuple[Array, Array], new: tuple[Array, Array]
) -> Array:
    """The curvature after what the gradients at two points show of it."""
    (z, grad), (new_z, new_grad) = old, new
    step, change = new_z - z, grad - new_grad
    if density.is_kinked:
        change -= density.l1_rate * (np.sign(new_z - density.loc) - np.sign(z - density.loc))
    # A rate that has vanished says nothing of the others any more, and its way there nothing at all
    rates = density.blocks.rates
    if (new_z[rates] < GONE).any():
        gone = rates.start + np.flatnonzero(new_z[rates] < GONE)
        H = H.copy()
        H[gone], H[:, gone], step[gone], change[gone] = 0.0, 0.0, 0.0, 0.0
        H[gone, gone] = 1.0
    return _corrected(H, step, change)


def _corrected(H: Array, step: Array, change: Array) -> Array:
    """BFGS with Powell's damping, which keeps H positive definite."""
    Hs = H @ step
    expected, found = float(step @ Hs), float(step @ change)
    if not np.isfinite(found) or expected <= 0:
        return H
    if found < 0.2 * expected:
        weight = 0.8 * expected / (expected - found)
        change = weight * change + (1 - weight) * Hs
        found = float(step @ change)
    return H - np.outer(Hs, Hs) / expected + np.outer(change, change) / found
