"""Coverage of the default priors: how often 89 % intervals hold the truth of the demo's generator.

    python -m tools.prior_study --seeds 40 --method laplace --out runs.jsonl    # half an hour

Every seed draws new photographs and marks from the truth of `load_demo` (PsychM, 2,500 rows) and
fits them with all defaults. Runs are appended, so that a study can be stopped and continued.
"""

import argparse
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import bayes_lepu as lepu
from bayes_lepu.datasets import draw_photographs

FIRST = 1000  # seeds of the study begin here; none of them shaped a default
BORDERS = (0.055, 0.945)  # of 89 % intervals


def run(seed: int, method: str, model: str) -> dict[str, Any]:
    """For every quantity: truth, lower, upper, mean."""
    demo = draw_photographs(seed)
    assert demo.y is not None
    assert demo.l is not None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = lepu.fit(
            demo.X, demo.l, model=model, method=method, random_seed=seed, progressbar=False
        )
    draws, rng = fit.draws, np.random.default_rng(seed)
    open_ = fit.data.X[np.asarray(fit.data.l) == 0]
    m = draws.missed(open_)
    found = {
        "pi": (demo.truth["pi"], fit.pi_draws),
        "c": (demo.truth["c"], fit.c_draws),
        "missed": (int((demo.y - demo.l).sum()), (rng.random(m.shape) < m).sum(axis=1)),
    }
    posterior = fit.idata["posterior"]
    for name in ("gamma", "lambda"):
        if name in posterior:
            truth = demo.truth["lam" if name == "lambda" else name]
            found[name] = (truth, posterior[name].to_numpy().ravel())
    for name in ("a", "alpha"):
        if name in posterior:
            for j, column in enumerate(demo.X):
                values = posterior[name].sel(feature=column).to_numpy().ravel()
                found[f"{name}[{column}]"] = (demo.truth[name][j], values)
    answer = {
        name: [float(truth), *np.quantile(values, BORDERS).tolist(), float(values.mean())]
        for name, (truth, values) in found.items()
    }
    return {"seed": seed, "method": method, "model": model, "chosen": fit.spec.name, **answer}


def table(runs: list[dict[str, Any]]) -> pd.DataFrame:
    """Coverage, mean width and bias of every quantity."""
    lines = []
    for name in dict.fromkeys(k for r in runs for k, v in r.items() if isinstance(v, list)):
        truth, low, high, mean = np.array([r[name] for r in runs if name in r]).T
        held = (low <= truth) & (truth <= high)
        error = (mean - truth).std(ddof=1) / len(held) ** 0.5
        lines.append(
            (name, held.sum(), len(held), (high - low).mean(), (mean - truth).mean(), error)
        )
    return pd.DataFrame(lines, columns=["of", "covered", "n", "width", "bias", "error"]).round(3)


def main() -> None:
    """Run what the file does not hold, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--method", default="laplace")
    parser.add_argument("--model", default="psychm")
    parser.add_argument("--out", type=Path, default=Path("prior-study.jsonl"))
    asked = parser.parse_args()
    lines = asked.out.read_text("utf-8").splitlines() if asked.out.exists() else []
    runs = [json.loads(line) for line in lines]
    key = {"method": asked.method, "model": asked.model}
    done = {r["seed"] for r in runs if r.items() >= key.items()}
    for seed in range(FIRST, FIRST + asked.seeds):
        if seed not in done:
            runs.append(run(seed, asked.method, asked.model))
            with asked.out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(runs[-1]) + "\n")
    print(table([r for r in runs if r.items() >= key.items()]).to_string(index=False))


if __name__ == "__main__":
    main()
