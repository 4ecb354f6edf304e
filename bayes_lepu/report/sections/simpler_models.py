"""The fitted model against simpler ones: do the labels need it, and what does it change."""

from collections.abc import Mapping

import numpy as np

from bayes_lepu.diagnostics.rivals import LEAST_DIFFERENCE, Rival, compare_fits
from bayes_lepu.errors import DataError
from bayes_lepu.report.html_tables import table
from bayes_lepu.report.page import Page
from bayes_lepu.report.section import Section
from bayes_lepu.result import FittedModel


def comparison_section(page: Page) -> Section | None:
    """How well each model predicts the labels, and what it makes of the class prior."""
    fit, verdict, compare_with = page.fit, page.verdict, page.compare_with
    rivals: tuple[Rival, ...] = () if verdict.evidence is None else verdict.evidence.rivals
    if compare_with is not None:
        for name, other in compare_with.items():
            if not np.array_equal(other.data.kind, fit.data.kind):
                raise DataError(f"{name!r} was fitted to other labels than this fit.")
        rivals = compare_fits({_own_name(fit, compare_with): fit, **compare_with})
    if not rivals:
        return None
    ranked = sorted(rivals, key=lambda r: -r.elpd)
    rows = [[r.name, r.elpd, r.difference, r.se, r.reading, r.pi, r.pi_sd] for r in ranked]
    columns = ("model", "elpd", "below the best", "se", "reading", "its π", "sd of its π")
    how = "the fits handed in" if compare_with else "other models of the labels"
    lead = (
        f"This fit against {how} on the same rows: expected log predictive density (elpd), the log "
        "likelihood at the maximum under a weak penalty less the effective number of parameters. A "
        f"difference below {LEAST_DIFFERENCE:g} or two standard errors says nothing; where a "
        "constant s predicts as well, the simpler model is the honest one."
    )
    found = table(columns, rows)
    return Section("comparison", "Against simpler models", lead, tables=(("Models", found),))


def _own_name(fit: FittedModel, others: Mapping[str, FittedModel]) -> str:
    return f"{fit.spec.name} (this fit)" if fit.spec.name in others else fit.spec.name
