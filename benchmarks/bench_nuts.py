"""A PsychM posterior in a fresh process: `fit` against `pymc.sample` on the same model.

Both start from nothing: a new process each, an empty PyTensor compile directory and an empty numba
cache for PyMC, and for ours once with an empty numba cache (the first fit ever on a machine) and
once with the cache that the first fit leaves behind (every later fit).
"""

import json
import os
import subprocess
import sys
import tempfile
import time

SETUP = """
import json, sys, time, warnings
import numpy as np
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
X = rng.standard_normal((5000, 5))
import bayes_lepu as lepu
truth = lepu.Parameters.of(
    a=[3, -2, 2, 0, 1], b=0.0, alpha=[0, 1, 2, -2, 0.5], beta=0.3, gamma=0.1, lam=0.05
)
l = truth.simulate(X, rng)[1]
start = time.perf_counter()
"""
OURS = """
fit = lepu.fit(X, l, model="psychm", random_seed=1, progressbar=False)
seconds = time.perf_counter() - start
a = fit.parameters.a
"""
PYMC = """
import pymc as pm
with lepu.build_model(X, l, model="psychm"):
    trace = pm.sample(draws=1000, tune=1000, chains=4, cores=2, random_seed=1, progressbar=False,
                      compute_convergence_checks=False)
seconds = time.perf_counter() - start
a = trace["posterior"]["a"].to_numpy()
"""
REPORT = """
import arviz as az
ess = float(az.ess(a[..., 0]))
print(json.dumps({"seconds": seconds, "ess": ess, "mean": float(a[..., 0].mean())}))
"""


def run() -> dict[str, float]:
    """Wall times and their ratios."""
    with tempfile.TemporaryDirectory() as folder:
        ours_cache = os.path.join(folder, "ours")
        first = _fresh(OURS, folder, numba_cache=ours_cache)
        later = _fresh(OURS, folder, numba_cache=ours_cache)
        theirs = _fresh(PYMC, folder, numba_cache=os.path.join(folder, "theirs"))
    return {
        "ours_first_seconds": first["seconds"],
        "ours_later_seconds": later["seconds"],
        "pymc_seconds": theirs["seconds"],
        "ours_first_over_pymc": first["seconds"] / theirs["seconds"],
        "ours_later_over_pymc": later["seconds"] / theirs["seconds"],
        "ours_ess_a0": later["ess"],
        "pymc_ess_a0": theirs["ess"],
    }


def _fresh(code: str, folder: str, *, numba_cache: str) -> dict[str, float]:
    """Run in a new process with its own caches."""
    compile_dir = os.path.join(folder, f"pytensor-{time.monotonic_ns()}")
    env = {
        **os.environ,
        "NUMBA_CACHE_DIR": numba_cache,
        "PYTENSOR_FLAGS": f"base_compiledir={compile_dir}",
        "OMP_NUM_THREADS": "1",
    }
    done = subprocess.run(
        [sys.executable, "-c", SETUP + code + REPORT],
        env=env,
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.strip().splitlines()[-1])
