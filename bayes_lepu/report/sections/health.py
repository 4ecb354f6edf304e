"""Sampler health: are these draws the posterior's."""

import numpy as np

from bayes_lepu.diagnostics.records import Aspect, Check
from bayes_lepu.report.html_tables import Cell, from_frame
from bayes_lepu.report.page import Page
from bayes_lepu.report.section import Section

TITLE = "Sampler health"
MAX_PARAMETERS = 40
COLUMNS = {
    "mean": "mean",
    "sd": "sd",
    "r_hat": "R-hat",
    "ess_bulk": "ESS bulk",
    "ess_tail": "ESS tail",
}


def health_section(page: Page) -> Section:
    """What the verdict found about the computation; of chains also a table of the parameters."""
    fit = page.fit
    facts = {
        check.name: check.text.removesuffix(".") + _held_against(check)
        for check in page.verdict.checks
        if Aspect.COMPUTATION in check.bears_on and check.status != "not applicable"
    }
    if fit.is_point:
        lead = "A point estimate has no draws; fit with method='nuts' for uncertainty."
        return Section("health", TITLE, lead, facts=facts)
    if not fit.stats:
        lead = f"Independent draws, a quick stand-in for the posterior: {fit.quality.words}."
        return Section("health", TITLE, lead, facts=facts)
    chains, draws = fit.parameters.b.shape
    lead = (
        "R-hat compares the chains and is 1 where they agree; the effective sample (ESS) is how "
        "many independent draws these are worth."
    )
    found = fit.summary(round_to="none").sort_values("r_hat", ascending=False)
    note = "" if len(found) <= MAX_PARAMETERS else f"The {MAX_PARAMETERS} largest R-hat are shown."
    shown = found.head(MAX_PARAMETERS)[list(COLUMNS)].round({"ess_bulk": 0, "ess_tail": 0})
    # Three digits would hide what R-hat says; a single chain has none.
    shown["r_hat"] = [Cell(f"{r:.3f}", r) if np.isfinite(r) else r for r in shown["r_hat"]]
    table = from_frame(shown.rename(columns=COLUMNS), index="parameter", note=note)
    facts = {"chains × draws": f"{chains} × {draws}"} | facts
    return Section("health", TITLE, lead, facts=facts, folded=(("Parameters", table),))


def _held_against(check: Check) -> str:
    return f" (held against: {check.threshold})" if check.threshold else ""
