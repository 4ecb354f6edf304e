"""The sections of the report, in the order of a reader's questions.

A section is a function that takes a `Page` and returns a `Section`, or None where it does not
apply. To add a section, append its function to `SECTIONS`.
"""

import base64
import hashlib
import math
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from bayes_lepu.actions.groups import own_values, read_groups, shares_table
from bayes_lepu.actions.missed import EXCHANGED, MAX_DRAWS, ONLY_MARKS
from bayes_lepu.actions.plain_answer import Answer
from bayes_lepu.errors import DataError
from bayes_lepu.links import RowKind
from bayes_lepu.model.parameters import Parameters
from bayes_lepu.model.spec import RATE_WORDS
from bayes_lepu.plots.panels import CLASS, new_panels, share_range
from bayes_lepu.plots.pictures import (
    MAX_PANELS,
    own_name,
    plot_class_probability,
    plot_groups,
    plot_label_rate,
    plot_orientation,
    plot_prior_posterior,
    plot_profile,
    plot_propensity,
    plot_ranking,
    top_features,
)
from bayes_lepu.report.figures import BOTTOM, LEFT, RIGHT, TOP, Picture, picture
from bayes_lepu.result.facts import model_in_words, orientation_sentence, rows_in_words
from bayes_lepu.result.numbers_in_words import number, say_count, say_share
from bayes_lepu.result.summaries import interval_level, mean_by_row
from bayes_lepu.runtime.interruption import stops_at_once
from bayes_lepu.verdict.records import Aspect, Identifiability
from bayes_lepu.verdict.rivals import LEAST_DIFFERENCE

if TYPE_CHECKING:
    from arviz_plots import PlotCollection

    from bayes_lepu.fitted import Fit


class Cell(NamedTuple):
    """The text of a cell, the number it is sorted by (None for text), and a style class."""

    text: str
    value: float | None = None
    style: str = ""


@dataclass(frozen=True)
class Table:
    """Headings and rows of cells."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""

    @cached_property
    def numeric(self) -> tuple[bool, ...]:
        """Whether each column holds numbers."""
        return tuple(
            any(row[j].value is not None for row in self.rows) for j in range(len(self.columns))
        )

    @cached_property
    def prose(self) -> bool:
        """Whether cells have sentences; narrow screens then show each row as a separate card."""
        texts = (cell.text for row in self.rows for cell in row if cell.value is None)
        return len(self.columns) > 2 and any(len(text) > 40 for text in texts)


def cell(value: Any) -> Cell:
    """A cell from any value of a DataFrame."""
    if isinstance(value, Cell):
        return value
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, bool):
        return Cell("yes" if value else "no")
    if isinstance(value, int | float):
        return Cell(number(value), None if math.isnan(value) else float(value))
    return Cell("" if value is None else str(value))


def as_it_is(value: Any) -> Cell:
    """A cell of the user's table: a number that is not rounded to three digits."""
    text = f"{value:.7g}" if isinstance(value, float) else str(value)
    return Cell(text, cell(value).value)


def table(caption: str, frame: pd.DataFrame, *, note: str = "") -> Table:
    """A table from a DataFrame, with its index as the first column if it is named."""
    columns, rows = [str(c) for c in frame.columns], frame.to_numpy(dtype=object).tolist()
    if frame.index.name is not None:
        columns = [str(frame.index.name), *columns]
        rows = [[as_it_is(name), *row] for name, row in zip(frame.index, rows, strict=True)]
    return Table(caption, tuple(columns), tuple(tuple(cell(v) for v in r) for r in rows), note)


@dataclass(frozen=True)
class Section:
    """A heading with sentences, facts, pictures and tables below it.

    ``reading`` explains once how to read all pictures of the section. ``folded`` tables are hidden
    until the reader unfolds them. ``csv`` is a file to download, described by ``file_name``.
    """

    key: str
    title: str
    lead: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)
    reading: str = ""
    pictures: Sequence[Picture] = ()
    tables: Sequence[Table] = ()
    folded: Sequence[Table] = ()
    code: str = ""
    csv: str = ""
    file_name: str = ""


@dataclass(frozen=True, eq=False)
class Page:
    """A fit, and the columns by which label rates are shown; by default those that matter most."""

    fit: "Fit"
    group_by: tuple[str, ...] = ()

    @property
    def verdict(self) -> Identifiability:
        """The verdict of the fit."""
        return self.fit.identifiability

    @property
    def answer(self) -> Answer:
        """The sentences of the first screen, and the rows to review."""
        return self.fit.answer


PROBABILITY, PROPENSITY = "P(y=1 | x, l=0)", "propensity s"


def first_rows(page: Page) -> Table:
    """The first few rows for the first screen: their labels and probabilities, without symbols."""
    decision = page.answer.decision
    rows = decision.rows.head(8)  # as many as fit on the first screen
    shown = pd.DataFrame({"row": rows.index.astype(str)})
    shown["chance"] = [Cell(say_share(p), float(p)) for p in rows["missed"]]
    if "lower" in rows:
        ends = rows[["lower", "upper"]].to_numpy()
        words = [f"{say_share(low)} to {say_share(high)}" for low, high in ends]
        shown[f"{decision.ci_prob:.0%} interval"] = words
    return table("", shown, note="Chances hold if this model is exact.")


def rows_section(page: Page) -> Section | None:
    """The unlabelled rows by P(y=1 | x, l=0): a table, a file, and the expected positives."""
    fit, answer = page.fit, page.answer
    if answer.decision.candidates == 0 or fit.spec.certain:
        return None
    frame = ranked_rows(fit)
    first = frame.head(200).rename_axis("row")  # for more, the file is more convenient
    chances = first.iloc[:, : list(first).index(PROPENSITY) + 1].map(lambda p: Cell(f"{p:.3f}", p))
    own = first.iloc[:, chances.shape[1] :].map(as_it_is)
    order = "most probable first"
    if fit.identifiability.level == ONLY_MARKS:
        order = "those most like the marked ones first, since nothing else is identified"
    shown = pd.concat([chances.rename(columns={PROBABILITY: "chance"}), own], axis=1)
    return Section(
        "rows",
        "Rows to review first",
        f"The unlabelled rows, {order}, without those already checked. Chances hold if this model "
        "is exact. Click a heading to sort.",
        pictures=(
            picture(
                "Positives found",
                "Positives found among the first rows reviewed, if this model is exact.",
                plot_ranking,
                fit,
            ),
        ),
        tables=(table(f"The first {len(shown)}", shown),),
        csv=frame.to_csv(index_label="row", float_format="%.6g"),
        file_name=f"rows-to-review ({say_count(len(frame))} rows)",
    )


def ranked_rows(fit: "Fit") -> pd.DataFrame:
    """The unlabelled rows whose class is unknown, the most probable first, with their columns.

    At most the 5,000 most probable rows are returned, so that the page stays below a megabyte, with
    the six columns that matter most.
    """
    found, data = fit.decide(budget=5000), fit.data
    frame = found.rows.rename(columns={"missed": PROBABILITY, EXCHANGED: "with t and s swapped"})
    draws = fit.draws.thin(MAX_DRAWS).average()
    frame[PROPENSITY] = mean_by_row(draws, Parameters.s, data.X[found.positions])
    shown = (own_values(data, name, found.positions) for name in top_features(fit, 6))
    cells = dict(pair for pair in shown if pair is not None)
    return pd.concat([frame, pd.DataFrame(cells, index=frame.index)], axis=1)


WORDS = {
    "pi": "class prior π = P(y=1), the share of positives",
    "c": "label frequency c = P(l=1 | y=1), the share of positives with a label",
    "prior of pi": "π before the data",
    "prior of c": "c before the data",
}
TITLES = {"pi": "Share of positives π", "c": "Share of them labelled c"}


def class_section(page: Page) -> Section:
    """Class probabilities, class prior and label frequency."""
    fit = page.fit
    frame, level = fit.class_prior(), f"{interval_level():.0%}"
    pictures = [
        picture(
            "Class probability of the rows",
            "Rows from least to most probably positive. The area below the blue curve is the share "
            "of positives; the gap down to the green curve is the positives without a label.",
            plot_class_probability,
            fit,
        )
    ]
    if not fit.is_point:
        for name in list(TITLES)[: 1 if fit.spec.certain else None]:  # the naive model has c = 1
            pictures.append(picture(TITLES[name], "", plot_prior_posterior, fit, var_names=[name]))
    facts = {}
    if fit.data.n_annotators == 1:
        low, high = fit.bounds().loc["nothing", ["lower", "upper"]]
        facts["share of positives π without any assumption on s"] = (
            f"{number(low)} to {number(high)}"
        )
    heads = {"low": "lowest", "high": "highest", "lower": f"{level} from", "upper": f"{level} to"}
    note = (
        "Lowest and highest: over alternative models with the same fit. The rest holds if this "
        "model is exact."
    )
    caption = "Point estimate" if fit.is_point else "Before and after the data"
    shown = frame.rename(index=WORDS, columns=heads).rename_axis("quantity")
    return Section(
        "answer",
        "The class",
        "How many rows are positive, which ones, and how many of the positives carry a label.",
        reading=""
        if fit.is_point
        else "Grey: before the data. Colour: after the data. The narrower colour is against grey, "
        "the more the data have shown.",
        facts=facts,
        pictures=pictures,
        tables=(table(caption, shown, note=note if "low" in frame else ""),),
    )


def groups_section(page: Page) -> Section | None:
    """Shares of positives by the columns of ``group_by``, where these define groups."""
    fit, pictures, tables = page.fit, [], []
    rests: dict[str, None] = {}
    for name in page.group_by:
        try:
            found = shares_table(fit, page.verdict, read_groups(fit.data, name))
        except DataError:  # too many values, or a term of a formula
            continue
        pictures.append(picture(f"Share of positives by {name}", "", plot_groups, fit, by=name))
        tables.append(table(f"By {name}", found.rename_axis(name)))
        rests[found.attrs["rests_on"]] = None
    if not pictures:
        return None
    return Section(
        "groups",
        "Where are they?",
        f"This rests on: {'; '.join(rests)}.",
        reading="Thin lines: over alternative models with the same fit. Thick lines: if this model "
        "is exact. Green: the share that is marked.",
        pictures=pictures,
        folded=tables,
    )


RATE_MEANING = {
    "gamma": "How often even the least visible positives are labelled.",
    "lambda": "How often even the most visible positives are missed.",
    "epsilon": "How often a negative is marked. Where colour lies on grey, the figure comes from "
    "the prior, not from the data.",
}
OVER_S = {
    "class_prior": "π",
    "missed": "missed positives",
    "same_rows": "share of the first 100 rows that are the same",
    "behind": "log-likelihood units behind the best S",
}


def annotator_section(page: Page) -> Section:
    """Propensity curves (bars for categories and flags), guesses and lapses."""
    fit, several = page.fit, page.fit.data.n_annotators > 1
    words = model_in_words(fit.spec).partition(": ")[2]
    lead, reading = f"{words[0].upper()}{words[1:]}. In symbols, {fit.spec.mechanism}.", ""
    if several:
        lead += " Annotators are partially pooled; the curves are of the average annotator."
    pictures: list[Picture] = []
    if fit.spec.has_selection:
        if len(fit.data.terms) > MAX_PANELS:
            lead += (
                f" Of {len(fit.data.terms)} columns the {MAX_PANELS} with the largest effects are "
                "shown."
            )
        reading = (
            "Orange: how readily positives are labelled. Blue: how probably rows are positive. "
            "Both are averages over the rows with this column moved."
        )
        for name in top_features(fit):
            title, options = own_name(fit, name) or name, {"features": [name], "show_class": True}
            pictures.append(picture(title, "", plot_propensity, fit, **options))
    rates = fit.draws.rates(fit.spec.shape_rates)
    facts = {RATE_WORDS[name]: number(float(drawn.mean())) for name, drawn in rates.items()}
    if not fit.is_point:
        titles = {name: RATE_WORDS[name].capitalize() for name in rates}
        titles |= {"epsilon": "Rate of false marks ε"} if fit.spec.false_marks else {}
        for name, title in titles.items():
            meaning = RATE_MEANING[name]
            pictures.append(picture(title, meaning, plot_prior_posterior, fit, var_names=[name]))
    tables, folded = [], []
    if several:
        people = fit.annotators().rename(columns={"differs_in": "differs in"})
        tables.append(table("Annotators", people))
    elif not fit.spec.certain and page.answer.decision.candidates:
        note = (
            "S is how much the columns may change the log-odds of a positive being marked; with 0 "
            "all positives are marked with the same chance."
        )
        over = fit.sensitivity()
        words = "Share of positives π by how much the annotator may vary. 0: all are marked alike."
        pictures.append(picture("If the annotator varies", words, plot_over_s, over))
        shown = over.rename(columns=OVER_S)
        folded.append(table("If the annotator varies more or less", shown, note=note))
    title = "The annotators" if several else "The annotator"
    return Section("annotator", title, lead, facts, reading, pictures, tables, folded)


def plot_over_s(over: pd.DataFrame, *, backend: str | None = None) -> "PlotCollection":
    """The share of positives over S, from `Fit.sensitivity`."""
    made, (panel,) = new_panels(["sensitivity"], backend=backend)
    S, pi = over.index.to_numpy(), over["class_prior"].to_numpy()
    panel.line(S, pi, CLASS)
    panel.dots(S, pi, CLASS)
    panel.axes("how much the annotator may vary, S", "class prior π", up=share_range(pi))
    return made


def labels_section(page: Page) -> Section:
    """Label rates by score and by column, and calibration."""
    fit = page.fit
    pictures = [picture("Label rate by score", "", plot_label_rate, fit)]
    for name in page.group_by or top_features(fit, 3):
        title = f"Label rate by {own_name(fit, name) or name}"
        pictures.append(picture(title, "", plot_label_rate, fit, by=name))
    return Section(
        "labels",
        "Does the model reproduce the labels?",
        "Only the labels can be checked against the data. A good fit of the labels does not show "
        "that class and annotator are separated correctly.",
        reading="Green dots inside the grey bars: these groups of rows have as many labels as "
        "predicted. Several dots in a row on one side of their bars: this column has a curve that "
        "the model lacks.",
        pictures=pictures,
    )


QUESTIONS = {
    Aspect.COMPUTATION: "Did the computation work?",
    Aspect.LABELS: "Does the model reproduce the labels?",
    Aspect.RANKING: "Can the rows be put in order?",
    Aspect.ORIENTATION: "Do the data show which factor is the class?",
    Aspect.LEVEL: "Is the total identified?",
}
STYLES = {"passed": "good", "weak": "fair", "failed": "bad", "not computed": "muted"}
ORDER = ("failed", "weak", "not computed", "passed")


def checks_section(page: Page) -> Section:
    """The verdict, its checks, and their pictures."""
    fit, verdict, pictures = page.fit, page.verdict, []
    if fit.spec.has_selection:
        pictures.append(
            picture(
                "Size of the two factors",
                "Dots below the diagonal: the class is the steeper factor, as the paper assumes. A "
                "cloud across it leaves open which factor is the class. Large dot: the best mode.",
                plot_orientation,
                fit,
            )
        )
    if verdict.evidence is not None and verdict.evidence.profile is not None:
        pictures.append(
            picture(
                "Profile of the class prior",
                "The labels do not exclude values above the dashed line. A flat top means that the "
                "labels do not identify the share of positives.",
                plot_profile,
                fit,
            )
        )
    facts = {
        "rests on": ", ".join(verdict.carried_by),
        "which factor is the class": orientation_sentence(fit),
        "log-likelihood units": "2 make the data 7 times as likely, 5 make them 150 times",
    }
    if fit.quality.words:
        facts["computation"] = fit.quality.words
    if fit.stats:
        chains, draws = fit.parameters.b.shape
        facts["computation"] = f"{chains} chains of {draws} draws"
    return Section(
        "checks",
        "What these data identify",
        f"Level {verdict.level} of 4 (1: order of the rows and total are identified; 2: the order; "
        f"3: class and annotator, but not which is which; 4: neither). {verdict.verdict}",
        facts=facts,
        pictures=pictures,
        tables=(checks_table(verdict),),
        folded=_details(page),
    )


def checks_table(verdict: Identifiability) -> Table:
    """All checks, failed ones first, with the first question that each bears on."""
    found = verdict.to_frame().rename_axis("check")
    found["bears_on"] = [" ".join(QUESTIONS[a] for a in c.bears_on[:1]) for c in verdict.checks]
    found = found.sort_values("status", key=lambda s: s.map(ORDER.index), kind="stable")
    found["status"] = [Cell(status, style=STYLES[status]) for status in found["status"]]
    heads = {"text": "finding", "remedy": "what would help", "bears_on": "question"}
    return table("Checks", found.rename(columns=heads))


HEALTH = {"r_hat": "R-hat", "ess_bulk": "ESS bulk", "ess_tail": "ESS tail"}


def _details(page: Page) -> list[Table]:
    """The tables of other models, figures and chains behind the verdict, which can be unfolded."""
    fit, verdict = page.fit, page.verdict
    found = []
    if verdict.evidence is not None and verdict.evidence.rivals:
        ranked = sorted(verdict.evidence.rivals, key=lambda r: -r.elpd)
        rows = [[r.name, r.elpd, r.pi, r.pi_sd] for r in ranked]
        note = (
            "elpd: expected log predictive density, the log likelihood at the maximum under a weak "
            "penalty less the effective number of parameters. A difference below "
            f"{LEAST_DIFFERENCE:g} or two standard errors shows nothing. Where a constant s "
            "predicts as well, take the simpler model."
        )
        shown = pd.DataFrame(rows, columns=["model", "elpd", "its π", "sd of its π"])
        found.append(table("Other models of the same labels", shown, note=note))
    if len(verdict.figures):
        found.append(table("Figures without a threshold", verdict.figures.rename_axis("figure")))
    if fit.stats:
        health = fit.summary(round_to="none").sort_values("r_hat", ascending=False)
        note = "" if len(health) <= 40 else "The 40 largest R-hat are shown."
        health = health.head(40)[["mean", "sd", *HEALTH]].round({"ess_bulk": 0, "ess_tail": 0})
        # R-hat differs from 1 in later digits, so it has more of them; a single chain has no R-hat.
        rounded = [Cell(f"{r:.3f}", r) if np.isfinite(r) else r for r in health["r_hat"]]
        health = health.assign(r_hat=rounded).rename(columns=HEALTH).rename_axis("parameter")
        found.append(table("Chains, by parameter", health, note=note))
    return found


def data_section(page: Page) -> Section:
    """Rows, labels, audits, and every column with its slopes."""
    fit, d = page.fit, page.fit.data
    facts = {
        "table": rows_in_words(d),
        "labelled positive": f"{d.l.mean():.1%}",
        "unlabelled, class unknown": number(int(np.sum(d.kind == RowKind.UNLABELLED))),
    }
    if d.n_audited:
        missed = int(np.sum(d.kind == RowKind.MISSED))
        facts["audited"] = f"{d.n_audited} ({missed} missed positives, {d.n_audited - missed} not)"
        facts["audited rows were"] = fit.options.audits or "picked in an unknown way"
    proof = "is taken to be right"
    if fit.spec.false_marks:
        proof = "can be a false mark, put on a negative"
    moved = fit.importance(features=top_features(fit)).rename(columns="in {}".format)
    note = "By shuffling the column. 0: the column has no effect; 1: nothing else matters."
    return Section(
        "data",
        "The data",
        f"A label {proof}. A row without a label is negative, or a positive that was overlooked.",
        facts=facts,
        folded=(
            columns_table(fit),
            table("How much t and s depend on each column", moved, note=note),
        ),
    )


def columns_table(fit: "Fit", most: int = 60) -> Table:
    """Slopes in the units of the columns; with many columns only the largest standardised ones."""
    found = fit.coefficients()
    size = (found["mean"].xs("internal", level="scale").abs()).groupby("feature").max()
    shown = size.drop("(intercept)").nlargest(most).index
    own = found.xs("original", level="scale")
    slopes = pd.DataFrame(
        {
            f"slope in {factor}": {name: _slope(row) for name, row in part.droplevel(0).iterrows()}
            for factor, part in own.groupby(level="factor", sort=False)
        }
    )
    slopes = slopes.loc[[name for name in [*fit.feature_names, "(intercept)"] if name in shown]]
    note = (
        "Change of the log-odds of being positive (t), and of being labelled if positive (s), per "
        "unit of the column."
    )
    if fit.data.p > most:
        note = f"The {most} columns with the largest effects. {note}"
    return table("Columns, and their slopes in t and s", slopes.rename_axis("column"), note=note)


def _slope(row: pd.Series) -> Cell:
    text = number(row["mean"])
    if "lower" in row and row["lower"] < row["upper"]:
        text += f" ({number(row['lower'])} to {number(row['upper'])})"
    return Cell(text if row["mean"] else "", row["mean"])


def reproduce_section(page: Page) -> Section:
    """Versions, seed and call."""
    fit, help_ = page.fit, page.answer.call
    versions = pd.DataFrame(list(fit.provenance.versions.items()), columns=["package", "version"])
    advice = f"\n# what would help most\n{help_}\n" if help_ else ""
    return Section(
        "reproduce",
        "How to reproduce this",
        "The same call with the same seed and versions gives the same draws.",
        facts={
            "model": fit.spec.name,
            "method": fit.method,
            "random seed": str(fit.options.random_seed),
            "Python": platform.python_version(),
        },
        code=f'{fit.call}fit.report("report.html")\n{advice}',
        folded=(table("Versions", versions),),
    )


SECTIONS: list[Callable[[Page], Section | None]] = [
    rows_section,
    class_section,
    groups_section,
    annotator_section,
    labels_section,
    checks_section,
    data_section,
    reproduce_section,
]


# The page -------------------------------------------------------------------------------------


@stops_at_once
def render(page: Page, title: str | None = None) -> str:
    """The page as text."""
    d, column = page.fit.data, page.fit.options.l
    who = f"“{column}”" if isinstance(column, str) else "the labels"
    environment = Environment(
        loader=PackageLoader("bayes_lepu", "report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    style, script = (
        files("bayes_lepu.report").joinpath(name).read_text(encoding="utf-8")
        for name in ("style.css", "script.js")
    )
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return environment.get_template("template.html").render(
        title=title or f"{say_count(d.n)} rows: what {who} missed",
        page=page,
        first=first_rows(page),
        facts_line=rows_in_words(d),
        ci=f"{interval_level():.0%}",
        frame={"x": LEFT, "y": TOP, "width": RIGHT - LEFT, "height": BOTTOM - TOP},
        sections=[made for section in SECTIONS if (made := section(page)) is not None],
        style=Markup(style),
        script=Markup(script),
        script_hash=f"sha256-{digest}",  # the page's policy runs this script and no other
        written=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    )
