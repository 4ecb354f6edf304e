"""From records to a level, and to what carries it."""

from collections.abc import Iterable

import numpy as np

from bayes_lepu.diagnostics import thresholds
from bayes_lepu.diagnostics.audited import NOT_RANDOM, audits_alone_error
from bayes_lepu.diagnostics.evidence import Evidence
from bayes_lepu.diagnostics.levels import OWN_BRANCHES
from bayes_lepu.diagnostics.naming import named_by_signs
from bayes_lepu.diagnostics.records import Aspect, Check, settled
from bayes_lepu.diagnostics.subject import Subject

# What names the factors where neither a rule nor the priors do, as an assumption.
NAMED_BY = {
    "density": "guesses that are the annotator's (no class floor, no false marks)",
    "columns": "columns kept out of one factor",
    "learned class": "s follows the columns in straight lines; only the class may bend",
}


def choose_level(checks: Iterable[Check]) -> int:
    """The best level that the checks support."""
    checks = list(checks)
    if not settled(checks, Aspect.RANKING):
        return 4
    if not settled(checks, Aspect.ORIENTATION):
        return 3
    known = level_is_known(checks) and settled(checks, Aspect.COMPUTATION)
    return 1 if known else 2


def level_is_known(checks: Iterable[Check]) -> bool:
    """Whether π is determined, the naming of the factors given."""
    checks = list(checks)
    return settled(checks, Aspect.LEVEL) and settled(checks, Aspect.LABELS)


def prior_determined(subject: Subject, checks: Iterable[Check]) -> bool:
    """Whether π is what the priors make it."""
    failed = any(c.status == "failed" and Aspect.PRIOR in c.bears_on for c in checks)
    return failed and not subject.fit.is_point


def reasons(checks: Iterable[Check], *aspects: Aspect) -> list[str]:
    """What leaves these aspects open, in words, each once."""
    found = [c.consequence for c in checks if c.open and set(c.bears_on) & set(aspects)]
    return list(dict.fromkeys(reason for reason in found if reason))


def outside(subject: Subject, evidence: Evidence) -> bool:
    """Whether the estimate of π lies where the likelihood under a weak penalty does not."""
    if evidence.profile is None:
        return False
    pieces = evidence.profile.likelihood_set(branches=OWN_BRANCHES)
    pi, rounding = float(np.mean(subject.pi_given_naming)), thresholds.ROUNDING
    return bool(pieces) and not any(low - rounding <= pi <= high + rounding for low, high in pieces)


def audits_give_pi(subject: Subject, checks: Iterable[Check]) -> bool:
    """Whether audited rows alone give π: only if they are a random part of the unlabelled ones."""
    unlike = any(c.name == NOT_RANDOM and c.open for c in checks)
    alone = subject.fit.options.audits == "random" and not unlike
    return alone and audits_alone_error(subject.fit) <= thresholds.SD_PI[0]


def carriers(
    subject: Subject, evidence: Evidence, checks: Iterable[Check], level: int
) -> tuple[str, ...]:
    """Which assumptions carry the conclusion."""
    checks, found, several = list(checks), [], subject.several
    if level < 4:
        found.append("data" if level_is_known(checks) else "data (the ranking, not π)")
    if several:
        found.append("annotators independent given x and y")
    if not audits_give_pi(subject, checks):
        # No or too few audited rows at random to tell π: its level is read from the form.
        found.append("parametric form")
    if not subject.data.is_closed:
        found.append("knowledge from outside")
    # What a point estimate of one annotator leaves open is the likelihood's; of several, thin
    # overlap leaves the rest to their pooling.
    left_open = any(c.open and Aspect.PRIOR in c.bears_on for c in checks)
    signs = named_by_signs(subject)
    by_prior = outside(subject, evidence) or signs
    by_prior |= left_open and (several or not subject.fit.is_point)
    if subject.symmetric and subject.fit.orientation.rule != "none" and not signs:
        found.append("orientation rule")
    elif not settled(checks, Aspect.ORIENTATION):
        by_prior = True
    if by_prior or level == 4:
        found.append("prior")
    if level < 3 and subject.fit.orientation.settled_by in NAMED_BY:
        found.append(NAMED_BY[subject.fit.orientation.settled_by])
    if not subject.fit.spec.has_selection:
        what = "constant" if subject.fit.spec.constant else "one"
        found.append(f"assumption that {'every s_j' if several else 's'} is {what}")
    return tuple(found)
