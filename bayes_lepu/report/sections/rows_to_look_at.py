"""The rows to look at first, and what looking at them brings."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayes_lepu.links import Array
from bayes_lepu.models.parameters import Parameters
from bayes_lepu.plots.annotator import top_features
from bayes_lepu.plots.ranking import plot_ranking
from bayes_lepu.report.figures import picture
from bayes_lepu.report.html_tables import Cell, Table, from_frame
from bayes_lepu.report.page import Page
from bayes_lepu.report.section import Section
from bayes_lepu.result import FittedModel
from bayes_lepu.result.numbers_in_words import say_count, say_share
from bayes_lepu.result.summaries import mean_by_row
from bayes_lepu.settling.readings import read_open
from bayes_lepu.tables.formulas import spline_argument

SHOWN = 200
IN_FILE = 5000
FEATURES = 6
FIRST = 8  # rows on the first screen
PROBABILITY = "P(y=1 | x, l=0)"


def first_rows(page: Page) -> Table:
    """The first few rows for the first screen: their names and chances, without symbols."""
    decision = page.answer.decision
    rows = decision.rows.head(FIRST)
    columns = ["row", "chance"]
    interval = "lower" in rows
    if interval:
        columns.append(f"{decision.ci_prob:.0%} interval")
    cells = []
    for name, row in rows.iterrows():
        line = [Cell(str(name)), Cell(say_share(row["missed"]), float(row["missed"]))]
        if interval:
            line.append(Cell(f"{say_share(row['lower'])} to {say_share(row['upper'])}"))
        cells.append(tuple(line))
    return Table(tuple(columns), tuple(cells))


def rows_section(page: Page) -> Section | None:
    """The unlabelled rows by P(y=1 | x, l=0): a table, a file, and what looking brings."""
    fit, answer = page.fit, page.answer
    if answer.decision.candidates == 0 or fit.spec.certain:
        return None
    frame = ranked_rows(fit)
    shown = frame.head(SHOWN)
    curves = (
        (
            "Positives found",
            "How many positives one finds by looking at the most probable rows first.",
            "gain",
        ),
        (
            "Precision against recall",
            "How pure the list is when a given share of the missed positives has been found.",
            "precision",
        ),
    )
    return Section(
        "rows",
        "Rows to look at",
        "The unlabelled rows, most probable first; those that have been checked are left out. "
        "Click a heading to sort.",
        pictures=tuple(
            picture(title, reading, partial(plot_ranking, fit, kind=kind, exchanged=page.unnamed))
            for title, reading, kind in curves
        ),
        tables=((f"The first {len(shown)}", from_frame(shown, index="row")),),
        csv=frame.to_csv(index_label="row", float_format="%.6g"),
        file_name=f"rows-to-look-at ({say_count(len(frame))} rows)",
    )


def ranked_rows(fit: FittedModel) -> pd.DataFrame:
    """The unlabelled rows whose class is unknown, the most probable first, with their columns.

    Means and intervals are those of `Fit.decide`, over at most 1000 evenly spaced draws; at most
    the 5,000 most probable rows are returned.
    """
    data = fit.data
    rows, (reading,) = read_open(fit, both=False)
    best = np.argsort(-reading.mean, kind="stable")[:IN_FILE]
    first, draws = rows[best], reading.draws
    X = data.X[first]
    frame = reading.summary(best, data.index[first])
    frame = frame.rename(columns={"mean": PROBABILITY})
    frame["class t"] = mean_by_row(draws, Parameters.t, X)
    frame["propensity s"] = mean_by_row(draws.average(), Parameters.s, X)
    shown = [own_values(fit, name, first) for name in top_features(fit, FEATURES)]
    cells = dict(pair for pair in shown if pair is not None)
    return pd.concat([frame, pd.DataFrame(cells, index=frame.index)], axis=1)


def own_values(
    fit: FittedModel, name: str, rows: NDArray[np.intp]
) -> tuple[str, NDArray[Any]] | None:
    """A column as the user knows it, and its name: numbers in their units, levels by name.

    A spline is shown by what it is of, a group by its level; other terms of several columns, such
    as interactions, have no single value: None.
    """
    data, design = fit.data, fit.data.encoding.design
    places = list(data.terms[name])
    raw = data.cells(places, rows) * data.scale[places] + data.center[places]
    if design is not None and (of := spline_argument(name)):
        values = design.argument(name, raw)
        return None if values is None else (of[0], _rounded(values))
    if data.is_group(name):
        levels = [data.feature_names[j].split("=", 1)[1] for j in places]
        return name.removeprefix("1 | "), _levels(levels, np.argmax(raw, axis=1))
    column = next((c for c in data.encoding.columns if c.name == name), None)
    if column is not None and column.levels is not None and len(column.names) == len(places):
        at = np.where(raw.max(axis=1) > 0.5, 1 + np.argmax(raw, axis=1), 0)
        return name, _levels(column.levels, at)
    if column is not None and column.indicator and len(places) == 2:
        return name, np.where(raw[:, 1] > 0.5, np.nan, _rounded(raw[:, 0]))
    return (name, _rounded(raw[:, 0])) if len(places) == 1 else None


def _levels(levels: Sequence[str], at: NDArray[np.intp]) -> NDArray[Any]:
    return np.array(levels, dtype=object)[at]


def _rounded(values: Array) -> Array:
    """Undo the rounding of the way to the internal scale and back."""
    return np.round(values, 10) + 0.0
