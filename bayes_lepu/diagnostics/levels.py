r"""How well the level of t, the class prior π, is known, and by what.

The likelihood set of π (`profile`), the sd of π, the posterior interval set against both the
likelihood set and the prior, and the width of t's intervals against those of h. A narrow posterior
on a flat likelihood is prior volume, not knowledge.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from bayes_lepu.diagnostics import thresholds
from bayes_lepu.diagnostics.records import Aspect, Check
from bayes_lepu.diagnostics.subject import Subject
from bayes_lepu.diagnostics.thresholds import grade, in_words
from bayes_lepu.links import Array
from bayes_lepu.models.factors import scalars
from bayes_lepu.models.parameters import Parameters
from bayes_lepu.result.numbers_in_words import share

if TYPE_CHECKING:
    from bayes_lepu.diagnostics.evidence import Evidence

CI_PROB = 0.95
ROWS_FOR_WIDTHS = 500
DRAWS_FOR_WIDTHS = 1000
OWN_BRANCHES = ("as labelled", "other")
LEVEL_REMEDY = (
    "Audit some unlabelled rows (y=), have several annotators look at the same rows "
    "(one column of l each), name a column that enters only one factor, or bring a class prior "
    "known from elsewhere (class_prior=)."
)


_LEVEL: dict[str, Any] = {
    "bears_on": (Aspect.LEVEL,),
    "needs": "passed",
    "consequence": "the labels leave it too wide",
}
_PROFILE = _LEVEL | {"bears_on": (Aspect.LEVEL, Aspect.PRIOR)}
_SHARE: dict[str, Any] = {"bears_on": (Aspect.LEVEL, Aspect.PRIOR)}


def interval(values: Array, ci_prob: float = CI_PROB) -> tuple[float, float]:
    """Equal-tailed interval of draws."""
    low, high = np.quantile(values, [(1 - ci_prob) / 2, (1 + ci_prob) / 2])
    return float(low), float(high)


def likelihood_width(pieces: list[tuple[float, float]]) -> float:
    """From the lowest to the highest π of the set."""
    return pieces[-1][1] - pieces[0][0]


def check_profile(subject: Subject, evidence: "Evidence") -> list[Check]:
    """The likelihood's own set of π, given the naming of the factors."""
    name = "profile of pi"
    profile = evidence.profile
    if profile is None:
        return [Check(name, "not computed", None, "", "Too many coordinates.", **_PROFILE)]
    pieces = profile.likelihood_set(branches=OWN_BRANCHES)
    width = likelihood_width(pieces)
    bounds = thresholds.relative(thresholds.PROFILE_WIDTH, float(np.mean(subject.pi_draws)))
    status = grade(width, bounds)
    if len(pieces) > 1:
        status = "failed"
    words = " and ".join(f"{share(low)} to {share(high)}" for low, high in pieces)
    return [
        Check(
            name,
            status,
            width,
            in_words(bounds) + ", one piece",
            f"The likelihood alone leaves π in {words} (95 % set, naming of the factors given).",
            "" if status == "passed" else LEVEL_REMEDY,
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
    if subject.fit.is_point and not subject.small:
        return [Check("sd of pi", "not computed", None, "", "Too many coordinates.", **_LEVEL)]
    sd = sd_pi(subject)
    bounds = thresholds.relative(thresholds.SD_PI, float(np.mean(subject.pi_draws)))
    status = grade(sd, bounds)
    source = "delta method" if subject.fit.is_point else "posterior"
    return [
        Check(
            "sd of pi",
            status,
            sd,
            in_words(bounds),
            f"π is known to ±{share(sd, 3)} ({source}, naming of the factors given).",
            "" if status == "passed" else LEVEL_REMEDY,
            **_LEVEL,
        )
    ]


def check_against_profile(subject: Subject, evidence: "Evidence") -> list[Check]:
    """Width of the likelihood set of π over that of its posterior interval."""
    name = "profile against posterior"
    if subject.fit.is_point:
        return [Check(name, "not applicable", None, "", "A point estimate has no interval.")]
    profile = evidence.profile
    if profile is None:
        return [Check(name, "not computed", None, "", "Too many coordinates.", **_SHARE)]
    pieces = profile.likelihood_set(branches=OWN_BRANCHES)
    low, high = interval(subject.pi_given_naming)
    prior_low, prior_high = interval(subject.prior_pi_and_c[0])
    ratio = likelihood_width(pieces) / max(high - low, 1e-12)
    status = grade(ratio, thresholds.PROFILE_RATIO)
    return [
        Check(
            name,
            status,
            ratio,
            in_words(thresholds.PROFILE_RATIO),
            f"π: likelihood {share(pieces[0][0])} to {share(pieces[-1][1])}, posterior "
            f"{share(low)} to {share(high)}, prior {share(prior_low)} to {share(prior_high)}.",
            ""
            if status == "passed"
            else "The posterior is narrower than the data justify: it is the volume of the prior. "
            "Read the likelihood set instead, or defend the priors.",
            **_SHARE,
        )
    ]


def check_contraction(subject: Subject, evidence: "Evidence") -> list[Check]:
    """Contraction 1 - Var(posterior) / Var(prior) of π, with those of other quantities in words."""
    if subject.fit.is_point:
        return [
            Check("contraction", "not applicable", None, "", "A point estimate has no posterior.")
        ]
    figures = contractions(subject)
    pi = figures["pi"]
    rest = ", ".join(f"{k} {v:.2f}" for k, v in figures.items() if k != "pi")
    return [
        Check(
            "contraction",
            grade(pi, thresholds.CONTRACTION),
            pi,
            in_words(thresholds.CONTRACTION),
            f"The data removed {pi:.0%} of the prior variance of π; of the others: {rest}.",
            **_SHARE,
        )
    ]


def contractions(subject: Subject) -> dict[str, float]:
    """1 - Var(posterior) / Var(prior) of the quantities that matter, naming given."""
    spec, data = subject.fit.spec, subject.data

    def values(draws: Parameters, pi: Array, c: Array) -> dict[str, Array]:
        return {"pi": pi, "c": c} | scalars(spec, data, draws.take_flat())

    after = values(subject.pivoted, *subject.pi_and_c)
    before = values(subject.prior_draws, *subject.prior_pi_and_c)
    return {k: 1 - float(np.var(after[k]) / max(np.var(before[k]), 1e-300)) for k in after}


def check_widths(subject: Subject, evidence: "Evidence") -> list[Check]:
    """A = mean width of t's intervals over that of h's: necessary, not sufficient."""
    name = "width of t against h"
    if subject.fit.is_point:
        return [Check(name, "not applicable", None, "", "A point estimate has no intervals.")]
    t, h = (mean_width(subject, f) for f in (Parameters.t, Parameters.h))
    ratio = t / max(h, 1e-12)
    # h = s t is narrower than t by the factor s alone; the bounds were found at c near 1/2.
    c = float(np.mean(subject.pi_and_c[1]))
    good, bad = (bound * max(0.5 / c, 1.0) for bound in thresholds.WIDTH_RATIO)
    status = grade(ratio, (good, bad))
    return [
        Check(
            name,
            status,
            ratio,
            in_words((good, bad)),
            f"h is known to ±{share(h / 2, 3)}, t to ±{share(t / 2, 3)} (95 %, mean over the "
            "rows).",
            "" if status != "failed" else "Use h(x) for ranking where t is this uncertain.",
            bears_on=(Aspect.LEVEL,),
        )
    ]


def mean_width(subject: Subject, function: object) -> float:
    """Mean width of the 95 % intervals of a function of x over some rows."""
    flat = subject.pivoted.take_flat()
    some = flat.take(slice(None, None, max(1, flat.b.size // DRAWS_FOR_WIDTHS)))
    X = subject.data.X
    rows = X[:: max(1, len(X) // ROWS_FOR_WIDTHS)]
    low, high = np.quantile(function(some, rows), [0.025, 0.975], axis=0)  # type: ignore[operator]
    return float(np.mean(high - low))
