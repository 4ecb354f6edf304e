"""Checks of the split of h into t and s: design, ranking, orientation and convergence.

*Design* compares the rank of d log h / dθ on the distinct rows with the dimension of (t, s).
Continuous columns always have full rank. Binary columns have it from three columns (SPM) or four
(PsychM) on, mutually exclusive (one-hot) columns never.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bayes_lepu.data.pu_data import PUData
from bayes_lepu.data.weights import evenly_spaced
from bayes_lepu.engines.laplace import gaussian_near
from bayes_lepu.links import Array
from bayes_lepu.model.density import LogDensity
from bayes_lepu.model.spec import ModelSpec
from bayes_lepu.model.variables import scalars
from bayes_lepu.priors.prior import weak_priors
from bayes_lepu.result.facts import orientation_sentence
from bayes_lepu.result.numbers_in_words import UNITS, worse
from bayes_lepu.verdict.class_prior import (
    ENOUGH_DRAWS,
    exchange_gap,
    exchanged_peak,
    share_positive,
)
from bayes_lepu.verdict.records import MODE_GAP, Aspect, Check, Status, grade, graded, passed_if

if TYPE_CHECKING:
    from bayes_lepu.verdict.evidence import Evidence

# Design ---------------------------------------------------------------------------------------

DESIGN_ROWS = 4000  # distinct rows: about a dozen times the dimension of the widest dense table


def check_split(evidence: "Evidence") -> list[Check]:
    """Whether the model splits h, and whether the distinct rows suffice to identify the split."""
    data, spec, checks = evidence.data, evidence.fit.spec, []
    ranking: dict[str, Any] = {"bears_on": (Aspect.RANKING,), "needs": "passed"}
    if not data.is_sparse and not evidence.several:
        rows = distinct_rows(data.X)
        rank, needed = jacobian_rank(spec, data, rows)
        support = f"{rank} of the" if rank < needed else "all"
        remedy = "There are more parameters than rows: the penalty or the prior decides the rest. "
        remedy += "Bring more rows, or use fewer columns."
        if len(rows) < data.n:
            remedy = (
                "No amount of rows of this kind identifies the model: add columns with more "
                "distinct values, give the factors different columns, or use a model with fewer "
                "parameters (model='scar')."
            )
        checks.append(
            Check(
                "design",
                passed_if(rank >= needed),
                float(needed - rank),
                "no direction missing",
                f"{len(rows)} distinct rows support {support} {needed} directions in which t and s "
                f"can move{' (some of them)' if len(rows) == DESIGN_ROWS else ''}.",
                remedy,
                consequence="the distinct rows are fewer than the directions in which t and s can "
                "differ",
                **ranking,
            )
        )
    if spec.certain and not evidence.several:
        text = "This model sets s = 1, so t = h: nothing is split."
        remedy = "Fit model='scar', 'spm' or 'psychm' where positives may be unlabelled."
        ranking["consequence"] = "it equals P(y=1 | x) only if every positive is labelled, which "
        ranking["consequence"] += "this model assumes and cannot check"
        checks.append(Check("split of h", "failed", text=text, remedy=remedy, **ranking))
    return checks


def distinct_rows(X: Array) -> Array:
    """Distinct rows, at most `DESIGN_ROWS` of them."""
    rows = np.unique(X[evenly_spaced(len(X), 50 * DESIGN_ROWS)], axis=0)
    return rows[evenly_spaced(len(rows), DESIGN_ROWS)]


def jacobian_rank(spec: ModelSpec, data: PUData, rows: Array) -> tuple[int, int]:
    """Rank of d log h / d θ on these rows at generic parameters, and dimension of (t, s) there."""
    masks, ones = (
        [data.class_mask, data.selection_mask][: 1 + spec.has_selection],
        np.ones(len(rows)),
    )
    needed = spec.n_rates + sum(_rank(np.column_stack([rows[:, m], ones])) for m in masks)
    if len(rows) < needed:
        return len(rows), needed
    spec = replace(spec, false_marks=False)  # false marks are not part of the question
    density = LogDensity(spec, data, spec.complete_priors(weak_priors(1, 1), None))
    rng, blocks, ranks = np.random.default_rng(0), density.blocks, []
    spread = np.maximum(rows.std(axis=0), 1e-12) * np.sqrt(data.p)

    def log_h(z: Array, X: Array) -> Array:
        return np.log(density.unpack(z).h(X))

    few = rows[evenly_spaced(len(rows), 5 * needed)]  # usually enough for full rank
    for some in (few, rows, rows):  # the best of three points
        z = rng.normal(0, 1.5, density.dim)
        z[blocks.a] /= spread[data.class_mask]
        if spec.has_selection:
            z[blocks.alpha] /= spread[data.selection_mask]
        z[blocks.rates] = [-1.5, -2.0][: spec.n_rates]
        # Fourth-order differences: exact to about 1e-12.
        steps = 1e-3 * np.eye(density.dim)
        near, far = ([log_h(z + k * e, some) - log_h(z - k * e, some) for e in steps]
                     for k in (1, 2))  # fmt: skip
        columns = [8 * one - two for one, two in zip(near, far, strict=True)]
        ranks.append(_rank(np.column_stack(columns)))
        if ranks[-1] == needed:
            break
    return max(ranks), needed


def _rank(A: Array) -> int:
    """Numerical rank after scaling the columns to unit length."""
    sizes = np.linalg.norm(A, axis=0)
    scaled = A[:, sizes > 0] / sizes[sizes > 0]
    if not scaled.size or not np.all(np.isfinite(scaled)):
        return 0
    values = np.linalg.svd(scaled, compute_uv=False)
    # Far above rounding, far below any slope.
    return int(np.sum(values > 1e-9 * values[0]))


# The order of the rows ------------------------------------------------------------------------

RANKING = (0.95, 0.85)  # mean correlation of a·x between draws and their mean


def check_ranking(evidence: "Evidence") -> list[Check]:
    """Whether the order of the rows by t is identified: the direction of a in the data metric."""
    bearing: dict[str, Any] = {"bears_on": (Aspect.RANKING,), "needs": "weak"}
    if text := evidence.too_large:
        bearing["consequence"] = (
            f"with {text.removeprefix('Too large a table: ').split(',')[0]} the curvature, the "
            "profile of π, other forms and rivals were not computed, so that nothing shows how far "
            "the labels split h"
        )
        remedy = "Use fewer columns, or audit some unlabelled rows (y=)."
        if evidence.data.is_sparse:
            remedy = (
                "Judge the columns that matter as a dense table: fit with penalty='l1', then keep "
                "= np.flatnonzero(fit.draws.a[0]) and lepu.fit(X[:, keep].toarray(), l, ...); or "
                "audit some unlabelled rows (y=)."
            )
        return [Check("ranking by t", "not computed", text=text, remedy=remedy, **bearing)]
    bearing["consequence"] = "not even the ranking by t is determined by these data"
    figure = ranking_stability(evidence)
    text = f"Rankings of the rows by t agree with their mean to a correlation of {figure:.3f}."
    remedy = "Rank by h(x) (label_probability) instead, or bring more rows."
    return [graded("ranking by t", figure, RANKING, text, remedy, **bearing)]


def ranking_stability(evidence: "Evidence") -> float:
    """Mean correlation of a·x over the data between draws of a and their mean."""
    fit, data = evidence.fit, evidence.data
    covariance = np.atleast_2d(np.cov(data.X, rowvar=False, ddof=0, aweights=data.weight))
    if fit.is_point:
        rng, density = np.random.default_rng(0), fit.density
        # The expected information assumes known classes and is too large for several annotators.
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


# Which factor is the class --------------------------------------------------------------------

ORIENTATION = (0.99, 0.95)  # posterior probability
RESOLVE = (
    "Resolve it with a column that enters only one factor (selection_features=, class_features=), "
    "with audited rows (y=), with several annotators of the same rows (one column of l each), or "
    "with priors you can defend (in the SPM together with "
    "orientation='none', or the rule decides)."
)


def exchanged_pi(evidence: "Evidence") -> Array | None:
    """π with t and s swapped: draws where there are enough, else one value, else None."""
    fit = evidence.fit
    if evidence.several:
        return None
    if evidence.symmetric:
        return fit.class_prior_draws(evidence.pivoted.swap())[0]
    if not fit.is_point and "exchanged" in fit.stats:
        other = np.asarray(fit.stats["exchanged"]).ravel() > 0.5
        if other.sum() >= ENOUGH_DRAWS:
            return fit.pi_draws.ravel()[other]
    peak = evidence.peaks[0] if evidence.contradicted else exchanged_peak(evidence)
    return None if peak is None else np.array([share_positive(peak.point, evidence.weak.data)])


def _comparable(evidence: "Evidence") -> bool:
    """Whether the likelihood of the swapped orientation can be computed."""
    return evidence.symmetric or not (evidence.several or evidence.data.is_sparse)


def oriented_by_signs(evidence: "Evidence") -> bool:
    """Whether signs in the priors decide which factor is t, and the data do not."""
    if evidence.fit.orientation.settled_by != "priors" or not _comparable(evidence):
        return False
    return grade(exchange_gap(evidence), MODE_GAP) != "passed"


def check_orientation(evidence: "Evidence") -> list[Check]:
    """Which factor is the class, by assumption, by prior, or by the data."""
    fit, bend = evidence.fit, evidence.bend
    if evidence.several:
        return []

    def record(status: Status, gap: float | None, more: str) -> list[Check]:
        said = f"{orientation_sentence(fit)}. {more}".rstrip()
        threshold = f"{MODE_GAP[0]:g} {UNITS} for this orientation (weak from {MODE_GAP[1]:g})"
        how: dict[str, Any] = {"bears_on": (Aspect.ORIENTATION,), "needs": "passed"}
        text = said[0].upper() + said[1:]
        return [Check("orientation", status, gap, threshold, text, RESOLVE, **how)]

    if not fit.spec.has_selection:
        return record("passed", None, "")
    if not _comparable(evidence):
        return record("not computed", None, "The likelihood with t and s swapped was not computed.")
    gap, probability = exchange_gap(evidence), fit.orientation.probability
    if evidence.symmetric:
        exchanged = share_positive(evidence.point.swap(), evidence.data)
        more = "Swapping t and s does not change the likelihood at all; "
        more += f"with them swapped, π would be {exchanged:.2f}."
    elif np.isfinite(gap):
        more = f"By the likelihood alone the best mode with t and s swapped is {worse(gap)}."
    else:
        more = "No mode of the likelihood with t and s swapped was found."
    if oriented_by_signs(evidence):
        status = grade(float(probability or 0.0), ORIENTATION)
        return record(status, gap, f"{more} The orientation rests on these signs.")
    if evidence.contradicted:
        more = f"The likelihood makes this orientation {worse(gap)}: use a smaller C= or NUTS."
        return record("failed", -gap, more)
    by_curve = fit.orientation.settled_by == "learned class" and not evidence.data.n_audited
    if by_curve and bend is not None and not bend.curved:
        more = "The learned columns do not predict unseen labels better than chance allows "
        return record("failed", bend.lead, f"{more}({bend.lead:+.1f} {UNITS}).")
    statuses = [grade(gap, MODE_GAP)]
    if probability is not None:
        statuses.append(grade(probability, ORIENTATION))
    order: list[Status] = ["passed", "weak", "failed"]
    return record(max(statuses, key=order.index), gap, more)


# Convergence ----------------------------------------------------------------------------------

R_HAT = (1.01, 1.05)  # Vehtari and others 2021; from 1.05 on chains differ visibly
MIN_EBFMI = 0.3  # Betancourt 2016: below, the sampler does not reach the tails
AFTER_RELABELLING = (
    "The chains disagree after relabelling: the posterior has several modes, or the run was too "
    "short. See fit.mode_table(); take more draws, or resolve the orientation by "
    "selection_features= or audited rows."
)
OF_SEVERAL = "The chains disagree. Take more draws (draws=, tune=) or use tighter priors (priors=)."
ONE_CHAIN = "Sample four chains (chains=4), so that their agreement can be checked."
_DONE: dict[str, Any] = {"bears_on": (Aspect.COMPUTATION,), "needs": "weak"}


def check_convergence(evidence: "Evidence") -> list[Check]:
    """Chains by R-hat, effective sample size and divergences; other engines by their own check."""
    fit, quality = evidence.fit, evidence.fit.quality
    if fit.stats:
        return [_chains(evidence), _sampler(evidence)]
    status: Status = "not computed" if quality.trusted is None else passed_if(quality.trusted)
    text = quality.words or "The engine has not checked its draws."
    remedy = "Use method='nuts': the posterior is not Gaussian here."
    why = "the posterior is not as Gaussian as its draws"
    if fit.is_point:
        remedy, why = "Use a stronger penalty (C=).", "the optimiser did not converge"
    if fit.is_point and evidence.several and status == "passed":
        status, text = "not computed", "A point estimate has no spread."
        remedy = "Use method='laplace' or 'nuts'."
        why = "a point estimate has no uncertainty"
    return [Check("convergence", status, text=text, remedy=remedy, consequence=why, **_DONE)]


def _chains(evidence: "Evidence") -> Check:
    """R-hat and effective sample size of π, of intercepts and of the predictors' sd."""
    from arviz_stats.base import array_stats

    draws, rows, several = evidence.pivoted, evidence.data.evenly(2000).X, evidence.several
    pi = np.array([draws.take(c).t(rows).mean(axis=-1) for c in range(draws.b.shape[0])])
    values = {"pi": pi} | scalars(evidence.fit.spec, evidence.data, draws)
    parts = by_basin(values, evidence.fit.stats.get("mode"))
    threshold = "R-hat {}" if several else "R-hat {}, after relabelling"
    if len(parts) > 1:  # pooled basins agree between chains by construction
        values = max(parts, key=lambda part: worst_r_hat(part)[1])
        threshold = f"R-hat {{}}, in each of {len(parts)} separate basins"
    ess = {n: float(array_stats.ess(v)) for n, v in values.items() if np.ptp(v) > 0}
    least = min(ess, key=lambda n: ess[n])
    text = f"smallest effective sample {ess[least]:.0f} ({least})."
    if len(values[least]) == 1:
        text, threshold = f"With one chain R-hat cannot be computed; {text}", threshold[:5]
        return Check("convergence", "failed", None, threshold, text, ONE_CHAIN, **_DONE)
    name, r_hat = worst_r_hat(values)
    text, remedy = f"Largest R-hat {r_hat:.3f} ({name}); {text}", "Take more draws (draws=, tune=)."
    if r_hat > R_HAT[1]:
        remedy = OF_SEVERAL if several else AFTER_RELABELLING
    how = {"threshold": threshold, "consequence": "the chains disagree"} | _DONE
    return graded("convergence", r_hat, R_HAT, text, remedy, **how)


def worst_r_hat(values: dict[str, Array]) -> tuple[str, float]:
    """The quantity with the largest R-hat, each ``(chain, draw)``."""
    from arviz_stats.base import array_stats

    r_hats = {name: float(array_stats.rhat(v)) for name, v in values.items() if np.ptp(v) > 0}
    return max(r_hats.items(), key=lambda one: one[1])


def by_basin(values: dict[str, Array], basin: Array | None) -> list[dict[str, Array]]:
    """The quantities in every separate basin with enough draws, with chains of equal length."""
    parts = []
    for b in () if basin is None else np.unique(basin):
        here = np.asarray(basin) == b
        length = int(here.sum(axis=1).min())
        if length >= 20:  # draws per chain from which R-hat can be computed at all
            parts.append({k: np.stack([v[c, m][:length] for c, m in enumerate(here)])
                          for k, v in values.items()})  # fmt: skip
    return parts or [values]


def _sampler(evidence: "Evidence") -> Check:
    """Divergences and E-BFMI, by the sampler's own record."""
    figures, total = evidence.fit.quality.figures, evidence.fit.parameters.b.size
    divergent, e_bfmi = figures.get("divergences", 0), figures.get("e_bfmi", np.inf)
    status = passed_if(divergent == 0 and e_bfmi >= MIN_EBFMI)
    if status == "failed" and divergent < 0.01 * total:  # few divergences hardly bias the rest
        status = "weak"
    return Check(
        "sampler",
        status,
        float(divergent),
        f"no divergences, E-BFMI at least {MIN_EBFMI}",
        f"{divergent} divergences in {total} draws; smallest E-BFMI {e_bfmi:.2f}.",
        "Raise target_accept (for example 0.97) or use tighter priors.",
        (Aspect.COMPUTATION,),
        consequence="the sampler did not explore the posterior",
    )
