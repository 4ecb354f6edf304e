"""Trials as figures: every cell (table, mechanism, size) has the same weight, losses included.

`summarise` makes the small table that is stored (``benchmarks/results/real.csv``): one line per
method and cell. The other functions make of it the tables of the README and of
``docs/real-tables.md``; ``python -m tools.figures`` puts them there. Judging and tuning tables are
never averaged together, nor curved and straight ones.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.real.peers import PEERS
from benchmarks.real.public_tables import CURVED, PROTOCOL, role

STORED = Path(__file__).resolve().parents[1] / "results" / "real.csv"
CELL = ["table", "mechanism", "size"]
SCORES = ["AUC", "accuracy", "average precision", "top 5 %", "Brier", "error of pi"]
SHARES = ["AUC < .6", "naive ahead in AUC", "naive ahead in accuracy", "covered"]
FIGURES = [*SCORES, *SHARES, "CPU seconds"]
OUR_ANSWER = ("default", "auto", "spm")  # the first that was run is compared with the peers
CLEARLY = 0.01  # of AUC, about the standard error of a cell
# arXiv 2303.08269, as printed: estimates at three shares, and the mean error over .01 to .6.
PULSNAR = {
    "PULSNAR, printed": (0.12, 0.28, 0.52, 0.038),
    "DEDPUL, printed": (0.08, 0.13, 0.15, 0.176),
    "KM2, printed": (0.10, 0.13, 0.20, 0.164),
    "TIcE, printed": (0.16, 0.22, 0.22, 0.148),
    "PULSCAR, printed": (np.nan, np.nan, np.nan, 0.194),
    "KM1, printed": (np.nan, np.nan, np.nan, 0.203),
}


def summarise(trials: pd.DataFrame) -> pd.DataFrame:
    """Means of every method in every cell, and the number of trials behind them.

    "naive" is the logistic regression of the marks; a share is one of trials. A trial that failed
    counts in ``failed`` and in nothing else.
    """
    where = [*CELL, "repetition"]
    naive = trials[trials["method"] == "naive"].set_index(where)[["AUC", "accuracy"]]
    beside = naive.reindex(pd.MultiIndex.from_frame(trials[where]))
    trials = trials.assign(failed=trials["error"].notna())
    trials["AUC < .6"] = (trials["AUC"] < 0.6).astype(float)
    for score in ("AUC", "accuracy"):
        other = beside[score].to_numpy()
        ahead = (other > trials[score]).where(~np.isnan(other))
        trials[f"naive ahead in {score}"] = ahead.astype(float)
    # PULSNAR's alpha: the share of positives among the rows without a mark.
    marked = trials["labelled"] / trials["rows"]
    for source, name in (("pi", "alpha"), ("true pi", "true alpha")):
        trials[name] = ((trials[source] - marked) / (1 - marked)).clip(0, 1)
    trials["error of alpha"] = (trials["alpha"] - trials["true alpha"]).abs()
    figures = [*FIGURES, "rows", "labelled", "gain", "alpha", "error of alpha"]
    groups = trials.groupby(["method", *CELL], sort=True)
    counts = groups["failed"].agg(["size", "sum"]).set_axis(["trials", "failed"], axis=1)
    return groups[figures].mean().round(4).join(counts).reset_index()


def read_cells() -> pd.DataFrame:
    """The stored table."""
    return pd.read_csv(STORED)


def groups(cells: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Judging before tuning tables, curved before straight ones, sizes apart."""
    cells = cells[cells["table"] != PROTOCOL]
    roles, curved = cells["table"].map(role), cells["gain"] >= CURVED
    for wanted in ("judging", "tuning", "other"):
        for bends in (True, False):
            for size in sorted(cells["size"].unique()):
                part = cells[(roles == wanted) & (curved == bends) & (cells["size"] == size)]
                if len(part):
                    form = "curved" if bends else "straight"
                    yield f"{wanted} tables, {form}, {size:,} rows", common(part)


def common(cells: pd.DataFrame) -> pd.DataFrame:
    """The cells that every method has, so that methods are compared on the same ones."""
    count = cells.groupby(CELL)["method"].transform("nunique")
    return cells[count == cells["method"].nunique()]


def overall(cells: pd.DataFrame) -> pd.DataFrame:
    """One row per method of the common cells, the best AUC first, with the distance to a peer.

    "to peer": difference to the peer of the largest mean AUC, with its standard error over tables.
    """
    methods = cells.groupby("method")
    table = methods[FIGURES].mean().sort_values("AUC", ascending=False)
    if len(peers := [name for name in table.index if name in PEERS]):
        for score in ("AUC", "accuracy"):
            by_table = cells.pivot_table(index="table", columns="method", values=score)
            gap = by_table.sub(by_table[peers[0]], axis=0)
            error = gap.std() / np.sqrt(len(gap))
            table[f"{score} to peer"] = [_gap(gap[m].mean(), error[m]) for m in table.index]
    return table.assign(cells=methods.size(), failed=methods["failed"].sum())


def _gap(mean: float, error: float) -> str:
    spread = "" if np.isnan(error) else f" ± {_short(error)}"  # none of a single table
    return f"{'−' if mean < 0 else '+'}{_short(abs(mean))}{spread}"


def summary(cells: pd.DataFrame) -> str:
    """Every group as text, for the command line."""
    parts = [f"{name}\n{overall(part).round(3).to_string()}" for name, part in groups(cells)]
    if (cells["table"] == PROTOCOL).any():
        parts.append(f"PULSNAR's protocol on letters\n{letters(cells).round(3).to_string()}")
    return "\n\n".join(parts)


def letters(cells: pd.DataFrame) -> pd.DataFrame:
    """Estimated share of positives among the unlabelled letters, and its mean error."""
    part = cells[cells["table"] == PROTOCOL].dropna(subset=["alpha"])
    ours = part.pivot_table(index="method", columns="mechanism", values="alpha")
    ours.columns = [name.removeprefix("letters-") for name in ours.columns]
    ours["mean error"] = part.groupby("method")["error of alpha"].mean()
    ours["AUC"] = part.groupby("method")["AUC"].mean()
    there = pd.DataFrame(PULSNAR, index=[".1", ".3", ".5", "mean error"]).T
    return pd.concat([ours.sort_values("mean error"), there])


def short_table() -> str:
    """For the README: three figures on the judging tables, curved and straight apart."""
    return _three(read_cells(), "judging")


def tuning_table() -> str:
    """The same on the tuning tables."""
    return _three(read_cells(), "tuning")


def _three(cells: pd.DataFrame, wanted: str) -> str:
    columns: dict[str, pd.Series] = {}
    notes: list[str] = []
    for name, part in groups(cells):
        if name.startswith(wanted):
            count, least, most = len(part.groupby(CELL)), part["trials"].min(), part["trials"].max()
            each = f"{least}" if least == most else f"{least} to {most}"
            means = part.groupby("method")[["AUC", "accuracy", "error of pi"]].mean()
            title = f"{name.partition(', ')[2]} ({', '.join(part['table'].unique())})"
            columns[title] = means.apply(lambda row: " / ".join(map(_short, row)), axis=1)
            trials = "trial" if each == "1" else "trials"
            notes.append(f"{name.partition(', ')[2]}: {count} cells, {each} {trials} each")
    if not columns:
        return "Not run yet.\n"
    table = pd.DataFrame(columns).fillna("")
    table = table.sort_values(table.columns[0], ascending=False)
    return (
        markdown(table, index="method")
        + f"\nA cell is a table marked in one way. {'; '.join(notes).capitalize()}.\n"
    )


def split_table() -> str:
    """Every table: what it is used for, and whether its class is curved."""
    cells = read_cells()
    cells = cells[cells["table"] != PROTOCOL]
    table = cells.groupby("table").agg({"rows": "max", "gain": "first"})
    table = table.assign(use=[role(name) for name in table.index])
    table["class"] = np.where(table["gain"] >= CURVED, "curved", "straight")
    table = table.sort_values(["use", "gain"], ascending=[True, False])
    table = table.rename(columns={"rows": "training rows", "gain": "gain by boosting"})
    return markdown(table[["use", "class", "gain by boosting", "training rows"]], index="table")


def whole_tables() -> str:
    """All figures of all methods, one table per group."""
    return "\n".join(
        f"**{name[0].upper()}{name[1:]}** ({', '.join(part['table'].unique())})\n\n"
        + markdown(overall(part).drop(columns=["Brier", "cells", "failed"]), index="method")
        for name, part in groups(read_cells())
    )


def lost_cells() -> str:
    """The cells in which a peer's AUC is clearly above our answer's, largest loss first."""
    cells = read_cells()
    means = cells[cells["table"] != PROTOCOL].pivot_table(
        index=CELL, columns="method", values="AUC"
    )
    ours = next(name for name in OUR_ANSWER if name in means)
    means = means.dropna(subset=[ours])
    peers = means[[name for name in PEERS if name in means]]
    table = pd.DataFrame(
        {ours: means[ours], "best peer": peers.max(axis=1), "its name": peers.idxmax(axis=1)}
    )
    loss = table["best peer"] - table[ours]
    table = table.loc[loss[loss > CLEARLY].sort_values(ascending=False).index]
    table.index = [f"{name}, {mechanism}, {size:,} rows" for name, mechanism, size in table.index]
    return markdown(table, index=f"{len(table)} of {len(means)} cells")


def letters_table() -> str:
    """PULSNAR's protocol beside its printed figures."""
    cells = read_cells()
    repeats = cells.loc[cells["table"] == PROTOCOL, "trials"].min()
    note = (
        f"\nOur results have at least {repeats} repetition{'' if repeats == 1 else 's'} for each "
        "α. The printed ones have 40, at more values of α.\n"
    )
    return markdown(letters(cells), index="method") + note


def markdown(table: pd.DataFrame, *, index: str) -> str:
    """A table in Markdown, figures without a leading zero."""
    lines = [[index, *map(str, table.columns)], ["---"] + ["---:"] * len(table.columns)]
    rows = zip(table.index, table.to_numpy(), strict=True)
    lines += [[str(name), *map(_short, row)] for name, row in rows]
    return "".join("| " + " | ".join(cells) + " |\n" for cells in lines)


def _short(value: object) -> str:
    if isinstance(value, str | int):
        return str(value)
    number = float(value)  # type: ignore[arg-type]
    if not np.isfinite(number):
        return "–"
    if abs(number) >= 10:
        return f"{number:.0f}"
    return f"{number:.3f}".replace("0.", ".", 1) if abs(number) < 1 else f"{number:.2f}"
