r"""Whether the labels agree with what is known from outside, and whether they tell the false marks.

An outside figure p̂ ± e of π (or c) is one more observation. How much the labels resent it is the
likelihood ratio between the best answer without it and the best answer with it,

.. math:: \Delta = \max_\theta \ell(\theta)
    - \max_\theta \{\ell(\theta) - \tfrac12 (\hat p - \pi(\theta))^2 / e^2\}

under the weak density; 2Δ follows a χ² with one degree of freedom if both speak of the same thing.
With several annotators it is the fit's own density, whose pooling they need, with scales held.
"""

import warnings
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import logit

from bayes_lepu.data.pu_data import PUData
from bayes_lepu.diagnostics.records import Aspect, Check, passed_if
from bayes_lepu.diagnostics.subject import Subject
from bayes_lepu.diagnostics.thresholds import LIKELIHOOD_DROP, graded
from bayes_lepu.errors import OWN_CODE, IdentifiabilityWarning
from bayes_lepu.inference.optimizers import optimise
from bayes_lepu.inference.pooling import known_scales
from bayes_lepu.links import Array
from bayes_lepu.models.density import LogDensity
from bayes_lepu.models.parameters import Parameters

if TYPE_CHECKING:
    from bayes_lepu.diagnostics.evidence import Evidence

CONTRADICTION = 3.32  # half the 99 % point of χ² with one degree of freedom
TOLD = 0.5  # share of the prior variance of ε that the labels have to remove


def check_knowledge(subject: Subject, evidence: "Evidence") -> Iterable[Check]:
    """Hold π or c known from outside against what the labels say without it."""
    data = subject.data
    if data.is_closed or not subject.small:
        return []
    known_too, tops = _tops(subject)
    unknown = replace(known_too.data, outside=np.full((2, 2), np.nan))
    free = LogDensity(known_too.spec, unknown, known_too.priors)
    given = max(tops, key=known_too.logp)
    alone = max((optimise(free, z) for z in tops), key=lambda o: o.logp)
    with_it, without = (_figures(free.unpack(z), unknown) for z in (given, alone.z))
    values, errors = data.outside.T
    known = ~np.isnan(values)
    misfit = 0.5 * float(np.sum(((values - with_it) / errors)[known] ** 2))
    gap = float(alone.logp) - float(free.logp(given)) + misfit
    bounds = LIKELIHOOD_DROP, CONTRADICTION
    words = " and ".join(
        f"{name} {values[i]:.3g} ± {errors[i]:.2g} from outside, {without[i]:.3g} by the labels"
        for i, name in enumerate(("class prior", "label frequency"))
        if known[i]
    )
    found = graded(
        "knowledge from outside",
        gap,
        bounds,
        f"{words[0].upper()}{words[1:]}.",
        "Check the figure from outside, or the form of the model.",
        bears_on=(Aspect.LEVEL,),
        consequence="the labels contradict what is known from outside",
    )
    if found.status == "failed":
        warnings.warn(
            f"The labels contradict what is known from outside: {words} ({gap:.1f} log-likelihood "
            "units apart). Check the figure, or the model.",
            IdentifiabilityWarning,
            skip_file_prefixes=OWN_CODE,
        )
    return [found]


def check_false_marks(subject: Subject, evidence: "Evidence") -> Iterable[Check]:
    """Whether the rate of false marks is the labels' or the prior's."""
    fit = subject.fit
    if not fit.spec.false_marks or fit.is_point or evidence.prior is None:
        return []
    before, after = evidence.prior.epsilon, fit.draws.epsilon
    if before is None or after is None:
        return []
    # of several annotators the one of whom least was learned
    shares = np.var(logit(after), axis=0) / np.maximum(np.var(logit(before), axis=0), 1e-300)
    removed = 1 - float(np.max(shares))
    told = removed >= TOLD
    text = f"Rate of false marks {after.mean():.3f}, before the data {before.mean():.3f}; "
    text += f"the data removed {max(removed, 0.0):.0%} of the variance of its logit"
    return [
        passed_if(
            told,
            "false marks",
            removed,
            f"at least {TOLD:g}",
            text + ("." if told else ": it is what its prior makes it."),
            "Audit some labelled rows (y=): only they tell false marks.",
            otherwise="weak",
            bears_on=(Aspect.PRIOR,),
        )
    ]


def _tops(subject: Subject) -> tuple[LogDensity, list[Array]]:
    """The density that knows the outside figure, and its maxima."""
    fit = subject.fit
    if not subject.several:
        return subject.weak, [peak.z for peak in subject.peaks]
    density = LogDensity(fit.spec, fit.data, known_scales(fit.priors))
    return density, [optimise(density, density.pack(fit.draws.take(0))).z]


def _figures(point: Parameters, data: PUData) -> Array:
    """π and c of a point; of several annotators the mean c."""
    t, weights = point.t(data.X), data.row_weights
    pi = float(np.average(t, weights=weights))
    marked = float(np.mean(np.average(point.s(data.X) * t, axis=-1, weights=weights)))
    return np.array([pi, marked / max(pi, 1e-300)])
