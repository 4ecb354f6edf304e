r"""Mechanisms that mark some of the positives: s(x) = P(l=1 | y=1, x).

========== =============================================================== =======================
name       s(x)                                                            from
========== =============================================================== =======================
scar-.2    .2                                                              labelled at random
scar-.5    .5
scar-.8    .8
g·t        .7 t(x): whoever is surely positive is found more often         probabilistic gap
product    geometric mean of five columns, each scaled to [.2, .6]         SAR-PU
step       .8 above the median of one column, .2 below                     a threshold
outside    σ(2 z - .5), z a standard normal column that t does not know    a second reason
S1         .1                                                              AISTATS 2025
S2         .1 t(x)
S3         σ(-.5 t(x) - 1.5)
S4         .5 σ(-.5 β·x), β the slopes of t
========== =============================================================== =======================

t(x) is the logistic regression of the true classes on all rows. Columns are drawn afresh in every
repetition. At least five positives are marked, and one is left.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from bayes_lepu.baselines import naive
from benchmarks.real.public_tables import Table

Array = NDArray[np.float64]
ORACLE_C = 0.5  # the default of scikit-learn, which the literature uses
FEWEST = 5
TEST_SHARE = 0.25


@dataclass(frozen=True, eq=False)
class Trial:
    """Training rows with marks, and test rows: 75 and 25 %, split within the classes.

    Attributes
    ----------
    X, X_test : arrays (rows, p)
        Columns standardised on the training rows, with those the mechanism added.
    l : array of 0/1
        Marks of the training rows: all that a method may see.
    y, y_test : arrays of 0/1
        True classes.
    """

    X: Array
    l: NDArray[np.int64]
    y: NDArray[np.int64]
    X_test: Array
    y_test: NDArray[np.int64]


Propensity = Callable[[Array, Array, Array, np.random.Generator], Array]


def _product(X: Array, t: Array, slopes: Array, rng: np.random.Generator) -> Array:
    chosen = X[:, rng.permutation(X.shape[1])[:5]]
    low, high = chosen.min(axis=0), chosen.max(axis=0)
    scaled = 0.2 + 0.4 * (chosen - low) / (high - low)
    return np.exp(np.log(scaled).mean(axis=1))


def _step(X: Array, t: Array, slopes: Array, rng: np.random.Generator) -> Array:
    # A column with few values may have its median at an end; another one is drawn then.
    for j in rng.permutation(X.shape[1]):
        above = X[:, j] > np.median(X[:, j])
        if 0.2 < above.mean() < 0.8:
            break
    return np.where(above, 0.8, 0.2)


MECHANISMS: dict[str, Propensity] = {
    "scar-.2": lambda X, t, slopes, rng: np.full(len(X), 0.2),
    "scar-.5": lambda X, t, slopes, rng: np.full(len(X), 0.5),
    "scar-.8": lambda X, t, slopes, rng: np.full(len(X), 0.8),
    "g·t": lambda X, t, slopes, rng: 0.7 * t,
    "product": _product,
    "step": _step,
    "outside": lambda X, t, slopes, rng: expit(2 * X[:, -1] - 0.5),
    "S1": lambda X, t, slopes, rng: np.full(len(X), 0.1),
    "S2": lambda X, t, slopes, rng: 0.1 * t,
    "S3": lambda X, t, slopes, rng: expit(-0.5 * t - 1.5),
    "S4": lambda X, t, slopes, rng: 0.5 * expit(-0.5 * (X @ slopes)),
}


def draw_trial(table: Table, mechanism: str, rng: np.random.Generator) -> Trial:
    """Split the table and mark some of the positives among the training rows."""
    X = _standardised(table.X, table.X)
    oracle = naive(X, table.y, C=ORACLE_C)
    slopes, t = oracle.coef, oracle.predict_proba(X)[:, 1]
    if mechanism == "outside":
        X = np.column_stack([X, rng.standard_normal(len(X))])
        slopes = np.append(slopes, 0.0)
    s = MECHANISMS[mechanism](X, t, slopes, rng)
    test = np.zeros(len(X), dtype=bool)
    for kind in (0, 1):
        rows = rng.permutation(np.flatnonzero(table.y == kind))
        test[rows[: round(TEST_SHARE * rows.size)]] = True
    positive = np.flatnonzero((table.y == 1) & ~test)
    ratio = rng.random(positive.size) / s[positive]  # below 1 with probability s
    count = int(np.clip(np.sum(ratio < 1), FEWEST, positive.size - 1))
    l = np.zeros_like(table.y)
    l[positive[np.argsort(ratio)[:count]]] = 1
    train = X[~test]
    return Trial(
        X=_standardised(train, train),
        l=l[~test],
        y=table.y[~test],
        X_test=_standardised(X[test], train),
        y_test=table.y[test],
    )


def _standardised(X: Array, like: Array) -> Array:
    """The columns that vary in ``like``, on the scale where they have mean 0 and sd 1 there."""
    keep = like.std(axis=0) > 1e-9
    return (X[:, keep] - like[:, keep].mean(axis=0)) / like[:, keep].std(axis=0)
