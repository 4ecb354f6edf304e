"""The reference posterior of the panel model; the rest is as in `tools.reference`.

    sh tools/stan_env.sh .stan-venv
    .venv/bin/python -m tools.reference_panel --stan-python .stan-venv/bin/python

writes ``models/panel/reference.json``. A *point* holds ``a``, ``b``, ``alpha_mean``, ``beta_mean``,
``sigma_alpha``, ``sigma_beta``, ``z_alpha`` (annotator by column) and ``z_beta``; masked slopes are
left out.
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
FILE = ROOT / "models" / "panel" / "reference.json"
N, SEED, AUDITED = 400, 105, 40
SETTINGS = {"chains": 4, "warmup": 1500, "draws": 4000, "thin": 1, "delta": 0.995, "seed": 20240}
CLASS_COLUMNS, SELECTION_COLUMNS = (1, 1, 1), (0, 1, 1)
PRIORS = {
    "scale_a": 2.5 / 3**0.5,
    "scale_b": 1.5,
    "scale_alpha_mean": 1.5 / 2**0.5,
    "scale_beta_mean": 1.5,
    "scale_sigma_alpha": 1.0 / 2**0.5,
    "scale_sigma_beta": 1.0,
}
TRUTH: dict[str, Any] = {
    "a": [1.6, -1.2, 0.8],
    "b": 0.2,
    "alpha_mean": [0.9, 1.8],
    "beta_mean": 0.2,
    "sigma_alpha": 0.5,
    "sigma_beta": 0.5,
    "z_alpha": [[0.5, -0.4], [-1.0, 0.8], [0.6, -1.2]],
    "z_beta": [0.4, -1.0, 0.7],
}
POOLED = ("alpha_mean", "beta_mean", "sigma_alpha", "sigma_beta")
QUANTITIES = ("a", "b", "alpha", "beta", *POOLED, "pi")


@dataclass(frozen=True)
class PanelReference:
    """Columns ``X`` (n, p), labels ``L`` (n, J) with -1 where not shown, and the classes ``y``."""

    X: NDArray[np.float64]
    L: NDArray[np.int64]
    y: NDArray[np.int64]

    def sha256(self) -> dict[str, str]:
        """Digests of the little-endian bytes of X (float64, row-major) and L (int64)."""
        arrays = {"X": self.X.astype("<f8"), "L": self.L.astype("<i8")}
        return {key: hashlib.sha256(v.tobytes(order="C")).hexdigest() for key, v in arrays.items()}


def reference_panel() -> PanelReference:
    """X standard normal, standardised and rounded; three annotators, a quarter not shown."""
    rng = np.random.default_rng(SEED)
    X = rng.standard_normal((N, 3))
    X = np.round((X - X.mean(axis=0)) / X.std(axis=0), 8)
    alpha = np.array(TRUTH["alpha_mean"]) + TRUTH["sigma_alpha"] * np.array(TRUTH["z_alpha"])
    beta = TRUTH["beta_mean"] + TRUTH["sigma_beta"] * np.array(TRUTH["z_beta"])
    y = rng.random(N) < 1 / (1 + np.exp(-(X @ np.array(TRUTH["a"]) + TRUTH["b"])))
    s = 1 / (1 + np.exp(-(X[:, 1:] @ alpha.T + beta)))
    L = (y[:, None] & (rng.random(s.shape) < s)).astype(np.int64)
    L[rng.random(s.shape) < 0.25] = -1
    return PanelReference(X, L, y.astype(np.int64))


def audited_classes(data: PanelReference) -> NDArray[np.int64]:
    """Classes when the first 40 rows that nobody labelled are audited, -1 elsewhere."""
    y = np.full(N, -1)
    rows = np.flatnonzero((data.L != 1).all(axis=1))[:AUDITED]
    y[rows] = data.y[rows]
    return y


def density_points() -> list[dict[str, Any]]:
    """Six points: the truth, three near it, and slopes 10 and 25 times as steep."""
    rng = np.random.default_rng(SEED + 1000)
    points = []
    for spread, steep in [(0, 1), (0.3, 1), (1, 1), (1, 1), (0.5, 10), (1, 25)]:
        point: dict[str, Any] = {}
        for name, value in TRUTH.items():
            array = np.array(value, dtype=float)
            if name.startswith("sigma"):
                moved = array * np.exp(0.5 * spread * rng.standard_normal())
            else:
                factor = steep if name in ("a", "alpha_mean") else 1
                moved = factor * array + spread * rng.standard_normal(array.shape)
            point[name] = np.round(moved, 6).tolist()
        points.append(point)
    return points


def log_posterior(point: dict[str, Any], *, audited: bool) -> float:
    """The library's normalised log density at a point, without the Jacobian of the scales."""
    from bayes_lepu.data.reading import read_data
    from bayes_lepu.model import get_model
    from bayes_lepu.model.density import LogDensity
    from bayes_lepu.options import choose_priors
    from bayes_lepu.priors.prior import Prior

    data = reference_panel()
    y = audited_classes(data) if audited else np.full(N, -1)
    panel = read_data(
        data.X,
        np.where(data.L < 0, np.nan, data.L),
        y=np.where(y < 0, np.nan, y),
        selection_features=[1, 2],
        standardize=False,
    )
    spec = get_model("spm")
    given = {
        name.removeprefix("scale_"): Prior(
            "halfnormal" if "sigma" in name else "normal", scale=scale
        )
        for name, scale in PRIORS.items()
    }
    density = LogDensity(spec, panel, choose_priors(spec, panel, priors=given))
    z, constant = np.empty(density.dim), 0.0
    for block in density.layout.blocks:
        values = np.ravel(point[block.name])
        z[density.layout.slices[block.name]] = (
            np.log(values) if block.transform == "log" else values
        )
        constant += block.prior.log_normalizer(size=block.size)
    jacobian = sum(float(np.log(point[name])) for name in ("sigma_alpha", "sigma_beta"))
    return density.logp(z) + constant - jacobian


def stan_data(data: PanelReference, y: NDArray[np.int64]) -> dict[str, Any]:
    """The data block of the Stan program."""
    block: dict[str, Any] = {"N": N, "p": 3, "J": 3, "X": data.X.tolist(), "L": data.L.tolist()}
    columns = {"class_columns": CLASS_COLUMNS, "selection_columns": SELECTION_COLUMNS}
    return block | {"y": y.tolist(), **{k: list(v) for k, v in columns.items()}} | PRIORS


def stan_point(point: dict[str, Any]) -> dict[str, Any]:
    """The point in the names of the Stan program."""
    names = {"a": "a_free", "alpha_mean": "alpha_mean_free"}
    return {names.get(key, key): value for key, value in point.items()}


def draw(file: Path) -> None:
    """Stan's side, run by Stan's own Python: posterior draws and log densities into ``file``."""
    import httpstan
    import stan

    chains, draws = int(SETTINGS["chains"]), int(SETTINGS["draws"])
    data = reference_panel()
    program = (ROOT / "models" / "panel" / "panel.stan").read_text(encoding="utf-8")
    unknown = np.full(N, -1)
    out: dict[str, Any] = {"versions": [stan.__version__, httpstan.__version__]}
    for label, y in {"audited": audited_classes(data), "plain": unknown}.items():
        model = stan.build(program, data=stan_data(data, y), random_seed=SETTINGS["seed"])
        out[f"log_density_{label}"] = [
            model.log_prob(model.unconstrain_pars(stan_point(point)), adjust_transform=False)
            for point in density_points()
        ]
    np.savez(file, **out)
    fit = model.sample(
        num_chains=chains,
        num_warmup=SETTINGS["warmup"],
        num_samples=draws,
        num_thin=SETTINGS["thin"],
        delta=SETTINGS["delta"],
        init=[stan_point(TRUTH)] * chains,
    )
    for key in QUANTITIES:
        # pystan keeps one row per parameter and interleaves the chains, fastest index last
        out[f"draws_{key}"] = fit[key].reshape(-1, draws, chains).swapaxes(1, 2)
    out["divergent"] = fit["divergent__"].reshape(-1, draws, chains)
    np.savez(file, **out)


def free_rows(draws: dict[str, NDArray[np.float64]]) -> dict[str, NDArray[np.float64]]:
    """Named scalars (chain, draw); masked slopes left out. Matrices arrive row by row."""
    columns = {"a": CLASS_COLUMNS, "alpha_mean": SELECTION_COLUMNS}
    named: dict[str, NDArray[np.float64]] = {}
    for key, rows in draws.items():
        if key == "alpha":
            for i, row in enumerate(rows):
                j, k = i // 3, i % 3
                if SELECTION_COLUMNS[k]:
                    named[f"alpha[{j}, {k}]"] = row
        elif key in columns:
            named |= {f"{key}[{k}]": row for k, row in enumerate(rows) if columns[key][k]}
        elif len(rows) > 1:
            named |= {f"{key}[{k}]": row for k, row in enumerate(rows)}
        else:
            named[key] = rows[0]
    return named


def make_reference(stan_python: str) -> dict[str, Any]:
    """The content of ``reference.json``."""
    import arviz as az

    from tools.reference import describe

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "draws.npz"
        subprocess.run([stan_python, __file__, "--draw", str(file)], check=True)
        with np.load(file) as stored:
            out = dict(stored)
    draws = {k.removeprefix("draws_"): v for k, v in out.items() if k.startswith("draws_")}
    table, diagnostics = describe(free_rows(draws))
    data = reference_panel()
    pystan, httpstan = (str(v) for v in out["versions"])
    return {
        "name": "panel",
        "data": {
            "recipe": "tools/reference_panel.py: reference_panel()",
            "n": N,
            "seed": SEED,
            "truth": TRUTH,
            "class_columns": CLASS_COLUMNS,
            "selection_columns": SELECTION_COLUMNS,
            "labels": int((data.L == 1).sum()),
            "sha256": data.sha256(),
        },
        "priors": PRIORS,
        "engine": {"pystan": pystan, "httpstan": httpstan, "summaries": f"arviz {az.__version__}"},
        "settings": SETTINGS,
        "diagnostics": diagnostics | {"divergences": int(out["divergent"].sum())},
        "posterior": table,
        "log_density": {
            "about": "log prior + log likelihood, all constants kept, no Jacobian, full precision; "
            "'audited' uses audited_classes(reference_panel())",
            "points": density_points(),
            "plain": out["log_density_plain"].tolist(),
            "audited": out["log_density_audited"].tolist(),
        },
    }


def main() -> None:
    """Write the reference."""
    parser = argparse.ArgumentParser(description="Make the reference posterior of models/panel.")
    parser.add_argument("--stan-python", default=".stan-venv/bin/python")
    parser.add_argument("--draw", metavar="FILE", help="internal: Stan's half of the work")
    options = parser.parse_args()
    if options.draw:
        draw(Path(options.draw))
        return
    reference = make_reference(options.stan_python)
    FILE.write_text(json.dumps(reference, indent=1) + "\n", encoding="utf-8")
    print(f"{FILE.relative_to(ROOT)}: {reference['diagnostics']}", file=sys.stderr)


if __name__ == "__main__":
    main()
