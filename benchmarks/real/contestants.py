"""The methods of the benchmark: ours, called as a user calls them, and the peers.

``scar``, ``spm`` and ``psychm`` are point estimates with a straight class; ``+boosting`` and
``+kernel+trees`` name the learned columns of the class. ``default`` is ``lepu.fit(X, l)`` and
``auto`` the same by Laplace.
"""

import inspect
from functools import partial
from typing import Any

import numpy as np

import bayes_lepu as lepu
from benchmarks.real.labelling import Trial
from benchmarks.real.peers import LINEAR, PEERS, Answer, Method


def fit_ours(trial: Trial, rng: np.random.Generator, **options: Any) -> Answer:
    """One call of `lepu.fit` with everything else at its default."""
    seed = int(rng.integers(2**31))
    fit = lepu.fit(trial.X, trial.l, random_seed=seed, progressbar=False, **options)
    prior = fit.class_prior(ci_prob=0.95).loc["pi"]
    interval = None if fit.is_point else (float(prior["lower"]), float(prior["upper"]))
    return Answer(fit.predict_proba(trial.X_test)[:, 1], float(prior["mean"]), interval)


LEARNERS: dict[str, Any] = {"": None}
if "class_learner" in inspect.signature(lepu.fit).parameters:
    LEARNERS |= {"+boosting": "boosting", "+kernel+trees": ["kernel", "trees"]}
OURS: dict[str, Method] = {
    model + name: partial(
        fit_ours, model=model, method="map", **({"class_learner": learner} if learner else {})
    )
    for name, learner in LEARNERS.items()
    for model in ("scar", "spm", "psychm")
}
OURS |= {
    "auto": partial(fit_ours, model="auto", method="laplace"),
    "default": fit_ours,
}
CONTESTANTS: dict[str, Method] = {**PEERS, **OURS}
SMALL_ONLY = frozenset(LINEAR)  # run with few rows alone
