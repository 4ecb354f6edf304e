"""Hold what settles an answer against simulated truths, and write the page about it.

    python -m tools.settling_study                     # everything, about two hours of one core
    python -m tools.settling_study decisions --sets 20

Every data set is kept in `docs/settling-runs.json` as soon as it is done; a run goes on where it
stopped. Posteriors are Laplace's (importance-resampled), which takes seconds where NUTS takes
half a minute.
"""

import argparse
import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import bayes_lepu as lepu
from bayes_lepu.settling.decisions import decide

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "settling.md"
RUNS = ROOT / "docs" / "settling-runs.json"
MARK = "<!-- made by tools.settling_study -->"
N = 2500
MASKS = {"class_features": [0, 1, 2], "selection_features": [3, 4]}
# Columns tell the factors apart: a set at level 1.
CLEAR = lepu.Parameters.of(a=[2.5, -1.5, 1, 0, 0], b=-1.0, alpha=[0, 0, 0, 1.5, -1], beta=0.3)

# Labelled at random among the positives: most of a rare class, so that false marks have
# nowhere else to go, and half of them along slopes that never leave the middle.
STEEP = lepu.Parameters.of(a=[2.5, -1.5, 1, 0, 0], b=-4.0, gamma=0.9, lam=0.1)
GENTLE = lepu.Parameters.of(a=[0.5, -0.5, 0.5, 0, 0], b=0.0, gamma=0.5, lam=0.5)


def rows(seed: int) -> tuple[np.random.Generator, Any]:
    """Random numbers of one data set, and its table."""
    rng = np.random.default_rng([16, seed])
    return rng, rng.normal(size=(N, 5))


def slanted(rng: np.random.Generator, steep: float, other: float) -> lepu.Parameters:
    """SPM with slopes of two lengths at a right angle."""
    axes = np.linalg.qr(rng.normal(size=(5, 5)))[0]
    return lepu.Parameters.of(a=steep * axes[0], b=-0.5, alpha=other * axes[1], beta=0.0)


def laplace(X: Any, l: Any, **options: Any) -> lepu.Fit:
    """A quick posterior, by SPM unless said otherwise."""
    settings = {"model": "spm", "draws": 250, "random_seed": 1} | options
    return lepu.fit(X, l, method="laplace", **settings)


def interval(fit: lepu.Fit, prob: float) -> tuple[float, float]:
    """Equal-tailed interval of π."""
    low, high = np.quantile(fit.pi_draws, [(1 - prob) / 2, (1 + prob) / 2])
    return float(low), float(high)


def prevalence(seed: int) -> dict[str, Any]:
    """Slopes of length 1, where the labels leave π open; π from outside with an error of .02."""
    rng, X = rows(seed)
    truth = slanted(rng, 1.0, 0.5)
    _, l = truth.simulate(X, rng)
    pi = float(truth.t(X).mean())
    known = laplace(X, l, class_prior=(float(rng.normal(pi, 0.02)), 0.02))
    low, high = interval(known, 0.95)
    return {
        "covered": bool(low <= pi <= high),
        "sd": float(known.pi_draws.std()),
        "sd without": float(laplace(X, l).pi_draws.std()),
    }


def wrong_prevalence(seed: int) -> dict[str, Any]:
    """A clear set, and a π from outside that is off by .2, to be warned of."""
    rng, X = rows(seed)
    _, l = CLEAR.simulate(X, rng)
    wrong = float(CLEAR.t(X).mean()) + 0.2
    fit = lepu.fit(
        X, l, model="spm", method="map", class_prior=(wrong, 0.02), random_seed=1, **MASKS
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        _ = fit.identifiability
    return {"warned": any("contradict" in str(w.message) for w in caught)}


def false_marks(seed: int) -> dict[str, Any]:
    """One negative in twenty is marked, and 200 marked rows are audited; SCAR."""
    rng, X = rows(seed)
    y, l = marked(STEEP, X, rng)
    pi, audited = float(STEEP.t(X).mean()), np.full(N, np.nan)
    some = rng.choice(np.flatnonzero(l == 1), 200, replace=False)
    audited[some] = y[some]
    told = laplace(X, l, model="scar", y=audited, false_marks=True)
    # without a rate of false marks only the audits that found a positive are legal
    deaf = laplace(X, l, model="scar", y=np.where(audited == 1, 1.0, np.nan))
    found: dict[str, Any] = {"epsilon": float(np.mean(np.asarray(told.draws.epsilon)))}
    for name, fit in (("", told), (" without", deaf)):
        low, high = interval(fit, 0.95)
        found[f"covered{name}"] = bool(low <= pi <= high)
        found[f"error of π{name}"] = float(fit.pi_draws.mean()) - pi
    if seed < 3:
        _, l = marked(GENTLE, X, rng)
        found["prior said"] = says_prior(laplace(X, l, model="scar", false_marks=True))
    return found


def marked(truth: lepu.Parameters, X: Any, rng: np.random.Generator) -> tuple[Any, Any]:
    """Classes and labels, with one negative in twenty marked."""
    y, l = truth.simulate(X, rng)
    return y, np.where(y == 1, l, rng.random(N) < 0.05).astype(int)


def says_prior(fit: lepu.Fit) -> bool:
    """Whether the verdict says that the rate of false marks is its prior's."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lepu.LepuWarning)
        checks = {c.name: c for c in fit.identifiability.checks}
    return checks["false marks"].status == "weak"


def decisions(seed: int) -> dict[str, Any]:
    """A clear set: what 200 rows hold, and how many were missed, against 90 % intervals."""
    rng, X = rows(seed)
    y, l = CLEAR.simulate(X, rng)
    fit = laplace(X, l, **MASKS)
    found = decide(fit, budget=200, ci_prob=0.9, both=False)
    outcome = found.outcome.loc["as named"]
    hits, total = int(y[found.positions].sum()), int(y[l == 0].sum())
    real = {"positives": hits, "precision": hits / 200, "total": total}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lepu.LepuWarning)
        clear = fit.identifiability.level == 1
    found_at = "" if clear else ", not so"  # where the verdict doubts the level
    inside = {
        name + found_at: bool(low - 1e-9 <= v <= high + 1e-9)
        for name, v in real.items()
        for low, high in [outcome.loc[name, ["lower", "upper"]]]
    }
    return {"at level 1": clear} | inside


STUDIES: dict[str, tuple[Callable[[int], dict[str, Any]], int]] = {
    "prevalence": (prevalence, 50),
    "wrong prevalence": (wrong_prevalence, 20),
    "false marks": (false_marks, 50),
    "decisions": (decisions, 250),
}


def summarise(runs: pd.DataFrame) -> pd.DataFrame:
    """Means of every figure, with their standard errors."""
    lines = []
    for study, part in runs.groupby("study", sort=False):
        for name in part.columns.drop(["study", "seed"]):
            values = part[name].dropna().astype(float)
            if len(values):
                error = float(values.std(ddof=1) / np.sqrt(len(values)))
                lines.append(
                    {"study": study, "figure": name, "sets": len(values),
                     "mean": float(values.mean()), "standard error": error}
                )  # fmt: skip
    return pd.DataFrame(lines)


def write_page(runs: pd.DataFrame) -> None:
    """Replace what stands after the mark in the page."""
    table = summarise(runs).map(lambda v: f"{v:.3f}" if isinstance(v, float) else str(v))
    cells = [list(table.columns), ["---"] * table.shape[1], *table.to_numpy().tolist()]
    lines = "\n".join("| " + " | ".join(row) + " |" for row in cells)
    head = PAGE.read_text(encoding="utf-8").split(MARK)[0]
    PAGE.write_text(f"{head}{MARK}\n\n{lines}\n", encoding="utf-8")


def main() -> None:
    """Run the studies asked for and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("studies", nargs="*", default=list(STUDIES))
    parser.add_argument("--sets", type=int, help="data sets; by default as many as the page has")
    options = parser.parse_args()
    runs = json.loads(RUNS.read_text()) if RUNS.exists() else []
    done = {(r["study"], r["seed"]) for r in runs}
    for name in options.studies:
        study, sets = STUDIES[name]
        for seed in range(options.sets or sets):
            if (name, seed) in done:
                continue
            runs.append({"study": name, "seed": seed} | study(seed))
            RUNS.write_text(json.dumps(runs, indent=0), encoding="utf-8")
            print(runs[-1], flush=True)
    if PAGE.exists():
        write_page(pd.DataFrame(runs))


if __name__ == "__main__":
    main()
