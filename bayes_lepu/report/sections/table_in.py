"""The table that came in: rows, labels, audits and columns."""

import numpy as np

from bayes_lepu.links import RowKind
from bayes_lepu.report.html_tables import table
from bayes_lepu.report.page import Page
from bayes_lepu.report.section import MAX_COLUMNS, Section
from bayes_lepu.result import FittedModel
from bayes_lepu.result.numbers_in_words import number


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
        facts["audited rows were"] = fit.options.audits or "picked in a way not said"
    mean, sd = d.column_moments
    contrast = d.X[d.l == 1].mean(axis=0) - d.X[d.l == 0].mean(axis=0)
    contrast /= np.maximum(sd, 1e-300)
    chosen = np.sort(np.argsort(-np.abs(contrast), kind="stable")[:MAX_COLUMNS])
    columns = d.cells(chosen)
    figures = np.array([mean[chosen], columns.min(axis=0), columns.max(axis=0)])
    figures = figures * d.scale[chosen] + d.center[chosen]
    rows = [
        [d.feature_names[j], center, sd[j] * d.scale[j], low, high, contrast[j], _used_in(fit, j)]
        for j, (center, low, high) in zip(chosen, figures.T, strict=True)
    ]
    note = "" if d.p <= MAX_COLUMNS else f"The {MAX_COLUMNS} columns that differ most are shown."
    heads = ("column", "mean", "sd", "min", "max", "labelled − unlabelled, in sd", "enters")
    return Section(
        "data",
        "The data",
        f"{_a_label(fit)}; a missing label can mean negative or overlooked.",
        facts=facts,
        folded=(("Columns", table(heads, rows, note=note)),),
    )


def _a_label(fit: FittedModel) -> str:
    """What the model takes a label to prove."""
    if fit.spec.false_marks:
        return "A label can be a false mark, put on a negative"
    return "A label is taken to be right"


def _used_in(fit: FittedModel, j: int) -> str:
    d = fit.data
    parts = ["t"] if d.class_mask[j] else []
    if fit.spec.has_selection and d.selection_mask[j]:
        parts.append("s")
    parts += [
        f"s of {who}" for who, k in zip(d.annotators, d.visit_places.T, strict=True) if j in k
    ]
    return " and ".join(parts) or "neither"
