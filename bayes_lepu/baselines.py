r"""Baselines of the paper: Naive and Elkan-Noto, both on one logistic regression.

.. math::
    \min_{a, b} \; \sum_i \log\bigl(1 + e^{-z_i (a \cdot x_i + b)}\bigr) + C\,\|a\|_2^2,
    \qquad z_i = \pm 1,

the paper's penalised loss: a sum over rows, no factor 1/2, a free intercept (scikit-learn's
``C`` is :math:`1/(2C)`). Naive takes :math:`z` from the labels l.
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
from scipy.special import log_expit

from bayes_lepu.data.annotators import read_labels
from bayes_lepu.data.encoding import Encoding
from bayes_lepu.data.frames import row_count
from bayes_lepu.data.problems import gather
from bayes_lepu.data.sparse_tables import as_sparse
from bayes_lepu.data.user_table import Table, encode_rows, match_sparse, read_table
from bayes_lepu.errors import ConvergenceError, DataError
from bayes_lepu.links import sigmoid
from bayes_lepu.rows.factoring import solve
from bayes_lepu.rows.sparse_matrices import is_sparse

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
    feature_names : tuple of str
        Columns of numbers that the slopes belong to.
    named : bool
        Whether the names are the user's, and so are matched in predictions.
    encoding : Encoding
        How the user's columns become columns of numbers.
    """

    coef: Array
    intercept: float
    C: float
    feature_names: tuple[str, ...]
    named: bool
    encoding: Encoding

    def decision_function(self, X: Features) -> Array:
        """Linear predictor a·x + b, shape (n,)."""
        sparse = as_sparse(X)
        if sparse is not None and not self.encoding.columns:
            values, _ = match_sparse(sparse, self.feature_names, named=self.named)
        else:
            values, _ = encode_rows(X, self.encoding, self.feature_names, named=self.named)
        return values @ self.coef + self.intercept

    def predict_proba(self, X: Features) -> Array:
        """Probabilities of class 0 and 1, shape (n, 2)."""
        tau = self.decision_function(X)
        return np.column_stack([sigmoid(-tau), sigmoid(tau)])


@dataclass(frozen=True, eq=False)
class ElkanNotoFit(LogisticFit):
    r"""Elkan and Noto's two-step classifier :math:`P(y=1 \mid x) = \min(1, \sigma(a x + b)/c)`.

    Slopes and intercept are those of g(x) = P(l=1 | x), which is no classifier of y. The linear
    predictor of g is the ranking, free of the ties that clipping makes.

    Attributes
    ----------
    c : float
        Estimate of P(l=1 | y=1), assumed to be the same for every x.
    """

    c: float

    def predict_proba(self, X: Features) -> Array:
        """Probabilities of y=0 and y=1, shape (n, 2), clipped into [0, 1]."""
        positive = np.minimum(sigmoid(self.decision_function(X)) / self.c, 1.0)
        return np.column_stack([1.0 - positive, positive])


def naive(X: Features, l: ArrayLike, *, C: float = 1e-3) -> LogisticFit:
    """Logistic regression of the label: unlabelled rows pass for negative.

    Of the true classes, which experiments know, it is the paper's "Real" classifier.

    Parameters
    ----------
    X : array or DataFrame, shape (n, p)
        Features.
    l : array of 0/1 or bool, shape (n,)
        Visible label.
    C : float
        Penalty C·|a|², above 0.
    """
    table, label = _read(X, l)
    coef, intercept = _newton(table.numbers, label, _penalty(C))
    return LogisticFit(coef, intercept, float(C), table.names, table.named, table.encoding)


def elkan_noto(
    X: Features,
    l: ArrayLike,
    *,
    C: float = 1e-3,
    holdout: float | None = 0.2,
    held_out: NDArray[np.bool_] | None = None,
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
    held_out : array of bool, shape (n,), optional
        The rows kept back, instead of a share of them.
    random_seed : int or Generator or None
        Seed of the split.
    """
    table, label = _read(X, l)
    train, kept = split_rows(label, holdout, held_out, random_seed)
    coef, intercept = _newton(table.numbers[train], label[train], _penalty(C))
    c = float(sigmoid(table.numbers[kept & label] @ coef + intercept).mean())
    return ElkanNotoFit(coef, intercept, float(C), table.names, table.named, table.encoding, c)


def split_rows(
    label: NDArray[np.bool_],
    holdout: float | None,
    held_out: ArrayLike | None,
    random_seed: int | np.random.Generator | None,
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Rows that g learns from, and rows kept back for c; see `elkan_noto`."""
    if held_out is not None:
        kept = _read_held_out(held_out, label)
    elif holdout is None:
        every = np.ones(len(label), dtype=bool)
        return every, every
    else:
        kept = _kept_back(label, holdout, np.random.default_rng(random_seed))
    return ~kept, kept


def _read(X: Features, l: ArrayLike) -> tuple[Table, NDArray[np.bool_]]:
    """Numbers and labels as every fit reads them; the columns stay in their units."""
    table, labels = gather(lambda: read_table(X), lambda: read_labels(l, row_count(X), X))
    if len(labels.annotators) > 1:
        raise DataError("A baseline takes the labels of one annotator.")
    if abs(table.numbers).max() > _LARGEST:
        raise DataError(
            f"X has values above {_LARGEST:g}, whose squares cannot be added up. Change the units."
        )
    return table, labels.matrix[:, 0] == 1


def _newton(X: Array, target: NDArray[np.bool_], C: float) -> tuple[Array, float]:
    """Minimise the convex loss by damped Newton steps; of a sparse table by scikit-learn."""
    if is_sparse(X):
        from sklearn.linear_model import LogisticRegression

        found = LogisticRegression(C=1 / (2 * C), tol=1e-8, max_iter=10_000).fit(X, target)
        return found.coef_[0], float(found.intercept_[0])
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
        step = solve(hessian, gradient)
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


def _read_held_out(held_out: ArrayLike, label: NDArray[np.bool_]) -> NDArray[np.bool_]:
    kept = np.asarray(held_out)
    if kept.shape != label.shape or kept.dtype != bool:
        raise DataError(
            f"held_out has shape {kept.shape} and type {kept.dtype}; expected one bool per row, "
            f"shape {label.shape}."
        )
    if not (kept & label).any():
        raise DataError("held_out holds no labelled row, so that c cannot be estimated from it.")
    if len(np.unique(label[~kept])) < 2:
        raise DataError("held_out leaves no labelled or no unlabelled row to learn from.")
    return kept


def _penalty(C: float) -> float:
    if isinstance(C, bool) or not (np.isfinite(C) and C > 0):
        raise DataError(
            f"C is {C!r}; expected a finite number above 0. Without a penalty the optimum need "
            "not exist; take a small one, such as 1e-6."
        )
    return float(C)
