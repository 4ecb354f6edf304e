"""Sections of words and tables: headline, data, coefficients, how to reproduce."""

import platform
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
import pandas as pd

from bayes_lepu.diagnostics.records import LEVELS, Identifiability
from bayes_lepu.links import RowKind
from bayes_lepu.report.section import Section
from bayes_lepu.report.tables import from_frame, number, table
from bayes_lepu.result import FittedModel
from bayes_lepu.result.summaries import CI_PROB

MAX_COLUMNS = 60
PACKAGES = ("bayes-lepu", "numpy", "scipy", "numba", "pandas", "nutpie", "pymc", "arviz")


def data_section(fit: FittedModel) -> Section:
    """Rows, labels, audits and columns."""
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
        tables=(("Columns", table(columns, rows, note=note)),),
    )


def _used_in(fit: FittedModel, j: int) -> str:
    parts = ["t"] if fit.data.class_mask[j] else []
    if fit.spec.has_selection and fit.data.selection_mask[j]:
        parts.append("s")
    return " and ".join(parts) or "neither"


def coefficients_section(fit: FittedModel) -> Section:
    """Slopes and intercepts on both scales."""
    frame = fit.coefficients().reset_index()
    note = ""
    shown = frame[frame["feature"] != "(intercept)"]
    internal = shown[shown["scale"] == "internal"]
    order = internal.groupby("feature", sort=False)["mean"].apply(lambda v: v.abs().max())
    if len(order) > MAX_COLUMNS:
        keep = {*order.nlargest(MAX_COLUMNS).index, "(intercept)"}
        frame = frame[frame["feature"].isin(keep)]
        note = f"The {MAX_COLUMNS} columns with the largest slopes are shown."
    factor = {"t": "class t", "s": "propensity s"}
    scale = {"internal": "per sd" if fit.settings["standardize"] else "internal"}
    tables = []
    for key, part in frame.groupby("scale", sort=False):
        part = part.assign(factor=part["factor"].map(factor)).drop(columns="scale")
        name = scale["internal"] if key == "internal" else "in the columns' own units"
        tables.append((f"Log-odds {name}", from_frame(part, note=note)))
    lead = "Change of the log-odds of being positive (t) and of being labelled if positive (s)."
    return Section("coefficients", "Coefficients", lead, tables=tuple(tables))


def reproduce_section(fit: FittedModel) -> Section:
    """Versions, seed and call."""
    settings = fit.settings
    versions = {p: _version(p) for p in PACKAGES} | dict(settings.get("versions", {}))
    rows = [[name, v] for name, v in versions.items() if v]
    priors = [[name, str(prior)] for name, prior in fit.priors.items()]
    facts = {"random seed": str(settings["random_seed"]), "Python": platform.python_version()}
    return Section(
        "reproduce",
        "How to reproduce this",
        "The same call with the same seed and versions gives the same draws.",
        facts=facts,
        code=call_text(fit),
        tables=(
            ("Priors on the internal scale", table(("parameter", "prior"), priors)),
            ("Versions", table(("package", "version"), rows)),
        ),
    )


def call_text(fit: FittedModel) -> str:
    """The call of `fit` with what differs from its defaults."""
    settings = fit.settings
    options: dict[str, Any] = {"model": fit.spec.name, "method": fit.method}
    names = np.array(fit.feature_names)
    for option, mask in (
        ("class_features", fit.data.class_mask),
        ("selection_features", fit.data.selection_mask),
    ):
        if not mask.all():
            options[option] = [str(n) for n in names[mask]]
    if not settings["standardize"]:
        options["standardize"] = False
    if settings["orientation"] != "sigma-norm":
        options["orientation"] = settings["orientation"]
    if not fit.is_point:
        chains, draws = fit.parameters.b.shape
        options |= {"draws": int(draws), "chains": int(chains)}
    options |= {k: settings[k] for k in ("tune", "target_accept") if k in settings}
    options["random_seed"] = settings["random_seed"]
    audited = ", y=y" if fit.data.n_audited else ""
    text = ", ".join(f"{k}={v!r}" for k, v in options.items())
    lines = ("import bayes_lepu as lepu", f"fit = lepu.fit(X, l{audited}, {text})")
    return "\n".join((*lines, 'fit.report("report.html")'))


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def headline(fit: FittedModel, verdict: Identifiability, prior: pd.DataFrame) -> dict[str, Any]:
    """The verdict, what carries it, and the figures to remember (``prior``: of `class_prior`)."""
    pi, detail = _with_interval(prior.loc["pi"])
    if verdict.exchanged_pi is not None:
        other, its_detail = _with_interval(verdict.exchanged_pi)
        pi, detail = (
            f"{pi} or {other}",
            f"{detail}; second, with the factors exchanged: {its_detail}",
        )
    tiles = [
        ("class prior π", (pi, detail)),
        ("label frequency c", _with_interval(prior.loc["c"])),
        ("rows", (number(fit.data.n), f"{number(int(fit.data.l.sum()))} labelled")),
        ("model", (fit.spec.name, f"method {fit.method}")),
    ]
    remedies = [r.text for r in verdict.remedies] if verdict.level > 1 else []
    remedies += [c.remedy for c in verdict.checks if c.status == "failed" and c.remedy]
    return {
        "level": verdict.level,
        "verdict": verdict.verdict,
        "carried_by": verdict.carried_by,
        "remedies": list(dict.fromkeys(remedies))[:3],
        "tiles": tiles,
        "levels": LEVELS,
        "ci": f"{CI_PROB:.0%}",
    }


def _with_interval(row: pd.Series | Mapping[str, float]) -> tuple[str, str]:
    if "lower" not in row or np.isnan(row["lower"]):
        return f"{row['mean']:.3f}", "point estimate"
    return f"{row['mean']:.3f}", f"{CI_PROB:.0%} interval {row['lower']:.3f} to {row['upper']:.3f}"
