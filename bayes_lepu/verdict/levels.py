r"""How well the level of t, the class prior π, and the order of the rows are known, and by what.

The *profile* of π is what the likelihood alone says about the level of t,

.. math:: \mathrm{pl}(\pi) = \max \{\, \log L(\theta) : E\,t(x) = \pi \,\},

traced from every materially different maximum in both directions: each point is the maximum with π
known from outside to a small error, which is the profile at the π that it attains. The set of π
within 1.92 of the maximum is the likelihood's own 95 % set. Where it is wide, a narrow posterior is
prior volume, not knowledge.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from bayes_lepu.data.pu_data import PUData
from bayes_lepu.data.weights import evenly_spaced
from bayes_lepu.engines.laplace import gaussian_near
from bayes_lepu.engines.optimizers import lbfgs, part_of
from bayes_lepu.links import Array, sigmoid
from bayes_lepu.model.density import LogDensity
from bayes_lepu.model.spec import ModelSpec
from bayes_lepu.priors.prior import weak_priors
from bayes_lepu.rows.factoring import solve
from bayes_lepu.verdict.peaks import Peak, Role, logit_pi
from bayes_lepu.verdict.records import (
    LIKELIHOOD_DROP,
    Aspect,
    Check,
    graded,
    passed_if,
)

if TYPE_CHECKING:
    from bayes_lepu.verdict.evidence import Evidence

# A criterion of the verdict, which must not move with the level at which intervals are shown
# (ArviZ's `stats.ci_prob`).
CI_PROB = 0.95
RANKING = (0.95, 0.85)  # mean correlation of a·x between draws and their mean
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
FEWER = "Use fewer columns, or audit some unlabelled rows (y=)."
FEWER_SPARSE = (
    "Judge the columns that matter as a dense table: fit with penalty='l1', then keep = "
    "np.flatnonzero(fit.draws.a[0]) and lepu.fit(X[:, keep].toarray(), l, ...); or audit some "
    "unlabelled rows (y=)."
)


def interval(values: Array, ci_prob: float = CI_PROB) -> tuple[float, float]:
    """Equal-tailed interval of draws."""
    low, high = np.quantile(values, [(1 - ci_prob) / 2, (1 + ci_prob) / 2])
    return float(low), float(high)


# The profile ----------------------------------------------------------------------------------

STOP_DROP = 6.0  # log-likelihood units below the maximum: three times what the 95 % set needs


@dataclass(frozen=True, eq=False)
class Profile:
    """Traced curves of the profile.

    Attributes
    ----------
    table : DataFrame
        Columns pi, delta (log likelihood with a weak ridge on the slopes minus its maximum over
        all branches, at most 0), branch (which orientation was followed) and curve (rows of one
        number are one traced line).
    """

    table: pd.DataFrame

    def likelihood_set(
        self, *, branches: tuple[Role, ...] = OWN_BRANCHES
    ) -> list[tuple[float, float]]:
        """Intervals of π within 1.92 of the maximum over these branches, ends interpolated."""
        part = self.table[self.table["branch"].isin(branches)]
        above = part.assign(delta=part["delta"] - part["delta"].max() + LIKELIHOOD_DROP)
        pieces: list[tuple[float, float]] = []
        for _, curve in above.groupby("curve"):
            pi, d = curve["pi"].to_numpy(), curve["delta"].to_numpy()
            inside = np.concatenate([[False], d >= 0, [False]])
            starts, stops = (np.flatnonzero(np.diff(inside.astype(int)) == s) for s in (1, -1))
            for i, k in zip(starts, stops - 1, strict=True):
                low = pi[0] if i == 0 else np.interp(0.0, d[[i - 1, i]], pi[[i - 1, i]])
                high = pi[-1] if k == len(d) - 1 else np.interp(0.0, d[[k + 1, k]], pi[[k + 1, k]])
                pieces.append((float(low), float(high)))
        merged: list[tuple[float, float]] = []
        for low, high in sorted(pieces):
            if merged and low <= merged[-1][1]:
                low, high = merged[-1][0], max(merged.pop()[1], high)
            merged.append((low, high))
        return merged


def with_known_pi(density: LogDensity, pi: float, error: float) -> LogDensity:
    """The density with one more observation, π ± error, besides what is known from outside."""
    outside = density.data.outside.copy()
    known, its_error = outside[0]
    if not np.isnan(known):
        weight = np.array([its_error**-2, error**-2])
        pi, error = float(np.average([known, pi], weights=weight)), float(weight.sum() ** -0.5)
    outside[0] = pi, error
    return replace(density, data=replace(density.data, outside=outside))


def climb(density: LogDensity, z: Array) -> Array:
    """The maximum near z: the curvature of a part of the rows sets the units of the steps."""
    # Steps end at a hundredth of what a reader sees.
    return lbfgs(density, z, curvature=part_of(density).logp_grad_info(z)[2], least=1e-4)


def trace_profile(evidence: "Evidence") -> Profile:
    """Trace the profile from the labelled peak, the best swapped one and the best other one."""
    best = max(p.logp for p in evidence.peaks)
    first, *rest = evidence.peaks
    near = sorted((p for p in rest if p.logp > best - STOP_DROP), key=lambda p: -p.logp)
    swapped, other = ([p for p in near if p.role is r][:1] for r in (Role.EXCHANGED, Role.OTHER))
    rows = [
        {"pi": pi, "delta": value, "branch": peak.role, "curve": number}
        for number, peak in enumerate([first, *swapped, *other])
        for pi, value in _trace(evidence.weak, peak)
    ]
    table = pd.DataFrame(rows)
    table["delta"] -= table["delta"].max()
    return Profile(table.sort_values(["curve", "pi"], ignore_index=True))


def _trace(density: LogDensity, peak: Peak) -> list[tuple[float, float]]:
    """Points (π, profile) from low to high π."""
    center, slope = logit_pi(density, peak.z)
    variance = float(slope @ solve(part_of(density).logp_grad_info(peak.z)[2], slope))
    sd = float(np.clip(np.sqrt(max(variance, 0.0)), 0.01, 0.8))
    step, points = min(0.5 * sd, 0.4), [(float(sigmoid(center)), peak.logp)]
    for direction in (-1.0, 1.0):
        z, top = peak.z, peak.logp
        for k in range(1, 41):  # half an sd each
            target = center + direction * k * step
            # Beyond π of .007 and .993 a range says nothing that is not known.
            if abs(target) > 5.0:
                break
            pi = float(sigmoid(target))
            z = climb(with_known_pi(density, pi, 0.1 * sd * pi * (1 - pi)), z)
            value = density.logp(z)
            points.append((float(sigmoid(logit_pi(density, z)[0])), value))
            top = max(top, value)
            if value < top - STOP_DROP:
                break
    return sorted(points)


# The spread of π ------------------------------------------------------------------------------


def sd_pi(evidence: "Evidence") -> float:
    """Posterior sd of π given the orientation, or the delta method's for a point estimate."""
    if evidence.fit.is_point:
        return evidence.local.sd(evidence.local.pi_gradient)
    return float(evidence.pi_given_naming.std(ddof=1))


def prior_speaks(evidence: "Evidence") -> bool:
    """Whether draws are narrow by their prior: beside the likelihood's set of π, or the prior."""
    if evidence.fit.is_point:
        return False
    (low, high), pieces = interval(evidence.pi_given_naming), evidence.likelihood_pieces
    beyond = bool(pieces) and pieces[-1][1] - pieces[0][0] > 1.5 * (high - low)
    return beyond or contraction(evidence) < 0.9


def power_scaling(evidence: "Evidence") -> pd.DataFrame:
    """How far every parameter, and π, moves with the weight of the prior and of the labels.

    Columns prior and likelihood (Kallioinen and others 2024, doi:10.1007/s11222-023-10366-5).
    """
    from arviz_base import from_dict
    from arviz_stats import psense

    fit, draws = evidence.fit, evidence.pivoted.take_flat().thin(1000)
    density = LogDensity(fit.spec, fit.data, fit.priors)
    z = density.pack(draws)
    prior = np.array([density.log_prior(one) for one in z])
    values = np.column_stack([z, fit.class_prior_draws(draws)[0]])
    groups = {
        "posterior": {"of": values[None]},
        "log_prior": {"all": prior[None]},
        "log_likelihood": {"all": (density.logps(z) - prior)[None]},
    }
    names = {"parameter": [*density.names, "pi"]}
    tree = from_dict(groups, coords=names, dims={"of": ["parameter"]})
    found = {group: psense(tree, group=group)["of"] for group in ("prior", "likelihood")}
    return pd.DataFrame(found, index=pd.Index(names["parameter"]))


def contraction(evidence: "Evidence") -> float:
    """1 - Var(posterior) / Var(prior) of π, the orientation given."""
    before = float(np.var(evidence.fit.prior_pi_and_c[0]))
    return 1 - float(np.var(evidence.pi_draws)) / max(before, 1e-300)


# The order of the rows ------------------------------------------------------------------------


def check_ranking(evidence: "Evidence") -> list[Check]:
    """Whether the order of the rows by t is determined: the direction of a in the data metric."""
    bearing: dict[str, Any] = {"bears_on": (Aspect.RANKING,), "needs": "weak"}
    if evidence.too_large:
        why = (
            f"with {evidence.size} the curvature, the profile of π, other forms and rivals were "
            "not computed, so that nothing shows how far the labels split h"
        )
        how = {"text": evidence.too_large, "consequence": why} | bearing
        remedy = FEWER_SPARSE if evidence.data.is_sparse else FEWER
        return [Check("ranking by t", "not computed", remedy=remedy, **how)]
    figure = ranking_stability(evidence)
    return [
        graded(
            "ranking by t",
            figure,
            RANKING,
            f"Rankings of the rows by t agree with their mean to a correlation of {figure:.3f}.",
            "Rank by h(x) (label_probability) instead, or bring more rows.",
            consequence="not even the ranking by t is determined by these data",
            **bearing,
        )
    ]


def ranking_stability(evidence: "Evidence") -> float:
    """Mean correlation of a·x over the data between draws of a and their mean."""
    fit, data = evidence.fit, evidence.data
    covariance = np.atleast_2d(np.cov(data.X, rowvar=False, ddof=0, aweights=data.weight))
    if fit.is_point:
        rng, density = np.random.default_rng(0), fit.density
        # Information that several annotators' labels would have with known classes is too much.
        near = gaussian_near(density, density.pack(evidence.point)) if evidence.several else None
        draws = np.zeros((500, data.p))
        z = (evidence.local if near is None else near).sample(rng, len(draws))
        draws[:, data.class_mask] = z[:, density.blocks.a]
        center = evidence.point.a
    else:
        draws = evidence.pivoted.take_flat().a
        center = draws.mean(axis=0)
    cross = draws @ covariance @ center
    sizes = np.einsum("ij,jk,ik->i", draws, covariance, draws) * (center @ covariance @ center)
    return float(np.mean(cross / np.sqrt(np.maximum(sizes, 1e-300))))


# Whether this table could ever tell the factors apart -----------------------------------------

DESIGN_ROWS = 4000  # distinct rows: some dozen times the directions of the widest dense table


def check_design(evidence: "Evidence") -> list[Check]:
    """Rank of the Jacobian of log h on the distinct rows against the directions of t and s.

    Continuous columns always have it; binary ones need at least three columns (SPM) or four
    (PsychM), and mutually exclusive (one-hot) columns never do.
    """
    data, spec = evidence.data, evidence.fit.spec
    if evidence.several or data.is_sparse:
        return []
    rows = distinct_rows(data.X)
    needed = directions_needed(spec, data, rows)
    rank = jacobian_rank(spec, data, rows, needed)
    support = f"{rank} of the" if rank < needed else "all"
    remedy = (
        "No amount of rows of this kind identifies the model: add columns with more distinct "
        "values, give the factors different columns, or use a model with fewer parameters "
        "(model='scar')."
        if len(rows) < data.n
        else "There are more parameters than rows: the penalty or the prior decides the rest. "
        "Bring more rows, or use fewer columns."
    )
    return [
        Check(
            "design",
            passed_if(rank >= needed),
            float(needed - rank),
            "no direction missing",
            f"{len(rows)} distinct rows support {support} {needed} directions in which t and s can "
            f"move{' (some of them)' if len(rows) == DESIGN_ROWS else ''}.",
            remedy,
            bears_on=(Aspect.RANKING,),
            needs="passed",
            consequence="the distinct rows are fewer than the directions in which t and s can "
            "differ",
        ),
    ]


def distinct_rows(X: Array) -> Array:
    """Distinct rows, at most `DESIGN_ROWS` of them."""
    rows = np.unique(X[evenly_spaced(len(X), 50 * DESIGN_ROWS)], axis=0)
    return rows[evenly_spaced(len(rows), DESIGN_ROWS)]


def directions_needed(spec: ModelSpec, data: PUData, rows: Array) -> int:
    """Dimension of (t, s) as functions on these rows."""
    masks = [data.class_mask, *([data.selection_mask] if spec.has_selection else [])]
    return spec.n_rates + sum(_rank(_with_one(rows[:, mask])) for mask in masks)


def jacobian_rank(spec: ModelSpec, data: PUData, rows: Array, needed: int) -> int:
    """Rank of d log h / d θ on these rows at generic parameters (the best of three)."""
    if len(rows) < needed:
        return len(rows)
    spec = replace(spec, false_marks=False)  # false marks are not part of the question
    density = LogDensity(spec, data, spec.complete_priors(weak_priors(1, 1), None))
    rng, blocks = np.random.default_rng(0), density.blocks
    spread = np.maximum(rows.std(axis=0), 1e-12) * np.sqrt(data.p)

    def log_h(z: Array) -> Array:
        return np.log(density.unpack(z).h(rows))

    ranks = []
    for _ in range(3):
        z = rng.normal(0, 1.5, density.dim)
        z[blocks.a] /= spread[data.class_mask]
        if spec.has_selection:
            z[blocks.alpha] /= spread[data.selection_mask]
        z[blocks.rates] = [-1.5, -2.0][: spec.n_rates]
        # Differences of the fourth order: exact to some 1e-12.
        steps = 1e-3 * np.eye(density.dim)
        columns = [8 * (log_h(z + e) - log_h(z - e)) - log_h(z + 2 * e) + log_h(z - 2 * e)
                   for e in steps]  # fmt: skip
        ranks.append(_rank(np.column_stack(columns)))
    return max(ranks)


def _with_one(X: Array) -> Array:
    return np.column_stack([X, np.ones(len(X))])


def _rank(A: Array) -> int:
    """Numerical rank after scaling the columns to unit length."""
    sizes = np.linalg.norm(A, axis=0)
    scaled = A[:, sizes > 0] / sizes[sizes > 0]
    if not scaled.size or not np.all(np.isfinite(scaled)):
        return 0
    values = np.linalg.svd(scaled, compute_uv=False)
    # Far above rounding, far below any slope.
    return int(np.sum(values > 1e-9 * values[0]))
