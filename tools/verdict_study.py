"""Does the verdict keep its promise? Made-up and public tables are fitted, the truth is compared.

    python -m tools.verdict_study --seeds 901 --method laplace          # the made-up regimes
    python -m tools.verdict_study --seeds 901 --families table "table, 80 audits" --some 50
    python -m tools.verdict_study                                       # write the page again

A *family* is how a truth is fitted; a *regime* changes one thing about it (of a public table: which
table and mechanism). Every fit is a line of docs/verdict-runs.jsonl as soon as it is done, and is
not tried again; delete the file after a change of the verdict. Data sets come in random order, so
that those of a run which was stopped, or asked for `--some`, are a sample. With OMP_NUM_THREADS=1
a busy machine needs a tenth of the time.
"""

import argparse
import json
import random
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.special import expit, logit, ndtr, stdtr
from scipy.stats import multivariate_normal, multivariate_t

import bayes_lepu as lepu
from bayes_lepu.verdict.records import ROUNDING

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "verdict.md"
RUNS = ROOT / "docs" / "verdict-runs.jsonl"
MARK = "<!-- made by tools.verdict_study -->"
FAMILIES = ("scar", "mask", "audit", "psychm", "auto")
TABLES = ("table", "table, 80 audits")
AUDITS = 80

# What a regime changes of the truth; `simulate` has the defaults.
WELL: dict[str, dict[str, Any]] = {
    "as usual": {},
    "steep": {"size": 6.0},
    "moderate": {"size": 2.5},
    "common": {"pi": 0.8},
    "few marked": {"c": 0.2},
    "most marked": {"c": 0.85},
    "few rows": {"n": 600},
    "many rows": {"n": 5000},
    "twelve columns": {"p": 12},
    "heavy tails": {"columns": "student"},
    "heavy tails together": {"columns": "student together"},
    "skew columns": {"columns": "skew"},
    "correlated columns": {"columns": "correlated"},
    "binary columns": {"columns": "binary"},
    "forty marks": {"marks": 40},
    "rare, 5 %": {"pi": 0.05, "n": 3000},
    "rare, 2 %": {"pi": 0.02, "n": 4000},
    "rare, .5 %": {"pi": 0.005, "n": 10_000},
    "class first": {"given": "same spread", "size": 2.5},
    "guesses of 1 %": {"guess": 0.01},
}
WRONG: dict[str, dict[str, Any]] = {
    "probit class": {"link": "probit"},
    "cloglog class": {"link": "cloglog"},
    "loglog class": {"link": "loglog"},
    "cauchit class": {"link": "cauchit"},
    "ceiling .9": {"ceiling": 0.9},
    "floor .03": {"floor": 0.03},
    "false marks .02": {"false": 0.02},
    "false marks .05": {"false": 0.05},
    "false marks near the border": {"near": 0.15},
    "quadratic class": {"curve": "quadratic"},
    "interaction in the class": {"curve": "interaction"},
    "ring": {"curve": "ring"},
    "threshold": {"curve": "threshold"},
    "column not measured": {"curve": "unmeasured"},
    "drift in time": {"curve": "drift"},
    "groups": {"curve": "groups"},
    "class first, other spread": {"given": "other spread", "size": 2.5},
    "class first, heavy tails": {"given": "heavy tails", "size": 2.5},
    "class first, clusters": {"given": "clusters", "size": 3.0},
    "quadratic propensity": {"curve_s": "quadratic"},
    "steps in s": {"curve_s": "threshold"},
    "a column both miss": {"curve": "unmeasured", "curve_s": "unmeasured"},
    "quota by columns": {"mark": "quota by columns"},
    "two kinds of positives": {"mark": "subtypes"},
}
SCORE: dict[str, dict[str, Any]] = {  # the annotator follows the class's own score
    "s rises with the score": {"rise": 0.75},
    "s rises late": {"rise": 1.5, "c": 0.3},
    "s falls with the score": {"rise": -0.75},
    "s = .1 + .8 t": {"mark": "follows t"},
    "triage by a score": {"mark": "triage"},
    "quota by a score": {"mark": "quota by score"},
}
REGIMES = {**WELL, **WRONG, **SCORE}
MECHANISMS = ("column", "psychometric", "outside", "probability")

LINKS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "logistic": expit,
    "probit": lambda z: ndtr(z / 1.7),
    "cloglog": lambda z: -np.expm1(-np.exp(np.minimum(z / 1.3 - 0.4, 30))),
    "loglog": lambda z: np.exp(-np.exp(np.minimum(-z / 1.3 - 0.4, 700))),
    "cauchit": lambda z: 0.5 + np.arctan(z / 1.3) / np.pi,
    "robit": lambda z: stdtr(3, z / 1.5),
}


@dataclass(frozen=True, eq=False)
class Case:
    """One data set: what the fit sees, and what it should find."""

    X: Any
    l: np.ndarray
    options: dict[str, Any]
    y: np.ndarray = field(repr=False)
    pi: float
    tau: np.ndarray = field(repr=False)


def columns_of(kind: str, n: int, p: int, rng: np.random.Generator) -> np.ndarray:
    """The table of features, columns of mean 0 and sd about 1."""
    X = rng.normal(size=(n, p))
    together = np.sqrt(0.5) * X + np.sqrt(0.5) * rng.normal(size=(n, 1))
    if kind == "student":
        return rng.standard_t(4, size=(n, p)) / np.sqrt(2)
    if kind == "student together":
        return together / np.sqrt(rng.chisquare(3, size=(n, 1)))
    if kind == "skew":
        return rng.exponential(size=(n, p)) - 1
    if kind == "correlated":
        return together
    if kind == "binary":
        X[:, -2:] = 2.0 * (rng.random((n, 2)) < 0.5) - 1
    return X


def curve_of(kind: str, X: np.ndarray, left_out: np.ndarray, rng: np.random.Generator) -> Any:
    """What joins the straight line of t's predictor, in units of the line's sd."""
    found = {
        "quadratic": lambda: 0.3 * (X[:, 1] ** 2 - 1),
        "interaction": lambda: 0.4 * X[:, 0] * X[:, 1],
        "ring": lambda: 0.5 * (X[:, 0] ** 2 + X[:, 1] ** 2 - 2),
        "threshold": lambda: 0.5 * np.sign(X[:, 1] - 0.5),
        "unmeasured": lambda: 0.4 * left_out,
        "drift": lambda: np.linspace(-0.5, 0.5, len(X)),
        "groups": lambda: 0.4 * rng.normal(size=40)[rng.integers(40, size=len(X))],
    }
    return found[kind]() if kind else 0.0


def rows_given_class(
    kind: str, n: int, a: np.ndarray, size: float, pi: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Rows drawn given their class, and the class probability by Bayes' rule."""
    p, y = len(a), rng.random(n) < pi
    means = size * a[None, :]
    if kind == "clusters":
        turns = rng.normal(size=(3, p))
        means = size * (0.6 * a + 0.8 * turns / np.linalg.norm(turns, axis=1, keepdims=True))
    spread = {"other spread": 0.5, "clusters": 0.5}.get(kind, 1.0)
    if kind == "heavy tails":
        law = [multivariate_t(m, np.eye(p), df=3, seed=rng) for m in (0 * a, *means)]
    else:
        law = [multivariate_normal(0 * a, seed=rng)]
        law += [multivariate_normal(m, spread * np.eye(p), seed=rng) for m in means]
    which = np.where(y, 1 + rng.integers(len(means), size=n), 0)
    X = np.stack([one.rvs(n) for one in law])[which, np.arange(n)]
    dense = np.mean([one.pdf(X) for one in law[1:]], axis=0)
    t = pi * dense / (pi * dense + (1 - pi) * law[0].pdf(X))
    return (X - X.mean(axis=0)) / X.std(axis=0), np.clip(t, 1e-9, 1 - 1e-9)


def intercept(mean_at: Callable[[float], float], target: float) -> float:
    """Where a rising mean reaches its target, or the nearest end."""
    low, high = -60.0, 60.0
    if mean_at(low) >= target or mean_at(high) <= target:
        return low if mean_at(low) >= target else high
    return float(brentq(lambda b: mean_at(b) - target, low, high, xtol=1e-6))


def simulate(family: str, regime: str, seed: int, **changes: Any) -> Case:
    """One data set of a family under a regime, classes drawn anew (``changes`` of the truth)."""
    if family in TABLES:
        return from_table(family, regime, seed)
    rng = np.random.default_rng([seed, *f"{family} {regime}".encode()])
    steep = family == "psychm"
    drawn = {"pi": rng.uniform(0.25, 0.6), "c": rng.uniform(0.3, 0.7), "guess": 0.1}
    w: dict[str, Any] = {"n": 1500, "p": 5, "size": 4.0, "columns": "", "curve": "", "mark": ""}
    w |= {"given": "", "link": "logistic", "floor": 0.0, "ceiling": 1.0, "curve_s": "", "rise": 0.0}
    w |= {"false": 0.0, "near": 0.0, "marks": None} | drawn | REGIMES[regime]
    w |= changes
    n, p = (2 if steep else 1) * w["n"], w["p"]
    a, alpha = rng.normal(size=(2, p))
    if family in ("mask", "auto"):  # the first column is t's alone
        a[0], alpha[0] = np.copysign(max(abs(a[0]), np.linalg.norm(a[1:]) / 2), a[0]), 0.0
    else:
        alpha -= a * (alpha @ a) / (a @ a)
    a, alpha = a / np.linalg.norm(a), alpha / np.linalg.norm(alpha)
    left_out = rng.normal(size=n)
    if w["given"]:
        X, t = rows_given_class(w["given"], n, a, w["size"], w["pi"], rng)
    else:
        X, link = columns_of(w["columns"], n, p, rng), LINKS[w["link"]]
        line = w["size"] * (X @ a + curve_of(w["curve"], X, left_out, rng))

        def t_at(b: float) -> np.ndarray:
            return w["floor"] + (w["ceiling"] - w["floor"]) * link(line + b)

        t = t_at(intercept(lambda b: float(t_at(b).mean()), w["pi"]))
    tau = logit(np.clip(t, 1e-9, 1 - 1e-9))
    z = (tau - tau.mean()) / tau.std()
    c = w["c"] if w["marks"] is None else w["marks"] / (n * t.mean())
    omega = 0.0 if family == "scar" else (5.0 if steep else 1.0) * X @ alpha
    omega = omega + w["rise"] * z + {"quadratic": 0.8 * (X[:, 2] ** 2 - 1), "": 0.0,
        "threshold": 1.5 * np.sign(X[:, 2]), "unmeasured": left_out}[w["curve_s"]]  # fmt: skip
    if w["mark"] == "triage":
        omega = 4 * (z + 0.5 * left_out)
    low = min(w["guess"], c / 2) if steep else 0.0

    def s_at(beta: float) -> np.ndarray:
        return low + ((0.95 if steep else 1.0) - low) * expit(omega + beta) + 0 * t

    s = s_at(intercept(lambda beta: float((t * s_at(beta)).mean() / t.mean()), c))
    y = rng.random(n) < t
    if w["mark"].startswith("quota"):  # the first on a list, until there are enough
        order = 0.3 * left_out + (z if w["mark"].endswith("score") else X @ alpha)
        s = (order > np.quantile(order[y], 1 - c)).astype(float)
    if w["mark"] == "follows t":
        s = 0.1 + 0.8 * t
    if w["mark"] == "subtypes":
        other = expit(w["size"] * X @ np.roll(a, 1) + logit(w["pi"]) - 2)
        y, s = y | (rng.random(n) < other), np.where(y, 0.7, 0.15)
        t = 1 - (1 - t) * (1 - other)
    false = w["false"] + w["near"] * ((t > 0.1) & (t < 0.5))
    l = np.where(y, rng.random(n) < s, rng.random(n) < false).astype(int)
    options: dict[str, Any] = {"auto": {}, "mask": {"selection_features": [*range(1, p)]}}.get(
        family, {}
    )
    if family != "auto":
        options |= {"model": {"mask": "spm", "audit": "spm"}.get(family, family)}
    if family == "audit":
        options |= audited(l, y, rng)
    return Case(X, l, options, y, float(t.mean()), tau)


def audited(l: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> dict[str, Any]:
    """Options of a fit with unlabelled rows audited at random."""
    known, open_rows = np.full(len(l), np.nan), np.flatnonzero(l == 0)
    some = rng.choice(open_rows, min(AUDITS, open_rows.size // 2), replace=False)
    known[some] = y[some]
    return {"y": known, "audits": "random"}


@cache
def _table(name: str) -> Any:
    from benchmarks.real.public_tables import load_tables

    return load_tables(wanted=(name,))[0]


def from_table(family: str, regime: str, seed: int) -> Case:
    """A public table, at most 1,500 rows of it, marked by a mechanism."""
    from benchmarks.real.labelling import draw_trial

    name, mechanism = regime.split(": ")
    rng = np.random.default_rng([seed, *regime.encode()])
    trial = draw_trial(_table(name), mechanism, 1500, rng)
    y, l = trial.y == 1, trial.l.astype(int)
    options = {} if family == "table" else audited(l, y, rng)
    return Case(trial.X, l, options, y, float(y.mean()), np.zeros(len(y)))


def table_regimes() -> list[str]:
    """Every public table with every mechanism."""
    from benchmarks.real.public_tables import JUDGING, TUNING

    return [f"{name}: {how}" for name in (*TUNING, *JUDGING) for how in MECHANISMS]


def kind_of(regime: str) -> str:
    """What a regime is to the fitted model."""
    if ": " in regime:
        return "follows the score" if regime.endswith("probability") else "public table"
    return "right" if regime in WELL else "wrong" if regime in WRONG else "follows the score"


def fitted(case: Case, method: str) -> lepu.Fit:
    """The fit of one data set."""
    more = {} if method == "map" else {"progressbar": False, "draws": 500}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lepu.LepuWarning)
        return lepu.fit(case.X, case.l, method=method, random_seed=0, **case.options, **more)


def try_one(family: str, regime: str, seed: int, method: str = "map") -> dict[str, Any]:
    """Fit one data set, and compare what is printed first with the truth."""
    case = simulate(family, regime, seed)
    fit = fitted(case, method)
    start = time.process_time()
    found, open_rows = fit.identifiability, case.l == 0
    seconds = time.process_time() - start
    if "y" in case.options:
        open_rows &= np.isnan(case.options["y"])
    total, first = fit.missed(total=True).loc["as named"], fit.decide(budget=100)
    hits = first.outcome.loc[("as named", "positives")]
    names = ("low", "high", "lower", "upper", "mean")
    return {
        "family": family,
        "regime": regime,
        "seed": seed,
        "method": method,
        "level": found.level,
        "marks": int(case.l.sum()),
        "missed": int(case.y[open_rows].sum()),
        **{name: round(float(total.get(name, np.nan)), 1) for name in names},
        "hits": int(case.y[first.positions].sum()),
        **{f"hits_{name}": round(float(hits.get(name, np.nan)), 1) for name in names},
        "pi": round(case.pi, 4),
        "pi_range": [round(end, 4) for end in found.pi_range or (np.nan, np.nan)],
        "swapped": is_swapped(fit, case),
        "open": [c.name for c in found.checks if c.open],
        "seconds": round(seconds, 2),
    }


def is_swapped(fit: lepu.Fit, case: Case) -> bool:
    """Whether the fitted s follows the true class more closely than the fitted t.

    In its predictor and in its values: of an annotator who follows the class's score, s has the
    predictor of the class, and t the values.
    """
    X, point = fit.data.X, fit.draws.take(0)
    if case.tau.std() == 0 or not fit.spec.has_selection or point.omega(X).std() < 1e-9:
        return False
    of_t, of_s = (float(np.corrcoef(v, case.tau)[0, 1]) for v in (point.tau(X), point.omega(X)))
    far_t, far_s = (np.mean((v - expit(case.tau)) ** 2) for v in (point.t(X), point.s(X)))
    return of_s > of_t and bool(far_s < far_t)


def within(runs: pd.DataFrame, truth: str, low: str, high: str) -> pd.Series:
    """Whether the truth lies between two columns, as rounded counts."""
    return (runs[truth] >= runs[low].round() - 0.5) & (runs[truth] <= runs[high].round() + 0.5)


def judged(runs: pd.DataFrame) -> pd.DataFrame:
    """The runs, with what each of them kept of its promises."""
    ends = np.array(runs["pi_range"].tolist())
    return runs.assign(
        kind=runs["regime"].map(kind_of),
        one=runs["level"] == 1,
        count=within(runs, "missed", "low", "high"),
        narrow=within(runs, "missed", "lower", "upper"),
        yielded=within(runs, "hits", "hits_low", "hits_high"),
        share=(ends[:, 0] - ROUNDING <= runs["pi"]) & (runs["pi"] <= ends[:, 1] + ROUNDING),
        ratio=(runs["high"] + 1) / (runs["low"] + 1),
    )


def kept(sets: pd.DataFrame) -> dict[str, Any]:
    """What was promised first by these data sets, and what it was worth."""
    one = sets[sets["one"]]
    line = {"data sets": len(sets), "level 1": len(one)}
    line["count covered at level 1"] = one["count"].mean()
    line["high / low at level 1"] = one["ratio"].median()
    line["swapped at level 1"] = int(one["swapped"].sum())
    line["count covered"] = sets["count"].mean()
    line["first 100 covered"] = sets["yielded"].mean()
    line["share covered"] = sets["share"].mean()
    if sets["lower"].notna().any():
        line["count covered if exact"] = sets["narrow"].mean()
    return line


def summarise(runs: pd.DataFrame) -> pd.DataFrame:
    """Per kind of truth and family: what was promised first, and what it was worth."""
    runs, lines = judged(runs), []
    for kind, part in runs.groupby("kind", sort=False):
        for name, sets in [*part.groupby("family", sort=False), ("all", part)]:
            lines.append({"truth": kind, "family": name} | kept(sets))
    known = runs[runs["kind"] != "follows the score"]
    for name, sets in (("all that labels can show", known), ("everything", runs)):
        lines.append({"truth": name, "family": "all"} | kept(sets))
    return pd.DataFrame(lines)


def outside(runs: pd.DataFrame) -> pd.DataFrame:
    """Every data set whose first count missed the truth."""
    found = judged(runs).query("not count").sort_values(["level", "method"])
    ends = [
        f"{low:.0f} to {high:.0f}" for low, high in zip(found["low"], found["high"], strict=True)
    ]
    found = found.assign(range=ends, swapped=found["swapped"].map({True: "yes", False: ""}))
    return found[["level", "method", "family", "regime", "missed", "range", "swapped"]]


def as_markdown(table: pd.DataFrame) -> str:
    """A table in Markdown, numbers to two digits."""
    shown = table.map(lambda v: f"{v:.2f}" if isinstance(v, float) else str(v)).replace("nan", "–")
    rows = [list(shown.columns), ["---"] * len(shown.columns), *shown.to_numpy().tolist()]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def page_text(runs: pd.DataFrame) -> str:
    """The page, with the tables of these runs after the mark."""
    text = PAGE.read_text(encoding="utf-8").split(MARK)[0] + MARK + "\n"
    real = runs["family"].isin(TABLES)
    for what, part in (("Made-up truths", runs[~real]), ("Public tables", runs[real])):
        for method, sets in part.groupby("method", sort=False):
            seeds = ", ".join(str(s) for s in sorted(sets["seed"].unique()))
            text += (
                f"\n### {what}, method='{method}'\n\n{len(sets)} data sets (seeds {seeds}); the "
            )
            text += f"verdict took {sets['seconds'].median():.1f} CPU seconds (median).\n\n"
            text += f"{as_markdown(summarise(sets))}\n"
    text += f"\n### Every first count that missed\n\n{as_markdown(outside(runs))}\n"
    return text


def read_runs(path: Path = RUNS) -> list[dict[str, Any]]:
    """The data sets tried so far."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def main() -> None:
    """Run the study and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="*", default=[])
    parser.add_argument("--families", nargs="+", default=FAMILIES, choices=[*FAMILIES, *TABLES])
    parser.add_argument("--regimes", nargs="+", default=[])
    parser.add_argument("--some", type=int, help="so many data sets, drawn at random")
    parser.add_argument("--method", default="map", choices=["map", "laplace", "nuts"])
    parser.add_argument("--runs", type=Path, default=RUNS, help="another file: no page is written")
    options = parser.parse_args()
    done = {(r["family"], r["regime"], r["seed"], r["method"]) for r in read_runs(options.runs)}
    cases = [
        (family, regime, seed, options.method)
        for seed in options.seeds
        for family in options.families
        for regime in options.regimes or (table_regimes() if family in TABLES else REGIMES)
    ]
    random.Random(0).shuffle(cases)
    for case in cases[: options.some]:
        if case not in done:
            run = try_one(*case)
            with options.runs.open("a", encoding="utf-8") as file:
                file.write(json.dumps(run) + "\n")
    if options.runs == RUNS:
        PAGE.write_text(page_text(pd.DataFrame(read_runs())), encoding="utf-8")


if __name__ == "__main__":
    main()
