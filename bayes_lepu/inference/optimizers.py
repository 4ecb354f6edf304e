r"""Local maximisers of a log density.

``scoring``
    Damped Fisher scoring (Levenberg): solve (I + P + μ D) d = g with the expected information I,
    which is positive semi-definite everywhere, and adapt μ. The default for few columns.
``sampled``
    Scoring on a sample of the rows, then L-BFGS on all of them, from there and in coordinates
    scaled by the sample's information: a few passes over X. The default for many rows.
``lbfgs``
    SciPy's L-BFGS on the fused log density. The default for many columns.

A function ``climb(density, start)`` may stand in place of a name; it returns the point where it
ended and the number of its iterations.

Laplace priors (L1) are not smooth: every named method hands them to `sparse`, which gives exact
zeros.

The log-odds of a weight have no slope where the weight vanishes, so a climb may end on the face
γ = 0 or λ = 0 of the simplex although the density rises away from it. Every end is therefore
compared with the points just inside, and the climb goes on from there if they are higher.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy.optimize import minimize

from bayes_lepu.errors import ModelError
from bayes_lepu.inference.coordinates import ScaledCoordinates
from bayes_lepu.inference.sparse import climb_sparse, kkt_residual, polish
from bayes_lepu.inference.wide import climb_wide, is_wide
from bayes_lepu.links import Array
from bayes_lepu.models.blocks import logs_to_ratios, ratios_to_logs
from bayes_lepu.models.density import LogDensity
from bayes_lepu.suggestions import unknown

Objective = Callable[[Array], tuple[float, Array]]
Ended = tuple[Array, int]  # where, and after how many iterations
Climber = Callable[[LogDensity, Array], Ended]

MAX_SCORING_DIM = 120
MAX_SCORING_WORK = 400_000  # rows x columns above which a Gram matrix per step stops paying
SAMPLE_WORK = 100_000  # rows x columns of the sample
GRADIENT_TOLERANCE = 1e-6
SMALL_RATE = 1e-5
INSIDE = (1e-3, 1e-2, 5e-2)  # weights tried instead of a smaller one


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
    optimizer: str | Climber = "auto",
    tolerance: float = GRADIENT_TOLERANCE,
) -> Optimum:
    """Climb from one start to a local maximum of the log density.

    Parameters
    ----------
    optimizer : {"auto", "scoring", "sampled", "lbfgs"} or callable
        A name, or a function of density and start that climbs by itself.
    tolerance : float
        Scoring stops when about ``tolerance**2 n`` nats are left to gain; the other methods have
        criteria of their own. A looser one than the default spares L1 the final Newton steps.
    """
    climb: Climber
    if callable(optimizer):
        climb = optimizer
    elif optimizer in OPTIMIZERS:
        climb = partial(_climb, optimizer=optimizer, tolerance=tolerance)
    else:
        raise ModelError(unknown("optimizer", optimizer, OPTIMIZERS))
    z, iterations = climb(density, start)
    for _ in range(density.spec.n_rates):
        inside = _off_the_face(density, z)
        if inside is None:
            break
        z, more = climb(density, inside)
        iterations += more
    return _finish(density, z, iterations)


def _climb(density: LogDensity, start: Array, *, optimizer: str, tolerance: float) -> Ended:
    """One climb by a named method."""
    if density.l1_rate.any():
        exact = tolerance <= GRADIENT_TOLERANCE
        if is_wide(density):
            return climb_wide(density, start, exact=exact)
        z, iterations = climb_sparse(density, start, density.logp_grad)
        return (polish(density, z) if exact else z), iterations
    if optimizer == "auto":
        optimizer = _automatic(density)
    if optimizer == "scoring":
        return _scoring(density, start, tolerance=tolerance)
    return OPTIMIZERS[optimizer](density, start)


def _automatic(density: LogDensity) -> str:
    if density.dim > MAX_SCORING_DIM:
        return "lbfgs"
    return "scoring" if density.data.X.size <= MAX_SCORING_WORK else "sampled"


def _off_the_face(density: LogDensity, z: Array) -> Array | None:
    """The best point with a vanished weight raised a little, if it is higher than z."""
    w = np.exp(ratios_to_logs(z[density.blocks.rates]))
    best, highest = None, density.logp(z) + 1e-8
    for i in np.flatnonzero(w < SMALL_RATE):
        for small in INSIDE:
            raised = w * (1 - small)
            raised[i] = small
            candidate = z.copy()
            with np.errstate(divide="ignore"):
                candidate[density.blocks.rates] = logs_to_ratios(np.log(raised))
            if (value := density.logp(candidate)) > highest:
                best, highest = candidate, value
    return best


def climb_held(density: LogDensity, start: Array, held: NDArray[np.intp]) -> Array:
    """The maximum next to ``start`` with some coordinates held where they are."""
    free = np.setdiff1d(np.arange(density.dim), held)

    def objective(x: Array) -> tuple[float, Array]:
        z = start.copy()
        z[free] = x
        value, grad = density.logp_grad(z)
        return -value, -grad[free]

    options = {"maxiter": 2000, "maxfun": 4000, "maxcor": 20, "ftol": 1e-13, "gtol": 1e-7}
    found = minimize(objective, start[free], jac=True, method="L-BFGS-B", options=options)
    z = start.copy()
    z[free] = found.x
    return z


def _scoring(
    density: LogDensity,
    start: Array,
    max_iterations: int = 300,
    tolerance: float = GRADIENT_TOLERANCE,
) -> Ended:
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
    return z, iteration


def _parabola(slope: float, gain: float, longest: float = 4.0) -> float:
    """Length of the step, in units of the one tried, at the top of f(t) = slope t - (.) t²."""
    bend = slope - gain
    return 0.5 * slope / bend if bend > 0.5 * slope / longest else longest


def _decrement(grad: Array, scale: Array) -> float:
    """Squared gradient in units of the curvature: about twice the log density still to gain."""
    return float(grad @ (grad / scale))


def _sampled(density: LogDensity, start: Array) -> Ended:
    """Scoring on a sample, then L-BFGS on all rows in the coordinates the sample suggests."""
    data = density.data
    size = max(SAMPLE_WORK // data.p, 20 * density.dim)
    rows = np.sort(np.random.default_rng(0).permutation(data.n)[:size])
    labelled = int(data.l[rows].sum())
    if size >= data.n or min(labelled, size - labelled) < 5 * density.dim:
        return _lbfgs(density, start)
    small = replace(density, data=data.rows(rows))
    center, steps = _scoring(small, start, tolerance=1e-3)
    prior = density.prior_precision(center)
    information = (small.logp_grad_info(center)[2] - prior) * (data.n / size) + prior
    scaled = ScaledCoordinates.around(density, center, information)
    x, more = _lbfgs(scaled, np.zeros(density.dim), gradient=1e-4)
    return scaled.backward(x), steps + more


def _lbfgs(
    target: LogDensity | ScaledCoordinates,
    start: Array,
    max_iterations: int = 2000,
    gradient: float = 1e-5,
) -> Ended:
    result = minimize(
        _negative(target.logp_grad),
        start,
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": max_iterations, "maxcor": 20, "ftol": 1e-13, "gtol": gradient},
    )
    return result.x, int(result.nit)


def _negative(f: Objective) -> Objective:
    def negated(z: Array) -> tuple[float, Array]:
        value, grad = f(z)
        return -value, -grad

    return negated


def _finish(density: LogDensity, z: Array, iterations: int) -> Optimum:
    """The optimum with its figures; converged if less than about 0.001 nats are left to gain."""
    if (C := density.l1_rate).any():
        residual = kkt_residual(density, z)
        solved = residual < 1e-4 * max(1.0, float(C.max()))
        return Optimum(z, density.logp(z), residual, iterations, solved)
    data = density.data
    if density.dim <= MAX_SCORING_DIM and data.X.size <= MAX_SCORING_WORK:
        logp, grad, curvature = density.logp_grad_info(z)
        left = _decrement(grad, np.maximum(np.diag(curvature), 1e-8))
    else:
        logp, grad = density.logp_grad(z)
        left = float(np.max(np.abs(grad))) ** 2 / data.n
    return Optimum(z, logp, float(np.max(np.abs(grad))), iterations, left < 0.05**2)


OPTIMIZERS: dict[str, Callable[..., Ended]] = {
    "auto": _scoring,
    "scoring": _scoring,
    "sampled": _sampled,
    "lbfgs": _lbfgs,
}
