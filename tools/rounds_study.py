"""How many audits to a total known to within 10 %: plans in rounds, against audits alone.

    BAYES_LEPU_TABLES=/where/they/are python -m tools.rounds_study

Public tables whose positives are marked with s(x) = σ(1.5 x₁ - .3) for a column x₁ drawn afresh.
After every 25 audits one looks, and stops when half the 95 % interval of the number of positives is
at most a tenth of the estimate. With the fit: rounds of ``fit.suggest_audit(25)``, each followed by
``fit.update``. Alone: rows at random, without a model, and the same look.
"""

import json
import os
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit

import bayes_lepu as lepu
from bayes_lepu.actions.audits import Round, Stratum, estimate_positives

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "settle" / "which-rows-to-audit.md"
RUNS = ROOT / "docs" / "audits-to-a-total.json"
MARKS = ("<!-- made by tools.rounds_study -->", "<!-- end of tools.rounds_study -->")
LOOK, WITHIN, SETS = 25, 0.1, 6
# Files of the folder, and what the fit is told besides the table.
TABLES: dict[str, dict[str, Any]] = {
    "uci/breast-w.csv": {},
    "uci/banknote.csv": {},
    "uci/pima.csv": {},
    "curved/phoneme.csv.gz": {"class_learner": "boosting"},
}


def marked(path: Path, seed: int) -> tuple[pd.DataFrame, pd.Series, Any]:
    """A table, its classes, and marks."""
    X = pd.read_csv(path)
    y, rng = X.pop("y"), np.random.default_rng([3, seed])
    column = X.iloc[:, rng.integers(X.shape[1])]
    s = expit(1.5 * (column - column.mean()) / column.std() - 0.3)
    return X, y.astype(float), ((y == 1) & (rng.random(len(y)) < s)).astype(int).to_numpy()


def enough(estimate: float, low: float, high: float) -> bool:
    """Whether the total is known to within a tenth."""
    return (high - low) / 2 <= WITHIN * estimate


def with_fit(X: pd.DataFrame, y: pd.Series, l: Any, seed: int, **options: Any) -> dict[str, Any]:
    """Rounds of planned audits until the total is known."""
    given = {"model": "spm", "method": "laplace", "draws": 300, "random_seed": seed}
    fit = lepu.fit(X, l, **given | options)
    first = float(fit.class_prior().loc["pi", "mean"]) * len(y)
    for m in range(LOOK, len(y), LOOK):
        plan = fit.suggest_audit(LOOK, random_seed=m)
        fit = fit.update(y=y[plan.rows.index], audits=plan)
        row = fit.audit_estimate(ci_prob=0.95).loc["positives"]
        if enough(row["estimate"], row["lower"], row["upper"]):
            break
    covered = bool(row["lower"] - 1e-9 <= y.sum() <= row["upper"] + 1e-9)
    error = float(row["estimate"] / y.sum() - 1)
    return {"audits": m, "covered": covered, "error": error, "before": float(first / y.sum() - 1)}


def alone(y: pd.Series, l: Any, seed: int) -> dict[str, Any]:
    """Audits at random without a model until the total is known."""
    rng, marks = np.random.default_rng([4, seed]), float(l.sum())
    unmarked = rng.permutation(y.to_numpy()[l == 0])
    n = len(unmarked)
    for m in range(LOOK, n, LOOK):
        found, none = unmarked[:m], np.zeros(m)
        made = Round(found, none, none, none + 1, 0.0, float(n), m / n)
        stratum = Stratum((made,), float(found.sum()), float(n - m))
        ends = [v + marks for v in estimate_positives([stratum], 0.95, trust=0.0)]
        if enough(*ends):
            break
    covered = bool(ends[1] - 1e-9 <= y.sum() <= ends[2] + 1e-9)
    return {"audits alone": m, "covered alone": covered}


def table(runs: dict[str, list[dict[str, Any]]]) -> str:
    """One line per table."""
    lines = [
        "| table | rows, positives | marks | error of the fit before any audit | audits with the "
        "fit | audits alone | error at the stop | covered |\n|---|---|---|---|---|---|---|---|"
    ]
    for name, found in runs.items():
        mean = {k: np.mean([abs(f[k]) for f in found]) for k in found[0]}
        lines.append(
            f"| {Path(name).name.split('.')[0]} | {mean['rows']:,.0f}, {mean['positives']:.0f} "
            f"| {mean['marks']:.0f} | {mean['before']:.0%} | {mean['audits']:.0f} "
            f"| {mean['audits alone']:.0f} | {mean['error']:.0%} "
            f"| {sum(f['covered'] for f in found)} of {len(found)} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Run all tables and write file and page."""
    folder, runs = Path(os.environ["BAYES_LEPU_TABLES"]), {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lepu.LepuWarning)
        for name, options in TABLES.items():
            runs[name] = []
            for seed in range(SETS):
                X, y, l = marked(folder / name, seed)
                size = {"rows": len(y), "positives": int(y.sum()), "marks": int(l.sum())}
                fitted = with_fit(X, y, l, seed, **options)
                runs[name].append(size | fitted | alone(y, l, seed))
            print(table({name: runs[name]}).splitlines()[-1], file=sys.stderr, flush=True)
    RUNS.write_text(json.dumps(runs, indent=0) + "\n", encoding="utf-8")
    before, rest = PAGE.read_text(encoding="utf-8").split(MARKS[0])
    after = rest.split(MARKS[1])[1]
    text = f"{before}{MARKS[0]}\n\n{table(runs)}\n\n{MARKS[1]}{after}"
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
