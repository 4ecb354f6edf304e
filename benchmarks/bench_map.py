"""MAP against one logistic regression of scikit-learn, in one run and on one thread.

At 100,000 x 20 SPM with one start is compared with ``LogisticRegression(solver="lbfgs")`` on the
same X and l, data checks and standardisation of `fit` included. Memory is the peak of what Python
and NumPy allocate during the fit, on top of X itself.
"""

import tracemalloc
import warnings
from collections.abc import Callable

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

import bayes_lepu as lepu
from benchmarks.machine import interleaved, ratio

MODELS = ("naive", "scar", "spm", "psychm")


def simulated(n: int, p: int) -> tuple[np.ndarray, np.ndarray]:
    """Standard normal X with SPM labels, |a| = 4 and |alpha| = 2."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, p))
    a, alpha = np.linalg.qr(rng.normal(size=(p, 2)))[0].T * [[4.0], [2.0]]
    truth = lepu.Parameters.of(a=a, b=0.0, alpha=alpha, beta=0.5)
    return X, truth.simulate(X, rng)[1]


def peak_over_size(X: np.ndarray, call: Callable[[], object]) -> float:
    """Peak of allocated memory during the call, in units of X."""
    tracemalloc.start()
    call()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / X.nbytes


def run() -> dict[str, float]:
    """Ratios of times and of memory, and milliseconds for orientation."""
    warnings.simplefilter("ignore", lepu.IdentifiabilityWarning)
    figures: dict[str, float] = {}
    for n, p, repeats in ((100_000, 20, 15), (5_000, 5, 31)):
        X, l = simulated(n, p)
        calls = {
            "logistic": lambda X=X, l=l: LogisticRegression(solver="lbfgs").fit(X, l),
            "spm": lambda X=X, l=l: one_start(X, l, "spm"),
            "psychm": lambda X=X, l=l: one_start(X, l, "psychm"),
        }
        times = interleaved(calls, repeats=repeats)
        name = f"{n} x {p}"
        figures[f"{name}: ms of LogisticRegression(lbfgs)"] = 1e3 * min(times["logistic"])
        for model in ("spm", "psychm"):
            figures[f"{name}: {model} MAP, one start / LogisticRegression"] = ratio(
                times, model, "logistic"
            )
    X, l = simulated(100_000, 20)
    frame = pd.DataFrame(X)
    figures["100000 x 20: peak memory of the SPM fit / X"] = peak_over_size(
        X, lambda: one_start(X, l, "spm")
    )
    figures["100000 x 20 as DataFrame: peak memory of the SPM fit / X"] = peak_over_size(
        X, lambda: one_start(frame, l, "spm")
    )
    X, l = simulated(2_500, 5)
    times = interleaved(
        {m: lambda m=m: lepu.fit(X, l, model=m, method="map", random_seed=0) for m in MODELS},
        repeats=7,
    )
    for model in MODELS:
        figures[f"2500 x 5: ms of a {model} fit with all starts"] = 1e3 * min(times[model])
    return figures


def one_start(X: np.ndarray | pd.DataFrame, l: np.ndarray, model: str) -> lepu.Fit:
    """A fit from a single random start."""
    return lepu.fit(X, l, model=model, method="map", random_seed=0)
