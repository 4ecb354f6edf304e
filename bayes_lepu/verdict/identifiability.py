"""The verdict: all checks in order, the level, a sentence, and the assumptions it rests on."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from bayes_lepu.links import RowKind
from bayes_lepu.rows.sparse_matrices import as_dense
from bayes_lepu.runtime.interruption import stops_at_once
from bayes_lepu.verdict import forms, labels, rivals, separation
from bayes_lepu.verdict.class_prior import prior_dominates
from bayes_lepu.verdict.evidence import MAX_DIM, Evidence, evidence_of
from bayes_lepu.verdict.records import ROUNDING, Aspect, Check, Identifiability, settled

if TYPE_CHECKING:
    from bayes_lepu.fitted import Fit


# Every check returns its records, none where it does not apply. To add one, append it.
CHECKS: list[Callable[[Evidence], Iterable[Check]]] = [
    separation.check_split,
    rivals.check_bend,
    separation.check_convergence,
    forms.check_overlap,
    separation.check_orientation,
    separation.check_ranking,
    rivals.check_constancy,
    labels.check_labels,
    rivals.check_along_t,
    forms.check_forms,
    labels.check_knowledge,
    labels.check_audits,
]


@stops_at_once
@np.errstate(all="ignore")  # the checks handle values that are not finite
def diagnose(fit: "Fit") -> Identifiability:
    """What these data identify: run the checks that apply and form the verdict.

    Parameters
    ----------
    fit : Fit

    Returns
    -------
    Identifiability

    Examples
    --------
    >>> import bayes_lepu as lepu
    >>> demo = lepu.load_demo()
    >>> fit = lepu.fit(demo.X, demo.l, model="spm", method="map", random_seed=1)
    >>> lepu.diagnose(fit).level
    3
    """
    # A sparse table of 80 MB or less is judged on dense rows.
    if fit.data.is_sparse and fit.density.dim <= MAX_DIM and fit.data.n * fit.data.p <= 10_000_000:
        fit = replace(fit, data=replace(fit.data, X=as_dense(fit.data.X)))
    evidence = evidence_of(fit)
    checks = [found for check in CHECKS for found in check(evidence)]
    _ = evidence.figures  # computed now, so that showing the verdict is instant
    audits = audited_range(evidence, checks)
    by_audits = audits is not None and give_total(evidence, audits)
    level = choose_level(checks, by_audits=by_audits)
    return Identifiability(
        level,
        sentence(evidence, checks, level),
        carriers(evidence, checks, level, by_audits=by_audits),
        tuple(checks),
        separation.exchanged_pi(evidence) if level == 3 else None,
        pi_range(evidence, checks, audits, level),
        evidence.offer,
        evidence,
    )


# The level, and what it rests on --------------------------------------------------------------

Ends = tuple[float, float]
BY_AUDITS = "rows audited at random"
# The assumption that determines the orientation where neither a rule nor the priors do.
NAMED_BY = {
    "density": "the lower asymptote γ belongs to the annotator, not to the class",
    "columns": "columns kept out of one factor",
    "learned class": "s follows the columns in straight lines; only the class may bend",
}


def choose_level(checks: Sequence[Check], *, by_audits: bool = False) -> int:
    """The best level that the checks support; random audits can support the total instead."""
    if not settled(checks, Aspect.RANKING):
        return 4
    if not settled(checks, Aspect.ORIENTATION):
        return 3
    known = (by_audits or level_is_known(checks)) and settled(checks, Aspect.COMPUTATION)
    return 1 if known else 2


def level_is_known(checks: Sequence[Check]) -> bool:
    """Whether π is identified, given the orientation."""
    return settled(checks, Aspect.LEVEL) and settled(checks, Aspect.LABELS)


def audited_range(evidence: Evidence, checks: Iterable[Check]) -> Ends | None:
    """Range of π by random audits alone, two standard errors to each side.

    None without such audits, and if they do not look like a random part of the unlabelled rows.
    """
    unlike = any(c.name == labels.NOT_RANDOM and c.open for c in checks)
    if evidence.fit.options.audits != "random" or unlike:
        return None
    pi, error = labels.audits_alone(evidence.fit)
    return (pi - 2 * error, pi + 2 * error) if np.isfinite(error) else None


def give_total(evidence: Evidence, audits: Ends) -> bool:
    """Whether random audits give π to a standard error of .05, the missed within `SPREAD`."""
    few, many = forms.missed_between(evidence.data, *audits)
    return audits[1] - audits[0] <= 0.2 and many <= forms.SPREAD * few


def pi_range(
    evidence: Evidence, checks: Iterable[Check], audits: Ends | None, level: int
) -> Ends | None:
    """Range of π over all models that predict the labels as well, limited by random audits.

    At level 4 the range starts at the share of known positives: every positive may be marked.
    """
    if evidence.forms is None:
        return None
    low, high = evidence.forms.low, evidence.forms.high
    if audits is not None:
        about = {Aspect.RANKING, Aspect.LEVEL, Aspect.LABELS}
        against = [c for c in checks if c.open and about & set(c.bears_on)]
        inside = max(low, audits[0]), min(high, audits[1])
        # Models that the labels contradict do not narrow the range of the audits.
        contradicted = any(c.name != forms.FORM_RANGE for c in against)
        low, high = audits if contradicted or inside[0] >= inside[1] else inside
    own, weights = float(np.mean(evidence.pi_draws)), evidence.fit.data.kind_weights
    sure = RowKind.MISSED if evidence.fit.spec.false_marks else [RowKind.LABELLED, RowKind.MISSED]
    known = float(weights[sure].sum() / weights.sum())  # positive, whatever the model
    if level == 4 and audits is None and evidence.data.is_closed:
        low = known
    return max(min(low, own), min(known, own)), min(max(high, own), 1.0)


def carriers(
    evidence: Evidence, checks: Sequence[Check], level: int, *, by_audits: bool
) -> tuple[str, ...]:
    """The assumptions that the verdict rests on."""
    fit, several, found = evidence.fit, evidence.several, []
    if level < 4:
        found.append("data" if level_is_known(checks) else "data (the ranking, not π)")
    if several:
        found.append("annotators independent given x and y")
    # Without rows audited at random the level of π rests on the form.
    found.append(BY_AUDITS if by_audits else "parametric form")
    if not evidence.data.is_closed:
        found.append("knowledge from outside")
    signs, ends = separation.oriented_by_signs(evidence), evidence.likelihood_range
    pi, by_prior = float(np.mean(evidence.pi_given_orientation)), signs or prior_dominates(evidence)
    if ends is not None and not ends[0] - ROUNDING <= pi <= ends[1] + ROUNDING:
        by_prior = True
    if evidence.symmetric and fit.orientation.rule != "none" and not signs:
        found.append("orientation rule")
    elif not settled(checks, Aspect.ORIENTATION):
        by_prior = True
    if by_prior or level == 4:
        found.append("prior")
    if level < 3 and fit.orientation.settled_by in NAMED_BY:
        found.append(NAMED_BY[fit.orientation.settled_by])
    if not fit.spec.has_selection:
        what = "constant" if fit.spec.constant else "one"
        found.append(f"assumption that {'every s_j' if several else 's'} is {what}")
    return tuple(found)


# The sentence ---------------------------------------------------------------------------------


def reasons(checks: Iterable[Check], *aspects: Aspect) -> list[str]:
    """Why these aspects are open, in words, in the order of the aspects and without repeats."""
    found = [c.consequence for a in aspects for c in checks if c.open and a in c.bears_on]
    return list(dict.fromkeys(reason for reason in found if reason))


def sentence(evidence: Evidence, checks: Sequence[Check], level: int) -> str:
    """The level of this fit in one sentence."""
    several, by_signs = evidence.several, separation.oriented_by_signs(evidence)
    signs = " given the signs of the slopes in the priors" if by_signs else ""
    if level == 1:
        if not level_is_known(checks):
            return f"The ranking by t is separable{signs}, and random audits give its level."
        if several:
            return (
                "t and every annotator's s are separable from these data, if annotators label "
                "independently given x and the class."
            )
        return f"t and s are separable from these data{signs}."
    if level == 4:
        why = reasons(checks, Aspect.RANKING) or ["no check of the ranking by t supports more"]
        return f"Only h = s·t is identified: {why[0]}."
    if level == 2:
        why = reasons(checks, Aspect.LABELS, Aspect.COMPUTATION, Aspect.LEVEL)
        # With several annotators all reasons are shown: some bias π down and some up.
        shown = "; ".join(why if several else why[:1])
        return f"The ranking by t is separable{signs}, its level is not{shown and ': '}{shown}."
    rule, why_open = evidence.fit.orientation.rule, "the data do not identify it"
    if several:
        why_open = "; ".join(reasons(checks, Aspect.ORIENTATION))
    elif evidence.contradicted:
        why_open = "the likelihood prefers them swapped, the priors of this fit do not"
    elif evidence.symmetric:
        why_open = f"it rests on the orientation rule ({rule})"
        why_open = "it rests on the priors alone" if rule == "none" else why_open
    more = "" if level_is_known(checks) else ". Even given that, the level is open"
    return f"The two factors are identified, not which of them is the class: {why_open}{more}."
