"""Trials as figures: every cell (table x mechanism) has the same weight, losses included.

`summarise` makes the small table that is stored (``benchmarks/results/real.csv``): one line per
method and cell. The other functions make of it the tables of the README and of
``docs/real-tables.md``; ``python -m tools.figures`` puts them there.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.real.peers import PEERS
from benchmarks.real.published import AISTATS, ECAI
from benchmarks.real.trials import Record

STORED = Path(__file__).resolve().parents[1] / "results" / "real.csv"
CELL = ["table", "mechanism"]
SCORES = ["accuracy", "balanced accuracy", "AUC", "Brier", "MAE of t", "error of pi"]
SHARES = ["loses to naive", "AUC < .6", "covered"]
FEW = ("S1", "S2", "S3", "S4")  # mark one positive in ten or fewer
BEST = "auto, laplace"
CLEARLY = 0.01  # of accuracy, about the standard error of a cell


def summarise(records: Sequence[Record]) -> pd.DataFrame:
    """Means of every method in every cell, and the number of trials behind them.

    No trial is left out: one that failed is an error here.
    """
    trials = pd.DataFrame(records)
    if "error" in trials and trials["error"].notna().any():
        failed = trials[trials["error"].notna()]
        raise SystemExit(f"{len(failed)} trials failed, the first: {failed.iloc[0].to_dict()}")
    where = [*CELL, "repetition"]
    naive = trials[trials["method"] == "naive"].set_index(where)["accuracy"]
    beside = naive.reindex(pd.MultiIndex.from_frame(trials[where])).to_numpy()
    loses = np.where(np.isnan(beside), np.nan, trials["accuracy"] < beside)
    trials = trials.assign(**{"loses to naive": loses, "AUC < .6": trials["AUC"] < 0.6})
    figures = [*SCORES, *(s for s in SHARES if s in trials), "CPU seconds", "labelled"]
    groups = trials.groupby(["method", *CELL], sort=True)
    return groups[figures].mean().round(4).assign(trials=groups.size()).reset_index()


def read_cells() -> pd.DataFrame:
    """The stored table."""
    return pd.read_csv(STORED)


def common(cells: pd.DataFrame) -> pd.DataFrame:
    """The cells that every method has, so that methods are compared on the same ones."""
    count = cells.groupby(CELL)["method"].transform("nunique")
    return cells[count == cells["method"].nunique()]


def complete(cells: pd.DataFrame) -> pd.DataFrame:
    """The methods that have every cell: the quick ones, where the others were not run on all."""
    count = cells.groupby("method")["method"].transform("size")
    return cells[count == count.max()]


def overall(cells: pd.DataFrame) -> pd.DataFrame:
    """One row per method, means over the common cells, the most accurate first."""
    figures = [*SCORES, *(s for s in SHARES if s in cells), "CPU seconds"]
    methods = common(cells).groupby("method")
    table = methods[figures].mean().assign(trials=methods["trials"].sum())
    return table.sort_values("accuracy", ascending=False)


def short_table() -> str:
    """For the README: the figures that a user chooses by."""
    table = overall(read_cells())
    return markdown(table[["accuracy", "AUC", "error of pi", "loses to naive"]], index="method")


def whole_table() -> str:
    """All figures of all methods."""
    return markdown(overall(read_cells()), index="method")


def few_and_fair() -> str:
    """Three figures where a fair share of the positives is marked, and where few are."""
    cells = complete(read_cells())
    few = cells["mechanism"].isin(FEW)
    parts = {}
    for name, part in (("fair share marked", cells[~few]), ("few marked", cells[few])):
        means = part.groupby("method")[["accuracy", "AUC", "error of pi"]].mean()
        parts[name] = [" / ".join(map(_short, row)) for row in means.to_numpy()]
    table = pd.DataFrame(parts, index=means.index)
    return markdown(table.loc[overall(cells).index], index="method")


def by_mechanism() -> str:
    """Accuracy of our quickest answers and of the best peer, with the peer's name."""
    return _against_peers("mechanism")


def by_table() -> str:
    """The same by table."""
    return _against_peers("table")


def _against_peers(column: str) -> str:
    cells = complete(read_cells())
    means = cells.pivot_table(index=column, columns="method", values="accuracy", sort=False)
    peers = means[[name for name in PEERS if name in means]]
    table = pd.DataFrame(
        {
            "spm, map": means["spm, map"],
            "scar, map": means["scar, map"],
            "best peer": peers.max(axis=1),
            "its name": peers.idxmax(axis=1),
        }
    )
    return markdown(table, index=column)


def lost_cells() -> str:
    """The cells in which a peer is clearly more accurate than `BEST`, largest loss first."""
    means = complete(read_cells()).pivot_table(index=CELL, columns="method", values="accuracy")
    peers = means[[name for name in PEERS if name in means]]
    table = means[[BEST, "spm, map", "scar, map"]].assign(
        **{"best peer": peers.max(axis=1), "its name": peers.idxmax(axis=1)}
    )
    loss = table["best peer"] - table[BEST]
    table = table.loc[loss[loss > CLEARLY].sort_values(ascending=False).index]
    table.index = [", ".join(cell) for cell in table.index]
    return markdown(table, index="table and mechanism")


def published_scar() -> str:
    """Accuracy under SCAR beside what ECAI 2023 printed."""
    cells = read_cells()
    scar = cells[cells["mechanism"].str.startswith("scar")]
    return _beside(scar.pivot_table(index="table", columns="method", values="accuracy"), ECAI)


def published_few() -> str:
    """Balanced accuracy under S1 to S4 beside what AISTATS 2025 printed."""
    cells = read_cells()
    few = cells[cells["mechanism"].isin(FEW)].assign(
        table=cells["table"] + ", " + cells["mechanism"]
    )
    ours = few.pivot_table(index="table", columns="method", values="balanced accuracy")
    return _beside(ours, AISTATS)


def _beside(ours: pd.DataFrame, printed: dict[str, dict[str, float]]) -> str:
    columns = [BEST, "spm, map", "LBE", "NTC-τMI", "TM", "naive"]
    there = pd.DataFrame(printed).T.add_suffix(", printed")
    return markdown(ours[columns].join(there, how="inner"), index="table")


def markdown(table: pd.DataFrame, *, index: str) -> str:
    """A table in Markdown, figures without a leading zero."""
    lines = [[index, *map(str, table.columns)], ["---"] + ["---:"] * len(table.columns)]
    rows = zip(table.index, table.to_numpy(), strict=True)
    lines += [[str(name), *map(_short, row)] for name, row in rows]
    return "".join("| " + " | ".join(cells) + " |\n" for cells in lines)


def _short(value: object) -> str:
    if isinstance(value, str):
        return value
    number = float(value)  # type: ignore[arg-type]
    if not np.isfinite(number):
        return ""
    if number >= 10:
        return f"{number:.0f}"
    return f"{number:.3f}".lstrip("0") if number < 1 else f"{number:.2f}"
