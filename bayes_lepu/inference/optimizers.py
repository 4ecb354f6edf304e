r"""Local maximisers of a log density.

``scoring``
    Damped Fisher scoring (Levenberg): solve (I + P + μ D) d = g with the expected information I,
    which is positive semi-definite everywhere, and adapt μ. The default for few columns.
``lbfgs``
    SciPy's L-BFGS on the fused log density. The default for many columns or rows.
``adam``, ``nadam``
    The optimisers named by the paper, full batch, for comparison.

Laplace priors (L1) are not smooth. Every method hands them to a split-variable L-BFGS-B,
z = u - v with u, v >= 0, which gives exact zeros.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg
from scipy.optimize import minimize

from bayes_lepu.errors import ModelError
from bayes_lepu.links import Array
from bayes_lepu.models.density import LogDensity

Objective = Callable[[Array], tuple[float, Array]]

MAX_SCORING_DIM = 120
MAX_SCORING_WORK = 400_000  # rows x columns above which a Gram matrix per step stops paying
GRADIENT_TOLERANCE = 1e-6


@dataclass(frozen=True, eq=False)
class Optimum:
    """Where a local search ended."""

    z: Array
    logp: float
    gradient_norm: float
    iterations: int
    converged: bool


def optimise(
    density: LogDensity,
    start: Array,
    *,
    optimizer: str = "auto",
    tolerance: float = GRADIENT_TOLERANCE,
) -> Optimum:
    """Climb from one start to a local maximum of the log density.

    Parameters
    ----------
    tolerance : float
        Scoring stops when about ``tolerance**2 n`` nats are left to gain; the other methods have
        criteria of their own.
    """
    if optimizer not in OPTIMIZERS:
        raise ModelError(f"Unknown optimizer {optimizer!r}. Known: {', '.join(OPTIMIZERS)}.")
    if density.l1_rate.any():
        return _split_lbfgs(density, start)
    if optimizer == "auto":
        small = density.dim <= MAX_SCORING_DIM and density.data.X.size <= MAX_SCORING_WORK
        optimizer = "scoring" if small else "lbfgs"
    if optimizer == "scoring":
        return _scoring(density, start, tolerance=tolerance)
    return OPTIMIZERS[optimizer](density, start)


def kkt_residual(density: LogDensity, z: Array) -> float:
    r"""Largest violation of the optimality conditions.

    For L1 coordinates: :math:`|g_j| \le C_j` where z_j = 0, :math:`g_j = C_j\,\mathrm{sign}(z_j)`
    elsewhere, with g the gradient of the smooth part; for the others :math:`|g_j| = 0`.
    """
    rate = density.l1_rate
    smooth = density.logp_grad(z)[1] + rate * np.sign(z)
    at_zero = np.maximum(np.abs(smooth) - rate, 0.0)
    return float(np.max(np.where(z == 0, at_zero, np.abs(smooth - rate * np.sign(z)))))


def _scoring(
    density: LogDensity,
    start: Array,
    max_iterations: int = 300,
    tolerance: float = GRADIENT_TOLERANCE,
) -> Optimum:
    z, mu = start.copy(), 1e-2
    logp, grad, curvature = density.logp_grad_info(z)
    iteration = 0
    for iteration in range(1, max_iterations + 1):  # noqa: B007
        scale = np.maximum(np.diag(curvature), 1e-8)
        if _decrement(grad, scale) < tolerance**2 * density.data.n:
            break
        root = np.sqrt(scale)
        damped = curvature / np.outer(root, root)
        damped.flat[:: root.size + 1] += mu
        _, step, failed = scipy.linalg.lapack.dposv(damped, grad / root)
        if failed:
            mu = max(10 * mu, 1e-6)
            continue
        step /= root
        slope = float(step @ grad)
        predicted = slope - 0.5 * float(step @ curvature @ step)
        new_logp = density.logp(z + step)
        ratio = (new_logp - logp) / max(predicted, 1e-300)
        if np.isfinite(new_logp) and not 0.7 < ratio < 1.3:
            # The expected curvature is off along this step; the parabola through both values
            # knows better, and one more log density costs a fraction of an information matrix.
            length = _parabola(slope, new_logp - logp)
            other = density.logp(z + length * step)
            if other > new_logp:
                step, new_logp = length * step, other
        if not np.isfinite(new_logp) or new_logp < logp:
            if mu > 1e12 or float(np.max(np.abs(step))) < 1e-13:
                break
            mu = max(4 * mu, 1e-6)
            continue
        gain, z = new_logp - logp, z + step
        logp, grad, curvature = density.logp_grad_info(z)
        mu = max(mu / 5, 1e-9) if ratio > 0.6 else (mu if ratio > 0.2 else 3 * mu)
        if gain < 1e-12 * (1 + abs(logp)) and ratio > 0.2:
            break
    return _finish(density, z, iteration)


def _parabola(slope: float, gain: float, longest: float = 4.0) -> float:
    """Length of the step, in units of the one tried, at the top of f(t) = slope t - (.) t²."""
    bend = slope - gain
    return 0.5 * slope / bend if bend > 0.5 * slope / longest else longest


def _decrement(grad: Array, scale: Array) -> float:
    """Squared gradient in units of the curvature: about twice the log density still to gain."""
    return float(grad @ (grad / scale))


def _lbfgs(density: LogDensity, start: Array, max_iterations: int = 2000) -> Optimum:
    result = minimize(
        _negative(density.logp_grad),
        start,
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": max_iterations, "maxcor": 20, "ftol": 1e-13, "gtol": 1e-5},
    )
    return _finish(density, result.x, result.nit)


def _split_lbfgs(density: LogDensity, start: Array, max_iterations: int = 5000) -> Optimum:
    """L-BFGS-B on z = u - v with u, v >= 0 for the coordinates that have a Laplace prior."""
    rate = density.l1_rate
    split = np.flatnonzero(rate)
    k, C = density.dim, rate[split]

    def join(x: Array) -> Array:
        z = x[:k].copy()
        z[split] -= x[k:]
        return z

    def objective(x: Array) -> tuple[float, Array]:
        z = join(x)
        logp, grad = density.logp_grad(z)
        smooth = -(grad + rate * np.sign(z))
        value = -(logp + float(rate @ np.abs(z))) + float(C @ (x[split] + x[k:]))
        out = np.concatenate([smooth, -smooth[split] + C])
        out[split] += C
        return value, out

    x0 = np.concatenate([start, np.maximum(-start[split], 0.0)])
    x0[split] = np.maximum(start[split], 0.0)
    free = np.ones(k, dtype=bool)
    free[split] = False
    bounds = [(None, None) if f else (0.0, None) for f in free] + [(0.0, None)] * split.size
    options = {"maxiter": max_iterations, "maxfun": 4 * max_iterations, "maxcor": 30}
    result = minimize(
        objective,
        x0,
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options={**options, "ftol": 1e-15, "gtol": 1e-7},
    )
    z = join(result.x)
    return Optimum(
        z=z,
        logp=density.logp(z),
        gradient_norm=kkt_residual(density, z),
        iterations=result.nit,
        converged=kkt_residual(density, z) < 1e-3 * max(1.0, float(C.max())),
    )


def _adam(density: LogDensity, start: Array, *, nesterov: bool = False) -> Optimum:
    """Adam (or Nadam) with the usual constants and a step size that decays over the run."""
    z, m, v = start.copy(), np.zeros_like(start), np.zeros_like(start)
    beta1, beta2, iterations = 0.9, 0.999, 3000
    for k in range(1, iterations + 1):
        grad = density.logp_grad(z)[1]
        m = beta1 * m + (1 - beta1) * grad
        v = beta2 * v + (1 - beta2) * grad**2
        mean = m / (1 - beta1**k)
        if nesterov:
            mean = beta1 * m / (1 - beta1 ** (k + 1)) + (1 - beta1) * grad / (1 - beta1**k)
        rate = 0.1 * 0.5 * (1 + np.cos(np.pi * k / iterations))
        z = z + rate * mean / (np.sqrt(v / (1 - beta2**k)) + 1e-8)
    return _finish(density, z, iterations)


def _nadam(density: LogDensity, start: Array) -> Optimum:
    return _adam(density, start, nesterov=True)


def _negative(f: Objective) -> Objective:
    def negated(z: Array) -> tuple[float, Array]:
        value, grad = f(z)
        return -value, -grad

    return negated


def _finish(density: LogDensity, z: Array, iterations: int) -> Optimum:
    logp, grad, curvature = (
        density.logp_grad_info(z)
        if density.dim <= MAX_SCORING_DIM
        else (*density.logp_grad(z), None)
    )
    if curvature is None:
        left = float(np.max(np.abs(grad))) / max(1.0, np.sqrt(density.data.n))
    else:
        left = float(np.sqrt(_decrement(grad, np.maximum(np.diag(curvature), 1e-8))))
    return Optimum(z, logp, float(np.max(np.abs(grad))), iterations, left < 0.05)


OPTIMIZERS: dict[str, Callable[..., Optimum]] = {
    "auto": _scoring,
    "scoring": _scoring,
    "lbfgs": _lbfgs,
    "adam": _adam,
    "nadam": _nadam,
}
