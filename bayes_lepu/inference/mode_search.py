"""The search for modes: from many starts, over few rows first where there are many.

Every start is climbed over a subsample (`subsample`) whose size depends on the number of parameters
alone. The distinct modes found there are then climbed over all rows (in stages, of twenty times
as many rows each), so that the cost of the search does not grow with the number of rows. Where
modes are nearly as high as the best and the rows not too many, all starts are climbed over all rows
as well.
"""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np

from bayes_lepu.errors import ModelError
from bayes_lepu.factors import Factor, get_factor
from bayes_lepu.inference import starts
from bayes_lepu.inference.few_directions import has_many_columns, narrow
from bayes_lepu.inference.modes import LIKE, distance, distinct_optima, is_exchangeable
from bayes_lepu.inference.optimizers import (
    MAX_SCORING_WORK,
    MOST_ROWS,
    ROUGH,
    Climber,
    Optimum,
    optimise,
    work,
)
from bayes_lepu.inference.pooling import known_scales
from bayes_lepu.inference.subsample import subsample
from bayes_lepu.links import Array
from bayes_lepu.models.density import LogDensity
from bayes_lepu.models.parameters import Parameters
from bayes_lepu.models.row_sums import row_terms

Climb = Callable[..., Optimum]  # of a density and a start

# Starts of the search: with two curved factors, and with free rates besides.
PAIR_STARTS, RATES_STARTS = 14, 25
SEARCH_ROWS = 2_000  # of the subsample, at least
ROWS_PER_PARAMETER = 50
SKETCHED = 0.03  # tolerance of climbs that tell strong columns, and modes that are far behind
SHARP = 1e-4  # tolerance of climbs that show whether two ends are one mode
GROWTH = 20  # of the rows from stage to stage
MUCH = 12  # times as many rows, on which climbs to the same mode would be dear
RIVAL = 5.0  # nats
BEHIND = 100.0  # nats after a rough climb, which leaves a few at most
SURELY = 4.0  # standard errors of a difference that was measured on a subsample


def search(
    density: LogDensity,
    *,
    n_starts: int | None = None,
    optimizer: str | Climber = "auto",
    rng: np.random.Generator,
) -> list[Optimum]:
    """Where the climbs from all starts end.

    Parameters
    ----------
    n_starts : int, optional
        Number of starts, the named ones of `starts` first; one is a single random start.
        Default: 14 for two factors, 25 with free rates. Naive has one, SCAR two, whatever is asked
        for.
    optimizer : str or callable
        See `optimizers`. Any but "auto" climbs over all rows from every start.
    """
    climb: Climb = partial(optimise, optimizer=optimizer)
    rough: Climb = partial(optimise, tolerance=ROUGH)
    if optimizer == "auto" and n_starts != 1 and has_many_columns(density):
        start = starts.constant_starts(density.data)[:1]
        sketch: Climb = partial(optimise, tolerance=SKETCHED)
        small, lift = narrow(density, best_optimum(constant_version(density), start, sketch))
        if (rows := _rows_for(small)) < density.data.n:
            small = replace(small, data=subsample(small.data, rows))
        found = distinct_optima(small, _from_all_starts(small, n_starts, rough, rng))
        found = _tops(small, _within_reach(small, found))
        optima: list[Optimum] = []
        for o in found:
            lifted = density.pack(lift(small.unpack(o.z)))
            optima.append(replace(_unless_behind(density, lifted, optima, climb), hits=o.hits))
        return optima
    stages = _stages(density) if optimizer == "auto" else [density]
    if len(stages) == 1:
        return _from_all_starts(density, n_starts, climb, rng)
    same = deepcopy(rng)
    found = _from_all_starts(stages[0], n_starts, rough, rng)
    for before, stage in pairwise(stages):
        go_on = partial(climb if stage is density else rough, near=True)
        ends = _within_reach(before, distinct_optima(before, found))
        if stage.data.n_all > MUCH * before.data.n:
            ends = _tops(before, ends)
        found = [replace(go_on(stage, o.z), hits=o.hits) for o in ends]
    if work(density) <= MAX_SCORING_WORK and _have_rivals(density, found):
        found += _from_all_starts(density, n_starts, climb, same)
    return found


def _have_rivals(density: LogDensity, found: list[Optimum]) -> bool:
    """Whether modes are nearly as high as the best: then a subsample may have shown others."""
    best, *others = distinct_optima(density, found)
    first, X = density.unpack(best.z), density.data.X
    return any(
        best.logp - o.logp < RIVAL and distance(density.unpack(o.z).swap(), first, X) > LIKE
        for o in others
    )


def _tops(density: LogDensity, ends: list[Optimum]) -> list[Optimum]:
    """One end of every mode: rough climbs to the same one may stop apart on a flat ridge."""
    if len(ends) == 1:
        return ends
    tops = [replace(optimise(density, o.z, tolerance=SHARP, near=True), hits=o.hits) for o in ends]
    return distinct_optima(density, tops)


def _within_reach(density: LogDensity, ends: list[Optimum]) -> list[Optimum]:
    """The ends that are not surely far behind the first, as all rows see it, and its exchange."""
    data, points = density.data, [density.unpack(o.z) for o in ends]
    rows = [row_terms(point, data)[0] for point in points]
    kept = []
    for o, point, values in zip(ends, points, rows, strict=True):
        difference = rows[0] - values
        error = float(np.linalg.norm(difference * data.weight if data.weight.size else difference))
        behind = ends[0].logp - o.logp > max(BEHIND, SURELY * error)
        if not behind or distance(point.swap(), points[0], data.X) < LIKE:
            kept.append(o)
    return kept


def _unless_behind(
    density: LogDensity, start: Array, before: list[Optimum], climb: Climb
) -> Optimum:
    """Where a climb ends; a sketch of it, if that ends far below what others have reached."""
    if before:
        sketch = optimise(density, start, tolerance=SKETCHED)
        if sketch.logp < max(o.logp for o in before) - BEHIND:
            return sketch
        start = sketch.z
    return climb(density, start)


def _rows_for(density: LogDensity) -> int:
    """Rows on which a search for modes can be trusted."""
    return max(SEARCH_ROWS, ROWS_PER_PARAMETER * density.dim)


def _stages(density: LogDensity) -> list[LogDensity]:
    """The same density over more and more of the rows, in the end over all of them."""
    data, size = density.data, _rows_for(density)
    stages = []
    if data.n_annotators == 1:
        while 3 * size < data.n_all and size <= MOST_ROWS:
            stages.append(replace(density, data=subsample(data, size)))
            size *= GROWTH
    return [*stages, density]


def _from_all_starts(
    density: LogDensity, n_starts: int | None, climb: Climb, rng: np.random.Generator
) -> list[Optimum]:
    optima = [
        climb(density, density.pack(point))
        for point in _starting_points(density, n_starts, climb, rng)
    ]
    finite = [o for o in optima if np.isfinite(o.logp)]
    if n_starts is None and finite and _can_exchange(density):
        # Whether the other naming is a mode too must not depend on a start that happens to find it.
        finite.append(climb(density, density.swap(max(finite, key=lambda o: o.logp).z)))
    return finite


def _starting_points(
    density: LogDensity,
    n_starts: int | None,
    climb: Climb,
    rng: np.random.Generator,
) -> list[Parameters]:
    spec, data = density.spec, density.data
    n = (RATES_STARTS if spec.n_rates else PAIR_STARTS) if n_starts is None else n_starts
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise ModelError(f"n_starts = {n!r}; a whole number, one or above, is expected.")
    if not spec.has_selection:
        return starts.constant_starts(data)[: 1 + spec.n_rates]
    spread = starts.column_spread(data)
    if n == 1:
        pool = starts.random_points(data, spread, 1, rng)
        pool = [point.for_annotators(data.n_annotators) for point in pool]
        return pool if spec.n_rates == 0 else starts.with_small_weights(pool)
    scar = best_optimum(constant_version(density), starts.constant_starts(data), climb)
    if spec.n_rates == 0:
        return _and_exchanged(density, starts.spm_starts(data, scar, spread, n, rng), climb)
    spm = plain_version(density)
    spm_best = best_optimum(spm, starts.spm_starts(data, scar, spread, max(5, n // 3), rng), climb)
    return starts.psychm_starts(data, scar, spm_best, spread, n, rng)


def _and_exchanged(density: LogDensity, points: list[Parameters], climb: Climb) -> list[Parameters]:
    """The starts; of several annotators also the best optimum with the factors exchanged.

    Nothing there is symmetric, but where few rows are shared a mode near the exchanged answer can
    remain.
    """
    data = density.data
    same = np.array_equal(data.class_mask, data.selection_mask)
    if data.n_annotators == 1 or not same:
        return points
    return [*points[:-1], best_optimum(density, points[:3], climb).swap()]


def constant_version(density: LogDensity) -> LogDensity:
    """The same data and slope priors with a constant propensity, as a source of starts."""
    return _with_propensity(density, get_factor("constant"))


def plain_version(density: LogDensity) -> LogDensity:
    """The same without free rates."""
    own = density.spec.propensity
    return _with_propensity(density, Factor(own.name, own.formula, own.link))


def _with_propensity(density: LogDensity, propensity: Factor) -> LogDensity:
    spec = replace(density.spec, propensity=propensity)
    priors = spec.complete_priors(
        density.priors,
        None,
        annotators=density.data.n_annotators,
        visits=bool(density.data.visit_names),
    )
    return LogDensity(spec, density.data, known_scales(priors, hierarchical=False))


def _can_exchange(density: LogDensity) -> bool:
    data = density.data
    same = np.array_equal(data.class_mask, data.selection_mask)
    one = data.n_annotators == 1 and density.spec.has_selection
    return one and bool(same) and not is_exchangeable(density)


def best_optimum(density: LogDensity, points: list[Parameters], climb: Climb) -> Parameters:
    """The best of the optima that the points lead to."""
    optima = [climb(density, density.pack(p)) for p in points]
    return density.unpack(max(optima, key=lambda o: o.logp).z)
