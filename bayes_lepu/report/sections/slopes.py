"""Slopes and intercepts of both factors."""

from bayes_lepu.report.html_tables import from_frame
from bayes_lepu.report.page import Page
from bayes_lepu.report.section import MAX_COLUMNS, Section


def coefficients_section(page: Page) -> Section:
    """Slopes and intercepts on both scales."""
    fit = page.fit
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
    internally = "per sd" if fit.options.standardize else "internal"
    tables = []
    for key, part in frame.groupby("scale", sort=False):
        named = [factor.get(f, f"propensity {f}") for f in part["factor"]]
        part = part.assign(factor=named).drop(columns="scale")
        name = internally if key == "internal" else "in the columns' own units"
        tables.append((f"Log-odds {name}", from_frame(part, note=note)))
    lead = "Change of the log-odds of being positive (t) and of being labelled if positive (s)."
    return Section("coefficients", "Coefficients", lead, folded=tuple(tables))
