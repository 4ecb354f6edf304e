"""Accuracy on the true classes, beside what other tools give on the same data.

SPM data: 20 data sets a regime, 2000 training rows, 5 standard normal columns, random directions,
4000 test rows. "steeper class": |a| = 3, |α| = 1.5. "exchangeable": both lengths uniform on
(1.5, 3). "Real" is a logistic regression on the true classes. "right factor" is the share of data
sets in which the fitted class is closer to the true class than to the true annotator; "level 3
or 4" that in which the verdict says that the labels do not tell the factors apart. Peers that
are not installed are left out; `make bench` installs them without what they depend on, as they ask
for an older NumPy.
"""

import warnings
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

import bayes_lepu as lepu
from bayes_lepu.model.parameters import Parameters

DATA_SETS, ROWS, TEST_ROWS, COLUMNS, AUDITED = 20, 2000, 4000, 5, 50
Array = NDArray[Any]
ONE_FACTOR = ("Real", "naive", "pulearn")
SPM: dict[str, Any] = {"model": "spm", "method": "map", "random_seed": 0}


def run() -> dict[str, float | str]:
    """Accuracies and shares, per regime and method."""
    figures: dict[str, float | str] = {}
    for regime in ("steeper class", "exchangeable"):
        outcomes: dict[str, list[float]] = {}
        for seed in range(DATA_SETS):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # peers warn of deprecations, ours of the rule
                for name, value in _one_data_set(regime, np.random.default_rng(seed)):
                    outcomes.setdefault(f"{regime}: {name}", []).append(value)
        figures |= {name: float(np.mean(values)) for name, values in outcomes.items()}
    return figures


def _one_data_set(regime: str, rng: np.random.Generator) -> Iterator[tuple[str, float]]:
    truth = _truth(regime, rng)
    X, X_test = rng.normal(size=(ROWS, COLUMNS)), rng.normal(size=(TEST_ROWS, COLUMNS))
    y, l = truth.simulate(X, rng)
    y_test, _ = truth.simulate(X_test, rng)
    for name, model in _fitted(X, y, l, rng):
        t = model.predict_proba(X_test)[:, 1]
        yield f"{name}, accuracy", float(np.mean((t > 0.5) == y_test))
        if name not in ONE_FACTOR:
            yield f"{name}, right factor", float(_closer_to_class(t, truth, X_test))
        if isinstance(model, lepu.Fit):
            yield f"{name}, level 3 or 4", float(model.identifiability.level >= 3)


def _truth(regime: str, rng: np.random.Generator) -> Parameters:
    norms = (3.0, 1.5) if regime == "steeper class" else rng.uniform(1.5, 3.0, size=2)
    directions = rng.normal(size=(2, COLUMNS))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    b, beta = 0.5 * rng.normal(size=2)
    return Parameters.of(a=norms[0] * directions[0], b=b, alpha=norms[1] * directions[1], beta=beta)


def _fitted(X: Array, y: Array, l: Array, rng: np.random.Generator) -> Iterator[tuple[str, Any]]:
    yield "Real", LogisticRegression().fit(X, y)
    yield "naive", LogisticRegression().fit(X, l)
    if find_spec("pulearn"):
        from pulearn import ElkanotoPuClassifier

        yield "pulearn", ElkanotoPuClassifier(LogisticRegression(), random_state=0).fit(X, l)
    if find_spec("pu_toolbox"):
        from pu_toolbox import LBEClassifier

        yield "pu-toolbox", LBEClassifier().fit(X, l)
    yield "SPM", lepu.fit(X, l, **SPM)
    audited = np.full(ROWS, np.nan)
    checked = rng.choice(np.flatnonzero(l == 0), size=AUDITED, replace=False)
    audited[checked] = y[checked]
    yield f"SPM with {AUDITED} audited rows", lepu.fit(X, l, y=audited, **SPM)


def _closer_to_class(t: Array, truth: Parameters, X: Array) -> bool:
    r = np.corrcoef([t, truth.t(X), truth.s(X)])[0]
    return bool(r[1] > r[2])
