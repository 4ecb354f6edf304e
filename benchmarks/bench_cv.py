"""Cross-validation of SPM over (C_α, C_a) against scikit-learn's LogisticRegressionCV.

The same 2500 rows of the paper's simulation, standardised, 3 stratified folds, 25 values each (a
5 x 5 grid for SPM), Brier score, final fit included on both sides, one process. The peer gets its
default solver, and max_iter high enough to converge.

Then 500 rows by 4096 columns, 20 of them informative, L1 on both factors, 3 x 3 pairs.
"""

import time
import warnings

import numpy as np
from sklearn.linear_model import LogisticRegressionCV

from bayes_lepu.errors import IdentifiabilityWarning
from bayes_lepu.estimators import PUClassifierCV
from bayes_lepu.model.parameters import Parameters
from benchmarks.machine import interleaved, ratio
from reproduction.datasets import simulate_paper


def run() -> dict[str, float | str]:
    """Ratios of times, and milliseconds for orientation."""
    figures: dict[str, float | str] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # new defaults announced by scikit-learn
        warnings.simplefilter("ignore", IdentifiabilityWarning)
        for seed in range(3):
            data = simulate_paper(2500, gamma=0.0, lam=0.0, random_seed=seed)
            X, l = np.asarray(data.X), np.asarray(data.l)
            Z = (X - X.mean(axis=0)) / X.std(axis=0)
            peer = LogisticRegressionCV(Cs=25, cv=3, scoring="neg_brier_score", max_iter=1000)
            ours = {
                "SPM": PUClassifierCV(model="spm", random_state=0),
                "PsychM": PUClassifierCV(model="psychm", random_state=0),
            }
            calls = {"peer": lambda Z=Z, l=l, peer=peer: peer.fit(Z, l)}
            calls |= {
                name: lambda Z=Z, l=l, model=model: model.fit(Z, l) for name, model in ours.items()
            }
            times = interleaved(calls, repeats=5)
            figures[f"data {seed}: ms of LogisticRegressionCV"] = 1e3 * min(times["peer"])
            for name in ours:
                figures[f"data {seed}: {name} / LogisticRegressionCV"] = ratio(times, name, "peer")
        figures |= wide()
    return figures


def wide() -> dict[str, float | str]:
    """Many columns: time, selection, and whether the optimality conditions hold."""
    rng = np.random.default_rng(1)
    n, p, k = 500, 4096, 20
    X = rng.normal(size=(n, p))
    informative = rng.permutation(p)[:k]
    a, alpha = np.zeros(p), np.zeros(p)
    a[informative], alpha[informative[:5]] = 1.5 * rng.choice([-1, 1], size=k), 1.5
    _, l = Parameters.of(a=a, b=0.5, alpha=alpha, beta=1.0).simulate(X, rng)
    model = PUClassifierCV(
        model="spm",
        class_penalties=[10.0, 20.0, 40.0],
        class_norm="l1",
        selection_norm="l1",
        random_state=0,
    )
    start = time.perf_counter()
    model.fit(X, l)
    seconds = time.perf_counter() - start
    chosen = np.flatnonzero((model.coef_[0] != 0) | (model.propensity_coef_[0] != 0))
    return {
        "500 x 4096, L1: seconds": seconds,
        "500 x 4096, L1: columns chosen": float(len(chosen)),
        "500 x 4096, L1: informative among them (of 20)": float(np.isin(chosen, informative).sum()),
        "500 x 4096, L1: converged": float(model.modes_["converged"].iloc[0]),
    }
