r"""How well the level of t, the class prior π, is known, and by what.

The likelihood set of π (`profile`), the sd of π, and the posterior interval set against both the
likelihood set and the prior. A narrow posterior on a flat likelihood is prior volume, not
knowledge.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from bayes_lepu.diagnostics import thresholds
from bayes_lepu.diagnostics.records import Aspect, Check, not_applicable, not_computed
from bayes_lepu.diagnostics.subject import Role, Subject
from bayes_lepu.diagnostics.thresholds import graded
from bayes_lepu.links import Array
from bayes_lepu.models.parameters import Parameters
from bayes_lepu.models.variables import scalars
from bayes_lepu.result.numbers_in_words import share

if TYPE_CHECKING:
    from bayes_lepu.diagnostics.evidence import Evidence

# A criterion of the verdict, which must not move with the level at which intervals are shown
# (ArviZ's `stats.ci_prob`).
CI_PROB = 0.95
OWN_BRANCHES = (Role.AS_LABELLED, Role.OTHER)
LEVEL_REMEDY = (
    "Audit some unlabelled rows (y=), have several annotators look at the same rows "
    "(one column of l each), name a column that enters only one factor, or bring a class prior "
    "known from elsewhere (class_prior=)."
)
SHARED_REMEDY = (
    "Show more rows to two annotators or more, audit some unlabelled rows (y=), or name a column "
    "that enters only one factor."
)


_LEVEL: dict[str, Any] = {
    "bears_on": (Aspect.LEVEL,),
    "needs": "passed",
    "consequence": "the labels leave it too wide",
}
# Of several annotators the range over forms of marking has to pass, and it is never narrower than
# four sd of π: where it passes, a weak sd is enough.
_OF_SEVERAL = _LEVEL | {"needs": "weak"}
_PROFILE = _LEVEL | {"bears_on": (Aspect.LEVEL, Aspect.PRIOR)}
_SHARE: dict[str, Any] = {"bears_on": (Aspect.LEVEL, Aspect.PRIOR)}


def interval(values: Array, ci_prob: float = CI_PROB) -> tuple[float, float]:
    """Equal-tailed interval of draws."""
    low, high = np.quantile(values, [(1 - ci_prob) / 2, (1 + ci_prob) / 2])
    return float(low), float(high)


def likelihood_width(pieces: list[tuple[float, float]]) -> float:
    """From the lowest to the highest π of the set."""
    return pieces[-1][1] - pieces[0][0]


NOT_COMPUTED = not_computed("profile of pi", **_PROFILE)


def check_profile(subject: Subject, evidence: "Evidence") -> list[Check]:
    """The likelihood's own set of π, given the naming of the factors."""
    assert evidence.profile is not None
    pieces = evidence.profile.likelihood_set(branches=OWN_BRANCHES)
    width = likelihood_width(pieces)
    bounds = thresholds.relative(thresholds.PROFILE_WIDTH, float(np.mean(subject.pi_draws)))
    words = " and ".join(f"{share(low)} to {share(high)}" for low, high in pieces)
    return [
        graded(
            "profile of pi",
            width,
            bounds,
            f"The likelihood alone leaves π in {words} (95 % set, naming of the factors given).",
            LEVEL_REMEDY,
            threshold="{}, one piece",
            status="failed" if len(pieces) > 1 else None,
            **_PROFILE,
        )
    ]


def sd_pi(subject: Subject) -> float:
    """Posterior sd of π given the naming, or the delta method's for a point estimate."""
    if subject.fit.is_point:
        return subject.local.sd(subject.local.pi_gradient)
    return float(subject.pi_given_naming.std(ddof=1))


def check_sd(subject: Subject, evidence: "Evidence") -> list[Check]:
    """Standard deviation of π."""
    bearing = _OF_SEVERAL if subject.several else _LEVEL
    if subject.fit.is_point and subject.several:
        return [
            not_computed(
                "sd of pi",
                "A point estimate has no spread.",
                "Use method='laplace' or 'nuts'.",
                **bearing | {"consequence": "a point estimate does not say how well it is known"},
            )
        ]
    if subject.fit.is_point and subject.too_large:
        return [not_computed("sd of pi", subject.too_large, **bearing)]
    sd = sd_pi(subject)
    bounds = thresholds.relative(thresholds.SD_PI, float(np.mean(subject.pi_draws)))
    source = "delta method" if subject.fit.is_point else "posterior"
    source += "" if subject.several else ", naming of the factors given"
    return [
        graded(
            "sd of pi",
            sd,
            bounds,
            f"π is known to ±{share(sd, 3)} ({source}).",
            SHARED_REMEDY if subject.several else LEVEL_REMEDY,
            **bearing,
        )
    ]


def check_against_profile(subject: Subject, evidence: "Evidence") -> list[Check]:
    """Width of the likelihood set of π over that of its posterior interval."""
    name = "profile against posterior"
    if subject.fit.is_point:
        return [not_applicable(name, "A point estimate has no interval.")]
    profile = evidence.profile
    if profile is None:
        return [not_computed(name, subject.too_large, **_SHARE)]
    pieces = profile.likelihood_set(branches=OWN_BRANCHES)
    low, high = interval(subject.pi_given_naming)
    prior_low, prior_high = interval(subject.prior_pi_and_c[0])
    ratio = likelihood_width(pieces) / max(high - low, 1e-12)
    return [
        graded(
            name,
            ratio,
            thresholds.PROFILE_RATIO,
            f"π: likelihood {share(pieces[0][0])} to {share(pieces[-1][1])}, posterior "
            f"{share(low)} to {share(high)}, prior {share(prior_low)} to {share(prior_high)}.",
            "The posterior is narrower than the data justify: it is the volume of the prior. Read "
            "the likelihood set instead, or defend the priors.",
            **_SHARE,
        )
    ]


def check_contraction(subject: Subject, evidence: "Evidence") -> list[Check]:
    """Contraction 1 - Var(posterior) / Var(prior) of π, with those of other quantities in words."""
    if subject.fit.is_point:
        return [not_applicable("contraction", "A point estimate has no posterior.")]
    figures = contractions(subject)
    pi = figures.pop("pi")
    rest = ", ".join(f"{k} {v:.2f}" for k, v in figures.items())
    return [
        graded(
            "contraction",
            pi,
            thresholds.CONTRACTION,
            f"The data removed {pi:.0%} of the prior variance of π"
            + (f"; of the others: {rest}." if rest else "."),
            SHARED_REMEDY if subject.several else "",
            **(_OF_SEVERAL | _SHARE if subject.several else _SHARE),
        )
    ]


def contractions(subject: Subject) -> dict[str, float]:
    """1 - Var(posterior) / Var(prior) of the quantities that matter, naming given."""
    spec, data = subject.fit.spec, subject.data

    def values(draws: Parameters, pi: Array, c: Array) -> dict[str, Array]:
        if subject.several:  # the others are too many to be listed
            return {"pi": pi}
        return {"pi": pi, "c": c} | scalars(spec, data, draws.take_flat())

    after = values(subject.pivoted, *subject.pi_and_c)
    before = values(subject.prior_draws, *subject.prior_pi_and_c)
    return {k: 1 - float(np.var(after[k]) / max(np.var(before[k]), 1e-300)) for k in after}
