r"""MAP: the mode of the posterior density, which is the paper's penalised MLE.

.. math:: \hat\theta = \arg\max_\theta \; \log L(\theta) - C_\alpha \lVert\alpha\rVert
    - C_a \lVert a\rVert

Both SPM and PsychM have several local maxima, so the search starts from many points (`search`), and
the table of distinct modes is part of the result.
"""

import warnings
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit

from bayes_lepu.data.pu_data import PUData
from bayes_lepu.engines import orientation
from bayes_lepu.engines.modes import SAME, Mode, describe_modes, distance, is_exchangeable
from bayes_lepu.engines.optimizers import Optimum, kkt_residual, optimise
from bayes_lepu.engines.search import search
from bayes_lepu.errors import OWN_CODE, ConvergenceError, IdentifiabilityWarning, ModelError
from bayes_lepu.model.density import LogDensity
from bayes_lepu.model.parameters import Parameters
from bayes_lepu.model.spec import ModelSpec
from bayes_lepu.priors.prior import Priors


@dataclass(frozen=True, eq=False)
class MapResult:
    """The modes, the answer first, the others by falling density."""

    modes: tuple[Mode, ...]
    orientation: orientation.Orientation
    kkt: float  # residual of the optimality conditions at the answer
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
    initial: Parameters | None = None,
    rng: np.random.Generator,
) -> MapResult:
    """Find the modes and their orientation; with a start, by one local search only."""
    orientation.check_rule(rule)
    if any(prior.hierarchical for prior in priors.values()):
        raise ModelError(
            "Hierarchical scales have no useful joint mode (the density is unbounded as the scale "
            "goes to zero). Use method='nuts', or give a fixed scale."
        )
    density = LogDensity(spec, data, priors)
    if initial is None:
        optima = search(density, n_starts=n_starts, rng=rng)
    else:
        optima = [optimise(density, density.pack(initial))]
    optima = [o for o in optima if np.isfinite(o.logp)]
    if not optima:
        raise ConvergenceError(
            "No start reached a finite log posterior. Check the scale of X, or use a stronger "
            "penalty (larger C)."
        )
    by, probability = _by_signs(density, optima[0])
    if by is None:
        optima, by = _oriented(density, optima, rule)
    modes = describe_modes(density, optima)
    kkt = kkt_residual(density, modes[0].z)
    record = orientation.describe(modes[0].point, spec, data, rule, probability=probability, by=by)
    return MapResult(modes, record, kkt, density)


def _by_signs(
    density: LogDensity, best: Optimum
) -> tuple[orientation.SettledBy | None, float | None]:
    """Whether signs in the priors resolve the orientation, and with which probability."""
    if not (density.can_exchange and density.prior.wall.any()):
        return None, None
    other = optimise(density, density.swap(best.z))
    back = distance(density.unpack(other.z), density.unpack(best.z), density.data.X) < SAME
    probability = 1.0 if back else float(expit(best.logp - other.logp))
    resolved = orientation.settled_by_signs(density, best.z, probability)
    return ("priors", probability) if resolved else (None, None)


def _oriented(
    density: LogDensity, optima: list[Optimum], rule: str
) -> tuple[list[Optimum], orientation.SettledBy | None]:
    """The optima, the answer first and in the orientation of the rule, if a rule is to decide.

    The second value is what decided instead, None if the usual criterion did.
    """
    data, best = density.data, optima[0]
    decides = orientation.settled_by(density.spec, data, rule)

    def swapped(optimum: Optimum) -> bool:
        return orientation.rule_swaps(density.unpack(optimum.z), data, rule)

    if decides == "rule" and is_exchangeable(density):  # a mode stands for both orientations
        return [replace(o, z=density.swap(o.z)) if swapped(o) else o for o in optima], None
    if decides == "density" and rule != "none":
        # Without guesses and lapses PsychM is SPM, and rounding would choose the orientation: two
        # searches that reach the same height stop within 1e-6 of each other.
        alike = [o for o in optima[1:] if best.logp - o.logp < 1e-6][:1]
        if alike and swapped(best):
            optima = alike + [o for o in optima if o is not alike[0]]
        return optima, "rule" if alike else None
    if decides != "rule" or not swapped(best):
        return optima, None
    # Unequal penalties shrank the swapped factors with each other's coefficient, so the answer is
    # the nearest mode with the penalties the right way round.
    optimum = optimise(density, density.swap(best.z))
    if swapped(optimum):
        _warn_overruled(rule)
        return optima, "density"
    point, X = density.unpack(optimum.z), data.X
    apart = [distance(density.unpack(o.z), point, X) for o in optima]
    hits = sum(o.hits for o, gap in zip(optima, apart, strict=True) if gap < SAME)
    others = [o for o, gap in zip(optima, apart, strict=True) if gap >= SAME]
    return [replace(optimum, hits=hits), *others], None


def _warn_overruled(rule: str) -> None:
    warnings.warn(
        f"The penalties contradict the rule {rule!r}: they shrink the slopes of the class so much "
        "more than those of the annotator that no optimum has a steeper class, and the best "
        "optimum was used unchanged. Give both factors equal penalties (C=) if the rule is to "
        "decide, or orientation='none' if the penalties are to decide.",
        IdentifiabilityWarning,
        skip_file_prefixes=OWN_CODE,
    )
