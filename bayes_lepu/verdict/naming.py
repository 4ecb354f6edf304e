"""Which factor is the classifier, by what authority, and which other answers are close."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bayes_lepu.links import Array
from bayes_lepu.result.numbers_in_words import UNITS, as_likely, units, worse
from bayes_lepu.verdict import thresholds
from bayes_lepu.verdict.climbing import Peak, Role, share_positive
from bayes_lepu.verdict.records import Aspect, Check, Status, not_computed
from bayes_lepu.verdict.thresholds import grade, graded

if TYPE_CHECKING:
    from bayes_lepu.verdict.evidence import Evidence

ENOUGH_DRAWS = 100
RULE_WORDS = {
    "sigma-norm": "spread of its linear predictor over the rows (sigma-norm)",
    "norm": "slopes (norm)",
    "energy": "mean squared slope over the rows (energy)",
    "correlation": "correlation with the label probability",
}
SETTLE = (
    "Settle it with a column that enters only one factor (selection_features=, class_features=), "
    "with audited rows (y=), with several annotators of the same rows (one column of l each), or "
    "with priors you can defend (in the SPM together with "
    "orientation='none', or the rule decides)."
)
FOR_THIS_NAMING = f"{UNITS} for this naming, {{}}"
_WHICH: dict[str, Any] = {"bears_on": (Aspect.ORIENTATION,), "needs": "passed"}


def exchange_gap(evidence: "Evidence") -> float:
    """Log-likelihood units by which the data prefer this naming of the factors to the other.

    Infinite where no maximum with exchanged factors was found; 0 where the likelihood is symmetric.
    """
    if evidence.symmetric:
        return 0.0
    return _gap(evidence, Role.EXCHANGED)


def exchanged_peak(evidence: "Evidence") -> Peak | None:
    """The best answer with exchanged factors, if there is one."""
    if evidence.symmetric:
        first = evidence.peaks[0]
        z = evidence.weak.swap(first.z)
        return Peak(Role.EXCHANGED, z, first.logp, evidence.weak.unpack(z))
    found = [p for p in evidence.peaks[1:] if p.role is Role.EXCHANGED]
    return max(found, key=lambda p: p.logp, default=None)


def exchanged_pi(evidence: "Evidence") -> Array | None:
    """π with the factors exchanged: draws where there are enough, else one value, else None.

    Where the likelihood is symmetric every draw has its mirror image; elsewhere the draws that
    name the factors the other way speak for themselves, or the best exchanged answer stands in.
    """
    fit = evidence.fit
    if evidence.several:
        return None
    if evidence.symmetric:
        return fit.class_prior_draws(evidence.pivoted.swap())[0]
    if not fit.is_point and "exchanged" in fit.stats:
        other = np.asarray(fit.stats["exchanged"]).ravel() > 0.5
        if other.sum() >= ENOUGH_DRAWS:
            return fit.pi_draws.ravel()[other]
    peak = evidence.peaks[0] if evidence.contradicted else exchanged_peak(evidence)
    return None if peak is None else np.array([share_positive(peak.point, evidence.weak.data)])


def other_peaks(evidence: "Evidence") -> list[tuple[Peak, float]]:
    """Other answers that are no exchange, with the log-likelihood units they are worse by."""
    first = evidence.peaks[0]
    return [(p, first.logp - p.logp) for p in evidence.peaks[1:] if p.role is Role.OTHER]


def _gap(evidence: "Evidence", role: Role) -> float:
    first = evidence.peaks[0]
    gaps = [first.logp - p.logp for p in evidence.peaks[1:] if p.role is role]
    return min(gaps, default=np.inf)


def check_orientation(evidence: "Evidence") -> list[Check]:
    """By assumption, by prior, or by the data."""
    fit = evidence.fit
    if not fit.spec.has_selection:
        text = "s does not depend on x in this model, so t is the only factor with slopes."
        return [Check("orientation", "passed", None, "", text, **_WHICH)]
    if named_by_signs(evidence):
        return [_by_signs(evidence)]
    if evidence.symmetric:
        return [_by_assumption(evidence), _order(evidence)]
    if not evidence.has_peaks:
        return [_by_modes(evidence)]
    gap = exchange_gap(evidence)
    if evidence.contradicted:
        return [_contradicted(gap)]
    likelihood = grade(gap, thresholds.MODE_GAP)
    probability = fit.orientation.probability
    if probability is None:
        return [_by_gap(gap, likelihood, fit.orientation.settled_by)]
    return [_by_probability(probability, gap, likelihood)]


def named_by_signs(evidence: "Evidence") -> bool:
    """Whether signs in the priors say which factor is t, and the data do not."""
    if evidence.fit.orientation.settled_by != "priors":
        return False
    if not (evidence.symmetric or evidence.has_peaks):
        return False
    return grade(exchange_gap(evidence), thresholds.MODE_GAP) != "passed"


def _by_signs(evidence: "Evidence") -> Check:
    probability = float(evidence.fit.orientation.probability or 0.0)
    gap = exchange_gap(evidence)
    data = (
        "Exchanging t and s leaves the likelihood as it is"
        if evidence.symmetric
        else f"By the likelihood alone the best exchanged answer is {worse(gap)}"
    )
    return graded(
        "orientation",
        probability,
        thresholds.ORIENTATION,
        "Settled by the priors, not by the data: under the signs that they give the slopes this "
        f"naming has probability {probability:.3f}. {data}, so the answer is as good as these "
        "signs.",
        **_WHICH,
    )


def _by_assumption(evidence: "Evidence") -> Check:
    fit = evidence.fit
    rule = fit.orientation.rule
    how = (
        "the priors (no rule was asked for)"
        if rule == "none"
        else f"the rule that t has the larger {RULE_WORDS[rule]}"
    )
    disagree = "" if fit.orientation.rules_agree else " The energy rule says the opposite."
    exchanged = share_positive(evidence.point.swap(), evidence.data)
    return graded(
        "orientation",
        0.0,
        thresholds.MODE_GAP,
        "By assumption only: exchanging t and s leaves the likelihood exactly as it is, so the "
        f"data say nothing about which is which; {how} decides. Exchanged, π would be "
        f"{exchanged:.2f}.{disagree}",
        SETTLE,
        threshold=FOR_THIS_NAMING,
        **_WHICH,
    )


def _order(evidence: "Evidence") -> Check:
    """How firmly the order of the two norms stands, after relabelling to one side."""
    if evidence.fit.is_point and evidence.too_large:
        return not_computed("order stability", evidence.too_large)
    figure = evidence.order_probability
    firm = max(figure, 1 - figure)
    return graded(
        "order stability",
        firm,
        thresholds.ORIENTATION,
        f"t's predictor has the larger sd with probability {figure:.3f}.",
        "The rule itself is undecided: report both namings.",
        remedy_from="failed",
    )


def _by_modes(evidence: "Evidence") -> Check:
    """By the heights of the fit's own modes, where the likelihood without its priors is not had."""
    gaps = [m.gap for m in evidence.fit.modes if m.role == "swapped"]
    found = (
        f"the best answer with exchanged factors is {worse(min(gaps))}"
        if gaps
        else "no optimum with exchanged factors was found"
    )
    text = f"Under the priors of this fit {found}. What the likelihood says was not computed."
    return replace(not_computed("orientation", text, **_WHICH), figure=min(gaps, default=None))


def _contradicted(gap: float) -> Check:
    return graded(
        "orientation",
        -gap,
        thresholds.MODE_GAP,
        "The penalties or priors of this fit name the factors one way, the likelihood the other: "
        f"by it this naming is {worse(gap)}.",
        "Weaker penalties (lepu.fit(X, l, ..., C=0.01)) or method='nuts'; or s" + SETTLE[1:],
        threshold=FOR_THIS_NAMING,
        status="failed",
        **_WHICH,
    )


def _by_gap(gap: float, status: Status, settled_by: str) -> Check:
    by = {
        "columns": "the columns given to each factor",
        "learned class": "the learned columns, which only the class has",
        "audited rows": "the audited rows",
        "density": "the likelihood",
        "rule": "the likelihood",
    }.get(settled_by, settled_by)
    found = (
        "no maximum with exchanged factors was found"
        if np.isinf(gap)
        else f"the best answer with exchanged factors is {worse(gap)}"
    )
    return graded(
        "orientation",
        gap,
        thresholds.MODE_GAP,
        f"Settled by {by}: {found}." if status == "passed" else f"Not settled by {by}: {found}.",
        SETTLE,
        threshold=f"{UNITS} to the exchanged answer, {{}}",
        **_WHICH,
    )


def _by_probability(probability: float, gap: float, likelihood: Status) -> Check:
    status = grade(probability, thresholds.ORIENTATION)
    text = (
        f"Posterior probability of this naming {probability:.3f}; by the likelihood alone it is "
        f"{as_likely(gap)} (against the other naming: {units(gap)})."
    )
    if np.isinf(gap):
        text = (
            f"Posterior probability of this naming {probability:.3f}; no maximum of the likelihood "
            "with exchanged factors was found."
        )
    elif status == "passed" and likelihood != "passed":
        status = likelihood
        text += " The priors decide, not the data."
    return graded(
        "orientation",
        probability,
        thresholds.ORIENTATION,
        text,
        SETTLE,
        threshold=f"{{}}, and {thresholds.MODE_GAP[0]:g} {UNITS} from the data",
        status=status,
        **_WHICH,
    )


def check_modes(evidence: "Evidence") -> list[Check]:
    """Other maxima that say something else about t, exchanges set aside."""
    if not evidence.fit.spec.has_selection:
        return []
    others = sorted(other_peaks(evidence), key=lambda pair: pair[1])
    if not others:
        return [
            graded(
                "modes",
                np.inf,
                thresholds.MODE_GAP,
                "No other maximum says anything different about t, exchanges set aside.",
                threshold=f"{UNITS}, {{}}",
                bears_on=(Aspect.LEVEL,),
                needs="passed",
            )
        ]
    peak, gap = others[0]
    data = evidence.weak.data
    own, pi = (share_positive(p.point, data) for p in (evidence.peaks[0], peak))
    return [
        graded(
            "modes",
            gap,
            thresholds.MODE_GAP,
            f"The next materially different maximum is {worse(gap)}, with π {pi:.2f} instead of "
            f"{own:.2f}.",
            f"Report both answers (fit.mode_table()), or {SETTLE[0].lower()}{SETTLE[1:]}",
            threshold=f"{UNITS}, {{}}",
            bears_on=(Aspect.LEVEL,),
            needs="passed",
            consequence="another answer fits the labels nearly as well",
        )
    ]
