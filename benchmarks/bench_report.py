"""CPU seconds of what a user does after `fit`: print, report, save, print again, rate rows.

As a script it also runs against an older tree: ``PYTHONPATH=tree python bench_report.py``.
"""

import json
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.special import expit

import bayes_lepu as lepu

TABLES = (
    (2_500, 6, "psychm", "nuts"),
    (20_000, 20, "spm", "laplace"),
    (20_000, 20, "spm", "map"),
    (5_000, 100, "spm", "map"),
    (2_500, 6, "auto", "laplace"),
    (20_000, 20, "auto", "laplace"),
)


def run() -> dict[str, float]:
    """CPU seconds of every step, by table; each step once before, on a small table, to compile."""
    warnings.simplefilter("ignore", lepu.LepuWarning)
    figures: dict[str, float] = {}
    for model, method in dict.fromkeys(table[2:] for table in TABLES):
        steps(200, 6, model, method)
    for n, p, model, method in TABLES:
        name = f"{n} x {p}, {model}, {method}"
        found = steps(n, p, model, method)
        figures |= {f"{name}: {step}": value for step, value in found.items()}
        print(json.dumps({name: found}), flush=True)
    return figures


def steps(n: int, p: int, model: str, method: str) -> dict[str, float]:
    """CPU seconds of the steps, in their order."""
    X, l = made(n, p)
    figures: dict[str, float] = {}

    def timed[T](step: str, call: Callable[[], T]) -> T:
        start = time.process_time()
        out = call()
        figures[step] = round(time.process_time() - start, 4)
        return out

    options = {"model": model, "method": method, "random_seed": 1, "progressbar": False}
    fit = timed("fit", lambda: lepu.fit(X, l, **options))
    timed("print", lambda: str(fit))
    with tempfile.TemporaryDirectory() as folder:
        timed("report", lambda: fit.report(Path(folder) / "report.html"))
        again = lepu.load(fit.save(Path(folder) / "fit.nc"))
    timed("print after load", lambda: str(again))
    timed("missed(X)", lambda: fit.missed(X))
    timed("predict_proba(X)", lambda: fit.predict_proba(X))
    return figures


def made(n: int, p: int) -> tuple[np.ndarray, np.ndarray]:
    """Normal columns; the class by the first half of them, the marks by the other."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, p))
    half = p // 2
    y = rng.random(n) < expit(X[:, :half] @ np.full(half, 3 / np.sqrt(half)))
    s = 0.05 + 0.9 * expit(X[:, half:] @ np.full(p - half, 1.5 / np.sqrt(p - half)))
    return X, (y & (rng.random(n) < s)).astype(int)


if __name__ == "__main__":
    run()
