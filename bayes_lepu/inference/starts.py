"""Where the searches for MAP modes begin.

Zeros are never used: there (and wherever α = a, β = b) the gradient cannot tell the two factors
apart and the search ends on a saddle. The starts, in order, after one SCAR fit (a, b, c):

* SPM: SCAR with a small random α; reversed annotator α = -a; random pairs.
* PsychM: both permutations of the best SPM mode with small γ and λ, SCAR with a small random α,
  reversed annotator with γ near c, the ridge α = a, β = b - 1; random pairs.

Random pairs have slopes N(0, 4/p) and intercepts N(0, 1) on the internal scale; columns in other
units are brought to that scale by their spread. Random slopes go to the columns by what the labels
say of them, not by their place, so that the order and the signs of columns change nothing.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from bayes_lepu.data.pu_data import PUData
from bayes_lepu.links import Array
from bayes_lepu.models.parameters import Parameters

SMALL = 0.05
ENOUGH_ROWS = 20_000


def constant_starts(data: PUData) -> list[Parameters]:
    """Starts for naive and SCAR: no slope, and label frequencies 0.5 and 0.95."""
    rate = float(np.average(data.l, weights=data.row_weights))
    points = []
    for c in (0.5, 0.95):
        pi = min(rate / c, 0.9)
        points.append(
            Parameters.of(a=np.zeros(data.p), b=np.log(pi / (1 - pi)), gamma=c, lam=1 - c)
        )
    return [point.for_annotators(data.n_annotators) for point in points]


def column_spread(data: PUData) -> Array:
    """Standard deviation of every column on the internal scale."""
    spread = data.evenly(ENOUGH_ROWS).column_moments[1]
    return np.where(spread > 0, spread, 1.0)


def near_scar(
    data: PUData,
    scar: Parameters,
    spread: Array,
    rng: np.random.Generator,
    *,
    with_weights: bool = False,
) -> Parameters:
    """The SCAR fit with a small random α; half of c and of 1 - c by guesses and lapses if asked."""
    scar = scar.average()
    small = 0.3 / np.sqrt(data.p) * next(random_slopes(data, spread, rng)) / spread
    if with_weights:
        c = float(np.clip(scar.gamma, 0.1, 0.9))
        weights = {"gamma": 0.5 * c, "lam": 0.5 * (1 - c)}
        return Parameters.of(a=scar.a, b=scar.b, alpha=small, beta=0.0, **weights)
    c = float(np.clip(scar.gamma, 0.02, 0.98))
    return Parameters.of(a=scar.a, b=scar.b, alpha=small, beta=np.log(c / (1 - c)))


def spm_starts(
    data: PUData, scar: Parameters, spread: Array, count: int, rng: np.random.Generator
) -> list[Parameters]:
    """``count`` starts for SPM."""
    scar = scar.average()
    near = near_scar(data, scar, spread, rng)
    named = [near, Parameters.of(a=scar.a, b=scar.b, alpha=-scar.a, beta=near.beta)]
    named += random_points(data, spread, count - len(named), rng)
    return _masked(data, named[:count])


def psychm_starts(
    data: PUData,
    scar: Parameters,
    spm: Parameters,
    spread: Array,
    count: int,
    rng: np.random.Generator,
) -> list[Parameters]:
    """``count`` starts for PsychM."""
    scar = scar.average()
    c = float(np.clip(scar.gamma, 0.1, 0.9))
    near = near_scar(data, scar, spread, rng, with_weights=True)
    both = [spm, spm.swap()] if _same_columns(data) else [spm]
    named = [_with_weights(p, SMALL, SMALL) for p in both]
    named += [
        near,
        Parameters.of(a=scar.a, b=scar.b, alpha=-scar.a, beta=0.0, gamma=0.9 * c, lam=SMALL),
        Parameters.of(
            a=scar.a, b=scar.b, alpha=scar.a, beta=scar.b - 1.0, gamma=SMALL, lam=0.9 * (1 - c)
        ),
    ]
    randoms = random_points(data, spread, count - len(named), rng)
    named += [_with_weights(p, *rng.dirichlet((1.0, 1.0, 6.0))[:2]) for p in randoms]
    return _masked(data, named[:count])


def random_points(
    data: PUData, spread: Array, count: int, rng: np.random.Generator
) -> list[Parameters]:
    """Random pairs of factors, different by construction."""
    sd = 2.0 / np.sqrt(data.p) / spread
    slopes = random_slopes(data, spread, rng, 2 * count)
    return [
        Parameters.of(
            a=sd * next(slopes), b=rng.normal(), alpha=sd * next(slopes), beta=rng.normal()
        )
        for _ in range(count)
    ]


def random_slopes(
    data: PUData, spread: Array, rng: np.random.Generator, count: int = 1
) -> Iterator[Array]:
    """Standard normal slopes that follow their columns when these change places or signs."""
    toward = (data.l - data.l.mean()) @ data.X
    order = np.argsort(-np.abs(toward) / spread, kind="stable")
    for _ in range(count):
        slopes = np.empty(data.p)
        slopes[order] = rng.normal(size=data.p)
        yield np.where(toward < 0, -slopes, slopes)


def with_small_weights(points: list[Parameters]) -> list[Parameters]:
    """The same pairs with 5 % guesses and lapses."""
    return [_with_weights(p, SMALL, SMALL) for p in points]


def _with_weights(point: Parameters, gamma: float, lam: float) -> Parameters:
    log_w = np.log([gamma, lam, 1.0 - gamma - lam])
    return replace(point, log_w=np.broadcast_to(log_w, (*point.beta.shape, 3)))


def _same_columns(data: PUData) -> bool:
    """Whether the exchanged factors are worth a start: equal columns, and no audit against it."""
    several = data.n_annotators > 1 and np.array_equal(data.class_mask, data.selection_mask)
    return data.swap_symmetric or several


def _masked(data: PUData, points: list[Parameters]) -> list[Parameters]:
    """The points for all annotators, zeros in masked columns."""
    return [
        replace(p, a=p.a * data.class_mask, alpha=p.alpha * data.selection_mask)
        for p in (q.for_annotators(data.n_annotators) for q in points)
    ]
