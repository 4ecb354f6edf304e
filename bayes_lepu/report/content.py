"""What the report says, section by section, in the order a colleague asks."""

import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
import pandas as pd

from bayes_lepu.diagnostics.records import LEVELS, Identifiability
from bayes_lepu.links import RowKind
from bayes_lepu.plots import panels
from bayes_lepu.plots.annotator import MAX_PANELS, plot_propensity, top_features
from bayes_lepu.plots.answer import plot_class_probability, plot_prior_posterior
from bayes_lepu.plots.naming import plot_modes, plot_orientation
from bayes_lepu.plots.reproduction import plot_calibration, plot_label_rate
from bayes_lepu.report.figures import Album, Picture
from bayes_lepu.report.tables import Cell, Table, from_frame, number, table
from bayes_lepu.result import FittedModel
from bayes_lepu.result.fit import orientation_sentence
from bayes_lepu.result.summaries import CI_PROB

MAX_COLUMNS = 60
LABEL_RATE_COLUMNS = 3
PACKAGES = ("bayes-lepu", "numpy", "scipy", "numba", "pandas", "nutpie", "pymc", "arviz")


@dataclass(frozen=True)
class Section:
    """A heading with sentences, facts, pictures and tables below it."""

    key: str
    title: str
    lead: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)
    pictures: tuple[Picture, ...] = ()
    tables: tuple[tuple[str, Table], ...] = ()
    code: str = ""


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


def answer_section(fit: FittedModel, album: Album) -> Section:
    """Class probabilities, class prior and label frequency."""
    prior = fit.class_prior()
    words = {
        "pi": "class prior π = P(y=1)",
        "c": "label frequency c = P(l=1 | y=1)",
        "prior of pi": "π before the data",
        "prior of c": "c before the data",
    }
    frame = prior.rename(index=words)
    pictures = [
        album.picture(
            "Class probability of the rows",
            "Rows from least to most probably positive: the area below the blue curve is the class "
            "prior, the gap down to the green one are positives that went unlabelled.",
            partial(plot_class_probability, fit),
        )
    ]
    if not fit.is_point:
        for name, title in (("pi", "Class prior π"), ("c", "Label frequency c")):
            pictures.append(
                album.picture(
                    title,
                    "Grey is the prior, colour the posterior: the narrower against grey, the more "
                    "the data have said.",
                    partial(plot_prior_posterior, fit, var_names=[name]),
                )
            )
    lead = "How many rows are positive, which ones, and how many of the positives carry a label."
    tables = ((f"Posterior with {CI_PROB:.0%} intervals", from_frame(frame, index="quantity")),)
    return Section("answer", "The answer", lead, pictures=tuple(pictures), tables=tables)


def annotator_section(fit: FittedModel, album: Album) -> Section:
    """Propensity curves, guesses and lapses."""
    lead = f"In this model {fit.spec.mechanism}."
    pictures: list[Picture] = []
    if fit.spec.has_selection:
        names = top_features(fit)
        if fit.data.p > MAX_PANELS:
            lead += f" Of {fit.data.p} columns the {MAX_PANELS} with the largest slopes are shown."
        for name in names:
            pictures.append(
                album.picture(
                    name,
                    "Where the orange line rises, positives are labelled more readily; the blue "
                    "dashed line is the class probability.",
                    partial(plot_propensity, fit, features=[name], show_class=True),
                )
            )
    if fit.spec.n_weights == 2 and not fit.is_point:
        readings = {
            "gamma": ("Guess rate γ", "How often even the least visible positives are labelled."),
            "lambda": ("Lapse rate λ", "How often even the most visible positives are missed."),
        }
        for name, (title, reading) in readings.items():
            pictures.append(
                album.picture(title, reading, partial(plot_prior_posterior, fit, var_names=[name]))
            )
    facts = {}
    if fit.spec.n_weights == 2:
        facts = {
            "guess rate γ": number(float(fit.draws.gamma.mean())),
            "lapse rate λ": number(float(fit.draws.lam.mean())),
        }
    return Section("annotator", "The annotator", lead, facts=facts, pictures=tuple(pictures))


def labels_section(fit: FittedModel, album: Album, *, group_by: tuple[str, ...]) -> Section:
    """Does the model reproduce the labels."""
    pictures = [
        album.picture(
            "Label rate by score",
            "Green dots inside the grey bars: groups of rows carry as many labels as predicted.",
            partial(plot_label_rate, fit),
        ),
        album.picture(
            "Calibration of h",
            "Green within the grey band: a predicted label probability can be taken at its word.",
            partial(plot_calibration, fit),
        ),
    ]
    for name in group_by or tuple(top_features(fit, LABEL_RATE_COLUMNS)):
        pictures.append(
            album.picture(
                f"Label rate by {name}",
                "A run of dots on one side of their bars means that this column acts otherwise "
                "than a straight line in the log-odds.",
                partial(plot_label_rate, fit, by=name),
            )
        )
    lead = (
        "Only the labels can be checked against the data; a good fit of h = s·t does not by itself "
        "say that its two factors are right."
    )
    title = "Does the model reproduce the labels?"
    return Section("labels", title, lead, pictures=tuple(pictures))


def identifiability_section(fit: FittedModel, verdict: Identifiability, album: Album) -> Section:
    """The checks with their remedies, and where the naming of the factors comes from."""
    pictures = []
    if fit.spec.has_selection:
        pictures.append(
            album.picture(
                "Size of the two factors",
                "Dots below the diagonal: t is the steeper factor, as the paper assumes; a cloud "
                "across it leaves the naming open. The large dot is the best mode.",
                partial(plot_orientation, fit),
            )
        )
    pictures.append(
        album.picture(
            "Modes of the density",
            "Another dot above the dashed line (2 nats) with another π is a second answer.",
            partial(plot_modes, fit),
        )
    )
    tables = [("Checks", checks_table(verdict))]
    modes = fit.mode_table()[["role", "gap", "hits", "pi", "c", "norm_a", "norm_alpha", "rms_t"]]
    tables.append(("Modes found by the search", from_frame(modes, index="mode")))
    lead = f"Which factor is the class: {orientation_sentence(fit)}."
    title = "What these data can and cannot identify"
    return Section("identifiability", title, lead, pictures=tuple(pictures), tables=tuple(tables))


def checks_table(verdict: Identifiability) -> Table:
    """The checks, each with its status, finding and remedy."""
    styles = {"passed": "good", "weak": "fair", "failed": "bad"}
    rows = [
        [
            c.name,
            Cell(c.status, style=styles.get(c.status, "muted")),
            c.figure,
            c.threshold,
            c.text,
            c.remedy,
        ]
        for c in verdict.checks
    ]
    columns = ("check", "status", "figure", "held against", "finding", "what would help")
    return table(columns, rows)


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
    priors = [[name, repr(prior)] for name, prior in fit.priors.items()]
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


def headline(fit: FittedModel, verdict: Identifiability) -> dict[str, Any]:
    """The verdict, what carries it, and the figures to remember."""
    prior: pd.DataFrame = fit.class_prior()
    tiles = [
        ("class prior π", _with_interval(prior.loc["pi"])),
        ("label frequency c", _with_interval(prior.loc["c"])),
        ("rows", (number(fit.data.n), f"{number(int(fit.data.l.sum()))} labelled")),
        ("model", (fit.spec.name, f"method {fit.method}")),
    ]
    remedies = [c.remedy for c in verdict.checks if c.status in ("failed", "weak") and c.remedy]
    return {
        "level": verdict.level,
        "verdict": verdict.verdict,
        "carried_by": verdict.carried_by,
        "remedies": list(dict.fromkeys(remedies))[:3],
        "tiles": tiles,
        "levels": LEVELS,
        "ci": f"{CI_PROB:.0%}",
    }


def _with_interval(row: pd.Series) -> tuple[str, str]:
    if "lower" not in row or np.isnan(row["lower"]):
        return f"{row['mean']:.3f}", "point estimate"
    return f"{row['mean']:.3f}", f"{CI_PROB:.0%} interval {row['lower']:.3f} to {row['upper']:.3f}"


def theme_names() -> dict[str, str]:
    """The pictures' colours, for the page's light theme."""
    return {
        "class": panels.CLASS,
        "propensity": panels.PROPENSITY,
        "label": panels.LABEL,
        "prior": panels.PRIOR,
        "guide": panels.GUIDE,
    }
