"""Coverage of the interval by random audits, whatever the model; writes the table of the page.

    python -m tools.audit_study            # some minutes of one core

Populations of 4,000 unlabelled rows with classes of 1 % to 50 %; predictions that are right, too
high and too flat, too low and too steep, useless, ranked the wrong way round, or sure of every row
and wrong about some (three false alarms for ten positives; three of ten positives unseen). No model
is fitted: the estimator takes any predictions.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit

from bayes_lepu.actions.audits import Round, Stratum, estimate_positives

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "settle" / "which-rows-to-audit.md"
RUNS = ROOT / "docs" / "audit-coverage.json"
MARKS = ("<!-- made by tools.audit_study -->", "<!-- end of tools.audit_study -->")
N, REPEATS, FRESH = 4000, 1000, 10  # rows, replications, and replications of one population
SHARES = (0.01, 0.1, 0.5)
MODELS = (
    "right",
    "too high",
    "too low",
    "useless",
    "reversed",
    "sure and alarmed",
    "sure and blind",
)
AUDITS = (30, 100, 300)
LOOK = 25


def population(share: float, model: str, rng: np.random.Generator) -> tuple[Any, Any]:
    """Classes and predictions of all rows."""
    x = 2.5 * rng.normal(size=N)
    level = 0.0
    for _ in range(60):  # the intercept with this share of positives
        t = expit(x + level)
        level -= (t.mean() - share) / max(float(np.mean(t * (1 - t))), 1e-3) / 2
    y = (rng.random(N) < expit(x + level)).astype(float)
    scores = {
        "right": x + level,
        "too high": 0.6 * (x + level) + 1.2,
        "too low": 1.3 * (x + level) - 2.0,
        "useless": rng.permutation(x) + level,
        "reversed": level - x,
    }
    if model in scores:
        return y, expit(scores[model])
    wrong = rng.random(N) < (0.3 if model == "sure and blind" else 0.3 * y.mean() / (1 - y.mean()))
    sure = np.where(wrong & (y == (model == "sure and blind")), 1 - y, y)
    return y, sure.clip(0.005, 0.995)


def draw_round(y: Any, p: Any, known: Any, m: int, design: str, rng: np.random.Generator) -> Any:
    """Positions and probabilities of m rows drawn from those not known."""
    left = np.flatnonzero(~known)
    size = np.ones(len(left))
    if design == "weighted":
        size = np.sqrt(p[left] * (1 - p[left]))
        size = 0.5 + 0.5 * size / size.mean()
    probability = np.minimum(m * size / size.sum(), 1.0)
    order = rng.permutation(len(left))
    ends = np.cumsum(probability[order])
    at = order[np.searchsorted(ends, rng.random() + np.arange(m)).clip(max=len(left) - 1)]
    at = np.unique(at)
    rows = left[at]
    made = Round(
        y=y[rows],
        p=p[rows],
        expected=np.full(len(rows), p[left].sum()),
        weight=1 / probability[at],
        known=float(y[known].sum()),
        left=float(len(left)),
        share=m / len(left),
    )
    return rows, made


def replicate(y: Any, p: Any, m: int, design: str, rng: np.random.Generator) -> dict[str, Any]:
    """Whether the 95 % interval holds the truth, and its width; the same by audits alone."""
    some = np.ones(N, dtype=bool)
    if design == "group":  # a third of the rows; of the audits as many as fall into it
        some = rng.random(N) < 1 / 3
        rows = rng.choice(N, m, replace=False)
        y, p, rows = y[some], p[some], (np.cumsum(some) - 1)[rows[some[rows]]]
        sums = np.full(len(rows), p.sum())
        ones, share = np.ones(len(rows)), len(rows) / len(y)
        rounds = [Round(y[rows], p[rows], sums, ones, 0.0, float(len(y)), share)]
        known = np.isin(np.arange(len(y)), rows)
    else:
        known, rounds, parts = np.zeros(N, dtype=bool), [], 3 if design == "three rounds" else 1
        for _ in range(parts):
            if parts > 1:  # the most probable rows are audited as well
                known[np.argsort(-np.where(known, -1, p))[: m // 6]] = True
            rows, made = draw_round(y, p, known, m // parts, design, rng)
            known = known | np.isin(np.arange(N), rows)
            rounds.append(made)
    stratum = Stratum(tuple(rounds), float(y[known].sum()), float((~known).sum()))
    out, total = {}, float(y.sum())
    for name, trust in (("", None), (" alone", 0.0)):
        _, low, high = estimate_positives([stratum], 0.95, trust=trust)
        out["covered" + name] = low - 1e-9 <= total <= high + 1e-9
        out["width" + name] = (high - low) / len(y)
    return out


def stop(y: Any, p: Any, width: float, rng: np.random.Generator) -> dict[str, Any]:
    """Look after every 25 audits and stop when the interval is short enough."""
    order, expected, total = rng.permutation(N), p.sum(), float(y.sum())
    for m in range(LOOK, N + 1, LOOK):
        rows = order[:m]
        made = Round(y[rows], p[rows], np.full(m, expected), np.ones(m), 0.0, float(N), m / N)
        stratum = Stratum((made,), float(y[rows].sum()), float(N - m))
        _, low, high = estimate_positives([stratum], 0.95)
        if (high - low) / N <= width:
            break
    return {"covered": low - 1e-9 <= total <= high + 1e-9, "audits": m}


def regime(design: str, share: float, model: str, m: int) -> dict[str, Any]:
    """Means over the replications of one regime."""
    rng = np.random.default_rng([int(1000 * share), MODELS.index(model), m])
    found = []
    for k in range(REPEATS):
        if k % FRESH == 0:
            y, p = population(share, model, rng)
        if design == "sequential":  # to a width of the share itself, at most .1
            found.append(stop(y, p, min(0.1, max(share, 0.02)), rng))
        else:
            found.append(replicate(y, p, m, design, rng))
    means = {k: round(float(np.mean([f[k] for f in found])), 4) for k in found[0]}
    return {"design": design, "share": share, "model": model, "m": m} | means


def table(runs: list[dict[str, Any]]) -> str:
    """One line per design and number of audits: the least coverage over the regimes, and widths."""
    head = (
        "| design | audits | regimes | coverage, least | mean | width / audits alone, model right "
        "| useless |\n|---|---|---|---|---|---|---|"
    )
    lines = [head]
    for design in dict.fromkeys(r["design"] for r in runs):
        for m in dict.fromkeys(r["m"] for r in runs if r["design"] == design):
            here = [r for r in runs if r["design"] == design and r["m"] == m]
            covered = [r["covered"] for r in here]
            ratios = []
            for model in ("right", "useless"):
                some = [r for r in here if r["model"] == model and "width" in r]
                ratio = [r["width"] / r["width alone"] for r in some if r["share"] >= 0.1]
                ratios.append(f"{np.mean(ratio):.2f}" if ratio else "–")
            said = str(m) if m else f"{np.mean([r['audits'] for r in here]):.0f} on average"
            lines.append(
                f"| {design} | {said} | {len(here)} | {min(covered):.3f} | {np.mean(covered):.3f} "
                f"| {' | '.join(ratios)} |"
            )
    return "\n".join(lines)


def main() -> None:
    """Run all regimes and write file and page."""
    runs = []
    for design in ("random", "group", "weighted", "three rounds", "sequential"):
        for m in (0,) if design == "sequential" else AUDITS:
            for share in SHARES:
                runs += [regime(design, share, model, m) for model in MODELS]
    RUNS.write_text(json.dumps(runs, indent=0) + "\n", encoding="utf-8")
    before, rest = PAGE.read_text(encoding="utf-8").split(MARKS[0])
    after = rest.split(MARKS[1])[1]
    text = f"{before}{MARKS[0]}\n\n{table(runs)}\n\n{MARKS[1]}{after}"
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
