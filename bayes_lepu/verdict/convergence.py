"""Did the computation end where it should have: optimiser, Laplace draws, or chains."""

from typing import TYPE_CHECKING, Any

import numpy as np

from bayes_lepu.engines.laplace import TRUSTED_K
from bayes_lepu.links import Array
from bayes_lepu.model.parameters import Parameters
from bayes_lepu.model.variables import scalars
from bayes_lepu.verdict import thresholds
from bayes_lepu.verdict.records import Aspect, Check, passed_if
from bayes_lepu.verdict.thresholds import grade, graded

if TYPE_CHECKING:
    from bayes_lepu.fitted import Fit
    from bayes_lepu.verdict.evidence import Evidence

MIN_EBFMI = 0.3
LEAST_OF_BASIN = 20  # draws per chain from which R-hat can be computed at all
AFTER_RELABELLING = (
    "The chains disagree after relabelling: genuine multimodality or too short a run. See the mode "
    "table; take more draws, or settle the factors with selection_features= or audited rows."
)
OF_SEVERAL = "The chains disagree. Take more draws (draws=, tune=) or use tighter priors (priors=)."
ONE_CHAIN = "Sample four chains (chains=4): whether they agree tells whether all is explored."
_DONE: dict[str, Any] = {"bears_on": (Aspect.COMPUTATION,), "needs": "weak"}


def check_convergence(evidence: "Evidence") -> list[Check]:
    """The records that apply to the method of the fit."""
    if evidence.fit.is_point:
        return [check_optimum(evidence)]
    if not evidence.fit.stats:
        return [check_independent(evidence)]
    return [_chains(evidence), check_sampler(evidence.fit)]


def quantities(evidence: "Evidence", draws: Parameters) -> dict[str, Array]:
    """Scalars whose mixing matters, each ``(chain, draw)``: π, b, β, and the predictors' sd."""
    rows, shape = evidence.data.evenly(2000).X, draws.b.shape
    pi = np.concatenate(_mean_t(draws, rows)).reshape(shape)
    return {"pi": pi} | scalars(evidence.fit.spec, evidence.data, draws)


def _mean_t(draws: Parameters, rows: Array) -> list[Array]:
    return [draws.take(c).t(rows).mean(axis=-1) for c in range(draws.b.shape[0])]


def _worst_r_hat(values: dict[str, Array]) -> tuple[str, float]:
    from arviz_stats.base import array_stats

    r_hats = {name: float(array_stats.rhat(v)) for name, v in values.items() if np.ptp(v) > 0}
    worst = max(r_hats, key=lambda name: r_hats[name])
    return worst, r_hats[worst]


def _chains(evidence: "Evidence") -> Check:
    values = quantities(evidence, evidence.pivoted)
    parts = by_basin(values, evidence.fit.stats.get("mode"))
    if len(parts) > 1:  # pooled basins agree between chains by construction
        worst = max(parts, key=lambda part: _worst_r_hat(part)[1])
        when = f", in each of {len(parts)} separate basins"
    else:
        worst, when = values, "" if evidence.several else ", after relabelling"
    return chains_agree(worst, when, OF_SEVERAL if evidence.several else AFTER_RELABELLING)


def by_basin(values: dict[str, Array], basin: Array | None) -> list[dict[str, Array]]:
    """The quantities of every separate basin with enough draws, chains cut to one length."""
    if basin is None:
        return [values]
    parts = []
    for b in np.unique(basin):
        here = np.asarray(basin) == b
        length = int(here.sum(axis=1).min())
        if length >= LEAST_OF_BASIN:
            cut = {
                k: np.stack([v[c, m][:length] for c, m in enumerate(here)])
                for k, v in values.items()
            }
            parts.append(cut)
    return parts or [values]


def chains_agree(values: dict[str, Array], when: str, failed_remedy: str) -> Check:
    """R-hat and effective sample size of quantities, each ``(chain, draw)``."""
    from arviz_stats.base import array_stats

    ess = {n: float(array_stats.ess(v)) for n, v in values.items() if np.ptp(v) > 0}
    least = min(ess, key=lambda n: ess[n])
    effective = f"smallest effective sample {ess[least]:.0f} ({least})."
    threshold = "R-hat {}" + when
    if len(values[least]) == 1:
        text = f"With one chain R-hat cannot be computed; {effective}"
        bounds = threshold.format(thresholds.in_words(thresholds.R_HAT))
        return Check("convergence", "failed", None, bounds, text, ONE_CHAIN, **_DONE)
    name, r_hat = _worst_r_hat(values)
    status = grade(r_hat, thresholds.R_HAT)
    return graded(
        "convergence",
        r_hat,
        thresholds.R_HAT,
        f"Largest R-hat {r_hat:.3f} ({name}); {effective}",
        failed_remedy if status == "failed" else "Take more draws (draws=, tune=).",
        threshold=threshold,
        consequence="the chains disagree",
        **_DONE,
    )


def check_sampler(fit: "Fit") -> Check:
    """Divergences and E-BFMI, by the sampler's own record."""
    figures, total = fit.quality.figures, fit.parameters.b.size
    divergent, e_bfmi = figures.get("divergences", 0), figures.get("e_bfmi", np.inf)
    good = divergent == 0 and e_bfmi >= MIN_EBFMI
    return passed_if(
        good,
        "sampler",
        float(divergent),
        f"no divergences, E-BFMI at least {MIN_EBFMI}",
        f"{divergent} divergences in {total} draws; smallest E-BFMI {e_bfmi:.2f}.",
        "Raise target_accept (for example 0.97) or use tighter priors.",
        otherwise="weak" if divergent < 0.01 * total else "failed",
        bears_on=(Aspect.COMPUTATION,),
        consequence="the sampler did not explore the posterior",
    )


def check_optimum(evidence: "Evidence") -> Check:
    """Whether the search of a point estimate ended at an optimum."""
    best = evidence.fit.modes[0]
    residual = float(evidence.fit.quality.figures.get("kkt_residual", np.nan))
    return passed_if(
        best.converged,
        "convergence",
        residual,
        "optimality conditions met",
        f"The best of {sum(m.hits for m in evidence.fit.modes)} starts ended with residual "
        f"{residual:.2g}; {best.hits} starts ended there.",
        "Use a stronger penalty (C=).",
        consequence="the optimiser did not converge",
        **_DONE,
    )


def check_independent(evidence: "Evidence") -> Check:
    """Whether independent draws describe the posterior, by their engine's own measure."""
    quality = evidence.fit.quality
    if "pareto_k" not in quality.figures:
        status = {True: "passed", False: "failed", None: "not computed"}[quality.trusted]
        words = quality.words or "The engine does not say how good its draws are."
        return Check("convergence", status, None, "", words, **_DONE)  # type: ignore[arg-type]
    k = float(quality.figures["pareto_k"])
    return passed_if(
        k <= TRUSTED_K,
        "convergence",
        k,
        f"Pareto k at most {TRUSTED_K}",
        f"The Gaussian approximation has Pareto k {k:.2f} against the posterior.",
        "Use method='nuts': the posterior is not Gaussian here.",
        consequence="the posterior is not as Gaussian as its draws",
        **_DONE,
    )
