"""All checks in order, and what they amount to: a level, a sentence, and what carries it."""

import numpy as np

from bayes_lepu.diagnostics.convergence import check_convergence
from bayes_lepu.diagnostics.design import check_design
from bayes_lepu.diagnostics.exceptional import check_exceptional
from bayes_lepu.diagnostics.information import check_information, check_ranking, check_shape
from bayes_lepu.diagnostics.levels import (
    OWN_BRANCHES,
    check_against_profile,
    check_contraction,
    check_profile,
    check_sd,
    check_widths,
    interval,
)
from bayes_lepu.diagnostics.naming import check_modes, check_orientation
from bayes_lepu.diagnostics.profile import Profile, trace_profile
from bayes_lepu.diagnostics.records import Check, Identifiability
from bayes_lepu.diagnostics.subject import Subject
from bayes_lepu.result import FittedModel

# A failure of any of these leaves the level of t open; the ones in NARROW must even be passed.
LEVEL_CHECKS = (
    "profile of pi",
    "sd of pi",
    "profile against posterior",
    "prior share of pi",
    "contraction",
    "width of t against h",
    "modes",
    "set a = 0",
    "set a = alpha",
    "set a = -alpha",
    "set s constant",
    "set one factor = 1",
)
NARROW = (
    "profile of pi",
    "sd of pi",
    "modes",
    "set a = 0",
    "set a = alpha",
    "set a = -alpha",
    "set s constant",
    "set one factor = 1",
)
PRIOR_CHECKS = ("profile against posterior", "prior share of pi", "contraction", "profile of pi")


def diagnose(fit: FittedModel) -> Identifiability:
    """Run the checks that apply to this fit and form the verdict."""
    subject = Subject(fit)
    design = check_design(subject)
    profile = trace_profile(subject) if subject.small else None
    checks = [
        *design,
        *check_convergence(subject),
        *check_orientation(subject),
        *check_modes(subject),
        *check_information(subject),
        *check_shape(subject),
        *check_ranking(subject),
        *check_exceptional(subject),
        *check_profile(profile),
        *check_sd(subject),
        *check_against_profile(subject, profile),
        *check_contraction(subject),
        *check_widths(subject),
    ]
    level = choose_level(subject, checks)
    return Identifiability(
        level=level,
        verdict=_verdict(subject, checks, level, profile),
        carried_by=_carriers(subject, checks, level),
        checks=tuple(checks),
    )


def choose_level(subject: Subject, checks: list[Check]) -> int:
    """The best level that no check forbids."""
    status = {c.name: c.status for c in checks}
    if subject.fit.spec.name == "naive" or status["design"] == "failed":
        return 4
    if status.get("ranking by t") == "failed" or status.get("set a = alpha = 0") == "failed":
        return 4
    if status["orientation"] in ("failed", "weak"):
        return 3
    mixed = subject.fit.method == "nuts" and status["convergence"] == "failed"
    return 1 if level_is_known(checks) and not mixed else 2


def level_is_known(checks: list[Check]) -> bool:
    """Whether π is determined, the naming of the factors given."""
    status = {c.name: c.status for c in checks}
    failed = any(status.get(name) == "failed" for name in LEVEL_CHECKS)
    return not failed and not any(status.get(name) == "weak" for name in NARROW)


def prior_determined(subject: Subject, checks: list[Check]) -> bool:
    """Whether π is what the priors make it."""
    status = {c.name: c.status for c in checks}
    return not subject.fit.is_point and any(status.get(n) == "failed" for n in PRIOR_CHECKS)


def _verdict(subject: Subject, checks: list[Check], level: int, profile: Profile | None) -> str:
    by_name = {c.name: c for c in checks}
    known = level_is_known(checks)
    pi = _pi_in_words(subject, profile)
    if level == 4:
        return _only_h(subject, by_name)
    if level == 3:
        if subject.symmetric and subject.fit.orientation.rule == "none":
            how = "which of them is t rests on the priors alone"
        elif subject.symmetric:
            firm = by_name["order stability"].figure or 0.0
            how = (
                f"which of them is t rests on the orientation rule ({subject.fit.orientation.rule}"
                f", order stable with probability {firm:.2f})"
            )
        else:
            how = "the data do not settle which of them is t"
        naming = "given that naming, "
        rest = f"{naming}{pi}" if known else f"even {naming}the level is open: {pi}"
        rest = _mark(subject, checks, rest)
        return f"Only the unordered pair {{t, s}} is identified; {how}; {rest}."
    if level == 2:
        text = "The ranking by t is separable, its level is not: " + pi
        return _mark(subject, checks, text) + "."
    return f"t and s are separable from these data: {pi}."


def _mark(subject: Subject, checks: list[Check], text: str) -> str:
    return text + ", prior-determined" if prior_determined(subject, checks) else text


def _only_h(subject: Subject, by_name: dict[str, Check]) -> str:
    if subject.fit.spec.name == "naive":
        return (
            "Only h = P(l=1 | x) is identified; it equals P(y=1 | x) only if every positive is "
            "labelled, which this model assumes and cannot check."
        )
    if by_name["design"].status == "failed":
        return (
            "Only h = s·t is identified: these columns take too few distinct values to tell t and "
            "s apart, whatever the number of rows."
        )
    return "Only h = s·t is identified: not even the ranking by t is determined by these data."


def _pi_in_words(subject: Subject, profile: Profile | None) -> str:
    fit = subject.fit
    pieces = profile.likelihood_set(branches=OWN_BRANCHES) if profile is not None else []
    likely = " and ".join(f"{low:.2f} to {high:.2f}" for low, high in pieces)
    if fit.is_point:
        words = f"class prior {float(fit.pi_draws[0]):.2f}"
        return words + (f" (likelihood {likely})" if likely else "")
    low, high = interval(subject.pi_draws)
    prior_low, prior_high = interval(fit.class_prior_draws(fit._prior_sample)[0])
    words = f"class prior {float(np.mean(subject.pi_draws)):.2f} (posterior {low:.2f} to {high:.2f}"
    words += f", likelihood {likely}" if likely else ""
    return words + f", prior {prior_low:.2f} to {prior_high:.2f})"


def _carriers(subject: Subject, checks: list[Check], level: int) -> tuple[str, ...]:
    status = {c.name: c.status for c in checks}
    carriers: list[str] = []
    if level < 4:
        carriers.append("data")
    if not subject.data.n_audited:
        # Without audited rows the level of t is read from the logistic form alone.
        carriers.append("parametric form")
    by_prior = prior_determined(subject, checks)
    if subject.symmetric and subject.fit.orientation.rule != "none":
        carriers.append("orientation rule")
    elif status["orientation"] in ("failed", "weak"):
        by_prior = True
    if by_prior or level == 4:
        carriers.append("prior")
    if subject.fit.spec.name in ("scar", "naive"):
        what = "constant" if subject.fit.spec.name == "scar" else "one"
        carriers.append(f"assumption that s is {what}")
    return tuple(carriers)
