"""The methods of the benchmark: ours, called as a user calls them, and the peers."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

import bayes_lepu as lepu
from benchmarks.real.peers import PEERS, Answer, Array, Marks

Method = Callable[[Array, Marks, np.random.Generator], Answer]


def fit_ours(
    X: Array, l: Marks, rng: np.random.Generator, *, model: str, method: str, **options: Any
) -> Answer:
    """One of our models with everything else at its default; of an average its members too."""
    seed = int(rng.integers(2**31))
    fit = lepu.fit(X, l, model=model, method=method, random_seed=seed, progressbar=False, **options)
    if not isinstance(fit, lepu.AveragedFit):
        return _answer(fit)
    members = {f"{name}, {method}": _answer(member) for name, member in fit.members.items()}
    return replace(_answer(fit), members=members)


def _answer(fit: lepu.Fit) -> Answer:
    prior = fit.class_prior(ci_prob=0.95).loc["pi"]
    interval = None if fit.is_point else (float(prior["lower"]), float(prior["upper"]))
    # The verdict takes longer than a quick fit; it is asked for where the posterior is exact.
    facts: dict[str, float] = {}
    if fit.method == "nuts":
        facts["level"] = float(fit.identifiability.level)
        ends = fit.identifiability.pi_range or interval
        facts |= dict(zip(("range lower", "range upper"), ends, strict=True))
    return Answer(lambda rows: fit.predict_proba(rows)[:, 1], float(prior["mean"]), interval, facts)


OURS: dict[str, Method] = {
    f"{model}, {method}": partial(fit_ours, model=model, method=method)
    for method in ("map", "laplace", "nuts")
    for model in ("scar", "spm", "psychm", "auto")
    if (model, method) != ("auto", "map")
}
for name in ("scar", "spm", "psychm", "auto"):  # 1000 draws are enough for means
    OURS[f"{name}, laplace"] = partial(fit_ours, model=name, method="laplace", draws=250)
CONTESTANTS: dict[str, Method] = {**PEERS, **OURS}
# Without being asked for others; an average brings its members along.
DEFAULT = (*PEERS, "scar, map", "spm, map", "psychm, map", "auto, laplace")
