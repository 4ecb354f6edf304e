"""Sampler health: are these draws the posterior's."""

from typing import Any

import numpy as np

from bayes_lepu.diagnostics.convergence import smallest_bfmi
from bayes_lepu.links import Array
from bayes_lepu.models.spec import RATE_WORDS
from bayes_lepu.report.html_tables import Cell, number, table
from bayes_lepu.report.page import Page
from bayes_lepu.report.section import Section
from bayes_lepu.result import FittedModel

MAX_PARAMETERS = 40


def health_section(page: Page) -> Section:
    """Divergences, E-BFMI, R-hat and effective sample sizes; residual or Pareto k elsewhere."""
    fit, title = page.fit, "Sampler health"
    if fit.is_point:
        best = fit.modes[0]
        facts = {
            "optimum": "converged" if best.converged else "not converged",
            "residual": number(float(fit.quality.figures.get("kkt_residual", np.nan))),
            "starts that ended here": f"{best.hits} of {sum(m.hits for m in fit.modes)}",
        }
        lead = "A point estimate has no draws; fit with method='nuts' for uncertainty."
        return Section("health", title, lead, facts=facts)
    if not fit.stats:
        facts = {
            name.replace("_", " "): number(float(value))
            for name, value in fit.quality.figures.items()
            if isinstance(value, int | float)
        }
        lead = (
            f"Independent draws, a quick stand-in for the posterior: {fit.quality.words}. Pareto k "
            "below 0.7 means that they are close to it."
        )
        return Section("health", title, lead, facts=facts)
    return _sampled(fit, title)


def _sampled(fit: FittedModel, title: str) -> Section:
    from arviz_stats.base import array_stats

    chains, draws = fit.parameters.b.shape
    facts = {"chains × draws": f"{chains} × {draws}"}
    for name, stat, figure in (
        ("divergences", "diverging", np.sum),
        ("E-BFMI, smallest", "energy", smallest_bfmi),
        ("largest tree depth", "tree_depth", np.max),
    ):
        if stat in fit.stats:  # other samplers keep less
            facts[name] = number(np.asarray(figure(np.asarray(fit.stats[stat]))).item())
    rows: list[list[Any]] = []
    for name, values in _scalars(fit).items():
        r_hat = float(array_stats.rhat(values))
        ess = [
            float(array_stats.ess(values, method="bulk")),
            float(array_stats.ess(values, method="tail", prob=0.9)),
        ]
        shown = Cell(f"{r_hat:.3f}", r_hat)
        rows.append([name, values.mean(), values.std(ddof=1), shown, *map(round, ess)])
    worst = sorted(rows, key=lambda r: -r[3].value)
    note = "" if len(rows) <= MAX_PARAMETERS else f"The {MAX_PARAMETERS} largest R-hat are shown."
    columns = ("parameter", "mean", "sd", "R-hat", "ESS bulk", "ESS tail")
    lead = (
        "R-hat below 1.01, several hundred effective draws, no divergence and E-BFMI above 0.3: "
        "the draws can be trusted."
    )
    found = table(columns, worst[:MAX_PARAMETERS], note=note)
    return Section("health", title, lead, facts=facts, folded=(("Parameters", found),))


def _scalars(fit: FittedModel) -> dict[str, Array]:
    p, shape = fit.parameters, fit.parameters.b.shape
    out = {"π": fit.pi_draws.reshape(shape), "c": fit.c_draws.reshape(shape), "b": p.b}
    for j in np.flatnonzero(fit.data.class_mask):
        out[f"a[{fit.feature_names[j]}]"] = p.a[..., j]
    J = fit.data.n_annotators
    beta, alpha = p.beta.reshape(*shape, J), p.alpha.reshape(*shape, J, -1)
    rates = {name: v.reshape(*shape, J) for name, v in p.rates(fit.spec.shape_rates).items()}
    for who in range(J):
        of = f" of {fit.data.annotators[who]}" if J > 1 else ""
        if fit.spec.has_selection:
            out[f"β{of}"] = beta[..., who]
            for j in np.flatnonzero(fit.data.selection_mask):
                out[f"α[{fit.feature_names[j]}]{of}"] = alpha[..., who, j]
        out |= {f"{RATE_WORDS[name]}{of}": v[..., who] for name, v in rates.items()}
    return out
