r"""Whether the propensity is constant, and whether it is below one.

The fitted model against the next simpler (or next richer) one by how well they predict the labels
(`rivals`).
"""

from dataclasses import replace
from typing import TYPE_CHECKING

from bayes_lepu.diagnostics.records import (
    Aspect,
    Check,
    Status,
    not_applicable,
    not_computed,
)
from bayes_lepu.diagnostics.rivals import LEAST_DIFFERENCE, difference
from bayes_lepu.diagnostics.subject import Subject
from bayes_lepu.models.spec import ModelSpec
from bayes_lepu.result.numbers_in_words import UNITS

if TYPE_CHECKING:
    from bayes_lepu.diagnostics.evidence import Evidence


NOT_COMPUTED = not_computed("constancy of s", bears_on=(Aspect.LEVEL,), needs="weak")


def check_constancy(subject: Subject, evidence: "Evidence") -> list[Check]:
    """Whether s varies with x (or, for SCAR and naive, whether it may be taken as constant)."""
    name, spec = "constancy of s", subject.fit.spec
    # The split of h that SCAR makes rests on nothing but its constant s.
    aspect = Aspect.RANKING if spec.constant else Aspect.LEVEL
    if spec.certain and subject.data.n_audited:
        return [not_applicable(name, "Audited rows leave no room for s < 1.")]
    if evidence.bend is not None and evidence.bend.curved and subject.data.learned is None:
        return [replace(NOT_COMPUTED, text="The class bends; ask again once it may.")]
    own, *others = evidence.rivals
    # SCAR is held against the richer model, whose s varies; all others against SCAR.
    rival = next(r for r in others if r.spec.constant != spec.constant and not r.spec.certain)
    ahead, se = difference(own, rival)
    bound = max(LEAST_DIFFERENCE, 2 * se)
    text = (
        f"Prediction of the labels against {rival.name}: {ahead:+.1f} ± {se:.1f} {UNITS} (expected "
        f"log predictive density; counts beyond {bound:.1f})."
    )
    status, remark, remedy = _reading(spec, ahead, bound)
    return [
        Check(
            name,
            status,
            ahead,
            f"beyond max({LEAST_DIFFERENCE:g}, 2 se)",
            f"{text} {remark}",
            remedy,
            bears_on=(aspect,),
            needs="weak",
            consequence="the split rests on a constant propensity, which these data contradict"
            if spec.constant
            else "the labels do not show that s varies",
        )
    ]


def check_split(subject: Subject, evidence: "Evidence") -> list[Check]:
    """Whether the model splits h at all."""
    if not subject.fit.spec.certain:
        return []
    return [
        Check(
            "split of h",
            "failed",
            None,
            "",
            "This model sets s = 1, so t = h: nothing is split.",
            "Fit model='scar', 'spm' or 'psychm' where positives may be unlabelled.",
            bears_on=(Aspect.RANKING,),
            needs="passed",
            consequence="it equals P(y=1 | x) only if every positive is labelled, which this model "
            "assumes and cannot check",
        )
    ]


def _reading(spec: ModelSpec, ahead: float, bound: float) -> tuple[Status, str, str]:
    if spec.has_selection:
        if ahead > bound:
            return "passed", "s varies with x.", ""
        remark = "A constant propensity predicts the labels as well."
        if spec.n_rates == 0:
            return "weak", remark + " SPM identifies that case too.", "Compare with model='scar'."
        return (
            "failed",
            remark + " Inside PsychM the level of t is then not identified.",
            "Fit model='scar', or model='spm', which identifies a constant s.",
        )
    if -ahead > bound:
        if spec.certain:
            return (
                "failed",
                "Not every positive is labelled: the naive model is contradicted.",
                "Fit model='scar', 'spm' or 'psychm'.",
            )
        return (
            "failed",
            "s varies with x: the assumption of SCAR is contradicted.",
            "Fit model='spm' or 'psychm'.",
        )
    return "passed", "The data do not contradict the assumption on s.", ""
