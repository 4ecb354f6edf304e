"""Which factor is the classifier, by what authority, and which other answers are close."""

from typing import TYPE_CHECKING, Any

import numpy as np

from bayes_lepu.links import Array
from bayes_lepu.result.facts import orientation_sentence
from bayes_lepu.result.numbers_in_words import UNITS, worse
from bayes_lepu.verdict.peaks import Peak, Role, share_positive
from bayes_lepu.verdict.records import MODE_GAP, Aspect, Check, Status, grade

if TYPE_CHECKING:
    from bayes_lepu.verdict.evidence import Evidence

ORIENTATION = (0.99, 0.95)  # posterior probability
ENOUGH_DRAWS = 100  # of the other orientation: enough for an interval
SETTLE = (
    "Resolve it with a column that enters only one factor (selection_features=, class_features=), "
    "with audited rows (y=), with several annotators of the same rows (one column of l each), or "
    "with priors you can defend (in the SPM together with "
    "orientation='none', or the rule decides)."
)
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
    fit, bend = evidence.fit, evidence.bend
    if evidence.several:
        return []

    def record(status: Status, gap: float | None, more: str) -> list[Check]:
        said = f"{orientation_sentence(fit)}. {more}".rstrip()
        threshold = f"{MODE_GAP[0]:g} {UNITS} for this orientation (weak from {MODE_GAP[1]:g})"
        text = said[0].upper() + said[1:]
        return [Check("orientation", status, gap, threshold, text, SETTLE, **_WHICH)]

    if not fit.spec.has_selection:
        return record("passed", None, "")
    signs = named_by_signs(evidence)
    if not evidence.has_peaks and not evidence.symmetric:
        return record("not computed", None, "What the likelihood says was not computed.")
    gap, probability = exchange_gap(evidence), fit.orientation.probability
    if evidence.symmetric:
        exchanged = share_positive(evidence.point.swap(), evidence.data)
        by_data = "Exchanging t and s leaves the likelihood exactly as it is"
        more = f"{by_data}; exchanged, π would be {exchanged:.2f}."
    elif np.isfinite(gap):
        more = f"By the likelihood alone the best exchanged answer is {worse(gap)}."
    else:
        more = "No maximum of the likelihood with exchanged factors was found."
    if signs:
        status = grade(float(probability or 0.0), ORIENTATION)
        return record(status, gap, f"{more} The answer is as good as these signs.")
    if evidence.contradicted:
        more = f"The likelihood makes this orientation {worse(gap)}: use a smaller C= or NUTS."
        return record("failed", -gap, more)
    by_curve = fit.orientation.settled_by == "learned class" and not evidence.data.n_audited
    if by_curve and bend is not None and not bend.curved:
        more = "With the learned columns unseen labels are predicted no better than straight lines "
        return record("failed", bend.lead, f"{more}might by chance ({bend.lead:+.1f} {UNITS}).")
    statuses = [grade(gap, MODE_GAP)]
    if probability is not None:
        statuses.append(grade(probability, ORIENTATION))
    order: list[Status] = ["passed", "weak", "failed"]
    return record(max(statuses, key=order.index), gap, more)
