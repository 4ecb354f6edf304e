r"""Parameters of the panel model, and the functions they stand for.

.. math::
    t(x) = \sigma(a\cdot x + b), \quad s_j(x) = \sigma(\alpha_j\cdot x + \beta_j), \quad
    m_i = P(y_i=1 \mid x_i, L_i), \quad c_j = E[s_j t] / E[t] .

Conventions
-----------
Any leading dimensions are draws: ``a`` is ``(..., p)``, ``b`` is ``(...)``, ``alpha`` is
``(..., J, p)`` and ``beta`` is ``(..., J)``. All live on the internal scale of the data; masked
columns hold zeros.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_expit

from bayes_lepu.links import Array, RowKind, sigmoid
from bayes_lepu.panel.data import NOT_SHOWN
from bayes_lepu.result.summaries import mean_over_rows


@dataclass(frozen=True, eq=False)
class PanelParameters:
    """One point, or a stack of draws.

    Attributes
    ----------
    a, b, alpha, beta : arrays
    pooling : mapping of str to array
        ``alpha_mean (..., p)``, ``beta_mean``, ``sigma_alpha``, ``sigma_beta``, as far as the
        model has them: what the annotators share.
    """

    a: Array
    b: Array
    alpha: Array
    beta: Array
    pooling: Mapping[str, Array] = field(default_factory=dict)

    def tau(self, X: Array) -> Array:
        """Linear predictor of t, ``(..., n)``."""
        return self.a @ X.T + self.b[..., None]

    def t(self, X: Array) -> Array:
        """Class probability P(y=1 | x), ``(..., n)``."""
        return sigmoid(self.tau(X))

    def omega(self, X: Array, j: int) -> Array:
        """Linear predictor of annotator j, ``(..., n)``."""
        return self.alpha[..., j, :] @ X.T + self.beta[..., j, None]

    def s(self, X: Array, j: int) -> Array:
        """Propensity of annotator j, P(l_j=1 | y=1, x), ``(..., n)``."""
        return sigmoid(self.omega(X, j))

    def positive(self, X: Array, labels: NDArray[np.int8], kind: NDArray[np.int8]) -> Array:
        """P(y=1 | x, labels) of every row, ``(..., n)``: 1 where labelled, audited classes kept.

        With nobody's label it is t Π(1-s_j) / [(1-t) + t Π(1-s_j)] over those who saw the row.
        """
        tau = self.tau(X)
        log_missed = log_expit(tau)
        for j in range(self.beta.shape[-1]):
            log_missed += log_expit(-self.omega(X, j)) * (labels[:, j] != NOT_SHOWN)
        open_rows = np.exp(log_missed - np.logaddexp(log_missed, log_expit(-tau)))
        known = np.isin(kind, (RowKind.LABELLED, RowKind.MISSED)).astype(float)
        return np.where(kind == RowKind.UNLABELLED, open_rows, known)

    def simulate(
        self, X: Array, shown: NDArray[np.bool_], rng: np.random.Generator
    ) -> tuple[NDArray[np.int8], NDArray[np.int8]]:
        """Classes ``(..., n)`` and labels ``(..., n, J)`` drawn from the model."""
        y = rng.random((*self.b.shape, len(X))) < self.t(X)
        labels = np.full((*y.shape, self.beta.shape[-1]), NOT_SHOWN, dtype=np.int8)
        for j in range(self.beta.shape[-1]):
            marked = y & (rng.random(y.shape) < self.s(X, j))
            labels[..., j] = np.where(shown[:, j], marked, NOT_SHOWN)
        return y.astype(np.int8), labels

    def take(self, index: Any) -> Self:
        """Some of the draws."""
        pooling = {name: values[index] for name, values in self.pooling.items()}
        return type(self)(
            self.a[index], self.b[index], self.alpha[index], self.beta[index], pooling
        )

    def take_flat(self) -> Self:
        """All draws along one axis."""
        k, lead = self.b.size, self.b.ndim

        def flat(values: Array) -> Array:
            return values.reshape(k, *values.shape[lead:])

        pooling = {name: flat(values) for name, values in self.pooling.items()}
        return type(self)(flat(self.a), flat(self.b), flat(self.alpha), flat(self.beta), pooling)


def class_prior_and_frequencies(draws: PanelParameters, X: Array) -> tuple[Array, Array]:
    """π = E t, ``(draw,)``, and c_j = E[s_j t] / E[t], ``(draw, J)``, over the rows of X."""
    pi = mean_over_rows(draws, PanelParameters.t, X)
    columns = []
    for j in range(draws.beta.shape[-1]):

        def marked(some: PanelParameters, rows: Array, j: int = j) -> Array:
            return some.t(rows) * some.s(rows, j)

        columns.append(mean_over_rows(draws, marked, X))
    return pi, np.column_stack(columns) / np.maximum(pi, np.finfo(float).tiny)[:, None]
