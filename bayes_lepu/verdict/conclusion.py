"""From records to a level, and to what it rests on."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from bayes_lepu.links import Array
from bayes_lepu.result.numbers_in_words import share
from bayes_lepu.verdict import thresholds
from bayes_lepu.verdict.climbing import Role
from bayes_lepu.verdict.knowledge import NOT_RANDOM, audits_alone_error
from bayes_lepu.verdict.levels import CI_PROB, OWN_BRANCHES, interval
from bayes_lepu.verdict.naming import named_by_signs
from bayes_lepu.verdict.profile import Profile
from bayes_lepu.verdict.records import Aspect, Check, settled

if TYPE_CHECKING:
    from bayes_lepu.verdict.evidence import Evidence

# What names the factors where neither a rule nor the priors do, as an assumption.
NAMED_BY = {
    "density": "the lower asymptote γ belongs to the annotator, not to the class",
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
    """Whether π is determined, the orientation given."""
    checks = list(checks)
    return settled(checks, Aspect.LEVEL) and settled(checks, Aspect.LABELS)


def prior_determined(evidence: "Evidence", checks: Iterable[Check]) -> bool:
    """Whether π is what the priors make it."""
    failed = any(c.status == "failed" and Aspect.PRIOR in c.bears_on for c in checks)
    return failed and not evidence.fit.is_point


def reasons(checks: Iterable[Check], *aspects: Aspect) -> list[str]:
    """What leaves these aspects open, in words, each once."""
    found = [c.consequence for c in checks if c.open and set(c.bears_on) & set(aspects)]
    return list(dict.fromkeys(reason for reason in found if reason))


def outside(evidence: "Evidence") -> bool:
    """Whether the estimate of π lies where the likelihood under a weak penalty does not."""
    if evidence.profile is None:
        return False
    pieces = evidence.profile.likelihood_set(branches=OWN_BRANCHES)
    pi, rounding = float(np.mean(evidence.pi_given_naming)), thresholds.ROUNDING
    return bool(pieces) and not any(low - rounding <= pi <= high + rounding for low, high in pieces)


def audits_give_pi(evidence: "Evidence", checks: Iterable[Check]) -> bool:
    """Whether audited rows alone give π: only if they are a random part of the unlabelled ones."""
    unlike = any(c.name == NOT_RANDOM and c.open for c in checks)
    alone = evidence.fit.options.audits == "random" and not unlike
    return alone and audits_alone_error(evidence.fit) <= thresholds.SD_PI[0]


def carriers(evidence: "Evidence", checks: Iterable[Check], level: int) -> tuple[str, ...]:
    """Which assumptions the conclusion rests on."""
    checks, found, several = list(checks), [], evidence.several
    if level < 4:
        found.append("data" if level_is_known(checks) else "data (the ranking, not π)")
    if several:
        found.append("annotators independent given x and y")
    if not audits_give_pi(evidence, checks):
        # No or too few audited rows at random to tell π: its level is read from the form.
        found.append("parametric form")
    if not evidence.data.is_closed:
        found.append("knowledge from outside")
    # What a point estimate of one annotator leaves open is the likelihood's; of several, thin
    # overlap leaves the rest to their pooling.
    left_open = any(c.open and Aspect.PRIOR in c.bears_on for c in checks)
    signs = named_by_signs(evidence)
    by_prior = outside(evidence) or signs
    by_prior |= left_open and (several or not evidence.fit.is_point)
    if evidence.symmetric and evidence.fit.orientation.rule != "none" and not signs:
        found.append("orientation rule")
    elif not settled(checks, Aspect.ORIENTATION):
        by_prior = True
    if by_prior or level == 4:
        found.append("prior")
    if level < 3 and evidence.fit.orientation.settled_by in NAMED_BY:
        found.append(NAMED_BY[evidence.fit.orientation.settled_by])
    if not evidence.fit.spec.has_selection:
        what = "constant" if evidence.fit.spec.constant else "one"
        found.append(f"assumption that {'every s_j' if several else 's'} is {what}")
    return tuple(found)


def sentence(
    evidence: "Evidence",
    checks: Sequence[Check],
    level: int,
    other: Array | None,
) -> str:
    """What the level means here (``other``: π with t and s swapped)."""
    pi = pi_in_words(evidence)
    if level == 1:
        return f"{_factors(evidence)} separable from these data{_given(evidence)}. {pi}."
    if level == 4:
        why = reasons(checks, Aspect.RANKING) or ["no check of the ranking by t supports more"]
        text = f"Only h = s·t is identified: {why[0]}"
    elif level == 3:
        level_open = "" if level_is_known(checks) else " Even given that, the level is open."
        text = "The two factors are identified, not which of them is the class: "
        text += f"{_naming(evidence, checks)}."
        text += f"{level_open} {pi}{_swapped_in_words(other, evidence.profile)}"
    else:
        text = f"The ranking by t is separable{_signs(evidence)}, its level is not"
        why = [
            reason
            for aspect in (Aspect.LABELS, Aspect.COMPUTATION, Aspect.LEVEL)
            for reason in reasons(checks, aspect)
        ]
        # Of several annotators all reasons: some make π too low and some too high.
        shown = dict.fromkeys(why if evidence.several else why[:1])
        text += (": " if shown else "") + "; ".join(shown) + f". {pi}"
    if not evidence.fit.spec.certain and prior_determined(evidence, checks):
        text += ". The class prior is prior-determined"
    return text + "."


def _factors(evidence: "Evidence") -> str:
    return "t and every annotator's s are" if evidence.several else "t and s are"


def _given(evidence: "Evidence") -> str:
    if evidence.several:
        return ", if annotators label independently given x and the class"
    return _signs(evidence)


def _signs(evidence: "Evidence") -> str:
    return " given the signs of the slopes in the priors" if named_by_signs(evidence) else ""


def _naming(evidence: "Evidence", checks: Sequence[Check]) -> str:
    rule = evidence.fit.orientation.rule
    if evidence.several:
        return "; ".join(reasons(checks, Aspect.ORIENTATION))
    if evidence.contradicted:
        return "the likelihood prefers them swapped, the priors of this fit do not"
    if not evidence.symmetric:
        return "the data do not identify it"
    if rule == "none":
        return "it rests on the priors alone"
    how = f"it rests on the orientation rule ({rule}"
    if evidence.fit.is_point and not evidence.small:
        return how + ")"
    firm = max(evidence.order_probability, 1 - evidence.order_probability)
    return f"{how}, order stable with probability {firm:.2f})"


def pi_in_words(evidence: "Evidence") -> str:
    """The class prior over all models that predict the labels as well, then by this one."""
    words, forms = _pi_under_this_form(evidence), evidence.forms
    if forms is None:
        return f"If this model is exact, {words}"
    found = f"π is {share(forms.low)} to {share(forms.high)} by all models that predict the labels"
    return f"{found} as well ({len(forms.kept)} of those tried). If this model is exact, {words}"


def _pi_under_this_form(evidence: "Evidence") -> str:
    fit, pieces = evidence.fit, _likelihood_pieces(evidence.profile)
    pi = float(np.mean(evidence.pi_given_naming))
    likely = " and ".join(f"{share(low)} to {share(high)}" for low, high in pieces)
    if fit.is_point:
        if outside(evidence):
            return (
                f"class prior {share(pi)} (set by the penalty of this fit: under a weak one, sd "
                f"2.5 on every slope, the likelihood leaves {likely})"
            )
        return f"class prior {share(pi)}" + (
            f" (likelihood under a weak penalty {likely})" if likely else ""
        )
    low, high = interval(evidence.pi_given_naming)
    words = f"class prior {share(pi)} (at {CI_PROB:.0%}: posterior {share(low)} to {share(high)}"
    words += f", likelihood {likely}" if likely else ""
    prior_low, prior_high = interval(evidence.fit.prior_pi_and_c[0])
    words += f", prior {share(prior_low)} to {share(prior_high)})"
    if outside(evidence):
        words += ", set by its priors outside of what the likelihood leaves"
    return words


def _swapped_in_words(other: Array | None, profile: Profile | None) -> str:
    if other is None:
        return ""
    words = f". With t and s swapped, {share(float(np.mean(other)))}"
    if other.size > 1:
        low, high = interval(other)
        words += f" (posterior {share(low)} to {share(high)})"
    elif pieces := _likelihood_pieces(profile, branches=(Role.EXCHANGED,)):
        likely = " and ".join(f"{share(low)} to {share(high)}" for low, high in pieces)
        words += f" (likelihood {likely})"
    return words


def _likelihood_pieces(
    profile: Profile | None, branches: tuple[Role, ...] = OWN_BRANCHES
) -> list[tuple[float, float]]:
    return [] if profile is None else profile.likelihood_set(branches=branches)
