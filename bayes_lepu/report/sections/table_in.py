"""The table that came in: rows, labels, audits and columns."""

import numpy as np

from bayes_lepu.links import RowKind
from bayes_lepu.report.html_tables import number, table
from bayes_lepu.report.page import Page
from bayes_lepu.report.section import Section
from bayes_lepu.result import FittedModel

MAX_COLUMNS = 60


def data_section(page: Page) -> Section:
    """Rows, labels, audits and columns."""
    fit = page.fit
    d = fit.data
    unlabelled = int(np.sum(d.kind == RowKind.UNLABELLED))
    facts = {
        "rows": number(d.n),
        "columns": number(d.p),
        "labelled positive": f"{number(int(d.l.sum()))} ({d.l.mean():.1%})",
        "unlabelled, class unknown": number(unlabelled),
    }
    if d.n_audited:
        missed = int(np.sum(d.kind == RowKind.MISSED))
        facts["audited"] = f"{d.n_audited} ({missed} missed positives, {d.n_audited - missed} not)"
        facts["audited rows were"] = fit.settings.get("audits") or "picked in a way not said"
    raw_mean, raw_sd = d.X.mean(axis=0) * d.scale + d.center, d.X.std(axis=0) * d.scale
    low, high = d.X.min(axis=0) * d.scale + d.center, d.X.max(axis=0) * d.scale + d.center
    contrast = d.X[d.l == 1].mean(axis=0) - d.X[d.l == 0].mean(axis=0)
    contrast /= np.maximum(d.X.std(axis=0), 1e-300)
    chosen = np.argsort(-np.abs(contrast), kind="stable")[:MAX_COLUMNS]
    rows = [
        [d.feature_names[j], raw_mean[j], raw_sd[j], low[j], high[j], contrast[j], _used_in(fit, j)]
        for j in sorted(chosen)
    ]
    note = "" if d.p <= MAX_COLUMNS else f"The {MAX_COLUMNS} columns that differ most are shown."
    columns = ("column", "mean", "sd", "min", "max", "labelled − unlabelled, in sd", "enters")
    return Section(
        "data",
        "The data",
        "A label is always right; a missing label can mean negative or overlooked.",
        facts=facts,
        folded=(("Columns", table(columns, rows, note=note)),),
    )


def _used_in(fit: FittedModel, j: int) -> str:
    d = fit.data
    parts = ["t"] if d.class_mask[j] else []
    if fit.spec.has_selection and d.selection_mask[j]:
        parts.append("s")
    parts += [
        f"s of {who}" for who, k in zip(d.annotators, d.visit_places.T, strict=True) if j in k
    ]
    return " and ".join(parts) or "neither"
