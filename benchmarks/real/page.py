"""The page of results: means over tables and mechanisms with equal weight, losses included."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.real.trials import Record

CELL = ["table", "mechanism"]
SCORES = ("accuracy", "balanced accuracy", "AUC", "Brier", "MAE of t", "error of pi")


def frame(records: Sequence[Record]) -> pd.DataFrame:
    """Trials as a table, those that every method finished, with what naive gave beside them.

    Methods are compared on the same trials: one that failed in a trial takes it from all.
    """
    trials = pd.DataFrame(records)
    if "error" in trials:
        trials = trials[trials["error"].isna()]
    where = [*CELL, "repetition"]
    count = trials.groupby(where)["method"].transform("nunique")
    trials = trials[count == trials["method"].nunique()]
    naive = trials[trials["method"] == "naive"].set_index(where)["accuracy"]
    beside = naive.reindex(pd.MultiIndex.from_frame(trials[where])).to_numpy()
    return trials.assign(
        **{"loses to naive": trials["accuracy"] < beside, "AUC < .6": trials["AUC"] < 0.6}
    )


def overall(trials: pd.DataFrame) -> pd.DataFrame:
    """One row per method: the mean over the cells (table x mechanism) of the means within them."""
    figures = [*SCORES, "loses to naive", "AUC < .6", "CPU seconds"]
    figures += [name for name in ("covered", "level") if name in trials]
    cells = trials.groupby(["method", *CELL])[figures].mean()
    return cells.groupby("method").mean().sort_values("accuracy", ascending=False)


def by(trials: pd.DataFrame, column: str, score: str) -> pd.DataFrame:
    """Mean of one score: one row per table or mechanism, one column per method."""
    cells = trials.groupby(["method", *CELL], as_index=False)[score].mean()
    return cells.pivot_table(index=column, columns="method", values=score)


def markdown(table: pd.DataFrame, *, index: str) -> str:
    """A table in Markdown, figures without a leading zero."""
    head = [index, *map(str, table.columns)]
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * len(table.columns)]
    for name, row in table.iterrows():
        lines.append("| " + " | ".join([str(name), *map(_short, row)]) + " |")
    return "\n".join(lines)


def write_page(records: Sequence[Record], path: Path) -> pd.DataFrame:
    """Write the page and return the table of all methods."""
    trials = frame(records)
    table = overall(trials)
    best = list(table.index)
    parts = [
        "# Real tables: who finds the true classes?",
        _introduction(trials),
        markdown(table, index="method"),
        "## Accuracy by table",
        markdown(by(trials, "table", "accuracy")[best], index="table"),
        "## Accuracy by mechanism",
        markdown(by(trials, "mechanism", "accuracy")[best], index="mechanism"),
        "## Error of the class prior by mechanism",
        markdown(by(trials, "mechanism", "error of pi")[best], index="mechanism"),
    ]
    path.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    return table


def _introduction(trials: pd.DataFrame) -> str:
    repetitions = trials["repetition"].nunique()
    return (
        f"{trials['table'].nunique()} public tables, {trials['mechanism'].nunique()} labelling "
        f"mechanisms (`benchmarks/real/labelling.py`), up to {repetitions} repetitions: "
        f"{trials.groupby([*CELL, 'repetition']).ngroups} trials, the same for every method. Three "
        "quarters of the rows train, one quarter scores. Every cell (table and mechanism) has the "
        "same weight. A method sees rows and marks, never a class."
    )


def _short(value: float) -> str:
    if not np.isfinite(value):
        return ""
    return f"{value:.3f}".lstrip("0") if abs(value) < 1 else f"{value:.2f}"
