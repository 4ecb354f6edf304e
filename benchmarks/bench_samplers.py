"""Effective draws per CPU second of NUTS on one SPM posterior: ours, NumPyro's and Stan's.

The same rows, columns and priors, two chains of 1000 draws after 1000 of warm-up, each started at
the same point, since chains of the others may stay in the mode they begin in. Ours finds that point
by itself, and its search is counted; compiling is not. NumPyro and Stan are run by the Python
interpreters named in ``LEPU_NUMPYRO_PYTHON`` and ``LEPU_STAN_PYTHON``, and left out without one.
"""

import os
import resource
import subprocess
import tempfile
import time
from pathlib import Path

import arviz as az
import numpy as np

import bayes_lepu as lepu

ROWS, COLUMNS, DRAWS, CHAINS = 5_000, 5, 1_000, 2
PROGRAM = Path(__file__).parents[1] / "models" / "spm" / "spm.stan"

# Both get a folder with `given.npz`, and leave draws (chain, draw, coordinate) in `found.npz`.
SHARED = """
import sys
import numpy as np
given = np.load(sys.argv[1] + "/given.npz")
X, l, start, scales = (given[k] for k in ("X", "l", "start", "scales"))
draws, chains, p = int(given["draws"]), int(given["chains"]), X.shape[1]
"""
NUMPYRO = """
import time, jax, jax.numpy as jnp, numpyro, numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS, init_to_value
numpyro.enable_x64()
def model():
    a = numpyro.sample("a", dist.Normal(0, scales[0]).expand([p]))
    b = numpyro.sample("b", dist.Normal(0, scales[1]))
    alpha = numpyro.sample("alpha", dist.Normal(0, scales[2]).expand([p]))
    beta = numpyro.sample("beta", dist.Normal(0, scales[3]))
    tau, omega = X @ a + b, X @ alpha + beta
    marked = jax.nn.log_sigmoid(tau) + jax.nn.log_sigmoid(omega)
    silent = jnp.logaddexp(jax.nn.log_sigmoid(-tau),
                           jax.nn.log_sigmoid(tau) + jax.nn.log_sigmoid(-omega))
    numpyro.factor("l", jnp.where(l == 1, marked, silent).sum())
at = {"a": start[:p], "b": start[p], "alpha": start[p + 1 : -1], "beta": start[-1]}
mcmc = MCMC(NUTS(model, init_strategy=init_to_value(values=at)), num_warmup=draws,
            num_samples=draws, num_chains=chains, chain_method="sequential", progress_bar=False)
mcmc.run(jax.random.PRNGKey(0))  # compiles
begun = time.process_time()
mcmc.run(jax.random.PRNGKey(1))
found = {k: np.asarray(v) for k, v in mcmc.get_samples(group_by_chain=True).items()}
seconds = time.process_time() - begun
parts = [found["a"], found["b"][..., None], found["alpha"], found["beta"][..., None]]
z = np.concatenate(parts, -1)
np.savez(sys.argv[1] + "/found.npz", z=z, seconds=seconds)
"""
STAN = """
import stan
data = {"N": len(l), "p": p, "X": X.tolist(), "kind": l.astype(int).tolist(),
        "class_columns": [1] * p, "selection_columns": [1] * p} | dict(
        zip(("scale_a", "scale_b", "scale_alpha", "scale_beta"), map(float, scales)))
at = {"a_free": start[:p].tolist(), "b": float(start[p]), "alpha_free": start[p + 1 : -1].tolist(),
      "beta": float(start[-1])}
model = stan.build(open(sys.argv[2]).read(), data=data, random_seed=1)
fit = model.sample(num_chains=chains, num_warmup=draws, num_samples=draws, init=[at] * chains)
flat = np.concatenate([fit[k].reshape(-1, draws, chains) for k in ("a", "b", "alpha", "beta")])
np.savez(sys.argv[1] + "/found.npz", z=flat.transpose(2, 1, 0), seconds=np.nan)
"""


def run() -> dict[str, float]:
    """Smallest effective size per CPU second, and ours over theirs."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((ROWS, COLUMNS))
    truth = lepu.Parameters.of(a=[3, -2, 2, 0, 1], b=0.0, alpha=[0, 1, 2, -2, 0.5], beta=0.3)
    l = truth.simulate(X, rng)[1]
    options = {"model": "spm", "chains": CHAINS, "cores": 1, "progressbar": False}
    lepu.fit(X, l, draws=10, tune=10, random_seed=1, **options)  # compiles
    begun = time.process_time()
    fit = lepu.fit(X, l, draws=DRAWS, tune=DRAWS, random_seed=1, **options)
    rates = {"ours": smallest_ess(_coordinates(fit)) / (time.process_time() - begun)}
    rest = {"X": fit.data.X, "l": l, "start": _coordinates(fit).mean(axis=(0, 1))}
    rest["scales"] = np.array([fit.priors[name].scale for name in ("a", "b", "alpha", "beta")])
    for name, script in (("NumPyro", NUMPYRO), ("Stan", STAN)):
        python = os.environ.get(f"LEPU_{name.upper()}_PYTHON")
        if python:
            _run(python, script, {**rest, "draws": 5, "chains": CHAINS})  # compiles
            _, idle = _run(python, script, {**rest, "draws": 5, "chains": CHAINS})
            found, whole = _run(python, script, {**rest, "draws": DRAWS, "chains": CHAINS})
            seconds = float(found["seconds"])
            rates[name] = smallest_ess(found["z"]) / (seconds if seconds > 0 else whole - idle)
    figures = {f"{name}, smallest ESS per CPU second": rate for name, rate in rates.items()}
    return figures | {f"ours / {k}": rates["ours"] / v for k, v in rates.items() if k != "ours"}


def smallest_ess(z: np.ndarray) -> float:
    """Of all coordinates, ``(chain, draw, coordinate)``."""
    return float(min(az.ess(z[..., j]) for j in range(z.shape[-1])))


def _coordinates(fit: lepu.Fit) -> np.ndarray:
    point = fit.parameters
    return np.concatenate([point.a, point.b[..., None], point.alpha, point.beta[..., None]], -1)


def _run(python: str, script: str, given: dict[str, object]) -> tuple[dict[str, np.ndarray], float]:
    """What another interpreter found, and its CPU seconds in all."""
    with tempfile.TemporaryDirectory() as folder:
        np.savez(f"{folder}/given.npz", **given)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        call = [python, "-c", SHARED + script, folder, str(PROGRAM)]
        subprocess.run(call, check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found = dict(np.load(f"{folder}/found.npz"))
    return found, sum(after[:2]) - sum(before[:2])
