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
from bayes_lepu.engines.optimizers import optimise
from bayes_lepu.engines.pooling import known_scales
from bayes_lepu.errors import OWN_CODE, IdentifiabilityWarning
from bayes_lepu.links import Array, RowKind
from bayes_lepu.model.density import LogDensity
from bayes_lepu.model.parameters import Parameters
from bayes_lepu.result.summaries import mean_by_row
from bayes_lepu.verdict.records import Aspect, Check, passed_if
from bayes_lepu.verdict.thresholds import LIKELIHOOD_DROP, graded

if TYPE_CHECKING:
    from bayes_lepu.fitted import Fit
    from bayes_lepu.verdict.evidence import Evidence

CONTRADICTION = 3.32  # half the 99 % point of χ² with one degree of freedom
TOLD = 0.5  # share of the prior variance of ε that the labels have to remove


def check_knowledge(evidence: "Evidence") -> Iterable[Check]:
    """Hold π or c known from outside against what the labels say without it."""
    data = evidence.data
    if data.is_closed or not evidence.small:
        return []
    known_too, tops = _tops(evidence)
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


def check_false_marks(evidence: "Evidence") -> Iterable[Check]:
    """Whether the rate of false marks is the labels' or the prior's."""
    fit = evidence.fit
    if not fit.spec.false_marks or fit.is_point:
        return []
    before, after = fit.prior_draws.epsilon, fit.draws.epsilon
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


def _tops(evidence: "Evidence") -> tuple[LogDensity, list[Array]]:
    """The density that knows the outside figure, and its maxima."""
    fit = evidence.fit
    if not evidence.several:
        return evidence.weak, [peak.z for peak in evidence.peaks]
    density = LogDensity(fit.spec, fit.data, known_scales(fit.priors))
    return density, [optimise(density, density.pack(fit.draws.take(0))).z]


def _figures(point: Parameters, data: PUData) -> Array:
    """π and c of a point; of several annotators the mean c."""
    t, weights = point.t(data.X), data.row_weights
    pi = float(np.average(t, weights=weights))
    marked = float(np.mean(np.average(point.s(data.X) * t, axis=-1, weights=weights)))
    return np.array([pi, marked / max(pi, 1e-300)])


LARGEST_Z = 2.5  # reached by chance in one fit of eighty
UNLIKE_Z = 3.5  # of two means: by chance in one fit of a thousand; reported finds have 5 to 10
NOT_RANDOM = "random audits"


def check_audits(evidence: "Evidence") -> list[Check]:
    """Compare the audited classes with what the fit expects of them."""
    fit, data = evidence.fit, evidence.fit.data
    known = np.isin(data.kind, (RowKind.MISSED, RowKind.NEGATIVE))
    if not known.any() or fit.spec.certain:
        return []
    found = int(np.sum(data.kind == RowKind.MISSED))
    unmarked = data.l == 0
    m = mean_by_row(fit.draws, Parameters.missed, data.X[unmarked])
    h = mean_by_row(fit.draws, Parameters.h, data.X[unmarked])
    audited, rest = known[unmarked], data.kind[unmarked] == RowKind.UNLABELLED
    expected, variance = float(m[audited].sum()), float(np.sum((m * (1 - m))[audited]))
    z = (found - expected) / max(np.sqrt(variance), 1e-12)
    checks = [
        passed_if(
            abs(z) <= LARGEST_Z,
            "audited rows",
            z,
            f"within {LARGEST_Z:g} standard deviations",
            f"Of {int(known.sum())} audited unlabelled rows {found} are positive; by this fit "
            f"{expected:.1f} were to be expected ({z:+.1f} sd).",
            "The form of the model is wrong where these rows are. Try another one, or count the "
            "positives by rows audited at random: fit.audit_estimate().",
            bears_on=(Aspect.LEVEL,),
            consequence="the audited rows contradict it",
        )
    ]
    if fit.options.audits == "random" and rest.sum() > 1:
        apart = max((_difference(v, audited, rest) for v in (m, h)), key=abs)
        checks.append(
            passed_if(
                abs(apart) <= UNLIKE_Z,
                NOT_RANDOM,
                apart,
                f"within {UNLIKE_Z:g} standard errors",
                "The audited rows are declared a random part of the unlabelled ones. Their mean "
                f"score differs from that of the other unlabelled rows by {apart:+.1f} standard "
                "errors.",
                'Say audits="chosen" where they were picked for a reason, and audit rows drawn at '
                "random: fit.suggest_audit(50).",
                bears_on=(Aspect.LEVEL,),
                consequence="the audited rows do not look like a random part of the unlabelled",
            )
        )
    return checks


def _difference(score: Array, audited: Array, rest: Array) -> float:
    """Difference of two means in standard errors, with the spread of all these rows."""
    one, other = score[audited], score[rest]
    spread = np.sqrt(np.var(score) * (1 / len(one) + 1 / len(other)))
    return float((one.mean() - other.mean()) / max(spread, 1e-12))


def audits_alone_error(fit: "Fit") -> float:
    r"""Standard error of π by random audits alone; infinite where they leave it open.

    .. math:: \hat\pi = P(l=1) + P(l=0)\,\hat m, \qquad
        \mathrm{se} = P(l=0) \sqrt{\hat m (1-\hat m) / k}

    for k audited unlabelled rows, a share m of them positive; without any logistic form. Where
    marks may be false, the same of the marked rows is added.
    """
    data, squares = fit.data, 0.0
    for marked in (0, 1) if fit.spec.false_marks else (0,):
        here = data.l == marked
        one, other = (float((here & (data.y == c)) @ data.each_weight) for c in (1, 0))
        if not (k := one + other):
            return np.inf
        m, share = (one + 1) / (k + 2), np.average(here, weights=data.row_weights)
        squares += float(share) ** 2 * m * (1 - m) / k
    return float(np.sqrt(squares))
