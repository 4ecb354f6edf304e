r"""The orientation: which factor is the class t.

In SPM the product s·t is unchanged when the factors are swapped, so the data alone never identify
t, and an assumption has to decide. By the paper's Assumption 3 (s is smoother than t), t is the
factor with the larger size. The rules differ in the measure of size:

``sigma-norm``
    sd of the linear predictor over the data, :math:`\sqrt{a' \mathrm{Cov}(X) a}`: free of units.
``norm``
    The literal Euclidean norm of the slopes (on the scale of the fit), for reproduction.
``none``
    No rule: the mode with the higher density is chosen, and ties are left to chance.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from bayes_lepu.data.pu_data import PUData
from bayes_lepu.engines.laplace import log_walls
from bayes_lepu.engines.modes import point_figures
from bayes_lepu.errors import ModelError
from bayes_lepu.links import Array
from bayes_lepu.model.density import LogDensity
from bayes_lepu.model.parameters import Parameters
from bayes_lepu.model.spec import ModelSpec
from bayes_lepu.suggestions import unknown

RESOLVED = 0.95  # probability of an orientation from which signs in the priors resolve it
RULES: tuple[str, ...] = ("sigma-norm", "norm", "none")

SettledBy = Literal[
    "rule", "density", "priors", "columns", "learned class", "audited rows", "annotators", "model"
]


@dataclass(frozen=True)
class Orientation:
    """The orientation of a fit, and what determined it.

    Attributes
    ----------
    rule : str
        The rule asked for.
    settled_by : {"rule", "density", "priors", "columns", "learned class", "audited rows", ...}
        What decided: an assumption (the rule), the posterior density of the two orientations, the
        signs that the priors give the slopes, different columns, audited rows or several annotators
        (which break the symmetry), or the model itself, in which s does not depend on x or has
        another form than t.
    sizes : dict
        Size of (t, s) under each rule, in this orientation.
    probability : float or None
        Posterior probability of this orientation before any rule, where it was computed. For a
        point estimate resolved by signs it follows from the densities of the two modes.
    """

    rule: str
    settled_by: SettledBy
    sizes: dict[str, tuple[float, float]]
    probability: float | None = None


def check_rule(rule: str) -> str:
    """The rule's name, or an error that lists the rules."""
    if rule not in RULES:
        raise ModelError(unknown("orientation", rule, RULES))
    return rule


def sizes(point: Parameters, data: PUData) -> dict[str, tuple[float, float]]:
    """Size of the factors (t, s) under every rule, s of the average annotator."""
    average = point.average()
    return {
        "sigma-norm": point_figures(point, data).norm,
        "norm": (float(np.linalg.norm(average.a)), float(np.linalg.norm(average.alpha))),
    }


def rule_swaps(point: Parameters, data: PUData, rule: str) -> bool:
    """Whether the rule swaps the factors: the second one has the larger size."""
    if rule == "none":
        return False
    size_t, size_s = sizes(point, data)[rule]
    return size_s > size_t


def settled_by(spec: ModelSpec, data: PUData, rule: str) -> SettledBy:
    """The criterion that decides the orientation for this model and these data."""
    if not spec.exchangeable:
        return "model"
    if data.n_annotators > 1:
        return "annotators"
    own = ~data.is_learned
    if not np.array_equal(data.class_mask & own, data.selection_mask & own):
        return "columns"
    if data.learned is not None:
        return "learned class"
    if data.n_audited:
        return "audited rows"
    return "density" if not spec.symmetric or rule == "none" else "rule"


def settled_by_signs(density: LogDensity, z: Array, probability: float | None) -> bool:
    """Whether the signs of slopes in the priors resolve the orientation, with this probability.

    After a swap the sign required of a slope of t applies to a slope of s. The odds of the two
    orientations by the signs alone are the ratio of the walls at θ and at S θ.
    """
    if probability is None or probability < RESOLVED:
        return False
    if not (density.can_exchange and density.prior.wall.any()):
        return False
    here, there = (log_walls(density.prior.wall, x) for x in (z, density.swap(z)))
    return bool(here - there >= math.log(RESOLVED / (1 - RESOLVED)))


def describe(
    point: Parameters,
    spec: ModelSpec,
    data: PUData,
    rule: str,
    *,
    probability: float | None = None,
    by: SettledBy | None = None,
) -> Orientation:
    """The `Orientation` of a point; ``by`` replaces the usual criterion that decided."""
    how = by or settled_by(spec, data, rule)
    return Orientation(rule, how, sizes(point, data), probability)
