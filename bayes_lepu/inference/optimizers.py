r"""Local maximisers of a log density.

``scoring``
    Damped Fisher scoring (Levenberg): solve (I + P + μ D) d = g with the expected information I,
    which is positive semi-definite everywhere, and adapt μ. The default for few columns.
``sampled``
    Scoring on a subsample of the rows, then secant steps on all of them, from there and with the
    information of a tenth of them: a few passes over X. The default for many rows.
``lbfgs``
    SciPy's L-BFGS on the fused log density. The default for many columns.

A function ``climb(density, start)`` may stand in place of a name; it returns where it ended.

Laplace priors (L1) are not smooth: scoring and secant steps know them, and L-BFGS hands them to
`l1`; zeros are exact.

The log-odds of a weight have no slope where the weight vanishes, so a climb may end on the face
γ = 0 or λ = 0 of the simplex although the density rises away from it. Every end is therefore
compared with the points just inside, and the climb goes on from there if they are higher.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from bayes_lepu.errors import ModelError
from bayes_lepu.inference.ascent import (
    LEFT,
    SMALLEST,
    Ended,
    climb_scoring,
    climb_secant,
    left_to_gain,
    slopes,
)
from bayes_lepu.inference.l1 import EXACT, climb_sparse, polish
from bayes_lepu.inference.subsample import subsample
from bayes_lepu.inference.wide_l1 import climb_wide, is_wide
from bayes_lepu.links import Array
from bayes_lepu.models.density import LogDensity
from bayes_lepu.models.transforms import logs_to_ratios, ratios_to_logs
from bayes_lepu.suggestions import unknown

Objective = Callable[[Array], tuple[float, Array]]
Climber = Callable[[LogDensity, Array], Array]

MAX_SCORING_DIM = 120
MAX_SCORING_WORK = 400_000  # rows x columns above which a Gram matrix per step stops paying
SAMPLE_WORK = 100_000  # rows x columns of a sample, at least
MOST_ROWS = 60_000  # of a sample, which one of rows that are elsewhere has to hold
GRADIENT_TOLERANCE = 1e-6
ROUGH = 3e-3  # tolerance on a subsample, whose optimum is a start only
SMALL_RATE = 1e-5
INSIDE = (1e-4, 1e-3, 1e-2, 5e-2)  # weights tried instead of a smaller one


@dataclass(frozen=True, eq=False)
class Optimum:
    """Where a local search ended."""

    z: Array
    logp: float
    converged: bool
    hits: int = 1  # starts that ended here


def optimise(
    density: LogDensity,
    start: Array,
    *,
    optimizer: str | Climber = "auto",
    tolerance: float = GRADIENT_TOLERANCE,
    near: bool = False,
) -> Optimum:
    """Climb from one start to a local maximum of the log density.

    Parameters
    ----------
    optimizer : {"auto", "scoring", "sampled", "lbfgs"} or callable
        A name, or a function of density and start that climbs by itself.
    tolerance : float
        Scoring stops when about ``tolerance**2 n`` nats are left to gain; the other methods have
        criteria of their own. A looser one than the default spares L1 the final Newton steps.
    near : bool
        Whether the start is known to be close to the maximum, so that no subsample leads closer.
    """
    climb: Callable[[LogDensity, Array], Ended]
    again: Callable[[LogDensity, Array], Ended]
    if callable(optimizer):
        own = optimizer
        climb = again = lambda density, start: Ended(own(density, start))
    elif optimizer in ("auto", *OPTIMIZERS):
        again = partial(_climb, optimizer=optimizer, tolerance=tolerance, near=True)
        climb = partial(again, near=near)
    else:
        raise ModelError(unknown("optimizer", optimizer, ("auto", *OPTIMIZERS)))
    several = density.data.n_annotators > 1
    ended = climb(density, start)
    for _ in range(density.spec.n_rates):
        inside = _off_the_face(density, ended.z)
        if inside is None:
            break
        ended = again(density, inside)
    return _finish(density, ended, curved=tolerance < ROUGH and not several)


def _climb(
    density: LogDensity, start: Array, *, optimizer: str, tolerance: float, near: bool
) -> Ended:
    """One climb by a named method."""
    if density.is_kinked and is_wide(density):
        return Ended(climb_wide(density, start, enough=_enough(density, tolerance)))
    if optimizer == "auto":
        optimizer = _automatic(density)
    if optimizer == "sampled":
        ended = _sampled(density, start, tolerance=tolerance, near=near)
    else:
        ended = OPTIMIZERS[optimizer](density, start, tolerance=tolerance)
    if density.is_kinked and _enough(density, tolerance) == EXACT:
        return Ended(polish(density, ended.z))
    return ended


def work(density: LogDensity) -> int:
    """Cells of the table, wherever they are."""
    return density.data.n_all * density.data.p


def _automatic(density: LogDensity) -> str:
    if density.dim > MAX_SCORING_DIM:
        return "lbfgs"
    return "scoring" if work(density) <= MAX_SCORING_WORK else "sampled"


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
            if (value := density.logp(candidate)) <= highest:
                break  # the log-likelihood is concave in the weights: no larger one is better
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


def _sampled(density: LogDensity, start: Array, *, tolerance: float, near: bool = False) -> Ended:
    """Secant steps with the curvature of a tenth of the rows, from where these lead to."""
    data = density.data
    size = max(SAMPLE_WORK // data.p, 50 * density.dim, min(data.n_all // 10, MOST_ROWS))
    if size >= data.n_all or data.n_annotators > 1:
        return _lbfgs(density, start, tolerance=tolerance)
    part = replace(density, data=subsample(data, size))
    if not near:
        lead = climb_scoring if work(part) <= MAX_SCORING_WORK else _sampled
        start = lead(part, start, tolerance=ROUGH).z
    rough = tolerance > GRADIENT_TOLERANCE
    left = tolerance**2 * float(data.kind_weights.sum()) if rough else LEFT
    return climb_secant(density, start, part.logp_grad_info(start)[2], left=left)


def _lbfgs(density: LogDensity, start: Array, *, tolerance: float) -> Ended:
    small, enough = work(density) <= MAX_SCORING_WORK, _enough(density, tolerance)
    if density.is_kinked:
        return Ended(climb_sparse(density, start, density.logp_grad, enough=enough))
    result = minimize(
        _negative(density.logp_grad),
        start,
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 2000, "maxcor": 20 if small else 10, "ftol": enough, "gtol": 1e-5},
    )
    return Ended(result.x)


def _enough(density: LogDensity, tolerance: float) -> float:
    """Share of the log density that the last step of a climb by gradients may give.

    Log densities are some tenths of a nat a row: on large tables the last step gives less than
    about 1e-5 nats, that of a rough climb less than 0.1.
    """
    kinked = density.is_kinked
    rough = tolerance > GRADIENT_TOLERANCE
    if tolerance >= ROUGH or (rough and not kinked):
        return max(1e-6, 0.1 * tolerance**2)
    if rough or work(density) > MAX_SCORING_WORK:
        return 1e-10
    return EXACT if kinked else 1e-13


def _negative(f: Objective) -> Objective:
    def negated(z: Array) -> tuple[float, Array]:
        value, grad = f(z)
        return -value, -grad

    return negated


def _finish(density: LogDensity, ended: Ended, *, curved: bool) -> Optimum:
    """The optimum with its figures; converged if less than about 0.001 nats are left to gain.

    ``curved`` allows for an information matrix to tell.
    """
    z, scale = ended
    logp, grad = density.logp_grad(z)
    small = density.dim <= MAX_SCORING_DIM and work(density) <= MAX_SCORING_WORK
    if scale is None and curved and small:
        scale = np.maximum(np.diag(density.logp_grad_info(z)[2]), SMALLEST)
    if scale is not None:
        left = left_to_gain(density, z, grad, scale)
    else:
        left = float(np.max(np.abs(slopes(density, z, grad)))) ** 2 / density.data.n_all
    return Optimum(z, logp, left < 0.05**2)


OPTIMIZERS: dict[str, Callable[..., Ended]] = {
    "scoring": climb_scoring,
    "sampled": _sampled,
    "lbfgs": _lbfgs,
}
