"""All checks in order, and what they amount to: a level, a sentence, and what carries it."""

from collections.abc import Callable, Iterable

import numpy as np

from bayes_lepu.diagnostics import thresholds
from bayes_lepu.diagnostics.constancy import bootstrap_constancy, check_constancy
from bayes_lepu.diagnostics.convergence import check_convergence
from bayes_lepu.diagnostics.design import check_design
from bayes_lepu.diagnostics.exceptional import check_exceptional
from bayes_lepu.diagnostics.information import check_information, check_ranking, check_shape
from bayes_lepu.diagnostics.levels import (
    CI_PROB,
    OWN_BRANCHES,
    check_against_profile,
    check_contraction,
    check_profile,
    check_sd,
    check_widths,
    interval,
)
from bayes_lepu.diagnostics.naming import check_modes, check_orientation, exchanged_pi
from bayes_lepu.diagnostics.plausibility import check_existence, check_plausibility
from bayes_lepu.diagnostics.predictive import check_predictive
from bayes_lepu.diagnostics.profile import Profile, trace_profile
from bayes_lepu.diagnostics.records import Check, Identifiability, Status
from bayes_lepu.diagnostics.remedies import weigh_remedies
from bayes_lepu.diagnostics.sensitivity import check_intercepts, check_power_scaling
from bayes_lepu.diagnostics.subject import Subject
from bayes_lepu.errors import ModelError
from bayes_lepu.interruption import stops_at_once
from bayes_lepu.links import Array, RowKind
from bayes_lepu.result import FittedModel
from bayes_lepu.result.summaries import CI_PROB as SUMMARY_CI_PROB
from bayes_lepu.result.summaries import describe_draws

LEAST_BOOTSTRAP = 19
ROUNDING = 0.005  # of π as it is printed

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
    "set (a, b) = (alpha, beta)",
    "intercept prior",
    "constancy of s",
    "bootstrap of SCAR",
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
PRIOR_CHECKS = (
    "profile of pi",
    "profile against posterior",
    "prior share of pi",
    "contraction",
    "power scaling",
    "intercept prior",
)


@stops_at_once
def diagnose(fit: FittedModel, *, bootstrap: int = 0, progressbar: bool = True) -> Identifiability:
    """What these data can and cannot say: run the checks that apply and form the verdict.

    Parameters
    ----------
    fit : Fit
    bootstrap : int
        Number of data sets to simulate from the SCAR fit for the test of a constant propensity
        (19 or more); 0 leaves that test out. Each takes about as long as one fit with
        ``method="map"``.
    progressbar : bool
        Whether to show the progress of the bootstrap.

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
    if bootstrap and bootstrap < LEAST_BOOTSTRAP:
        raise ModelError(
            f"bootstrap = {bootstrap}; 0 (none) or at least {LEAST_BOOTSTRAP} repeats are "
            "expected, since fewer cannot reach p = 0.05."
        )
    subject = Subject(fit)
    profile = trace_profile(subject) if subject.small else None
    checks = [
        *check_design(subject),
        *check_existence(subject),
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
        *check_power_scaling(subject),
        *check_intercepts(subject),
        *check_constancy(subject),
        *check_predictive(subject),
        *check_plausibility(subject),
    ]
    if bootstrap and fit.spec.has_selection and subject.small:
        checks.append(bootstrap_constancy(subject, bootstrap, _progress(progressbar)))
    level = choose_level(subject, checks)
    other = exchanged_pi(subject) if level == 3 else None
    return Identifiability(
        level=level,
        verdict=_verdict(subject, checks, level, profile, other),
        carried_by=_carriers(subject, checks, level, profile),
        checks=tuple(checks),
        remedies=weigh_remedies(subject),
        exchanged_pi=None if other is None else describe_draws(other, SUMMARY_CI_PROB),
    )


def _progress(show: bool) -> Callable[[Iterable[int]], Iterable[int]]:
    if not show:
        return iter
    from rich.progress import track

    return lambda steps: track(list(steps), description="bootstrap of SCAR")


def choose_level(subject: Subject, checks: list[Check]) -> int:
    """The best level that no check forbids."""
    status = {c.name: c.status for c in checks}
    if subject.fit.spec.name == "naive" or status["design"] == "failed":
        return 4
    if status.get("ranking by t") == "failed" or status.get("set a = alpha = 0") == "failed":
        return 4
    if _class_may_be_constant(status) or _scar_contradicted(subject, status):
        return 4
    if status["orientation"] in ("failed", "weak"):
        return 3
    mixed = subject.fit.method == "nuts" and status["convergence"] == "failed"
    return 1 if level_is_known(checks) and not mixed else 2


def _class_may_be_constant(status: dict[str, Status]) -> bool:
    """Whether t cannot be shown to vary, in data where something does.

    Where s may be constant as well, the data are those of SCAR: one factor varies, and which of
    the two it is stays a question of naming.
    """
    return status.get("set a = 0", "passed") != "passed" and status["set s constant"] == "passed"


def _scar_contradicted(subject: Subject, status: dict[str, Status]) -> bool:
    """Whether the split of h rests on a constant s that the data speak against."""
    return subject.fit.spec.name == "scar" and status["constancy of s"] == "failed"


def level_is_known(checks: list[Check]) -> bool:
    """Whether π is determined, the naming of the factors given."""
    status = {c.name: c.status for c in checks}
    failed = any(status.get(name) == "failed" for name in LEVEL_CHECKS)
    return not failed and not any(status.get(name) == "weak" for name in NARROW)


def prior_determined(subject: Subject, checks: list[Check]) -> bool:
    """Whether π is what the priors make it."""
    status = {c.name: c.status for c in checks}
    return not subject.fit.is_point and any(status.get(n) == "failed" for n in PRIOR_CHECKS)


def _verdict(
    subject: Subject,
    checks: list[Check],
    level: int,
    profile: Profile | None,
    other: Array | None,
) -> str:
    by_name = {c.name: c for c in checks}
    known = level_is_known(checks)
    pi = _pi_in_words(subject, profile)
    if level == 4:
        return _mark(subject, checks, _only_h(by_name, subject.fit.spec.name)) + "."
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
        rest += _exchanged_in_words(other, profile)
        text = f"Only the unordered pair {{t, s}} is identified; {how}; {rest}"
        return _mark(subject, checks, text) + "."
    if level == 2:
        text = "The ranking by t is separable, its level is not: " + pi
        return _mark(subject, checks, text) + "."
    return f"t and s are separable from these data: {pi}."


def _mark(subject: Subject, checks: list[Check], text: str) -> str:
    """Say so where π is what the priors make it."""
    if subject.fit.spec.name == "naive" or not prior_determined(subject, checks):
        return text
    return text + "; the class prior is prior-determined"


def _only_h(by_name: dict[str, Check], model: str) -> str:
    if model == "naive":
        return (
            "Only h = P(l=1 | x) is identified; it equals P(y=1 | x) only if every positive is "
            "labelled, which this model assumes and cannot check"
        )
    if by_name["design"].status == "failed":
        return (
            "Only h = s·t is identified: the distinct rows are fewer than the directions in which "
            "t and s can differ"
        )
    if by_name["ranking by t"].status == "failed":
        return "Only h = s·t is identified: not even the ranking by t is determined by these data"
    if model == "scar":
        return (
            "Only h = s·t is identified: the split rests on a constant propensity, which these "
            "data contradict"
        )
    return "Only h = s·t is identified: these data do not show that t varies with x at all"


def _pi_in_words(subject: Subject, profile: Profile | None) -> str:
    fit, pieces = subject.fit, _likelihood_pieces(profile)
    pi = float(np.mean(subject.pi_draws))
    likely = " and ".join(f"{low:.2f} to {high:.2f}" for low, high in pieces)
    if fit.is_point:
        if _outside(subject, profile):
            return (
                f"class prior {pi:.2f} (set by the penalty of this fit: under a weak one, sd 2.5 "
                f"on every slope, the likelihood leaves {likely})"
            )
        return f"class prior {pi:.2f}" + (
            f" (likelihood under a weak penalty {likely})" if likely else ""
        )
    low, high = interval(subject.pi_draws)
    prior_low, prior_high = interval(subject.prior_pi_and_c[0])
    words = f"class prior {pi:.2f} (at {CI_PROB:.0%}: posterior {low:.2f} to {high:.2f}"
    words += f", likelihood {likely}" if likely else ""
    words += f", prior {prior_low:.2f} to {prior_high:.2f})"
    if _outside(subject, profile):
        words += ", set by its priors outside of what the likelihood leaves"
    return words


def _exchanged_in_words(other: Array | None, profile: Profile | None) -> str:
    if other is None:
        return ""
    words = f", or {float(np.mean(other)):.2f}"
    if other.size > 1:
        low, high = interval(other)
        words += f" (posterior {low:.2f} to {high:.2f})"
    elif pieces := _likelihood_pieces(profile, branches=("exchanged",)):
        likely = " and ".join(f"{low:.2f} to {high:.2f}" for low, high in pieces)
        words += f" (likelihood {likely})"
    return words + " with the factors exchanged"


def _likelihood_pieces(
    profile: Profile | None, branches: tuple[str, ...] = OWN_BRANCHES
) -> list[tuple[float, float]]:
    return [] if profile is None else profile.likelihood_set(branches=branches)


def _outside(subject: Subject, profile: Profile | None) -> bool:
    """Whether the estimate of π lies where the likelihood under a weak penalty does not."""
    pieces, pi = _likelihood_pieces(profile), float(np.mean(subject.pi_draws))
    return bool(pieces) and not any(low - ROUNDING <= pi <= high + ROUNDING for low, high in pieces)


def audits_tell_pi(subject: Subject) -> bool:
    r"""Whether audited rows alone, taken as a random part of the unlabelled ones, tell π.

    .. math:: \hat\pi = P(l=1) + P(l=0)\,\hat m, \qquad
        \mathrm{se} = P(l=0) \sqrt{\hat m (1-\hat m) / k}

    for k audited unlabelled rows, a share m of them positive; without any logistic form.
    """
    data = subject.data
    if not data.n_audited:
        return False
    missed = int(np.sum(data.kind == RowKind.MISSED))
    m = (missed + 1) / (data.n_audited + 2)
    se = float(np.mean(data.l == 0)) * np.sqrt(m * (1 - m) / data.n_audited)
    return bool(se <= thresholds.SD_PI[0])


def _carriers(
    subject: Subject, checks: list[Check], level: int, profile: Profile | None
) -> tuple[str, ...]:
    status = {c.name: c.status for c in checks}
    carriers: list[str] = []
    if level < 4:
        carriers.append("data" if level_is_known(checks) else "data (the ranking, not π)")
    if not audits_tell_pi(subject):
        # Too few audited rows to tell π: its level is read from the logistic form.
        carriers.append("parametric form")
    wide = not subject.fit.is_point and status["profile of pi"] in ("failed", "weak")
    by_prior = prior_determined(subject, checks) or wide or _outside(subject, profile)
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
