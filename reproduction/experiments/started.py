r"""PsychM climbed from one given start, as the paper did for its human annotators.

.. math:: \gamma = .7,\; \lambda = .02

"only to increase the convergence speed", it says; but the likelihood has several modes, and a start
with s(x) between .7 and .98 leads to those in which the other factor, t, does the classifying.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Self

import numpy as np
from numpy.typing import NDArray

from bayes_lepu.data.reading import read_data
from bayes_lepu.engines.map import fit_map
from bayes_lepu.links import Array
from bayes_lepu.model import get_model
from bayes_lepu.model.parameters import Parameters
from bayes_lepu.priors.prior import penalty_priors

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
        C_alphas: Sequence[float],
        Cs: Sequence[float],
        gamma: float = 0.7,
        lam: float = 0.02,
        seed: int = 0,
    ) -> Self:
        """Choose the penalties over ``folds``, every fit from the same start, and fit all rows."""
        start = _start(X.shape[1], gamma, lam, seed)
        pairs = sorted(product(C_alphas, Cs))
        brier = np.zeros(len(pairs))
        for train, test in folds:
            for k, pair in enumerate(pairs):
                point = _climb(X[train], l[train], *pair, start)
                brier[k] += np.mean((l[test] - point.h(X[test])) ** 2)
        # Equal scores go to the strongest penalties, the end of the list.
        best = pairs[int(np.flatnonzero(brier <= brier.min() + 1e-12)[-1])]
        return cls(_climb(X, l, *best, start), *best)

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
    X: Array, l: NDArray[np.int64], C_alpha: float, C_a: float, start: Parameters
) -> Parameters:
    """The mode above the start, on the scale of X."""
    spec, data = get_model("psychm"), read_data(X, l)
    penalties = penalty_priors({"a": "l2", "alpha": "l1"}, {"a": C_a, "alpha": C_alpha})
    point = fit_map(
        spec,
        data,
        spec.complete_priors(penalties, None),
        rule="none",
        initial=start,
        rng=np.random.default_rng(0),
    ).point
    a, b = data.original_scale(point.a, point.b)
    alpha, beta = data.original_scale(point.alpha, point.beta)
    return Parameters(a, np.asarray(b), alpha, np.asarray(beta), point.log_w)
