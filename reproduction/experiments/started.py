r"""PsychM climbed from one given start, as the paper did for its human annotators.

.. math:: \gamma = .7,\; \lambda = .02

"only to increase the convergence speed", it says; but the likelihood has several modes, and a start
with s(x) between .7 and .98 leads to those in which the other factor, t, does the classifying.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from bayes_lepu.data.reading import read_data
from bayes_lepu.engines.map import fit_map
from bayes_lepu.engines.paths import PenaltyGrid
from bayes_lepu.links import Array
from bayes_lepu.model import get_model
from bayes_lepu.model.parameters import Parameters

Fold = tuple[NDArray[np.intp], NDArray[np.intp]]
SMALL_SLOPES = 0.1


@dataclass(frozen=True)
class StartedPsychM:
    """A fitted PsychM on the scale of the user's columns, and the penalties it was given.

    Attributes
    ----------
    parameters : Parameters
    C_alpha, C_a : float
        Chosen by cross-validation of the Brier score on labels.
    """

    parameters: Parameters
    C_alpha: float
    C_a: float

    @classmethod
    def fit(
        cls,
        X: Array,
        l: NDArray[np.int64],
        *,
        folds: Sequence[Fold],
        grid: PenaltyGrid,
        gamma: float = 0.7,
        lam: float = 0.02,
        seed: int = 0,
    ) -> Self:
        """Choose the penalties over ``folds``, every fit from the same start, and fit all rows."""
        start = _start(X.shape[1], gamma, lam, seed)
        brier = np.zeros(grid.shape)
        for train, test in folds:
            for i, j in np.ndindex(*grid.shape):
                point = _climb(X[train], l[train], grid, i, j, start)
                brier[i, j] += np.mean((l[test] - point.h(X[test])) ** 2)
        # Equal scores go to the strongest penalties, the end of the grid.
        best = np.argwhere(brier <= brier.min() + 1e-12)[-1]
        i, j = int(best[0]), int(best[1])
        found = _climb(X, l, grid, i, j, start)
        return cls(found, float(grid.C_alpha[i]), float(grid.C_a[j]))

    def decision_function(self, X: Array) -> Array:
        """Log-odds of y=1."""
        return X @ self.parameters.a + self.parameters.b

    def predict_proba(self, X: Array) -> Array:
        """P(y | x), shape (n, 2)."""
        t = self.parameters.t(X)
        return np.column_stack([1.0 - t, t])


def _start(p: int, gamma: float, lam: float, seed: int) -> Parameters:
    """Small random slopes, since zeros are a saddle, and no intercepts."""
    rng = np.random.default_rng(seed)
    a, alpha = rng.normal(0.0, SMALL_SLOPES / np.sqrt(p), size=(2, p))
    return Parameters.of(a=a, b=0.0, alpha=alpha, beta=0.0, gamma=gamma, lam=lam)


def _climb(
    X: Array, l: NDArray[np.int64], grid: PenaltyGrid, i: int, j: int, start: Parameters
) -> Parameters:
    """The mode above the start, on the scale of X."""
    spec, data = get_model("psychm"), read_data(X, l)
    point = fit_map(
        spec,
        data,
        grid.priors(spec, i, j),
        rule="none",
        initial=start,
        rng=np.random.default_rng(0),
    ).point
    a, b = data.original_scale(point.a, point.b)
    alpha, beta = data.original_scale(point.alpha, point.beta)
    return Parameters(a, np.asarray(b), alpha, np.asarray(beta), point.log_w)
