r"""The search for modes: from many starts, first on a part of the rows where there are many.

A rough search runs from every start over a part of the rows. The distinct ends are refined to modes
there, then on twenty times as many rows and so on, finally on all rows.

Zeros are never a start: there (and wherever α = a, β = b) the gradient is the same for both factors
and the search ends on a saddle. The starts, in order, after one SCAR fit (a, b, c):

* SPM: SCAR with a small random α; opposite annotator α = -a; random pairs.
* PsychM: both orders of the best SPM mode with small γ and λ, SCAR with a small random α, opposite
  annotator with γ near c, the ridge α = a, β = b - 1; random pairs.

Random pairs have slopes N(0, 4/p) in units of the columns' spread and intercepts N(0, 1). The order
and the signs of columns change nothing.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from bayes_lepu.data.pu_data import PUData
from bayes_lepu.engines.modes import LIKE, distance, distinct_optima, is_exchangeable
from bayes_lepu.engines.optimizers import Optimum, optimise, part_of
from bayes_lepu.engines.pooling import known_scales
from bayes_lepu.factors import Factor, get_factor
from bayes_lepu.links import Array
from bayes_lepu.model.density import LogDensity, row_terms
from bayes_lepu.model.parameters import Parameters

# Starts of the search: with two curved factors, and with free rates besides. On simulated tables
# more of them found no better mode.
PAIR_STARTS, RATES_STARTS = 14, 25
SMALL = 0.05  # guesses and lapses of a start, away from the face where they vanish


def search(
    density: LogDensity, *, n_starts: int | None = None, rng: np.random.Generator
) -> list[Optimum]:
    """The modes found from all starts, best first.

    ``n_starts`` takes the named starts first. Naive has one start, SCAR two.
    """
    stages = _stages(density)
    ends = distinct_optima(stages[0], _rough_ends(stages[0], n_starts, rng))
    for stage in stages:
        climbed = [replace(optimise(stage, o.z, near=True), hits=o.hits) for o in ends]
        ends = distinct_optima(stage, climbed)
        if stage is not density:
            ends = _within_reach(stage, ends)
    return ends


def _stages(density: LogDensity) -> list[LogDensity]:
    """The density over larger and larger parts of the rows, at last over all rows."""
    stages = [part_of(density)]
    # Of rows that are not in memory 60,000 are.
    while (size := 20 * stages[-1].data.n) <= 60_000 and stages[-1] is not density:
        stages.append(part_of(density, size))
    return stages if stages[-1] is density else [*stages, density]


def _rough_ends(
    density: LogDensity, n_starts: int | None, rng: np.random.Generator
) -> list[Optimum]:
    points = _starting_points(density, n_starts, rng)
    ends = [optimise(density, density.pack(point), rough=True) for point in points]
    ends = [o for o in ends if np.isfinite(o.logp)]
    can_swap = density.spec.has_selection and _same_masks(density.data)
    if n_starts is None and ends and can_swap and not is_exchangeable(density):
        # Whether the swapped factors are a mode too must not depend on a start that finds it.
        best = density.unpack(max(ends, key=lambda o: o.logp).z)
        ends.append(optimise(density, density.pack(best.swap()), rough=True))
    return ends


def _within_reach(density: LogDensity, ends: list[Optimum]) -> list[Optimum]:
    """The ends that can still be modes worth keeping by their density on all rows, and the swap."""
    data, points = density.data, [density.unpack(o.z) for o in ends]
    rows = [row_terms(point, data)[0] for point in points]
    kept = []
    for o, point, values in zip(ends, points, rows, strict=True):
        error = float(np.linalg.norm((rows[0] - values) * data.weight))
        # A rough climb is short of its end by less than 100 nats.
        behind = ends[0].logp - o.logp > max(100.0, 4 * error)
        if not behind or distance(point.swap(), points[0], data.X) < LIKE:
            kept.append(o)
    return kept


def _with_propensity(density: LogDensity, propensity: Factor) -> LogDensity:
    """The density with another propensity but the same data and slope priors, to find starts."""
    spec, data = replace(density.spec, propensity=propensity), density.data
    priors = spec.complete_priors(density.priors, None, data)
    return LogDensity(spec, data, known_scales(priors))


def best_end(density: LogDensity, points: list[Parameters], *, rough: bool = True) -> Parameters:
    """The best of the optima that the points lead to."""
    optima = [optimise(density, density.pack(p), rough=rough) for p in points]
    return density.unpack(max(optima, key=lambda o: o.logp).z)


# Starts -------------------------------------------------------------------------------------------


def _starting_points(
    density: LogDensity, n_starts: int | None, rng: np.random.Generator
) -> list[Parameters]:
    spec, data = density.spec, density.data
    n = n_starts or (RATES_STARTS if spec.n_rates else PAIR_STARTS)
    if not spec.has_selection:
        return constant_starts(data)[: 1 + spec.n_rates]
    scar = best_end(
        _with_propensity(density, get_factor("constant")), constant_starts(data)
    ).average()
    if spec.n_rates:
        own = spec.propensity
        spm = _with_propensity(density, Factor(own.name, own.formula, own.link))
        best = best_end(spm, _spm_starts(data, scar, max(5, n // 3), rng))
        return _psychm_starts(data, scar, best, n, rng)
    return _spm_starts(data, scar, n, rng)


def constant_starts(data: PUData) -> list[Parameters]:
    """Starts for naive and SCAR: no slope, and label frequencies 0.5 and 0.95."""
    rate = float(np.average(data.l, weights=data.weight))
    points = []
    for c in (0.5, 0.95):
        pi = min(rate / c, 0.9)
        points.append(
            Parameters.of(a=np.zeros(data.p), b=np.log(pi / (1 - pi)), gamma=c, lam=1 - c)
        )
    return [point.for_annotators(data.n_annotators) for point in points]


def _spm_starts(
    data: PUData, scar: Parameters, count: int, rng: np.random.Generator
) -> list[Parameters]:
    """``count`` starts for SPM."""
    c = float(np.clip(scar.gamma, 0.02, 0.98))
    near = Parameters.of(a=scar.a, b=scar.b, alpha=_small(data, rng), beta=np.log(c / (1 - c)))
    named = [near, replace(near, alpha=-scar.a)]
    named += _random_points(data, count - len(named), rng)
    return _masked(data, named[:count])


def _psychm_starts(
    data: PUData, scar: Parameters, spm: Parameters, count: int, rng: np.random.Generator
) -> list[Parameters]:
    """``count`` starts for PsychM."""
    c = float(np.clip(scar.gamma, 0.1, 0.9))
    near = Parameters.of(a=scar.a, b=scar.b, alpha=_small(data, rng), beta=0.0)
    swaps = _same_masks(data)  # the swapped factors are a start
    named = [_with_rates(p, SMALL, SMALL) for p in ([spm, spm.swap()] if swaps else [spm])]
    named += [
        _with_rates(near, 0.5 * c, 0.5 * (1 - c)),
        _with_rates(replace(near, alpha=-scar.a), 0.9 * c, SMALL),
        _with_rates(replace(near, alpha=scar.a, beta=scar.b - 1.0), SMALL, 0.9 * (1 - c)),
    ]
    randoms = _random_points(data, count - len(named), rng)
    named += [_with_rates(p, *rng.dirichlet((1.0, 1.0, 6.0))[:2]) for p in randoms]
    return _masked(data, named[:count])


def _small(data: PUData, rng: np.random.Generator) -> Array:
    """A small random α."""
    return 0.3 / np.sqrt(data.p) * next(_random_slopes(data, rng))


def _random_points(data: PUData, count: int, rng: np.random.Generator) -> list[Parameters]:
    """Random pairs of factors, different by construction."""
    sd, slopes = 2.0 / np.sqrt(data.p), _random_slopes(data, rng)
    return [
        Parameters.of(
            a=sd * next(slopes), b=rng.normal(), alpha=sd * next(slopes), beta=rng.normal()
        )
        for _ in range(count)
    ]


def _random_slopes(data: PUData, rng: np.random.Generator) -> Iterator[Array]:
    """Random slopes of about one per standard deviation of the column.

    They do not depend on the order and the signs of the columns.
    """
    spread = data.evenly(20_000).column_moments[1]
    spread = np.where(spread > 0, spread, 1.0)
    toward = (data.l - data.l.mean()) @ data.X
    order = np.argsort(-np.abs(toward) / spread, kind="stable")
    while True:
        slopes = np.empty(data.p)
        slopes[order] = rng.normal(size=data.p)
        yield np.where(toward < 0, -slopes, slopes) / spread


def _with_rates(point: Parameters, gamma: float, lam: float) -> Parameters:
    log_w = np.log([gamma, lam, 1.0 - gamma - lam])
    return replace(point, log_w=np.broadcast_to(log_w, (*point.beta.shape, 3)))


def _same_masks(data: PUData) -> bool:
    """Whether both factors have the same columns."""
    return np.array_equal(data.class_mask, data.selection_mask)


def _masked(data: PUData, points: list[Parameters]) -> list[Parameters]:
    """The points for all annotators, zeros in masked columns."""
    return [
        replace(p, a=p.a * data.class_mask, alpha=p.alpha * data.selection_mask)
        for p in (q.for_annotators(data.n_annotators) for q in points)
    ]
