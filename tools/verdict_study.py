"""Try the verdict on fifty regimes of four families of truths, and write the page about it.

    python -m tools.verdict_study --seeds 301                   # 200 data sets by MAP
    python -m tools.verdict_study --seeds 301 --method laplace --families scar --regimes "as usual"

Every data set is kept as a line of docs/verdict-runs.jsonl as soon as it is done, and is not tried
again: an interrupted study goes on where it stopped. Delete the file after a change of the verdict.
"""

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import bayes_lepu as lepu
from tools.verdict_regimes import FAMILIES, HARD, REGIMES, WELL, Case, simulate

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "verdict.md"
RUNS = ROOT / "docs" / "verdict-runs.jsonl"
MARK = "<!-- made by tools.verdict_study -->"
QUICK = {"draws": 500, "progressbar": False}


def try_one(family: str, regime: str, seed: int, method: str = "map") -> dict[str, Any]:
    """Fit one data set, and hold its verdict against the truth."""
    case = simulate(family, regime, seed)
    more = {} if method == "map" else QUICK
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lepu.LepuWarning)
        fit = lepu.fit(case.X, case.l, method=method, random_seed=0, **case.options, **more)
        start = time.process_time()
        found = fit.identifiability
        seconds = time.process_time() - start
    low, high = found.pi_range or (np.nan, np.nan)
    return {
        "family": family,
        "regime": regime,
        "seed": seed,
        "method": method,
        "level": found.level,
        "pi": round(case.pi, 4),
        "estimate": round(float(fit.pi_draws.mean()), 4),
        "low": round(low, 4),
        "high": round(high, 4),
        "covered": bool(low <= case.pi <= high),
        "exchanged": is_exchanged(fit, case),
        "open": [c.name for c in found.checks if c.open],
        "seconds": round(seconds, 2),
    }


def is_exchanged(fit: lepu.Fit, case: Case) -> bool:
    """Whether the fitted s follows the true class's predictor more closely than the fitted t."""
    X, point = fit.data.X, fit.draws.take(0)
    if not fit.spec.has_selection or float(point.omega(X).std()) < 1e-9:
        return False
    of_t, of_s = (float(np.corrcoef(v, case.tau)[0, 1]) for v in (point.tau(X), point.omega(X)))
    return of_s > of_t


def kind_of(regime: str) -> str:
    """What a regime is to the fitted model."""
    return "right" if regime in WELL else "made to mislead" if regime in HARD else "wrong"


def summarise(runs: pd.DataFrame) -> pd.DataFrame:
    """Per kind of truth and family: how often level 1, and what it was worth."""
    runs = runs.assign(kind=runs["regime"].map(kind_of))
    lines = []
    for kind, part in runs.groupby("kind", sort=False):
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


def by_regime(runs: pd.DataFrame) -> pd.DataFrame:
    """Per regime: how many sets got level 1, and how many of them missed π."""
    one = runs["level"] == 1
    lines = runs.assign(one=one, missed=one & ~runs["covered"]).groupby("regime", sort=False)
    table = lines.agg(sets=("one", "size"), one=("one", "sum"), missed=("missed", "sum"))
    table = table.reset_index().rename(
        columns={"sets": "data sets", "one": "level 1", "missed": "π outside at level 1"}
    )
    table.insert(0, "the model is", table["regime"].map(kind_of))
    return table


def write_page(runs: pd.DataFrame) -> None:
    """Replace what stands after the mark in the page."""
    text = PAGE.read_text(encoding="utf-8").split(MARK)[0] + MARK + "\n"
    for method, part in runs.groupby("method", sort=False):
        seeds = ", ".join(str(s) for s in sorted(part["seed"].unique()))
        text += (
            f"\n## method='{method}'\n\n{len(part)} data sets (seeds {seeds}); the verdict took "
        )
        text += f"{part['seconds'].median():.1f} CPU seconds (median).\n\n"
        text += f"{as_markdown(summarise(part))}\n"
        missed = part[(part["level"] == 1) & (~part["covered"] | part["exchanged"])]
        if len(missed):
            columns = ["family", "regime", "seed", "pi", "estimate", "low", "high", "exchanged"]
            text += "\nLevel 1 with π outside of its range, or with exchanged factors:\n\n"
            text += f"{as_markdown(missed[columns])}\n"
    text += f"\n## By regime\n\n{as_markdown(by_regime(runs))}\n"
    PAGE.write_text(text, encoding="utf-8")


def read_runs() -> list[dict[str, Any]]:
    """The data sets tried so far."""
    if not RUNS.exists():
        return []
    return [json.loads(line) for line in RUNS.read_text(encoding="utf-8").splitlines()]


def main() -> None:
    """Run the study and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="*", default=[])
    parser.add_argument("--families", nargs="+", default=list(FAMILIES), choices=FAMILIES)
    parser.add_argument("--regimes", nargs="+", default=list(REGIMES), choices=list(REGIMES))
    parser.add_argument("--method", default="map", choices=["map", "laplace", "nuts"])
    options = parser.parse_args()
    done = {(r["family"], r["regime"], r["seed"], r["method"]) for r in read_runs()}
    for seed in options.seeds:
        for regime in options.regimes:
            for family in options.families:
                if (family, regime, seed, options.method) in done:
                    continue
                run = try_one(family, regime, seed, options.method)
                with RUNS.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(run) + "\n")
                print(run, flush=True)
    write_page(pd.DataFrame(read_runs()))


if __name__ == "__main__":
    main()
