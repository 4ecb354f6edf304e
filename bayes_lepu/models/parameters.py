r"""Parameters of any model in one common form, and the functions they stand for.

.. math::
    t(x) = \sigma(a \cdot x + b), \quad
    s(x) = \gamma + \rho\,\sigma(\alpha \cdot x + \beta), \quad
    h(x) = s(x)\,t(x), \quad \pi = E\,t(x), \quad c = E\,h(x) / \pi .

Conventions
-----------
Any leading dimensions are draws: ``a`` and ``alpha`` are ``(..., p)``, ``b`` and ``beta`` are
``(...)``, ``log_w = (log γ, log λ, log ρ)`` is ``(..., 3)``. All of them live on the internal scale
of the data; masked columns hold zeros.
"""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from bayes_lepu import links
from bayes_lepu.errors import ModelError
from bayes_lepu.links import Array


@dataclass(frozen=True, eq=False)
class Parameters:
    """One point, or a stack of draws, in parameter space."""

    a: Array
    b: Array
    alpha: Array
    beta: Array
    log_w: Array

    @classmethod
    def of(
        cls,
        *,
        a: Any,
        b: Any,
        alpha: Any = None,
        beta: Any = 0.0,
        gamma: Any = 0.0,
        lam: Any = 0.0,
    ) -> Self:
        """A point written in the paper's letters (no ``alpha``: a constant propensity)."""
        a = np.atleast_1d(np.asarray(a, dtype=float))
        weights = np.array([gamma, lam, 1.0 - gamma - lam])
        if not weights.min() >= -1e-12:  # so that NaN is refused as well
            raise ModelError(
                f"gamma = {gamma} and lam = {lam}; both must be >= 0 and sum to at most 1."
            )
        with np.errstate(divide="ignore"):
            log_w = np.log(np.maximum(weights, 0.0))
        alpha = np.zeros_like(a) if alpha is None else np.atleast_1d(np.asarray(alpha, dtype=float))
        if a.shape != alpha.shape:
            raise ModelError(
                f"a has shape {a.shape} and alpha {alpha.shape}; both need one slope per column."
            )
        return cls(a, np.asarray(b, dtype=float), alpha, np.asarray(beta, dtype=float), log_w)

    @property
    def gamma(self) -> Array:
        """Guess rate γ."""
        return np.exp(self.log_w[..., 0])

    @property
    def lam(self) -> Array:
        """Lapse rate λ."""
        return np.exp(self.log_w[..., 1])

    @property
    def rho(self) -> Array:
        """Contrast 1 - γ - λ."""
        return np.exp(self.log_w[..., 2])

    def tau(self, X: Array) -> Array:
        """Linear predictor of t, ``(..., n)``."""
        return self.a @ X.T + self.b[..., None]

    def omega(self, X: Array) -> Array:
        """Linear predictor of s, ``(..., n)``."""
        return self.alpha @ X.T + self.beta[..., None]

    def t(self, X: Array) -> Array:
        """Class probability P(y=1 | x)."""
        return links.sigmoid(self.tau(X))

    def s(self, X: Array) -> Array:
        """Propensity P(l=1 | y=1, x)."""
        return links.psychometric(self.omega(X), self._w())

    def h(self, X: Array) -> Array:
        """Label probability P(l=1 | x)."""
        return self.s(X) * self.t(X)

    def missed(self, X: Array) -> Array:
        """P(y=1 | x, l=0)."""
        return links.missed_probability(self.tau(X), self.omega(X), self._w())

    def loglik(self, X: Array, kind: NDArray[np.int8]) -> Array:
        """Log-likelihood of every row, ``(..., n)``."""
        return links.row_loglik(kind, self.tau(X), self.omega(X), self._w())

    def simulate(
        self, X: Array, rng: np.random.Generator
    ) -> tuple[NDArray[np.int8], NDArray[np.int8]]:
        """Classes and labels (y, l) drawn from the model."""
        t, s = self.t(X), self.s(X)
        y = rng.random(t.shape) < t
        l = y & (rng.random(t.shape) < s)
        return y.astype(np.int8), l.astype(np.int8)

    def swap(self) -> Self:
        """The point S θ with (a, b) and (α, β) exchanged."""
        return replace(self, a=self.alpha, b=self.beta, alpha=self.a, beta=self.b)

    def take(self, index: Any) -> Self:
        """Some of the draws."""
        return type(self)(
            self.a[index], self.b[index], self.alpha[index], self.beta[index], self.log_w[index]
        )

    def take_flat(self) -> Self:
        """All draws along one axis."""
        k = self.b.size
        return type(self)(
            self.a.reshape(k, -1),
            self.b.reshape(k),
            self.alpha.reshape(k, -1),
            self.beta.reshape(k),
            self.log_w.reshape(k, 3),
        )

    def choose(self, mask: NDArray[np.bool_], other: "Parameters") -> Self:
        """Draw by draw: this one where ``mask`` holds, ``other`` elsewhere."""
        m = mask[..., None]
        return type(self)(
            np.where(m, self.a, other.a),
            np.where(mask, self.b, other.b),
            np.where(m, self.alpha, other.alpha),
            np.where(mask, self.beta, other.beta),
            np.where(m, self.log_w, other.log_w),
        )

    def _w(self) -> Array:
        """``log_w`` with its last axis first and one axis more, to broadcast over rows."""
        return np.moveaxis(self.log_w, -1, 0)[..., None]


def stack(points: list[Parameters]) -> Parameters:
    """Several points as draws along a new first axis."""
    return Parameters(
        np.stack([p.a for p in points]),
        np.stack([p.b for p in points]),
        np.stack([p.alpha for p in points]),
        np.stack([p.beta for p in points]),
        np.stack([p.log_w for p in points]),
    )
