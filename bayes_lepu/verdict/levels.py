r"""How well the level of t, the class prior π, is known, and by what.

The likelihood set of π (`profile`), the sd of π, and the posterior interval set against both the
likelihood set and the prior. A narrow posterior on a flat likelihood is prior volume, not
knowledge.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from bayes_lepu.engines.laplace import gaussian_near
from bayes_lepu.links import Array
from bayes_lepu.model.parameters import Parameters
from bayes_lepu.model.variables import scalars
from bayes_lepu.result.numbers_in_words import share
from bayes_lepu.verdict import thresholds
from bayes_lepu.verdict.climbing import Role
from bayes_lepu.verdict.records import Aspect, Check, not_applicable, not_computed
from bayes_lepu.verdict.thresholds import graded

if TYPE_CHECKING:
    from bayes_lepu.verdict.evidence import Evidence

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


def check_profile(evidence: "Evidence") -> list[Check]:
    """The likelihood's own set of π, given the naming of the factors."""
    assert evidence.profile is not None
    pieces = evidence.profile.likelihood_set(branches=OWN_BRANCHES)
    width = likelihood_width(pieces)
    bounds = thresholds.relative(thresholds.PROFILE_WIDTH, float(np.mean(evidence.pi_draws)))
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


def sd_pi(evidence: "Evidence") -> float:
    """Posterior sd of π given the naming, or the delta method's for a point estimate."""
    if evidence.fit.is_point:
        return evidence.local.sd(evidence.local.pi_gradient)
    return float(evidence.pi_given_naming.std(ddof=1))


def check_sd(evidence: "Evidence") -> list[Check]:
    """Standard deviation of π."""
    bearing = _OF_SEVERAL if evidence.several else _LEVEL
    if evidence.fit.is_point and evidence.several:
        return [
            not_computed(
                "sd of pi",
                "A point estimate has no spread.",
                "Use method='laplace' or 'nuts'.",
                **bearing | {"consequence": "a point estimate does not say how well it is known"},
            )
        ]
    if evidence.fit.is_point and evidence.too_large:
        return [not_computed("sd of pi", evidence.too_large, **bearing)]
    sd = sd_pi(evidence)
    bounds = thresholds.relative(thresholds.SD_PI, float(np.mean(evidence.pi_draws)))
    source = "delta method" if evidence.fit.is_point else "posterior"
    source += "" if evidence.several else ", naming of the factors given"
    return [
        graded(
            "sd of pi",
            sd,
            bounds,
            f"π is known to ±{share(sd, 3)} ({source}).",
            SHARED_REMEDY if evidence.several else LEVEL_REMEDY,
            **bearing,
        )
    ]


def check_against_profile(evidence: "Evidence") -> list[Check]:
    """Width of the likelihood set of π over that of its posterior interval."""
    name = "profile against posterior"
    if evidence.fit.is_point:
        return [not_applicable(name, "A point estimate has no interval.")]
    profile = evidence.profile
    if profile is None:
        return [not_computed(name, evidence.too_large, **_SHARE)]
    pieces = profile.likelihood_set(branches=OWN_BRANCHES)
    low, high = interval(evidence.pi_given_naming)
    prior_low, prior_high = interval(evidence.fit.prior_pi_and_c[0])
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


def check_contraction(evidence: "Evidence") -> list[Check]:
    """Contraction 1 - Var(posterior) / Var(prior) of π, with those of other quantities in words."""
    if evidence.fit.is_point:
        return [not_applicable("contraction", "A point estimate has no posterior.")]
    figures = contractions(evidence)
    pi = figures.pop("pi")
    rest = ", ".join(f"{k} {v:.2f}" for k, v in figures.items())
    return [
        graded(
            "contraction",
            pi,
            thresholds.CONTRACTION,
            f"The data removed {pi:.0%} of the prior variance of π"
            + (f"; of the others: {rest}." if rest else "."),
            SHARED_REMEDY if evidence.several else "",
            **(_OF_SEVERAL | _SHARE if evidence.several else _SHARE),
        )
    ]


def contractions(evidence: "Evidence") -> dict[str, float]:
    """1 - Var(posterior) / Var(prior) of the quantities that matter, naming given."""
    spec, data = evidence.fit.spec, evidence.data

    def values(draws: Parameters, pi: Array, c: Array) -> dict[str, Array]:
        if evidence.several:  # the others are too many to be listed
            return {"pi": pi}
        return {"pi": pi, "c": c} | scalars(spec, data, draws.take_flat())

    after = values(evidence.pivoted, *evidence.pi_and_c)
    before = values(evidence.fit.prior_draws, *evidence.fit.prior_pi_and_c)
    return {k: 1 - float(np.var(after[k]) / max(np.var(before[k]), 1e-300)) for k in after}


FEWER = "Use fewer columns, or audit some unlabelled rows (y=)."
FEWER_SPARSE = (
    "Judge the columns that matter as a dense table: fit with penalty='l1', then keep = "
    "np.flatnonzero(fit.draws.a[0]) and lepu.fit(X[:, keep].toarray(), l, ...); or audit some "
    "unlabelled rows (y=)."
)


def check_ranking(evidence: "Evidence") -> list[Check]:
    """Whether the order of the rows by t is determined: the direction of a in the data metric."""
    if evidence.too_large:
        return [
            not_computed(
                "ranking by t",
                evidence.too_large,
                FEWER_SPARSE if evidence.data.is_sparse else FEWER,
                bears_on=(Aspect.RANKING,),
                needs="weak",
                consequence=f"with {evidence.size} the curvature, the profile of π, other forms "
                "and rivals were not computed, so that nothing shows how far the labels split h",
            )
        ]
    figure = ranking_stability(evidence)
    return [
        graded(
            "ranking by t",
            figure,
            thresholds.RANKING,
            f"Rankings of the rows by t agree with their mean to a correlation of {figure:.3f}.",
            "Rank by h(x) (label_probability) instead, or bring more rows.",
            remedy_from="failed",
            bears_on=(Aspect.RANKING,),
            needs="weak",
            consequence="not even the ranking by t is determined by these data",
        )
    ]


def ranking_stability(evidence: "Evidence") -> float:
    """Mean correlation of a·x over the data between draws of a and their mean."""
    covariance = np.cov(evidence.data.X, rowvar=False, ddof=0, aweights=evidence.data.row_weights)
    covariance = np.atleast_2d(covariance)
    if evidence.fit.is_point:
        rng, density = np.random.default_rng(0), evidence.fit.density
        # Information that several annotators' labels would have with known classes is too much.
        near = gaussian_near(density, density.pack(evidence.point)) if evidence.several else None
        z = (evidence.local if near is None else near).sample(rng, 500)
        draws = np.zeros((500, evidence.data.p))
        draws[:, evidence.data.class_mask] = z[:, density.blocks.a]
        center = evidence.point.a
    else:
        draws = evidence.pivoted.take_flat().a
        center = draws.mean(axis=0)
    cross = draws @ covariance @ center
    sizes = np.einsum("ij,jk,ik->i", draws, covariance, draws) * (center @ covariance @ center)
    return float(np.mean(cross / np.sqrt(np.maximum(sizes, 1e-300))))
