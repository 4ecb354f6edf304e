r"""Mechanisms that mark some of the positives: s(x) = P(l=1 | y=1, x).

============= =============================================== ====================================
name          s(x)                                            stands for
============= =============================================== ====================================
random        .4                                              labelled at random
column        σ(1.5 x₁ - .3)                                  a reason among the columns
probability   .8 p(x)                                         whoever is surely positive is found
psychometric  .1 + .8 σ(2 x₁ - 1.5 x₂)                        two reasons, guesses and lapses
outside       σ(2 z - .5), z a normal column beside the table a reason that the class does not know
few           σ(-.5 p(x) - 1.5)                               one in six, rather the unclear ones
============= =============================================== ====================================

p(x) is P(y=1 | x) by `Table.truth`. Columns are standardised and drawn afresh in every repetition,
among those that are not almost constant. At least five positives are marked, and one is left.

``letters-.1`` to ``letters-.6`` are the published protocol of PULSNAR (arXiv 2303.08269): see
`draw_letters`.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from benchmarks.real.public_tables import Array, Table

Marks = NDArray[np.int64]
FEWEST = 5  # marks, so that five folds have one each
TEST_SHARE, MOST_TESTED = 0.25, 2000  # the rest of a large table is left for training
VARIES = 0.9  # largest share of rows with the same value in a column that a mechanism uses


@dataclass(frozen=True, eq=False)
class Trial:
    """Training rows with marks, and test rows.

    Attributes
    ----------
    X, X_test : arrays (rows, p)
        The linear encoding, standardised on the training rows.
    trees, trees_test : arrays (rows, q)
        The same rows in the encoding for trees.
    l : array of 0/1
        Marks of the training rows: all that a method may see.
    y, y_test : arrays of 0/1
        True classes.
    """

    X: Array
    trees: Array
    l: Marks
    y: Marks
    X_test: Array
    trees_test: Array
    y_test: Marks


def _columns(X: Array, count: int, rng: np.random.Generator) -> list[Array]:
    """Columns that vary, drawn at random; fewer than asked for are repeated."""
    chosen = []
    for j in rng.permutation(X.shape[1]):
        _, counts = np.unique(X[:, j], return_counts=True)
        if counts.max() <= VARIES * len(X):
            chosen.append(X[:, j])
    return (chosen * count)[:count]


def _psychometric(X: Array, p: Array, rng: np.random.Generator) -> Array:
    first, second = _columns(X, 2, rng)
    return 0.1 + 0.8 * expit(2 * first - 1.5 * second)


MECHANISMS: dict[str, Callable[[Array, Array, np.random.Generator], Array]] = {
    "random": lambda X, p, rng: np.full(len(X), 0.4),
    "column": lambda X, p, rng: expit(1.5 * _columns(X, 1, rng)[0] - 0.3),
    "probability": lambda X, p, rng: 0.8 * p,
    "psychometric": _psychometric,
    "outside": lambda X, p, rng: expit(2 * X[:, -1] - 0.5),
    "few": lambda X, p, rng: expit(-0.5 * p - 1.5),
}
LETTERS = {f"letters-.{k}": k / 10 for k in range(1, 7)}


def draw_trial(table: Table, mechanism: str, size: int, rng: np.random.Generator) -> Trial:
    """Split the table and mark some of the positives among at most ``size`` training rows.

    The test rows and the mechanism's columns do not depend on the size.
    """
    if mechanism in LETTERS:
        return draw_letters(table, LETTERS[mechanism], rng)
    linear, trees = _standardised(table.linear, table.linear), table.trees
    if mechanism == "outside":
        noise = rng.standard_normal(len(linear))
        linear, trees = np.column_stack([linear, noise]), np.column_stack([trees, noise])
    s = np.clip(MECHANISMS[mechanism](linear, table.truth[0], rng), 1e-6, 1.0)
    order, luck = rng.permutation(len(linear)), rng.random(len(linear))
    tested = min(round(TEST_SHARE * len(order)), MOST_TESTED)
    test, train = order[:tested], order[tested : tested + size]
    positive = train[table.y[train] == 1]
    ratio = luck[positive] / s[positive]  # below 1 with probability s
    count = int(np.clip(np.sum(ratio < 1), FEWEST, positive.size - 1))
    l = np.zeros_like(table.y)
    l[positive[np.argsort(ratio)[:count]]] = 1
    return _trial(linear, trees, table.y, l, train, test)


def draw_letters(table: Table, alpha: float, rng: np.random.Generator) -> Trial:
    """PULSNAR's letters: the unlabelled are all D and positives with a share of alpha.

    Those positives are A, B, C, E and F in ratios 1 : 2 : 4 : 8 : 16, the rarest letter first; all
    other positives are labelled. The unlabelled rows are the test rows too.
    """
    kinds = table.subtypes
    assert kinds is not None
    names, counts = np.unique(kinds[table.y == 1], return_counts=True)
    hidden = round(alpha / (1 - alpha) * np.sum(table.y == 0))
    l = table.y.copy()
    for name, share in zip(names[np.argsort(counts, kind="stable")], (1, 2, 4, 8, 16), strict=True):
        rows = rng.permutation(np.flatnonzero(kinds == name))
        l[rows[: round(hidden * share / 31)]] = 0
    every = rng.permutation(len(l))
    return _trial(table.linear, table.trees, table.y, l, every, every[l[every] == 0])


def _trial(linear: Array, trees: Array, y: Marks, l: Marks, train: Marks, test: Marks) -> Trial:
    return Trial(
        X=_standardised(linear[train], linear[train]),
        trees=trees[train],
        l=l[train],
        y=y[train],
        X_test=_standardised(linear[test], linear[train]),
        trees_test=trees[test],
        y_test=y[test],
    )


def _standardised(X: Array, like: Array) -> Array:
    """The columns that vary in ``like``, on the scale where they have mean 0 and sd 1 there."""
    keep = like.std(axis=0) > 1e-9
    return (X[:, keep] - like[:, keep].mean(axis=0)) / like[:, keep].std(axis=0)
