"""Reference posteriors of the catalogue: fixed data, Stan's draws, Stan's log density.

Run from the library's own environment; Stan lives in another one (``tools/stan_env.sh``)::

    sh tools/stan_env.sh .stan-venv
    .venv/bin/python -m tools.reference --stan-python .stan-venv/bin/python psychm

This writes ``models/<name>/reference.json``. What counts as a reference is in
``models/REFERENCE.md``. `reference_data`, `audited_kinds`, `priors` and `log_posterior` need no
Stan, so that tests can rebuild the data and the density.

Conventions
-----------
A *point* is a dictionary in constrained coordinates: ``a``, ``alpha`` (length p, zeros where
masked), ``b``, ``beta``, ``c`` and ``w`` = (gamma, lambda, rho), as far as the model has them.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parent.parent
NAMES = ("naive", "scar", "spm", "psychm", "false_marks")
QUANTILES = (5, 25, 50, 75, 95)
SETTINGS = {"chains": 4, "warmup": 1500, "draws": 6000, "thin": 1, "delta": 0.95, "seed": 20240}
STARTS, AUDITED = 60, 60

Point = dict[str, Any]


@dataclass(frozen=True)
class Recipe:
    """The truth behind a reference data set, and the seed that draws it."""

    n: int
    seed: int
    a: tuple[float, ...]
    b: float
    alpha: tuple[float, ...]
    beta: float
    weights: tuple[float, float, float]  # gamma, lambda, rho of the propensity
    selection_columns: tuple[int, ...]  # 0 fixes the slope of the propensity to 0
    epsilon: float = 0.0  # rate of false marks

    @property
    def class_columns(self) -> tuple[int, ...]:
        """The classifier sees every column in every data set."""
        return (1,) * len(self.a)


RECIPES = {
    "naive": Recipe(1000, 101, (1.5, -1.0, 0.5), -0.5, (0, 0, 0), 0.0, (1.0, 0.0, 0.0), (0, 0, 0)),
    "scar": Recipe(1000, 102, (2.4, -1.5, 1.0), 0.3, (0, 0, 0), 0.0, (0.6, 0.4, 0.0), (0, 0, 0)),
    "spm": Recipe(1500, 103, (1.6, -1.2, 2.2), 0.2, (0.9, 1.2, 0), 0.3, (0.0, 0.0, 1.0), (1, 1, 0)),
    "psychm": Recipe(
        2000, 104, (4.0, -2.0, 2.2), 0.5, (1.2, 3.4, 1.7), -0.4, (0.2, 0.05, 0.75), (1, 1, 1)
    ),
    "false_marks": Recipe(
        1500, 105, (1.6, -1.2, 2.2), 0.2, (0.9, 1.2, 0), 0.3, (0.0, 0.0, 1.0), (1, 1, 0), 0.05
    ),
}
TWO_FACTORS = ("spm", "psychm", "false_marks")


@dataclass(frozen=True)
class ReferenceData:
    """Columns ``X`` (n, p), row kinds 0/1 (n,) and the classes ``y`` (n,) behind them."""

    X: NDArray[np.float64]
    kind: NDArray[np.int64]
    y: NDArray[np.int64]

    def sha256(self) -> dict[str, str]:
        """Digests of the little-endian bytes of X (float64, row-major) and kind (int64)."""
        arrays = {"X": self.X.astype("<f8"), "kind": self.kind.astype("<i8")}
        return {key: hashlib.sha256(v.tobytes(order="C")).hexdigest() for key, v in arrays.items()}


def _sigmoid(z: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(1 / (1 + np.exp(-z)))


def reference_data(name: str) -> ReferenceData:
    """X standard normal and standardised, y ~ Bernoulli(t), l ~ y · Bernoulli(s).

    X is rounded to 8 decimals after standardising, so that the last bits of the platform's
    arithmetic cannot change it; mean 0 and standard deviation 1 hold to 1e-8.
    """
    recipe = RECIPES[name]
    rng = np.random.default_rng(recipe.seed)
    X = rng.standard_normal((recipe.n, len(recipe.a)))
    X = np.round((X - X.mean(axis=0)) / X.std(axis=0), 8)
    gamma, _, rho = recipe.weights
    s = gamma + rho * _sigmoid(X @ np.array(recipe.alpha, dtype=float) + recipe.beta)
    y = rng.random(recipe.n) < _sigmoid(X @ np.array(recipe.a) + recipe.b)
    l = y & (rng.random(recipe.n) < s)
    if not recipe.epsilon:
        return ReferenceData(X, l.astype(np.int64), y.astype(np.int64))
    kind = (l | (~y & (rng.random(recipe.n) < recipe.epsilon))).astype(np.int64)
    rows = np.flatnonzero(kind == 1)[:AUDITED]  # marked rows, audited: 5 for y=1, 4 for y=0
    kind[rows] = np.where(y[rows], 5, 4)
    return ReferenceData(X, kind, y.astype(np.int64))


def audited_kinds(data: ReferenceData) -> NDArray[np.int64]:
    """Row kinds when the first 60 unlabelled rows are audited: 2 for y=1, 3 for y=0."""
    kind = data.kind.copy()
    rows = np.flatnonzero(kind == 0)[:AUDITED]
    kind[rows] = np.where(data.y[rows] == 1, 2, 3)
    return kind


def priors(name: str) -> dict[str, Any]:
    """Hyperparameters of the reference posteriors, named as in the Stan programs."""
    recipe = RECIPES[name]
    hyper: dict[str, Any] = {"scale_a": 2.5 / sum(recipe.class_columns) ** 0.5, "scale_b": 1.5}
    if name == "scar":
        hyper |= {"c_1": 1.0, "c_2": 1.0}
    if name in TWO_FACTORS:
        hyper |= {"scale_alpha": 1.5 / sum(recipe.selection_columns) ** 0.5, "scale_beta": 1.5}
    if name == "psychm":
        hyper |= {"conc": [1.0, 1.0, 1.0]}
    if recipe.epsilon:
        hyper |= {"epsilon_1": 1.0, "epsilon_2": 99.0}
    return hyper


def truth(name: str) -> Point:
    """The point that made the data."""
    recipe = RECIPES[name]
    point: Point = {"a": list(recipe.a), "b": recipe.b}
    if name == "scar":
        point["c"] = recipe.weights[0]
    if name in TWO_FACTORS:
        point |= {"alpha": [float(v) for v in recipe.alpha], "beta": recipe.beta}
    if name == "psychm":
        point["w"] = list(recipe.weights)
    if recipe.epsilon:
        point["epsilon"] = recipe.epsilon
    return point


def density_points(name: str) -> list[Point]:
    """Eight points: the truth, four near it, and slopes 3, 10 and 25 times as steep."""
    rng = np.random.default_rng(RECIPES[name].seed + 1000)
    free = {"a": RECIPES[name].class_columns, "alpha": RECIPES[name].selection_columns}
    points = []
    for spread, steep in [(0, 1), (0.3, 1), (0.3, 1), (1, 1), (1, 1), (0.5, 3), (0.5, 10), (1, 25)]:
        point = truth(name)
        for key in [k for k in ("a", "alpha") if k in point]:
            moved = steep * np.array(point[key]) + spread * rng.standard_normal(len(point[key]))
            point[key] = [round(float(v), 6) for v in moved * free[key]]
        for intercept in [k for k in ("b", "beta") if k in point]:
            point[intercept] = round(point[intercept] + spread * float(rng.standard_normal()), 6)
        if "c" in point and spread:
            point["c"] = round(float(rng.uniform(0.02, 0.98)), 6)
        if "w" in point and spread:
            gamma, lam = (round(float(v), 6) for v in rng.dirichlet([1, 1, 2])[:2])
            point["w"] = [gamma, lam, 1 - gamma - lam]
        if "epsilon" in point and spread:
            point["epsilon"] = round(float(rng.uniform(0.001, 0.3)), 6)
        points.append(point)
    return points


def log_posterior(
    name: str, point: Point, X: NDArray[np.float64], kind: NDArray[np.int64]
) -> float:
    """Log prior + log likelihood at a point, every constant included, no Jacobian.

    Built from `tools.row_formula` and the densities of `scipy.stats`; shares nothing
    with the Stan programs.
    """
    from scipy import stats

    from tools.row_formula import LOG_W_NAIVE, LOG_W_SPM, row_loglik

    hyper, recipe = priors(name), RECIPES[name]
    a = np.array(point["a"], dtype=float)
    free = np.array(recipe.class_columns, dtype=bool)
    total = stats.norm.logpdf(a[free], scale=hyper["scale_a"]).sum()
    total += stats.norm.logpdf(point["b"], scale=hyper["scale_b"])
    omega, log_w = np.zeros(len(X)), LOG_W_NAIVE
    if "c" in point:
        total += stats.beta.logpdf(point["c"], hyper["c_1"], hyper["c_2"])
        log_w = np.array([np.log(point["c"]), np.log1p(-point["c"]), -np.inf])
    if "alpha" in point:
        alpha = np.array(point["alpha"], dtype=float)
        free = np.array(recipe.selection_columns, dtype=bool)
        total += stats.norm.logpdf(alpha[free], scale=hyper["scale_alpha"]).sum()
        total += stats.norm.logpdf(point["beta"], scale=hyper["scale_beta"])
        omega, log_w = X @ alpha + point["beta"], LOG_W_SPM
    if "w" in point:
        w = np.array(point["w"], dtype=float)
        total += stats.dirichlet.logpdf(w / w.sum(), hyper["conc"])
        log_w = np.log(w)
    if "epsilon" in point:
        eps = float(point["epsilon"])
        total += stats.beta.logpdf(eps, hyper["epsilon_1"], hyper["epsilon_2"])
        return float(total + _with_false_marks(kind, X @ a + point["b"], omega, eps).sum())
    return float(total + row_loglik(kind, X @ a + point["b"], omega, log_w).sum())


def _with_false_marks(
    kind: NDArray[np.int64], tau: NDArray[np.float64], omega: NDArray[np.float64], eps: float
) -> NDArray[np.float64]:
    """Log-likelihood of every row of an SPM with false marks, by its kind."""
    log_t, log_not_t = -np.logaddexp(0, -tau), -np.logaddexp(0, tau)
    found, missed = log_t - np.logaddexp(0, -omega), log_t - np.logaddexp(0, omega)
    false, clear = log_not_t + np.log(eps), log_not_t + np.log1p(-eps)
    choices = [np.logaddexp(clear, missed), np.logaddexp(found, false), missed, clear, false, found]
    return np.asarray(np.choose(kind, choices))


def mode_gap(name: str) -> dict[str, float]:
    """How far below the best mode the next different one lies, in nats.

    Multi-start L-BFGS on the density that is sampled (logit or log-ratio coordinates, Jacobian
    included), from random points, the truth and the truth with its two factors exchanged. Two
    optima are different when the root mean square difference of their t exceeds 0.05. The gap is
    infinite, and left out, when every start ends in the same mode.
    """
    from scipy.optimize import minimize

    data, start = reference_data(name), truth(name)
    p, rng = len(start["a"]), np.random.default_rng(RECIPES[name].seed + 2000)

    def to_point(z: NDArray[np.float64]) -> tuple[Point, float]:
        point: Point = {"a": z[:p] * RECIPES[name].class_columns, "b": z[p]}
        jacobian, rest = 0.0, z[p + 1 :]
        if "alpha" in start:
            point |= {"alpha": rest[:p] * RECIPES[name].selection_columns, "beta": rest[p]}
            rest = rest[p + 1 :]
        if "c" in start:
            point["c"] = float(_sigmoid(rest[0]))
            jacobian = float(np.log(point["c"]) + np.log1p(-point["c"]))
        if "w" in start:
            log_w = np.append(rest, 0.0) - np.logaddexp.reduce(np.append(rest, 0.0))
            point["w"], jacobian = np.exp(log_w), float(log_w.sum())
        if "epsilon" in start:
            point["epsilon"] = float(_sigmoid(rest[0]))
            jacobian = float(np.log(point["epsilon"]) + np.log1p(-point["epsilon"]))
        return point, jacobian

    def loss(z: NDArray[np.float64]) -> float:
        point, jacobian = to_point(z)
        return -log_posterior(name, point, data.X, data.kind) - jacobian

    factors = [np.append(start["a"], start["b"])]
    if "alpha" in start:
        factors.append(np.append(start["alpha"], start["beta"]))
    tail = np.zeros({"scar": 1, "psychm": 2, "false_marks": 1}.get(name, 0))
    size = sum(len(f) for f in factors) + len(tail)
    starts = [np.concatenate([*factors, tail]), np.concatenate([*factors[::-1], tail])]
    starts += [rng.normal(0, 2, size) for _ in range(STARTS - 2)]
    bounds = [(-8, 8)] * size  # keeps the search inside proper weights; the modes are interior
    optima = sorted((minimize(loss, z, bounds=bounds) for z in starts), key=lambda fit: fit.fun)
    best = _sigmoid(data.X @ optima[0].x[:p] + optima[0].x[p])
    found: dict[str, float] = {"starts": STARTS, "best": -float(optima[0].fun)}
    for fit in optima:
        t = _sigmoid(data.X @ fit.x[:p] + fit.x[p])
        if np.sqrt(np.mean((t - best) ** 2)) > 0.05:
            return found | {"gap": float(fit.fun - optima[0].fun)}
    return found


def stan_data(name: str, X: NDArray[np.float64], kind: NDArray[np.int64]) -> dict[str, Any]:
    """The data block of the Stan program."""
    block: dict[str, Any] = {"N": len(X), "p": X.shape[1], "X": X.tolist(), "kind": kind.tolist()}
    block["class_columns"] = list(RECIPES[name].class_columns)
    if name in TWO_FACTORS:
        block["selection_columns"] = list(RECIPES[name].selection_columns)
    return block | priors(name)


def draw(name: str, file: Path) -> None:
    """Stan's side, run by Stan's own Python: posterior draws and log densities into ``file``."""
    import httpstan
    import stan

    chains, draws = int(SETTINGS["chains"]), int(SETTINGS["draws"])
    data = reference_data(name)
    program = (ROOT / "models" / name / f"{name}.stan").read_text(encoding="utf-8")

    def build(kind: NDArray[np.int64]) -> Any:
        return stan.build(program, data=stan_data(name, data.X, kind), random_seed=SETTINGS["seed"])

    def stan_names(point: Point) -> Point:
        masks = {"a": RECIPES[name].class_columns, "alpha": RECIPES[name].selection_columns}
        named = {}
        for key, value in point.items():
            if key in masks:
                named[f"{key}_free"] = [v for v, m in zip(value, masks[key], strict=True) if m]
            else:
                named[key] = value
        return named

    out: dict[str, Any] = {"versions": [stan.__version__, httpstan.__version__]}
    for label, kind in {"plain": data.kind, "audited": audited_kinds(data)}.items():
        model = build(kind)
        out[f"log_density_{label}"] = [
            model.log_prob(model.unconstrain_pars(stan_names(point)), adjust_transform=False)
            for point in density_points(name)
        ]
    fit = build(data.kind).sample(
        num_chains=chains,
        num_warmup=SETTINGS["warmup"],
        num_samples=draws,
        num_thin=SETTINGS["thin"],
        delta=SETTINGS["delta"],
        init=[stan_names(truth(name))] * chains,
    )

    def per_chain(values: NDArray[np.float64]) -> NDArray[np.float64]:
        # pystan keeps one row per parameter and interleaves the chains, fastest index last
        return values.reshape(-1, draws, chains).swapaxes(1, 2)

    for key in ("a", "b", "alpha", "beta", "gamma", "lambda", "c", "epsilon", "pi"):
        if key in fit.param_names or key in fit.constrained_param_names:
            out[f"draws_{key}"] = per_chain(fit[key])
    out["divergent"] = per_chain(fit["divergent__"])
    np.savez(file, **out)


def _digits(value: float) -> float:
    return value if isinstance(value, int) else float(f"{value:.10g}")


def summarise(
    name: str, draws: dict[str, NDArray[np.float64]]
) -> tuple[dict[str, dict[str, float]], dict[str, float]]:
    """Posterior table and diagnostics from draws of shape (coefficient, chain, draw)."""
    free = {"a": RECIPES[name].class_columns, "alpha": RECIPES[name].selection_columns}
    flat: dict[str, NDArray[np.float64]] = {}
    for key, values in draws.items():
        for j, row in enumerate(values):
            if key not in free:
                flat[key] = row
            elif free[key][j]:
                flat[f"{key}[{j}]"] = row
    return describe(flat)


def describe(
    flat: dict[str, NDArray[np.float64]],
) -> tuple[dict[str, dict[str, float]], dict[str, float]]:
    """Posterior table and diagnostics of scalars of shape (chain, draw)."""
    import arviz as az

    table, rhat, tail = {}, [], []
    for key, row in flat.items():
        rhat.append(float(az.rhat(row)))
        tail.append(float(az.ess(row, method="tail", prob=(0.05, 0.95))))
        quantiles = np.percentile(row, QUANTILES)
        figures = {
            "mean": row.mean(),
            "sd": row.std(ddof=1),
            **{f"q{q}": v for q, v in zip(QUANTILES, quantiles, strict=True)},
            "mcse_mean": float(az.mcse(row, method="mean")),
            "ess_bulk": float(az.ess(row, method="bulk")),
        }
        table[key] = {k: _digits(v) for k, v in figures.items()}
    bulk = min(entry["ess_bulk"] for entry in table.values())
    return table, {"max_rhat": max(rhat), "min_ess_bulk": bulk, "min_ess_tail": min(tail)}


def make_reference(name: str, stan_python: str) -> dict[str, Any]:
    """The content of ``reference.json``."""
    import arviz as az

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "draws.npz"
        subprocess.run([stan_python, __file__, "--draw", str(file), name], check=True)
        with np.load(file) as stored:
            out = dict(stored)
    draws = {k.removeprefix("draws_"): v for k, v in out.items() if k.startswith("draws_")}
    table, diagnostics = summarise(name, draws)
    diagnostics["divergences"] = int(out["divergent"].sum())
    data, recipe = reference_data(name), RECIPES[name]
    pystan, httpstan = (str(v) for v in out["versions"])
    return {
        "name": name,
        "data": {
            "recipe": f"tools/reference.py: reference_data({name!r})",
            "n": recipe.n,
            "seed": recipe.seed,
            "truth": truth(name),
            "class_columns": recipe.class_columns,
            "selection_columns": recipe.selection_columns,
            "labelled": int(np.isin(data.kind, (1, 4, 5)).sum()),
            "sha256": data.sha256(),
        },
        "priors": priors(name),
        "engine": {"pystan": pystan, "httpstan": httpstan, "summaries": f"arviz {az.__version__}"},
        "settings": SETTINGS,
        "diagnostics": {k: _digits(v) for k, v in diagnostics.items()},
        "modes": {k: _digits(v) for k, v in mode_gap(name).items()},
        "posterior": table,
        "log_density": {
            "about": "log prior + log likelihood, all constants kept, no Jacobian, full precision; "
            "'audited' uses audited_kinds(reference_data(name)) as row kinds",
            "points": density_points(name),
            "plain": out["log_density_plain"].tolist(),
            "audited": out["log_density_audited"].tolist(),
        },
    }


def main() -> None:
    """Write the reference of each named model."""
    parser = argparse.ArgumentParser(description="Make the reference posteriors of models/.")
    parser.add_argument("names", nargs="*", default=NAMES, help=f"of {', '.join(NAMES)}")
    parser.add_argument("--stan-python", default=".stan-venv/bin/python")
    parser.add_argument("--draw", metavar="FILE", help="internal: Stan's half of the work")
    options = parser.parse_args()
    if unknown := set(options.names) - set(NAMES):
        parser.error(f"no such model: {', '.join(sorted(unknown))}; expected {', '.join(NAMES)}")
    for name in options.names:
        if options.draw:
            draw(name, Path(options.draw))
            continue
        reference = make_reference(name, options.stan_python)
        path = ROOT / "models" / name / "reference.json"
        path.write_text(json.dumps(reference, indent=1) + "\n", encoding="utf-8")
        print(f"{path.relative_to(ROOT)}: {reference['diagnostics']}", file=sys.stderr)


if __name__ == "__main__":
    main()
