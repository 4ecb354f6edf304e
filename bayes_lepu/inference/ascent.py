r"""Climbing by curvature: damped Fisher scoring, and secant steps over many rows.

Both move to the top of the parabola :math:`g'd - \tfrac12 d'Hd`, less the L1 penalties if there are
any (`quadratic`), so that zeros are exact. Scoring takes H from the expected information, which is
never negative, and damps it (Levenberg). Over many rows an information matrix costs as much as
dozens of gradients: there H is that of a subsample, corrected by what every step shows of the true
curvature (BFGS).
"""

import numpy as np

from bayes_lepu.inference.quadratic import highest
from bayes_lepu.links import Array
from bayes_lepu.models.density import LogDensity

SMALLEST = 1e-8  # curvature below which a coordinate counts as flat
LEFT = 1e-8  # nats that secant steps may leave
FALLEN, NOTHING = -7.0, -50.0  # log ratios of a rate that is hardly there, and of one that is not


def slopes(density: LogDensity, z: Array, grad: Array) -> Array:
    """The gradient; 0 where an L1 penalty holds a coordinate at its centre."""
    rate, away = density.l1_rate, z - density.loc
    held = np.sign(grad) * np.maximum(np.abs(grad) - rate, 0.0)
    return np.where((away == 0) & (rate > 0), held, grad)


def left_to_gain(density: LogDensity, z: Array, grad: Array, scale: Array) -> float:
    """About twice the log density still to gain: squared slopes in units of the curvature."""
    d = slopes(density, z, grad)
    return float(d @ (d / scale))


def _peak(density: LogDensity, z: Array, grad: Array, H: Array, mu: float) -> Array | None:
    """Top of the parabola whose curvature is H, plus mu times its diagonal."""
    loc, rate = density.loc, density.l1_rate
    root = np.sqrt(np.maximum(np.diag(H), SMALLEST))
    damped = H / np.outer(root, root)
    damped.flat[:: root.size + 1] = 1.0 + mu
    away = z - loc
    smooth = grad + rate * np.sign(away)
    solved, found = highest(smooth / root, damped, away * root, rate / root)
    return loc + found / root if solved else None


def _onto_the_face(density: LogDensity, z: Array, logp: float, grad: Array) -> Array | None:
    """The point with small rates that still fall at nothing; None where that is no higher.

    Their coordinates are logarithms, in which they would take steps of about one for ever.
    """
    rates = z[density.blocks.rates]
    falling = (rates < FALLEN) & (rates > NOTHING) & (grad[density.blocks.rates] < 0)
    if not falling.any():
        return None
    face = z.copy()
    face[density.blocks.rates][falling] = NOTHING
    return face if density.logp(face) > logp else None


def _penalty_gain(density: LogDensity, z: Array, new: Array) -> float:
    """What the L1 penalties give from z to new."""
    return float(density.l1_rate @ (np.abs(z - density.loc) - np.abs(new - density.loc)))


def climb_scoring(
    density: LogDensity, start: Array, *, tolerance: float, max_iterations: int = 300
) -> tuple[Array, int]:
    """Where Fisher scoring ends, and after how many iterations."""
    z, mu, rate = start.copy(), 1e-2, density.l1_rate
    enough = tolerance**2 * float(density.data.kind_weights.sum())
    logp, grad, curvature = density.logp_grad_info(z)
    iteration = 0
    for iteration in range(1, max_iterations + 1):  # noqa: B007
        face = _onto_the_face(density, z, logp, grad)
        if face is not None:
            z = face
            logp, grad, curvature = density.logp_grad_info(z)
        scale = np.maximum(np.diag(curvature), SMALLEST)
        if left_to_gain(density, z, grad, scale) < enough:
            break
        new = _peak(density, z, grad, curvature, mu)
        if new is None:
            mu = max(10 * mu, 1e-6)
            continue
        step = new - z
        smooth = grad + rate * np.sign(z - density.loc)
        slope = float(smooth @ step) + _penalty_gain(density, z, new)
        predicted = slope - 0.5 * float(step @ curvature @ step)
        new_logp = density.logp(new)
        ratio = (new_logp - logp) / max(predicted, 1e-300)
        if np.isfinite(new_logp) and not 0.7 < ratio < 1.3:
            # The expected curvature is off along this step; the parabola through both values
            # knows better, and one more log density costs a fraction of an information matrix.
            length = _parabola(slope, new_logp - logp)
            other = density.logp(z + length * step)
            if other > new_logp:
                new, new_logp = z + length * step, other
        if not np.isfinite(new_logp) or new_logp < logp:
            if mu > 1e12 or float(np.max(np.abs(step))) < 1e-13:
                break
            mu = max(4 * mu, 1e-6)
            continue
        gain, z = new_logp - logp, new
        logp, grad, curvature = density.logp_grad_info(z)
        mu = max(mu / 5, 1e-9) if ratio > 0.6 else (mu if ratio > 0.2 else 3 * mu)
        if gain < 1e-12 * (1 + abs(logp)) and ratio > 0.2:
            break
    return z, iteration


def _parabola(slope: float, gain: float, longest: float = 4.0) -> float:
    """Length of the step, in units of the one tried, at the top of f(t) = slope t - (.) t²."""
    bend = slope - gain
    return 0.5 * slope / bend if bend > 0.5 * slope / longest else longest


def climb_secant(
    density: LogDensity, start: Array, curvature: Array, max_iterations: int = 200
) -> tuple[Array, int]:
    """Where secant steps from a first guess of the curvature end; one pass over X each."""
    z, H, mu, rate = start.copy(), curvature.copy(), 0.0, density.l1_rate
    logp, grad = density.logp_grad(z)
    iteration = 0
    for iteration in range(1, max_iterations + 1):  # noqa: B007
        face = _onto_the_face(density, z, logp, grad)
        if face is not None:
            z = face
            logp, grad = density.logp_grad(z)
        if left_to_gain(density, z, grad, np.maximum(np.diag(H), SMALLEST)) < LEFT:
            break
        new = _peak(density, z, grad, H, mu)
        if new is None:
            mu = max(10 * mu, 1e-6)
            continue
        step = new - z
        new_logp, new_grad = density.logp_grad(new)
        if not np.isfinite(new_logp):
            mu = max(10 * mu, 1e-2)
            continue
        signs = rate * (np.sign(new - density.loc) - np.sign(z - density.loc))
        H = _corrected(H, step, grad - new_grad - signs)
        if new_logp < logp:
            if float(np.max(np.abs(step))) < 1e-12:
                break
            mu = max(4 * mu, 1e-2)
            continue
        z, logp, grad, mu = new, new_logp, new_grad, mu / 10 if mu > 1e-6 else 0.0
    return z, iteration


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
