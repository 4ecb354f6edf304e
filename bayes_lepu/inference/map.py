r"""MAP: the mode of the posterior density, which is the paper's penalised MLE.

.. math:: \hat\theta = \arg\max_\theta \; \log L(\theta) - C_\alpha \lVert\alpha\rVert
    - C_a \lVert a\rVert

Both SPM and PsychM have several local maxima, so the search starts from many points (see `starts`)
and the table of distinct modes is part of the result. More columns than rows with L2 priors are
handled exactly in the row space: with X = U S V', the optimum is a = V c, and the priors on a and
c coincide.
"""

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from bayes_lepu.data import PUData
from bayes_lepu.errors import OWN_CODE, ConvergenceError, IdentifiabilityWarning, ModelError
from bayes_lepu.inference import orientation, starts
from bayes_lepu.inference.modes import (
    SAME,
    Mode,
    compare_mode,
    describe_mode,
    distance,
    distinct_modes,
    is_exchangeable,
    swap_mode,
)
from bayes_lepu.inference.optimizers import Climber, Optimum, optimise
from bayes_lepu.inference.pooling import known_scales
from bayes_lepu.inference.sparse import kkt_residual
from bayes_lepu.inference.wide import row_basis
from bayes_lepu.links import Array
from bayes_lepu.models.density import LogDensity
from bayes_lepu.models.parameters import Parameters
from bayes_lepu.models.spec import ModelSpec
from bayes_lepu.priors import Priors
from bayes_lepu.propensities import Propensity, get_propensity

# Starts of the search: with two curved factors, and with free rates besides.
PAIR_STARTS, RATES_STARTS = 14, 25


@dataclass(frozen=True, eq=False)
class MapResult:
    """The best mode, labelled, with all the others.

    Attributes
    ----------
    modes : tuple of Mode
        The answer first, the others by falling density.
    orientation : Orientation
    kkt : float
        Residual of the optimality conditions at the answer.
    density : LogDensity
    """

    modes: tuple[Mode, ...]
    orientation: orientation.Orientation
    kkt: float
    density: LogDensity

    @property
    def point(self) -> Parameters:
        """The estimate."""
        return self.modes[0].point


def fit_map(
    spec: ModelSpec,
    data: PUData,
    priors: Priors,
    *,
    rule: str = "sigma-norm",
    n_starts: int | None = None,
    optimizer: str | Climber = "auto",
    initial: Parameters | None = None,
    rng: np.random.Generator,
    progress: Callable[[Iterable[Array]], Iterable[Array]] = iter,
) -> MapResult:
    """Find the modes and name the factors.

    Parameters
    ----------
    n_starts : int, optional
        Number of starts, the named ones of `starts` first; one is a single random start.
        Default: 14 for two factors, 25 with free rates. Naive has one, SCAR two, whatever is asked
        for.
    optimizer : {"auto", "scoring", "sampled", "lbfgs"} or callable
        See `optimizers`.
    initial : Parameters, optional
        A start of the user's own, used alone.
    """
    orientation.check_rule(rule)
    if any(prior.hierarchical for prior in priors.values()):
        raise ModelError(
            "Hierarchical scales have no useful joint mode (the density is unbounded as the scale "
            "goes to zero). Use method='nuts', or give a fixed scale."
        )
    reduced, lift = row_space(data, priors)
    density = LogDensity(spec, reduced, priors)
    if initial is None:
        points = _starting_points(density, n_starts, optimizer, rng)
    elif lift is None:
        points = [initial]
    else:
        points = [replace(initial, a=initial.a @ lift.T, alpha=initial.alpha @ lift.T)]
    climb = partial(optimise, density, optimizer=optimizer)
    optima = [climb(z) for z in progress(map(density.pack, points))]
    optima = [o for o in optima if np.isfinite(o.logp)]
    if n_starts is None and initial is None and optima and _can_exchange(density):
        # Whether the other naming is a mode too must not depend on a start that happens to find it.
        optima.append(climb(density.swap(max(optima, key=lambda o: o.logp).z)))
    if not optima:
        raise ConvergenceError(
            "No start reached a finite log posterior. Check the scale of X, or use a stronger "
            "penalty (larger C)."
        )
    modes, overruled = _oriented(density, distinct_modes(density, optima), rule, climb)
    kkt = kkt_residual(density, modes[0].z)
    full = LogDensity(spec, data, priors)
    modes = tuple(_lifted(full, m, lift) for m in modes)
    record = orientation.describe(modes[0].point, spec, data, rule, overruled=overruled)
    return MapResult(modes, record, kkt, full)


def _starting_points(
    density: LogDensity,
    n_starts: int | None,
    optimizer: str | Climber,
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
    scar = best_optimum(constant_version(density), starts.constant_starts(data), optimizer)
    if spec.n_rates == 0:
        return _and_exchanged(density, starts.spm_starts(data, scar, spread, n, rng), optimizer)
    spm = plain_version(density)
    spm_best = best_optimum(
        spm, starts.spm_starts(data, scar, spread, max(5, n // 3), rng), optimizer
    )
    return starts.psychm_starts(data, scar, spm_best, spread, n, rng)


def _and_exchanged(
    density: LogDensity, points: list[Parameters], optimizer: str | Climber
) -> list[Parameters]:
    """The starts; of several annotators also the best optimum with the factors exchanged.

    Nothing there is symmetric, but where few rows are shared a mode near the exchanged answer can
    remain.
    """
    data = density.data
    same = np.array_equal(data.class_mask, data.selection_mask)
    if data.n_annotators == 1 or not same:
        return points
    return [*points[:-1], best_optimum(density, points[:3], optimizer).swap()]


def constant_version(density: LogDensity) -> LogDensity:
    """The same data and slope priors with a constant propensity, as a source of starts."""
    return _with_propensity(density, get_propensity("constant"))


def plain_version(density: LogDensity) -> LogDensity:
    """The same without free rates."""
    own = density.spec.propensity
    return _with_propensity(density, Propensity(own.name, own.mechanism, own.link))


def _with_propensity(density: LogDensity, propensity: Propensity) -> LogDensity:
    spec = replace(density.spec, propensity=propensity)
    priors = spec.complete_priors(density.priors, None, annotators=density.data.n_annotators)
    return LogDensity(spec, density.data, known_scales(priors, hierarchical=False))


def _can_exchange(density: LogDensity) -> bool:
    data = density.data
    same = np.array_equal(data.class_mask, data.selection_mask)
    one = data.n_annotators == 1 and density.spec.has_selection
    return one and bool(same) and not is_exchangeable(density)


def best_optimum(
    density: LogDensity, points: list[Parameters], optimizer: str | Climber = "auto"
) -> Parameters:
    """The best of the optima that the points lead to."""
    optima = [optimise(density, density.pack(p), optimizer=optimizer) for p in points]
    return density.unpack(max(optima, key=lambda o: o.logp).z)


def _oriented(
    density: LogDensity, modes: tuple[Mode, ...], rule: str, climb: Callable[[Array], Optimum]
) -> tuple[tuple[Mode, ...], bool]:
    """The modes, the answer first, its factors named by the rule where one is to decide.

    The second value says whether the penalties overruled it: no optimum near the exchanged factors
    obeys the rule.
    """
    if orientation.settled_by(density.spec, density.data, rule) != "rule":
        return modes, False
    X = density.data.X
    if is_exchangeable(density):
        # An exact symmetry: every mode stands for both of its orientations.
        named = [
            swap_mode(density, m) if orientation.rule_says_swap(m.point, X, rule) else m
            for m in modes
        ]
        return tuple(compare_mode(m, named[0].point, X) for m in named), False
    best = modes[0]
    if not orientation.rule_says_swap(best.point, X, rule):
        return modes, False
    # Unequal penalties: the relabelled factors were shrunk with each other's coefficient, so the
    # answer is the nearest optimum with the roles (and penalties) the right way round.
    optimum = climb(density.swap(best.z))
    point = density.unpack(optimum.z)
    if orientation.rule_says_swap(point, X, rule):
        _warn_overruled(rule)
        return modes, True
    same = [m for m in modes if distance(m.point, point, X) < SAME]
    hits = sum(m.hits for m in same)
    answer = describe_mode(density, point, optimum, best=best.point, best_logp=best.logp, hits=hits)
    return (answer, *(m for m in modes if m not in same)), False


def _warn_overruled(rule: str) -> None:
    warnings.warn(
        f"The penalties contradict the rule {rule!r}: they shrink the slopes of the class so much "
        "more than those of the annotator that no optimum has a steeper class, and the best "
        "optimum was taken as it is. Give both factors like penalties (C=) to have them named by "
        "the rule, or orientation='none' to have them named by the penalties.",
        IdentifiabilityWarning,
        skip_file_prefixes=OWN_CODE,
    )


def row_space(data: PUData, priors: Priors) -> tuple[PUData, Array | None]:
    """The data in the coordinates of their own row space, where that loses nothing."""
    slopes = [priors[n] for n in ("a", "alpha") if n in priors]
    exact = all(s.family == "normal" and s.loc == 0 for s in slopes)
    exact &= bool((data.class_mask & data.selection_mask).all())
    if data.p <= data.n or data.n_annotators > 1 or not exact:
        return data, None
    basis = row_basis(data)
    every = np.ones(len(basis.directions), dtype=bool)
    return data.with_table(basis.coordinates, every, every), basis.directions


def _lifted(density: LogDensity, mode: Mode, lift: Array | None) -> Mode:
    """The mode on the columns of the user (norms of predictors do not change)."""
    if lift is None:
        return mode
    point = replace(mode.point, a=mode.point.a @ lift, alpha=mode.point.alpha @ lift)
    return replace(mode, point=point, z=density.pack(point))
