"""The verdict in a sentence."""

from collections.abc import Sequence

import numpy as np

from bayes_lepu.diagnostics.evidence import Evidence
from bayes_lepu.diagnostics.levels import CI_PROB, OWN_BRANCHES, interval
from bayes_lepu.diagnostics.naming import named_by_signs
from bayes_lepu.diagnostics.profile import Profile
from bayes_lepu.diagnostics.records import Aspect, Check
from bayes_lepu.diagnostics.subject import Role, Subject
from bayes_lepu.diagnostics.verdict import level_is_known, outside, prior_determined, reasons
from bayes_lepu.links import Array
from bayes_lepu.result.numbers_in_words import share


def sentence(
    subject: Subject,
    evidence: Evidence,
    checks: Sequence[Check],
    level: int,
    other: Array | None,
) -> str:
    """What the level means here (``other``: π with the factors exchanged)."""
    pi = pi_in_words(subject, evidence)
    if level == 1:
        return f"{_factors(subject)} separable from these data{_given(subject)}: {pi}."
    if level == 4:
        why = reasons(checks, Aspect.RANKING) or ["no check of the ranking by t supports more"]
        text = f"Only h = s·t is identified: {why[0]}"
    elif level == 3:
        naming = "given that naming, "
        rest = f"{naming}{pi}"
        if not level_is_known(checks):
            rest = f"even {naming}the level is open: {pi}"
        rest += _exchanged_in_words(other, evidence.profile)
        text = f"Only the unordered pair {{t, s}} is identified; {_naming(subject, checks)}; {rest}"
    else:
        text = f"The ranking by t is separable{_signs(subject)}, its level is not: {pi}"
        why = [
            reason
            for aspect in (Aspect.LABELS, Aspect.COMPUTATION, Aspect.LEVEL)
            for reason in reasons(checks, aspect)
        ]
        # Of several annotators all reasons: some make π too low and some too high.
        shown = dict.fromkeys(why if subject.several else why[:1])
        text += "".join(f"; {reason}" for reason in shown)
    if not subject.fit.spec.certain and prior_determined(subject, checks):
        text += "; the class prior is prior-determined"
    return text + "."


def _factors(subject: Subject) -> str:
    return "t and every annotator's s are" if subject.several else "t and s are"


def _given(subject: Subject) -> str:
    if subject.several:
        return ", if annotators label independently given x and the class"
    return _signs(subject)


def _signs(subject: Subject) -> str:
    return " given the signs of the slopes in the priors" if named_by_signs(subject) else ""


def _naming(subject: Subject, checks: Sequence[Check]) -> str:
    rule = subject.fit.orientation.rule
    if subject.several:
        return "; ".join(reasons(checks, Aspect.ORIENTATION))
    if subject.contradicted:
        return "the likelihood names them the other way than this fit, whose priors decide"
    if not subject.symmetric:
        return "the data do not settle which of them is t"
    if rule == "none":
        return "which of them is t rests on the priors alone"
    how = f"which of them is t rests on the orientation rule ({rule}"
    if subject.fit.is_point and not subject.small:
        return how + ")"
    firm = max(subject.order_probability, 1 - subject.order_probability)
    return f"{how}, order stable with probability {firm:.2f})"


def pi_in_words(subject: Subject, evidence: Evidence) -> str:
    """The class prior, with what the data, the prior and other forms leave of it."""
    words, forms = _pi_under_this_form(subject, evidence), evidence.forms
    if forms is None:
        return words
    count = len(forms.kept)
    others = "the one form" if count == 1 else f"the {count} forms"
    others += " of marking" if subject.several else ""
    found = f"{share(forms.low)} to {share(forms.high)} under {others}"
    return f"{words}; {found} that predict the labels as well"


def _pi_under_this_form(subject: Subject, evidence: Evidence) -> str:
    fit, pieces = subject.fit, _likelihood_pieces(evidence.profile)
    pi = float(np.mean(subject.pi_given_naming))
    likely = " and ".join(f"{share(low)} to {share(high)}" for low, high in pieces)
    if fit.is_point:
        if outside(subject, evidence):
            return (
                f"class prior {share(pi)} (set by the penalty of this fit: under a weak one, sd "
                f"2.5 on every slope, the likelihood leaves {likely})"
            )
        return f"class prior {share(pi)}" + (
            f" (likelihood under a weak penalty {likely})" if likely else ""
        )
    low, high = interval(subject.pi_given_naming)
    words = f"class prior {share(pi)} (at {CI_PROB:.0%}: posterior {share(low)} to {share(high)}"
    words += f", likelihood {likely}" if likely else ""
    if evidence.prior_pi is not None:
        prior_low, prior_high = interval(evidence.prior_pi)
        words += f", prior {share(prior_low)} to {share(prior_high)}"
    words += ")"
    if outside(subject, evidence):
        words += ", set by its priors outside of what the likelihood leaves"
    return words


def _exchanged_in_words(other: Array | None, profile: Profile | None) -> str:
    if other is None:
        return ""
    words = f", or {share(float(np.mean(other)))}"
    if other.size > 1:
        low, high = interval(other)
        words += f" (posterior {share(low)} to {share(high)})"
    elif pieces := _likelihood_pieces(profile, branches=(Role.EXCHANGED,)):
        likely = " and ".join(f"{share(low)} to {share(high)}" for low, high in pieces)
        words += f" (likelihood {likely})"
    return words + " with the factors exchanged"


def _likelihood_pieces(
    profile: Profile | None, branches: tuple[Role, ...] = OWN_BRANCHES
) -> list[tuple[float, float]]:
    return [] if profile is None else profile.likelihood_set(branches=branches)
