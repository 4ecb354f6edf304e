r"""MAP: the mode of the posterior density, which is the paper's penalised MLE.

.. math:: \hat\theta = \arg\max_\theta \; \log L(\theta) - C_\alpha \lVert\alpha\rVert
    - C_a \lVert a\rVert

Both SPM and PsychM have several local maxima, so the search starts from many points (`search`), and
the table of distinct modes is part of the result. More columns than rows with L2 priors are
handled exactly in the row space: with X = U S V', the optimum is a = V c, and the priors on a and
c coincide.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy.special import expit

from bayes_lepu.data.pu_data import PUData
from bayes_lepu.errors import OWN_CODE, ConvergenceError, IdentifiabilityWarning, ModelError
from bayes_lepu.inference import orientation, signs
from bayes_lepu.inference.l1 import kkt_residual, polish
from bayes_lepu.inference.mode_search import search
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
from bayes_lepu.inference.optimizers import (
    MAX_SCORING_DIM,
    MAX_SCORING_WORK,
    Climber,
    Optimum,
    optimise,
    work,
)
from bayes_lepu.inference.wide_l1 import row_basis
from bayes_lepu.links import Array
from bayes_lepu.models.density import LogDensity
from bayes_lepu.models.parameters import Parameters
from bayes_lepu.models.spec import ModelSpec
from bayes_lepu.priors.prior import SLOPES, Priors

TIED = 1e-6  # log densities of two optima that differ by rounding and by where their climbs stop
FEW_CELLS = 10_000  # of the table, up to which two Hessians take a millisecond or two


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
) -> MapResult:
    """Find the modes and name the factors.

    Parameters
    ----------
    n_starts : int, optional
        See `search`.
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
    climb = partial(_climb, density, optimizer=optimizer)
    if initial is None:
        optima = search(density, n_starts=n_starts, optimizer=optimizer, rng=rng)
    else:
        if lift is not None:
            initial = replace(initial, a=initial.a @ lift.T, alpha=initial.alpha @ lift.T)
        optima = [climb(density.pack(initial))]
    optima = [o for o in optima if np.isfinite(o.logp)]
    if not optima:
        raise ConvergenceError(
            "No start reached a finite log posterior. Check the scale of X, or use a stronger "
            "penalty (larger C)."
        )
    optima.sort(key=lambda o: -o.logp)
    optima[0] = _to_the_last_digit(density, optima[0], optimizer)
    modes = distinct_modes(density, optima)
    by, probability = _by_signs(density, modes[0], climb)
    if by is None:
        modes, by = _oriented(density, modes, rule, climb)
    kkt = kkt_residual(density, modes[0].z)
    full = LogDensity(spec, data, priors)
    modes = tuple(_lifted(full, m, lift) for m in modes)
    record = orientation.describe(modes[0].point, spec, data, rule, probability=probability, by=by)
    return MapResult(modes, record, kkt, full)


def _climb(density: LogDensity, start: Array, *, optimizer: str | Climber) -> Optimum:
    return _to_the_last_digit(density, optimise(density, start, optimizer=optimizer), optimizer)


def _to_the_last_digit(density: LogDensity, optimum: Optimum, optimizer: str | Climber) -> Optimum:
    """An optimum after Newton steps, where rows are few enough for them to cost next to nothing.

    A climb ends some 1e-6 away, which no statistic notices; but a row of weight 2 is then not quite
    the same as two rows. L1 has had its Newton steps, and a user's own climb is left as it is.
    """
    few = work(density) <= FEW_CELLS and density.dim <= MAX_SCORING_DIM
    if not few or density.is_kinked or callable(optimizer):
        return optimum
    z = polish(density, optimum.z)
    return replace(optimum, z=z, logp=density.logp(z))


def _by_signs(
    density: LogDensity, best: Mode, climb: Callable[[Array], Optimum]
) -> tuple[orientation.SettledBy | None, float | None]:
    """Whether signs in the priors name the factors, and with which probability."""
    if not (density.can_exchange and density.walls.any()):
        return None, None
    other = climb(density.swap(best.z))
    gap = best.logp - other.logp
    if distance(density.unpack(other.z), best.point, density.data.X) < SAME:
        gap = np.inf  # the climb came back: no optimum has the other naming
    probability = float(expit(gap))
    settled = signs.settle_naming(density, best.z, probability)
    return ("priors", probability) if settled else (None, None)


def _oriented(
    density: LogDensity, modes: tuple[Mode, ...], rule: str, climb: Callable[[Array], Optimum]
) -> tuple[tuple[Mode, ...], orientation.SettledBy | None]:
    """The modes, the answer first, its factors named by the rule where one is to decide.

    The second value is "density" where the penalties overruled it: no optimum near the exchanged
    factors obeys the rule.
    """
    data, X = density.data, density.data.X
    decides = orientation.settled_by(density.spec, data, rule)
    if decides == "density" and rule != "none":
        return _of_two_alike(density, modes, rule)
    if decides != "rule":
        return modes, None
    if is_exchangeable(density):
        # An exact symmetry: every mode stands for both of its orientations.
        named = [
            swap_mode(density, m) if orientation.rule_says_swap(m.point, data, rule) else m
            for m in modes
        ]
        return tuple(compare_mode(m, named[0].point, X) for m in named), None
    best = modes[0]
    if not orientation.rule_says_swap(best.point, data, rule):
        return modes, None
    # Unequal penalties: the relabelled factors were shrunk with each other's coefficient, so the
    # answer is the nearest optimum with the roles (and penalties) the right way round.
    optimum = climb(density.swap(best.z))
    point = density.unpack(optimum.z)
    if orientation.rule_says_swap(point, data, rule):
        _warn_overruled(rule)
        return modes, "density"
    same = [m for m in modes if distance(m.point, point, X) < SAME]
    hits = sum(m.hits for m in same)
    answer = describe_mode(density, point, optimum, best=best.point, best_logp=best.logp, hits=hits)
    return (answer, *(m for m in modes if m not in same)), None


def _of_two_alike(
    density: LogDensity, modes: tuple[Mode, ...], rule: str
) -> tuple[tuple[Mode, ...], orientation.SettledBy | None]:
    """Where the density of both orders is the same, the one that obeys the rule first.

    Without guesses and lapses the PsychM is the SPM; rounding would choose otherwise.
    """
    data, X = density.data, density.data.X
    alike = [m for m in modes[1:] if m.role == "swapped" and m.gap < TIED]
    if not alike:
        return modes, None
    if not orientation.rule_says_swap(modes[0].point, data, rule):
        return modes, "rule"
    ordered = (alike[0], *(m for m in modes if m is not alike[0]))
    return tuple(compare_mode(m, alike[0].point, X) for m in ordered), "rule"


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
    """The data in the coordinates of their own row space, where that loses nothing.

    A small sparse table is made dense, since curvature is at hand there.
    """
    if data.is_sparse:
        return (data.dense if data.n * data.p <= MAX_SCORING_WORK else data), None
    slopes = [priors[n] for n in SLOPES if n in priors]
    exact = all(s.family == "normal" and s.loc == 0 for s in slopes)
    exact &= bool((data.class_mask & data.selection_mask).all())
    if data.p <= data.n_all or data.n_annotators > 1 or not exact:
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
