"""Which factor is the classifier, by what authority, and which other answers are close."""

from typing import TYPE_CHECKING, Any

import numpy as np

from bayes_lepu.links import Array
from bayes_lepu.result.numbers_in_words import UNITS, as_likely, units, worse
from bayes_lepu.verdict.peaks import Peak, Role, share_positive
from bayes_lepu.verdict.records import MODE_GAP, Aspect, Check, grade, graded

if TYPE_CHECKING:
    from bayes_lepu.verdict.evidence import Evidence

ORIENTATION = (0.99, 0.95)  # posterior probability
ENOUGH_DRAWS = 100  # of the other orientation: enough for an interval
RULE_WORDS = {
    "sigma-norm": "spread of its linear predictor over the rows (sigma-norm)",
    "norm": "slopes (norm)",
    "energy": "mean squared slope over the rows (energy)",
    "correlation": "correlation with the label probability",
}
SETTLED_BY = {
    "columns": "the columns given to each factor",
    "learned class": "the learned columns, which only the class has",
    "audited rows": "the audited rows",
    "density": "the likelihood",
    "rule": "the likelihood",
}
SETTLE = (
    "ettle it with a column that enters only one factor (selection_features=, class_features=), "
    "with audited rows (y=), with several annotators of the same rows (one column of l each), or "
    "with priors you can defend (in the SPM together with "
    "orientation='none', or the rule decides)."
)
FOR_THIS_NAMING = f"{UNITS} for this naming, {{}}"
_WHICH: dict[str, Any] = {"bears_on": (Aspect.ORIENTATION,), "needs": "passed"}


def exchange_gap(evidence: "Evidence") -> float:
    """Log-likelihood units by which the data prefer this orientation to the other.

    Infinite where no maximum with t and s swapped was found; 0 where the likelihood is symmetric.
    """
    if evidence.symmetric:
        return 0.0
    other = exchanged_peak(evidence)
    return np.inf if other is None else evidence.peaks[0].logp - other.logp


def exchanged_peak(evidence: "Evidence") -> Peak | None:
    """The best answer with t and s swapped, if there is one."""
    if evidence.symmetric:
        return evidence.mirrored(evidence.peaks[0], Role.EXCHANGED)
    found = [p for p in evidence.peaks[1:] if p.role is Role.EXCHANGED]
    return max(found, key=lambda p: p.logp, default=None)


def exchanged_pi(evidence: "Evidence") -> Array | None:
    """π with t and s swapped: draws where there are enough, else one value, else None.

    Where the likelihood is symmetric every draw has its mirror image; elsewhere the draws of the
    other orientation speak for themselves, or the best swapped answer stands in.
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


def named_by_signs(evidence: "Evidence") -> bool:
    """Whether signs in the priors say which factor is t, and the data do not."""
    if evidence.fit.orientation.settled_by != "priors":
        return False
    if not (evidence.symmetric or evidence.has_peaks):
        return False
    return grade(exchange_gap(evidence), MODE_GAP) != "passed"


def check_orientation(evidence: "Evidence") -> list[Check]:
    """By assumption, by prior, or by the data."""
    fit, name = evidence.fit, "orientation"
    if evidence.several:
        return []
    if not fit.spec.has_selection:
        text = "s does not depend on x in this model, so t is the only factor with slopes."
        return [Check(name, "passed", text=text, **_WHICH)]
    probability, by_signs = fit.orientation.probability, named_by_signs(evidence)
    if evidence.symmetric and not by_signs:
        return _by_assumption(evidence)
    if not evidence.has_peaks:  # by the heights of the fit's own modes
        gap = min((m.gap for m in fit.modes if m.role == "swapped"), default=None)
        found = "no optimum with exchanged factors was found"
        if gap is not None:
            found = f"the best answer with exchanged factors is {worse(gap)}"
        text = f"Under the priors of this fit {found}. What the likelihood says was not computed."
        return [Check(name, "not computed", gap, text=text, **_WHICH)]
    gap = exchange_gap(evidence)
    status = likelihood = grade(gap, MODE_GAP)
    if by_signs:
        by_data = (
            "Exchanging t and s leaves the likelihood as it is"
            if evidence.symmetric
            else f"By the likelihood alone the best exchanged answer is {worse(gap)}"
        )
        text = (
            "Settled by the priors, not by the data: under the signs that they give the slopes "
            f"this naming has probability {probability or 0.0:.3f}. {by_data}, so the answer is as "
            "good as these signs."
        )
        return [graded(name, float(probability or 0.0), ORIENTATION, text, **_WHICH)]
    if evidence.contradicted:
        text = (
            "The penalties or priors of this fit name the factors one way, the likelihood the "
            f"other: by it this naming is {worse(gap)}."
        )
        remedy = "Weaker penalties (lepu.fit(X, l, ..., C=0.01)) or method='nuts'; or s" + SETTLE
        how = {"threshold": FOR_THIS_NAMING, "status": "failed"} | _WHICH
        return [graded(name, -gap, MODE_GAP, text, remedy, **how)]
    bend = evidence.bend
    by_curve = fit.orientation.settled_by == "learned class" and not evidence.data.n_audited
    if by_curve and bend is not None and not bend.curved:
        text = (
            "Only the learned columns say which factor is the class, and with them unseen labels "
            f"are predicted no better than straight lines might by chance ({bend.lead:+.1f} "
            f"{UNITS})."
        )
        return [Check(name, "failed", bend.lead, FOR_THIS_NAMING, text, "S" + SETTLE, **_WHICH)]
    found = "no maximum with exchanged factors was found"
    if np.isfinite(gap):
        found = f"the best answer with exchanged factors is {worse(gap)}"
    if probability is None:
        by = SETTLED_BY.get(fit.orientation.settled_by, fit.orientation.settled_by)
        text = f"{'Settled' if status == 'passed' else 'Not settled'} by {by}: {found}."
        threshold = f"{UNITS} to the exchanged answer, {{}}"
        return [graded(name, gap, MODE_GAP, text, "S" + SETTLE, threshold=threshold, **_WHICH)]
    status = grade(probability, ORIENTATION)
    text = f"Posterior probability of this naming {probability:.3f}; "
    if np.isinf(gap):
        text += "no maximum of the likelihood with exchanged factors was found."
    else:
        text += f"by the likelihood alone it is {as_likely(gap)} (against the other naming: "
        text += f"{units(gap)})."
        if status == "passed" and likelihood != "passed":
            status = likelihood
            text += " The priors decide, not the data."
    threshold = f"{{}}, and {MODE_GAP[0]:g} {UNITS} from the data"
    how = {"threshold": threshold, "status": status} | _WHICH
    return [graded(name, probability, ORIENTATION, text, "S" + SETTLE, **how)]


def _by_assumption(evidence: "Evidence") -> list[Check]:
    """The rule that names the factors where the likelihood cannot."""
    fit = evidence.fit
    rule = fit.orientation.rule
    how = (
        "the priors (no rule was asked for)"
        if rule == "none"
        else f"the rule that t has the larger {RULE_WORDS[rule]}"
    )
    disagree = "" if fit.orientation.rules_agree else " The energy rule says the opposite."
    text = (
        "By assumption only: exchanging t and s leaves the likelihood exactly as it is, so the "
        f"data say nothing about which is which; {how} decides. Exchanged, π would be "
        f"{share_positive(evidence.point.swap(), evidence.data):.2f}.{disagree}"
    )
    options = {"threshold": FOR_THIS_NAMING} | _WHICH
    return [graded("orientation", 0.0, MODE_GAP, text, "S" + SETTLE, **options)]
