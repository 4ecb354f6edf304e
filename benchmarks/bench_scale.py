"""The default MAP and its verdict as tables grow, against one logistic regression in the same run.

Default settings and all starts: search for modes, climbs, naming of the factors, data checks and
standardisation included. Ratios are of CPU time (on a shared machine the clock counts the others'
work), repeat by repeat, as median, smallest and largest.
"""

import time
import warnings
from collections.abc import Callable
from statistics import median

import numpy as np
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

import bayes_lepu as lepu
from benchmarks.bench_map import simulated

# rows, columns, model, repeats
TABLES = (
    (10_000, 20, "spm", 5),
    (10_000, 20, "psychm", 5),
    (100_000, 20, "spm", 5),
    (100_000, 20, "psychm", 5),
    (1_000_000, 20, "spm", 3),
    (1_000_000, 20, "psychm", 3),
    (5_000, 500, "spm", 3),
    (20_000, 300, "spm", 3),
    (2_000, 2_000, "psychm", 3),
    (10_000, 5, "spm", 3),
    (10_000, 60, "spm", 3),
    (10_000, 200, "spm", 3),
    (10_000, 500, "spm", 3),
)
PANELS = (2, 5, 10, 20)  # annotators of 5,000 x 5
VERDICTS = ((100_000, 20), (1_000_000, 20))


def seconds(call: Callable[[], object]) -> float:
    """CPU seconds of one call."""
    start = time.process_time()
    call()
    return time.process_time() - start


def run() -> dict[str, float]:
    """Ratios by table and model; of the verdict against the fit."""
    warnings.simplefilter("ignore", lepu.LepuWarning)
    figures: dict[str, float] = {}
    for model in ("spm", "psychm"):
        default_fit(*simulated(1_000, 5), model)  # compiles
    for n, p, model, repeats in TABLES:
        X, l = simulated(n, p)
        plain = LogisticRegression(solver="lbfgs")
        base, own = [], []
        for _ in range(repeats):
            base.append(seconds(lambda X=X, l=l, plain=plain: plain.fit(X, l)))
            own.append(seconds(lambda X=X, l=l, m=model: default_fit(X, l, m)))
        ratios = [ours / theirs for ours, theirs in zip(own, base, strict=True)]
        name = f"{n} x {p}: {model}, default fit / LogisticRegression"
        figures[name] = median(ratios)
        figures[f"{name}, smallest"], figures[f"{name}, largest"] = min(ratios), max(ratios)
        figures[f"{n} x {p}: {model}, CPU seconds"] = median(own)
        figures[f"{n} x {p}: LogisticRegression, CPU seconds"] = median(base)
    for J in PANELS:
        X, L = panel(5_000, 5, J)
        figures[f"5000 x 5, {J} annotators: spm, CPU seconds"] = median(
            seconds(lambda X=X, L=L: default_fit(X, L, "spm")) for _ in range(3)
        )
    for n, p in VERDICTS:
        X, l = simulated(n, p)
        start = time.process_time()
        fit = default_fit(X, l, "spm")
        between = time.process_time()
        fit.identifiability  # noqa: B018
        fitted, judged = between - start, time.process_time() - between
        figures[f"{n} x {p}: verdict / default fit of spm"] = judged / fitted
    return figures


def panel(n: int, p: int, J: int) -> tuple[np.ndarray, np.ndarray]:
    """Standard normal X with the marks of J annotators who differ a little."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, p))
    y = rng.random(n) < expit(X @ np.full(p, 2 / np.sqrt(p)))
    omega = X @ (0.5 + 0.3 * rng.normal(size=(p, J))) + 0.5 * rng.normal(size=J)
    return X, (y[:, None] & (rng.random((n, J)) < expit(omega))).astype(int)


def default_fit(X: np.ndarray, l: np.ndarray, model: str) -> lepu.Fit:
    """The MAP fit with nothing asked for."""
    return lepu.fit(X, l, model=model, method="map", random_seed=0)
