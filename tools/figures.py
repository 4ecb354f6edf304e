"""The figures in the README and on the pages, refreshed from the stored.

They are stored in benchmarks/results and docs/reproduction.

A row of the table of speeds ends in the place its figure is stored at, `file: key`, and the figure
is that value with two significant digits:

    | what | 2.5 | `kernel: 1M x 20 spm: gradient / one read of X` |

The other tables stand between two comments with the name of a function in `TABLES`:

    <!-- peers -->
    <!-- end -->
"""

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.real import page

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
PAGES = ROOT / "docs" / "reproduction"
DOCUMENTS = (
    ROOT / "README.md",
    ROOT / "docs" / "how-it-compares.md",
    ROOT / "docs" / "large-data.md",
    ROOT / "docs" / "real-tables.md",
    ROOT / "docs" / "reproduction" / "index.md",
)
TABLE = re.compile(r"(<!-- (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
ROW = re.compile(r"^(\|[^|]*\| )([^|]*)( \| `(\w+): ([^`]+)` \|)$", re.MULTILINE)


def show(value: float) -> str:
    """Two significant digits, without exponent or trailing zeros."""
    rounded = float(f"{value:.2g}")
    text = f"{rounded:.0f}" if abs(rounded) >= 10 else f"{rounded:.4f}".rstrip("0")
    return text.removesuffix(".").removeprefix("0") or "0"


def refreshed(text: str) -> str:
    """The text with every figure as stored."""

    def row(match: re.Match[str]) -> str:
        file, key = match[4], match[5]
        figures = stored(file)
        if key not in figures:
            raise KeyError(f"{file}.json has no figure {key!r}; it has: {', '.join(figures)}.")
        return match[1] + show(figures[key]) + match[3]

    text = ROW.sub(row, text)
    return TABLE.sub(lambda match: match[1] + TABLES[match[2]]() + match[3], text)


def stored(benchmark: str) -> dict[str, Any]:
    """The figures of a benchmark."""
    file = RESULTS / f"{benchmark}.json"
    figures: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))["figures"]
    return figures


def peers() -> str:
    """Accuracy, share of data sets with the right factor, and of those called level 3 or 4."""
    figures = stored("peers")
    regimes = ("steeper class", "exchangeable")
    header = ["method"] + [f"{what}, {r}" for r in regimes for what in ("accuracy", "right factor")]
    rows = []
    for name, key in METHODS.items():
        cells = [name]
        for regime in regimes:
            cells.append(f"{figures[f'{regime}: {key}, accuracy']:.3f}"[1:])
            share = figures.get(f"{regime}: {key}, right factor")
            open_naming = figures.get(f"{regime}: {key}, level 3 or 4")
            cell = "" if share is None else f"{share:.0%}"
            cells.append(
                cell if open_naming is None else f"{cell}, level 3 or 4 in {open_naming:.0%}"
            )
        rows.append(cells)
    return _markdown(header, rows)


def table1() -> str:
    """Our accuracy and Brier score of Table 1 beside the printed ones."""
    stored_table = pd.read_csv(PAGES / "table1.csv").set_index(["score", "model"])
    models = ["Real", "PsychM", "SPM", "Elkan", "Naive"]
    rows = []
    for score in ("accuracy", "Brier"):
        part = stored_table.loc[score].loc[models]
        rows.append([score, *(f"{r['mean']:.4f} ± {r['se']:.4f}" for _, r in part.iterrows())])
        rows.append([f"{score}, as printed", *(f"{v:.4f}" for v in part["printed"])])
    return _markdown(["", *models], rows)


METHODS = {
    "logistic regression on the true classes": "Real",
    "naive": "naive",
    "pulearn, Elkan–Noto": "pulearn",
    "pu-toolbox, LBE": "pu-toolbox",
    "bayes_lepu, SPM": "SPM",
    "bayes_lepu, SPM, 50 audited rows": "SPM with 50 audited rows",
}
TABLES: dict[str, Callable[[], str]] = {
    "peers": peers,
    "table1": table1,
    "real": page.short_table,
    "real_tuning": page.tuning_table,
    "real_split": page.split_table,
    "real_methods": page.whole_tables,
    "real_cells": page.lost_cells,
    "real_letters": page.letters_table,
}


def _markdown(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "".join("| " + " | ".join(cells) + " |\n" for cells in lines)


def main() -> int:
    """Rewrite the documents."""
    for path in DOCUMENTS:
        path.write_text(refreshed(path.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
