"""The search for modes: from many starts, over few rows first where there are many.

Every start is climbed roughly, over a part of the rows whose size depends on the number of
parameters alone. The distinct ends are climbed to their modes there, and the modes over all rows
(in stages, of twenty times as many rows each), so that the cost of the search hardly grows with the
number of rows.

Zeros are never a start: there (and wherever α = a, β = b) the gradient cannot tell the two factors
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
from bayes_lepu.engines.modes import LIKE, distance, distinct_optima, is_exchangeable
from bayes_lepu.engines.optimizers import Optimum, optimise, part_of
from bayes_lepu.engines.pooling import known_scales
from bayes_lepu.factors import Factor, get_factor
from bayes_lepu.links import Array
from bayes_lepu.model.density import LogDensity
from bayes_lepu.model.parameters import Parameters
from bayes_lepu.model.row_sums import row_terms

# Starts of the search: with two curved factors, and with free rates besides. On simulated tables
# more of them found no better mode.
PAIR_STARTS, RATES_STARTS = 14, 25
SMALL = 0.05  # guesses and lapses of a start, away from the face where they vanish


def search(
    density: LogDensity, *, n_starts: int | None = None, rng: np.random.Generator
) -> list[Optimum]:
    """The modes that climbs from all starts lead to, best first.

    Parameters
    ----------
    n_starts : int, optional
        Number of starts, the named ones first. Default: 14 for two factors, 25 with free rates.
        Naive has one, SCAR two, whatever is asked for.
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
    """The same density over more and more of the rows, in the end over all of them.

    From stage to stage a mode moves by few of its own widths.
    """
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
    if n_starts is None and ends and _can_exchange(density):
        # Whether the factors swapped are a mode too must not depend on a start that finds it.
        best = max(ends, key=lambda o: o.logp)
        ends.append(optimise(density, density.swap(best.z), rough=True))
    return ends


def _within_reach(density: LogDensity, ends: list[Optimum]) -> list[Optimum]:
    """The ends that are not surely far behind the first, as all rows see it, and its swap."""
    data, points = density.data, [density.unpack(o.z) for o in ends]
    rows = [row_terms(point, data)[0] for point in points]
    kept = []
    for o, point, values in zip(ends, points, rows, strict=True):
        difference = rows[0] - values
        error = float(np.linalg.norm(difference * data.weight))
        # A rough climb is short of its end by less than 100 nats.
        behind = ends[0].logp - o.logp > max(100.0, 4 * error)
        if not behind or distance(point.swap(), points[0], data.X) < LIKE:
            kept.append(o)
    return kept


def _can_exchange(density: LogDensity) -> bool:
    data = density.data
    same = np.array_equal(data.class_mask, data.selection_mask)
    one = data.n_annotators == 1 and density.spec.has_selection
    return one and bool(same) and not is_exchangeable(density)


def constant_version(density: LogDensity) -> LogDensity:
    """The same data and slope priors with a constant propensity, as a source of starts."""
    return _with_propensity(density, get_factor("constant"))


def _with_propensity(density: LogDensity, propensity: Factor) -> LogDensity:
    spec = replace(density.spec, propensity=propensity)
    priors = spec.complete_priors(
        density.priors,
        None,
        annotators=density.data.n_annotators,
        visits=bool(density.data.visit_names),
    )
    return LogDensity(spec, density.data, known_scales(priors, hierarchical=False))


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
    scar = best_end(constant_version(density), constant_starts(data)).average()
    if spec.n_rates == 0:
        return _and_swapped(density, spm_starts(data, scar, n, rng))
    own = spec.propensity
    spm = _with_propensity(density, Factor(own.name, own.formula, own.link))
    best = best_end(spm, spm_starts(data, scar, max(5, n // 3), rng))
    return psychm_starts(data, scar, best, n, rng)


def _and_swapped(density: LogDensity, points: list[Parameters]) -> list[Parameters]:
    """The starts; of several annotators also the best optimum with the factors swapped.

    Nothing there is symmetric, but where few rows are shared a mode near the swapped answer can
    remain.
    """
    data = density.data
    same = np.array_equal(data.class_mask, data.selection_mask)
    if data.n_annotators == 1 or not same:
        return points
    return [*points[:-1], best_end(density, points[:3]).swap()]


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


def near_scar(
    data: PUData, scar: Parameters, rng: np.random.Generator, *, with_weights: bool = False
) -> Parameters:
    """The SCAR fit with a small random α; half of c and of 1 - c by guesses and lapses if asked."""
    small = 0.3 / np.sqrt(data.p) * next(random_slopes(data, rng))
    if with_weights:
        c = float(np.clip(scar.gamma, 0.1, 0.9))
        weights = {"gamma": 0.5 * c, "lam": 0.5 * (1 - c)}
        return Parameters.of(a=scar.a, b=scar.b, alpha=small, beta=0.0, **weights)
    c = float(np.clip(scar.gamma, 0.02, 0.98))
    return Parameters.of(a=scar.a, b=scar.b, alpha=small, beta=np.log(c / (1 - c)))


def spm_starts(
    data: PUData, scar: Parameters, count: int, rng: np.random.Generator
) -> list[Parameters]:
    """``count`` starts for SPM."""
    near = near_scar(data, scar, rng)
    named = [near, Parameters.of(a=scar.a, b=scar.b, alpha=-scar.a, beta=near.beta)]
    named += random_points(data, count - len(named), rng)
    return _masked(data, named[:count])


def psychm_starts(
    data: PUData, scar: Parameters, spm: Parameters, count: int, rng: np.random.Generator
) -> list[Parameters]:
    """``count`` starts for PsychM."""
    c = float(np.clip(scar.gamma, 0.1, 0.9))
    near = near_scar(data, scar, rng, with_weights=True)
    both = [spm, spm.swap()] if _same_columns(data) else [spm]
    named = [_with_weights(p, SMALL, SMALL) for p in both]
    named += [
        near,
        Parameters.of(a=scar.a, b=scar.b, alpha=-scar.a, beta=0.0, gamma=0.9 * c, lam=SMALL),
        Parameters.of(
            a=scar.a, b=scar.b, alpha=scar.a, beta=scar.b - 1.0, gamma=SMALL, lam=0.9 * (1 - c)
        ),
    ]
    randoms = random_points(data, count - len(named), rng)
    named += [_with_weights(p, *rng.dirichlet((1.0, 1.0, 6.0))[:2]) for p in randoms]
    return _masked(data, named[:count])


def random_points(data: PUData, count: int, rng: np.random.Generator) -> list[Parameters]:
    """Random pairs of factors, different by construction."""
    sd, slopes = 2.0 / np.sqrt(data.p), random_slopes(data, rng)
    return [
        Parameters.of(
            a=sd * next(slopes), b=rng.normal(), alpha=sd * next(slopes), beta=rng.normal()
        )
        for _ in range(count)
    ]


def random_slopes(data: PUData, rng: np.random.Generator) -> Iterator[Array]:
    """Slopes that each move the predictor by about one for a standard deviation of its column.

    They follow their columns when these change places or signs.
    """
    spread = data.evenly(20_000).column_moments[1]
    spread = np.where(spread > 0, spread, 1.0)
    toward = (data.l - data.l.mean()) @ data.X
    order = np.argsort(-np.abs(toward) / spread, kind="stable")
    while True:
        slopes = np.empty(data.p)
        slopes[order] = rng.normal(size=data.p)
        yield np.where(toward < 0, -slopes, slopes) / spread


def _with_weights(point: Parameters, gamma: float, lam: float) -> Parameters:
    log_w = np.log([gamma, lam, 1.0 - gamma - lam])
    return replace(point, log_w=np.broadcast_to(log_w, (*point.beta.shape, 3)))


def _same_columns(data: PUData) -> bool:
    """Whether the swapped factors are worth a start: equal columns, and no audit against it."""
    several = data.n_annotators > 1 and np.array_equal(data.class_mask, data.selection_mask)
    return data.swap_symmetric or several


def _masked(data: PUData, points: list[Parameters]) -> list[Parameters]:
    """The points for all annotators, zeros in masked columns."""
    return [
        replace(p, a=p.a * data.class_mask, alpha=p.alpha * data.selection_mask)
        for p in (q.for_annotators(data.n_annotators) for q in points)
    ]
