"""Time and size of the report: 5,000 rows by NUTS, 100,000 rows by Laplace."""

import tempfile
import time
from pathlib import Path

import numpy as np

import bayes_lepu as lepu
from bayes_lepu.model.parameters import Parameters

COLUMNS = 10


def run() -> dict[str, object]:
    figures: dict[str, object] = {}
    for rows, method in ((5_000, "nuts"), (100_000, "laplace")):
        fit = lepu.fit(*_data(rows), method=method, random_seed=1, progressbar=False)
        name = f"{rows} rows, {method}"
        with tempfile.TemporaryDirectory() as folder:
            wall, cpu = time.perf_counter(), time.process_time()
            path = fit.report(Path(folder) / "report.html")
            figures[f"{name}: seconds"] = time.perf_counter() - wall
            figures[f"{name}: CPU seconds"] = time.process_time() - cpu
            figures[f"{name}: megabytes"] = path.stat().st_size / 1e6
    return figures


def _data(rows: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(rows, COLUMNS))
    a, alpha = np.zeros(COLUMNS), np.zeros(COLUMNS)
    a[:3], alpha[-2:] = (2.0, 1.0, 1.0), 1.0
    point = Parameters.of(a=a, b=0.0, alpha=alpha, beta=0.5, gamma=0.1, lam=0.05)
    return X, point.simulate(X, rng)[1]
