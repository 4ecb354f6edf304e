"""Did the computation end where it should have: optimiser, Laplace draws, or chains."""

from typing import TYPE_CHECKING, Any

import numpy as np

from bayes_lepu.links import Array
from bayes_lepu.model.variables import scalars
from bayes_lepu.verdict.records import Aspect, Check, Status, graded, passed_if

if TYPE_CHECKING:
    from bayes_lepu.verdict.evidence import Evidence

R_HAT = (1.01, 1.05)  # Vehtari and others 2021; from 1.05 on chains are visibly apart
MIN_EBFMI = 0.3  # Betancourt 2016: below, the tails are not reached
AFTER_RELABELLING = (
    "The chains disagree after relabelling: genuine multimodality or too short a run. See the mode "
    "table; take more draws, or settle the factors with selection_features= or audited rows."
)
OF_SEVERAL = "The chains disagree. Take more draws (draws=, tune=) or use tighter priors (priors=)."
ONE_CHAIN = "Sample four chains (chains=4): whether they agree tells whether all is explored."
_DONE: dict[str, Any] = {"bears_on": (Aspect.COMPUTATION,), "needs": "weak"}


def check_convergence(evidence: "Evidence") -> list[Check]:
    """Chains by their own record, any other engine by what it says of itself."""
    fit, quality = evidence.fit, evidence.fit.quality
    if fit.stats:
        return [_chains(evidence), _sampler(evidence)]
    status: Status = "not computed" if quality.trusted is None else passed_if(quality.trusted)
    text = quality.words or "The engine does not say how good its draws are."
    remedy = "Use method='nuts': the posterior is not Gaussian here."
    consequence = "the posterior is not as Gaussian as its draws"
    if fit.is_point:
        remedy, consequence = "Use a stronger penalty (C=).", "the optimiser did not converge"
        if evidence.several and status == "passed":
            status, text = "not computed", "A point estimate has no spread."
            remedy = "Use method='laplace' or 'nuts'."
            consequence = "a point estimate does not say how well it is known"
    how = {"text": text, "remedy": remedy, "consequence": consequence} | _DONE
    return [Check("convergence", status, **how)]


def _chains(evidence: "Evidence") -> Check:
    """R-hat and effective sample size of π, of intercepts and of the predictors' sd."""
    from arviz_stats.base import array_stats

    draws, rows = evidence.pivoted, evidence.data.evenly(2000).X
    pi = np.array([draws.take(c).t(rows).mean(axis=-1) for c in range(draws.b.shape[0])])
    values = {"pi": pi} | scalars(evidence.fit.spec, evidence.data, draws)
    parts = by_basin(values, evidence.fit.stats.get("mode"))
    when = "" if evidence.several else ", after relabelling"
    if len(parts) > 1:  # pooled basins agree between chains by construction
        values = max(parts, key=lambda part: worst_r_hat(part)[1])
        when = f", in each of {len(parts)} separate basins"
    ess = {n: float(array_stats.ess(v)) for n, v in values.items() if np.ptp(v) > 0}
    least = min(ess, key=lambda n: ess[n])
    effective = f"smallest effective sample {ess[least]:.0f} ({least})."
    if len(values[least]) == 1:
        text = f"With one chain R-hat cannot be computed; {effective}"
        return Check("convergence", "failed", None, "R-hat" + when, text, ONE_CHAIN, **_DONE)
    name, r_hat = worst_r_hat(values)
    failed = OF_SEVERAL if evidence.several else AFTER_RELABELLING
    return graded(
        "convergence",
        r_hat,
        R_HAT,
        f"Largest R-hat {r_hat:.3f} ({name}); {effective}",
        failed if r_hat > R_HAT[1] else "Take more draws (draws=, tune=).",
        threshold="R-hat {}" + when,
        consequence="the chains disagree",
        **_DONE,
    )


def worst_r_hat(values: dict[str, Array]) -> tuple[str, float]:
    """The quantity with the largest R-hat, each ``(chain, draw)``."""
    from arviz_stats.base import array_stats

    r_hats = {name: float(array_stats.rhat(v)) for name, v in values.items() if np.ptp(v) > 0}
    worst = max(r_hats, key=lambda name: r_hats[name])
    return worst, r_hats[worst]


def by_basin(values: dict[str, Array], basin: Array | None) -> list[dict[str, Array]]:
    """The quantities of every separate basin with enough draws, chains cut to one length."""
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
    few = divergent < 0.01 * total  # the rest can be read
    return Check(
        "sampler",
        passed_if(divergent == 0 and e_bfmi >= MIN_EBFMI, otherwise="weak" if few else "failed"),
        float(divergent),
        f"no divergences, E-BFMI at least {MIN_EBFMI}",
        f"{divergent} divergences in {total} draws; smallest E-BFMI {e_bfmi:.2f}.",
        "Raise target_accept (for example 0.97) or use tighter priors.",
        bears_on=(Aspect.COMPUTATION,),
        consequence="the sampler did not explore the posterior",
    )
