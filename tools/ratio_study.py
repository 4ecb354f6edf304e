"""How well ratios of groups are known, simulated; writes the table of the page.

    python -m tools.ratio_study            # half an hour of one core

Rows of two regions, a class with a ceiling between .7 and 1 that the model does not know, and three
ways of marking. *By group*: positives are marked at one rate in each region, which the fit is told
(``selection_features=["region"]``). *Common*: at the same rate in both (``model="scar"``). *Less
steep*: by group, but the class rises less steeply in the north, so that the condition fails.
"""

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit

import bayes_lepu as lepu
from tools.defaults_version import defaults_version

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "settle" / "compare-groups.md"
RUNS = ROOT / "docs" / "ratios-of-groups.json"
MARKS = ("<!-- made by tools.ratio_study -->", "<!-- end of tools.ratio_study -->")
# How the rows are made, and how many sets of them.
WAYS: dict[str, tuple[dict[str, Any], int]] = {
    "by group": ({}, 24),
    "common": ({"marks": (0.45, 0.45)}, 20),
    "less steep": ({"n": 8000, "slope": 0.3}, 4),
}


def made(
    seed: int, n: int = 3000, marks: tuple[float, float] = (0.6, 0.25), slope: float = 1.0
) -> tuple[pd.DataFrame, Any, Any, float]:
    """Rows, marks, classes, and the ratio of the shares of positives, north to south."""
    rng = np.random.default_rng([5, seed])
    north = (rng.random(n) < 0.5).astype(int)
    X = rng.normal(size=(n, 3)) + np.array([0.7, 0.3, 0]) * north[:, None]
    score = X @ np.array([1.8, -1.0, 0.6]) * np.where(north, slope, 1.0)
    y = rng.random(n) < rng.uniform(0.7, 1.0) * expit(score - 1.0)
    l = y & (rng.random(n) < np.array(marks)[north])
    frame = pd.DataFrame(X, columns=list("abc")).assign(region=np.array(["south", "north"])[north])
    return frame, l.astype(int), y, float(y[north == 1].mean() / y[north == 0].mean())


def fitted(frame: pd.DataFrame, l: Any, **options: Any) -> lepu.Fit:
    """A fit that knows that the region alone decides on the marking."""
    given = {"model": "spm", "class_features": list("abc"), "selection_features": ["region"]}
    given |= {"method": "laplace", "draws": 250, "random_seed": 1}
    return lepu.fit(frame, l, **given | options)


def compared(way: str, seed: int) -> dict[str, Any]:
    """Truth and ranges of the ratio and of π in one set, and whether a doubt was told."""
    frame, l, y, truth = made(seed, **WAYS[way][0])
    told = way != "common"
    options = {} if told else {"model": "scar", "selection_features": None}
    fit = fitted(frame if told else frame.drop(columns="region"), l, **options)
    found = fit.compare_groups(frame["region"], "north", "south")
    ratio, pi = found.table.loc["ratio"], fit.identifiability.pi_range
    assert pi is not None
    run = {"ratio": truth, "low": ratio["low"], "high": ratio["high"]}
    run |= {"pi": y.mean(), "pi_low": pi[0], "pi_high": pi[1]}
    rounded = {name: round(float(value), 4) for name, value in run.items()}
    return {"way": way, "seed": seed} | rounded | {"doubt": bool(found.doubts)}


def width(run: dict[str, Any]) -> float:
    """Width of the range of the ratio over that of π, both on a logarithmic scale."""
    return float(np.log(run["high"] / run["low"]) / np.log(run["pi_high"] / run["pi_low"]))


def covered(run: dict[str, Any]) -> bool:
    """Whether the range holds the true ratio."""
    return bool(run["low"] <= run["ratio"] <= run["high"])


def table(runs: list[dict[str, Any]]) -> str:
    """One line per way of marking."""
    lines = [
        "| positives are marked | sets | ratio covered | π covered | relative width of the ratio's "
        "range to that of π, median | largest | told a doubt |\n|---|---|---|---|---|---|---|"
    ]
    names = {
        "by group": "at one rate in each group, which the fit is told",
        "common": "at the same rate in both groups",
        "less steep": "at one rate in each group, the class less steep in one of them",
    }
    for way, name in names.items():
        here = [r for r in runs if r["way"] == way]
        of_pi = sum(r["pi_low"] <= r["pi"] <= r["pi_high"] for r in here)
        widths = [width(r) for r in here]
        lines.append(
            f"| {name} | {len(here)} | {sum(covered(r) for r in here)} | {of_pi} "
            f"| {np.median(widths):.2f} | {max(widths):.2f} | {sum(r['doubt'] for r in here)} |"
        )
    return "\n".join(lines)


def write(runs: list[dict[str, Any]]) -> None:
    """Store the runs, and put their table on the page."""
    stored = {"defaults": defaults_version(), "runs": runs}
    RUNS.write_text(json.dumps(stored, indent=0) + "\n", encoding="utf-8")
    before, rest = PAGE.read_text(encoding="utf-8").split(MARKS[0])
    after = rest.split(MARKS[1])[1]
    text = f"{before}{MARKS[0]}\n\n{table(runs)}\n\n{MARKS[1]}{after}"
    PAGE.write_text(text, encoding="utf-8")


def main() -> None:
    """Run all sets and write file and page."""
    runs = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lepu.LepuWarning)
        for way, (_, sets) in WAYS.items():
            for seed in range(sets):
                runs.append(compared(way, seed))
                print(runs[-1], file=sys.stderr, flush=True)
    write(runs)


if __name__ == "__main__":
    main()
