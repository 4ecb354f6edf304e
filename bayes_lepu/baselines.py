r"""Baselines of the paper: Naive, Elkan-Noto and Real, all on one logistic regression.

.. math::
    \min_{a, b} \; \sum_i \log\bigl(1 + e^{-z_i (a \cdot x_i + b)}\bigr) + C\,\|a\|_2^2,
    \qquad z_i = \pm 1,

the paper's penalised loss: a sum over rows, no factor 1/2, a free intercept (scikit-learn's
``C`` is :math:`1/(2C)`). Naive takes :math:`z` from the labels l, Real from the true classes y.
Elkan and Noto (2008, doi 10.1145/1401890.1401920) assume a constant propensity c and divide:
:math:`P(y=1 \mid x) = g(x)/c` with :math:`g(x) = P(l=1 \mid x)`.

Conventions
-----------
X is (n, p), used as given: standardise columns of different units first. Predictions are (n, 2)
with the probability of y=1 in the second column.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.special import log_expit

from bayes_lepu.errors import ConvergenceError, DataError
from bayes_lepu.links import sigmoid
from bayes_lepu.tables.labels import read_vector

Array = NDArray[np.float64]
type Features = ArrayLike | pd.DataFrame

_MAX_STEPS = 200
_LARGEST = 1e140
_TOLERANCE = 1e-9
_SATURATED = 1e-15  # f (1 - f) of the least certain row below which no curvature is left


@dataclass(frozen=True, eq=False)
class LogisticFit:
    r"""Penalised logistic regression :math:`P = \sigma(a \cdot x + b)`.

    Attributes
    ----------
    coef : ndarray, shape (p,)
        Slopes a.
    intercept : float
        Intercept b.
    C : float
        Penalty of the squared norm of the slopes.
    feature_names : tuple of str or None
        Column names, where the data came as a DataFrame.
    """

    coef: Array
    intercept: float
    C: float
    feature_names: tuple[str, ...] | None

    def decision_function(self, X: Features) -> Array:
        """Linear predictor a·x + b, shape (n,)."""
        return _like_training(X, self.coef.size, self.feature_names) @ self.coef + self.intercept

    def predict_proba(self, X: Features) -> Array:
        """Probabilities of class 0 and 1, shape (n, 2)."""
        tau = self.decision_function(X)
        return np.column_stack([sigmoid(-tau), sigmoid(tau)])


@dataclass(frozen=True, eq=False)
class ElkanNotoFit:
    r"""Elkan and Noto's two-step classifier :math:`P(y=1 \mid x) = \min(1, \sigma(a x + b)/c)`.

    Attributes
    ----------
    c : float
        Estimate of P(l=1 | y=1), assumed to be the same for every x.
    coef : ndarray, shape (p,)
        Slopes of g(x) = P(l=1 | x), which are those of no classifier of y.
    intercept : float
        Intercept of g.
    C : float
        Penalty of g.
    holdout : float or None
        Share of the rows kept back for c; None where c comes from the training rows.
    feature_names : tuple of str or None
        Column names, where the data came as a DataFrame.
    """

    c: float
    coef: Array
    intercept: float
    C: float
    holdout: float | None
    feature_names: tuple[str, ...] | None

    def decision_function(self, X: Features) -> Array:
        """Linear predictor of g, shape (n,): the ranking, free of the ties that clipping makes."""
        return _like_training(X, self.coef.size, self.feature_names) @ self.coef + self.intercept

    def predict_proba(self, X: Features) -> Array:
        """Probabilities of y=0 and y=1, shape (n, 2), clipped into [0, 1]."""
        positive = np.minimum(sigmoid(self.decision_function(X)) / self.c, 1.0)
        return np.column_stack([1.0 - positive, positive])


def naive(X: Features, l: ArrayLike, *, C: float = 1e-3) -> LogisticFit:
    """Logistic regression of the label: unlabelled rows pass for negative.

    Parameters
    ----------
    X : array or DataFrame, shape (n, p)
        Features.
    l : array of 0/1 or bool, shape (n,)
        Visible label.
    C : float
        Penalty C·|a|², above 0.
    """
    return _logistic(X, l, "l", C)


def real_classifier(X: Features, y: ArrayLike, *, C: float = 1e-3) -> LogisticFit:
    """Logistic regression of the true class: the ceiling, known in experiments only.

    Parameters
    ----------
    X : array or DataFrame, shape (n, p)
        Features.
    y : array of 0/1 or bool, shape (n,)
        True class.
    C : float
        Penalty C·|a|², above 0.
    """
    return _logistic(X, y, "y", C)


def elkan_noto(
    X: Features,
    l: ArrayLike,
    *,
    C: float = 1e-3,
    holdout: float | None = 0.2,
    random_seed: int | np.random.Generator | None = None,
) -> ElkanNotoFit:
    r"""Elkan and Noto's two-step estimator under a constant propensity (SCAR).

    .. math::
        \hat c = \frac{1}{|P|} \sum_{x \in P} g(x), \qquad
        P(y=1 \mid x) = \min\{1, g(x) / \hat c\},

    their estimator :math:`e_1`: g is fitted on the training rows and averaged over the labelled
    rows P kept back.

    Parameters
    ----------
    X : array or DataFrame, shape (n, p)
        Features.
    l : array of 0/1 or bool, shape (n,)
        Visible label.
    C : float
        Penalty C·|a|² of g, above 0.
    holdout : float in (0, 1) or None
        Share kept back, of labelled and of unlabelled rows alike. None uses every row for both
        steps; the ranking, hence the AUC, is then exactly that of `naive`.
    random_seed : int or Generator or None
        Seed of the split.
    """
    values, names = _matrix(X)
    label = _binary(l, "l", X, len(values))
    if holdout is None:
        train = np.ones(len(values), dtype=bool)
        kept = train
    else:
        kept = _kept_back(label, holdout, np.random.default_rng(random_seed))
        train = ~kept
    coef, intercept = _newton(values[train], label[train], _penalty(C))
    c = float(sigmoid(values[kept & label] @ coef + intercept).mean())
    return ElkanNotoFit(c, coef, intercept, float(C), holdout, names)


def _logistic(X: Features, target: ArrayLike, name: str, C: float) -> LogisticFit:
    values, names = _matrix(X)
    coef, intercept = _newton(values, _binary(target, name, X, len(values)), _penalty(C))
    return LogisticFit(coef, intercept, float(C), names)


def _newton(X: Array, target: NDArray[np.bool_], C: float) -> tuple[Array, float]:
    """Minimise the convex loss by damped Newton steps."""
    if X.shape[1] > X.shape[0]:
        # With an L2 penalty the optimum lies in the row space of X, so n coordinates suffice.
        U, sizes, Vt = np.linalg.svd(X, full_matrices=False)
        theta, intercept = _newton(U * sizes, target, C)
        return Vt.T @ theta, intercept
    design = np.column_stack([X, np.ones(len(X))])
    sign = np.where(target, 1.0, -1.0)
    penalty = np.full(design.shape[1], C)
    penalty[-1] = 0.0

    def loss(theta: Array) -> float:
        return float(-log_expit(sign * (design @ theta)).sum() + penalty @ theta**2)

    theta = np.zeros(design.shape[1])
    value = loss(theta)
    for _ in range(_MAX_STEPS):
        fitted = sigmoid(design @ theta)
        gradient = design.T @ (fitted - target) + 2.0 * penalty * theta
        curvature = fitted * (1.0 - fitted)
        if curvature.max() < _SATURATED:
            break
        hessian = (design.T * curvature) @ design + 2.0 * np.diag(penalty)
        step = _newton_step(hessian, gradient)
        if np.abs(design @ step).max() < _TOLERANCE:
            theta = theta - step
            return theta[:-1], float(theta[-1])
        gain = float(gradient @ step)  # twice the loss still to be gained
        size = 1.0
        # Near the optimum rounding hides the gain, and the full step is the right one.
        while gain > 1e-12 * value and loss(theta - size * step) > value - 1e-4 * size * gain:
            size /= 2.0
        theta = theta - size * step
        value = loss(theta)
    raise ConvergenceError(
        f"Logistic regression did not converge with C={C:g}. The classes can probably be "
        "separated by a plane, so that slopes grow without bound; take a larger C."
    )


def _newton_step(hessian: Array, gradient: Array) -> Array:
    """The step; the shortest of them where columns repeat each other."""
    try:
        return cho_solve(cho_factor(hessian), gradient)
    except np.linalg.LinAlgError:
        return np.linalg.lstsq(hessian, gradient)[0]


def _kept_back(
    label: NDArray[np.bool_], holdout: float, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Rows kept back for c: the same share of labelled and of unlabelled rows, one at least."""
    if not (isinstance(holdout, float | int) and 0 < holdout < 1):
        raise DataError(f"holdout is {holdout!r}; expected a share between 0 and 1, or None.")
    kept = np.zeros(len(label), dtype=bool)
    for kind, word in ((True, "labelled"), (False, "unlabelled")):
        rows = np.flatnonzero(label == kind)
        if len(rows) < 2:
            raise DataError(
                f"There is {len(rows)} {word} row; holding rows back needs at least 2 (one to "
                "learn from, one to keep). Pass holdout=None."
            )
        number = min(max(round(holdout * len(rows)), 1), len(rows) - 1)
        kept[rng.permutation(rows)[:number]] = True
    return kept


def _penalty(C: float) -> float:
    if isinstance(C, bool) or not (np.isfinite(C) and C > 0):
        raise DataError(
            f"C is {C!r}; expected a finite number above 0. Without a penalty the optimum need "
            "not exist; take a small one, such as 1e-6."
        )
    return float(C)


def _matrix(X: Features) -> tuple[Array, tuple[str, ...] | None]:
    """Finite (n, p) values, and the column names of a DataFrame."""
    names = tuple(str(c) for c in X.columns) if isinstance(X, pd.DataFrame) else None
    try:
        values = np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"X cannot be read as numbers ({error}). Expected an array or a DataFrame of numeric "
            "columns; encode text and categories first, for instance with pandas.get_dummies."
        ) from error
    if values.ndim != 2:
        raise DataError(f"X has shape {values.shape}; expected (rows, columns).")
    if values.shape[1] == 0:
        raise DataError("X has no columns; expected at least one.")
    bad = ~np.isfinite(values).all(axis=1)
    if bad.any():
        raise DataError(
            f"X has missing or infinite values in {int(bad.sum())} rows (first: row "
            f"{int(np.flatnonzero(bad)[0])}). Drop or impute them first."
        )
    if values.size and np.abs(values).max() > _LARGEST:
        raise DataError(
            f"X has values above {_LARGEST:g}, whose squares cannot be added up. Change the units."
        )
    return values, names


def _binary(target: ArrayLike, name: str, X: Features, n: int) -> NDArray[np.bool_]:
    """0/1 or bool entries, one per row, of both kinds."""
    values = read_vector(name, target, n, X)
    kinds = pd.unique(pd.Series(values))
    if not all(kind in (0, 1) for kind in kinds):
        raise DataError(
            f"{name} holds {sorted(map(str, kinds))[:5]}; expected 0 and 1, or False and True."
        )
    if len(kinds) < 2:
        raise DataError(f"{name} is {kinds[0]} in every row; expected both 0 and 1.")
    return values.astype(bool)


def _like_training(X: Features, p: int, names: tuple[str, ...] | None) -> Array:
    """Values with the columns the fit was trained on, a DataFrame's matched by name."""
    if isinstance(X, pd.DataFrame) and names is not None:
        X = X.rename(columns=str)
        missing = [c for c in names if c not in X.columns]
        if missing:
            raise DataError(
                f"X has columns {list(X.columns)}; missing are {missing}. Pass the columns the "
                "fit was trained on."
            )
        X = X[list(names)]
    values, _ = _matrix(X)
    if values.shape[1] != p:
        raise DataError(f"X has {values.shape[1]} columns; the fit was trained on {p}.")
    return values
