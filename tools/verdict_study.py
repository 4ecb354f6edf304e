"""Try the verdict on thirty regimes of four families of truths, and write the page about it.

    python -m tools.verdict_study --seeds 2        # 120 data sets, a few minutes
    python -m tools.verdict_study --seeds 2 4 6 --families mask scar

Odd seeds were used to choose the bounds of the checks, even ones to report.
"""

import argparse
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import bayes_lepu as lepu
from tools.verdict_regimes import FAMILIES, REGIMES, WELL, Case, simulate

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "verdict.md"
RUNS = ROOT / "docs" / "verdict-runs.json"
MARK = "<!-- made by tools.verdict_study -->"


def try_one(family: str, regime: str, seed: int) -> dict[str, Any]:
    """Fit one data set by MAP, and hold its verdict against the truth."""
    case = simulate(family, regime, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lepu.LepuWarning)
        fit = lepu.fit(case.X, case.l, method="map", random_seed=0, **case.options)
        found = fit.identifiability
    low, high = found.pi_range or (np.nan, np.nan)
    return {
        "family": family,
        "regime": regime,
        "seed": seed,
        "level": found.level,
        "pi": case.pi,
        "estimate": float(fit.pi_draws.mean()),
        "low": low,
        "high": high,
        "covered": bool(low <= case.pi <= high),
        "exchanged": is_exchanged(fit, case),
        "open": [c.name for c in found.checks if c.open],
    }


def is_exchanged(fit: lepu.Fit, case: Case) -> bool:
    """Whether the fitted s follows the true class's predictor more closely than the fitted t."""
    X, point = fit.data.X, fit.draws.take(0)
    if not fit.spec.has_selection or float(point.omega(X).std()) < 1e-9:
        return False
    of_t, of_s = (float(np.corrcoef(v, case.tau)[0, 1]) for v in (point.tau(X), point.omega(X)))
    return of_s > of_t


def summarise(runs: pd.DataFrame) -> pd.DataFrame:
    """Per kind of truth and family: how often level 1, and what it was worth."""
    runs = runs.assign(kind=np.where(runs["regime"].isin(list(WELL)), "right", "wrong"))
    lines = []
    for kind, part in runs.groupby("kind"):
        for family, sets in [*part.groupby("family"), ("all", part)]:
            one = sets[sets["level"] == 1]
            lines.append(
                {
                    "the model is": kind,
                    "family": family,
                    "data sets": len(sets),
                    "level 1": len(one),
                    "π covered at level 1": one["covered"].mean(),
                    "mean width": (one["high"] - one["low"]).mean(),
                    "factors exchanged": int(one["exchanged"].sum()),
                    "π covered at any level": sets["covered"].mean(),
                }
            )
    return pd.DataFrame(lines)


def as_markdown(table: pd.DataFrame) -> str:
    """A table in Markdown, numbers to two digits."""
    shown = table.map(lambda v: f"{v:.2f}" if isinstance(v, float) else str(v))
    rows = [list(shown.columns), ["---"] * len(shown.columns), *shown.to_numpy().tolist()]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def write_page(runs: pd.DataFrame) -> None:
    """Replace what stands after the mark in the page."""
    head = PAGE.read_text(encoding="utf-8").split(MARK)[0]
    seeds = ", ".join(str(s) for s in sorted(runs["seed"].unique()))
    missed = runs[(runs["level"] == 1) & ~runs["covered"]]
    rows = missed[["family", "regime", "pi", "estimate", "low", "high"]]
    text = f"{head}{MARK}\n\n{len(runs)} data sets (seeds {seeds}).\n\n"
    text += f"{as_markdown(summarise(runs))}\n"
    if len(rows):
        text += f"\nLevel 1 with π outside of its range:\n\n{as_markdown(rows)}\n"
    PAGE.write_text(text, encoding="utf-8")


def main() -> None:
    """Run the study and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[2])
    parser.add_argument("--families", nargs="+", default=list(FAMILIES), choices=FAMILIES)
    options = parser.parse_args()
    runs = json.loads(RUNS.read_text()) if RUNS.exists() else []
    done = {(r["family"], r["regime"], r["seed"]) for r in runs}
    for seed in options.seeds:
        for family in options.families:
            for regime in REGIMES:
                if (family, regime, seed) in done:
                    continue
                runs.append(try_one(family, regime, seed))
                RUNS.write_text(json.dumps(runs, indent=0), encoding="utf-8")
                print(runs[-1], flush=True)
    write_page(pd.DataFrame(runs))


if __name__ == "__main__":
    main()
