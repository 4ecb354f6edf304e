r"""Parameters of every model in one common form, and t, s and h as functions of them.

.. math::
    t(x) = G(a \cdot x + b), \quad
    s_j(x) = \gamma_j + \rho_j\,F(\alpha_j \cdot x + \beta_j), \quad
    h_j(x) = s_j(x)\,t(x) + \varepsilon_j\,(1 - t(x)), \quad \pi = E\,t(x) .

Conventions
-----------
Any leading dimensions are draws. With one annotator ``a`` and ``alpha`` are ``(..., p)``, ``b``,
``beta`` and ``epsilon`` are ``(...)``, ``log_w = (log γ, log λ, log ρ)`` is ``(..., 3)``.
Several annotators add an axis: ``alpha (..., J, p)``, ``beta (..., J)``, ``log_w (..., J, 3)``,
``epsilon (..., J)``; their functions, such as s, are then ``(..., J, n)``. All are on the internal
scale of the data; masked columns have slopes of zero.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from bayes_lepu.data.weights import evenly_spaced
from bayes_lepu.errors import ModelError
from bayes_lepu.factors import RATES, Factor, Link
from bayes_lepu.factors.curves import LOGISTIC_FACTOR as LOGISTIC
from bayes_lepu.links import Array, sigmoid
from bayes_lepu.rows import NOT_SHOWN, Point, make_point
from bayes_lepu.rows.sparse_matrices import is_sparse, predict

ARRAYS = ("a", "b", "alpha", "beta", "log_w", "epsilon")
OWN_AXIS = {"alpha": -2, "beta": -1, "log_w": -2, "epsilon": -1}  # of the annotators


@dataclass(frozen=True, eq=False)
class Parameters:
    """One point, or a stack of draws, in parameter space."""

    a: Array
    b: Array
    alpha: Array
    beta: Array
    log_w: Array
    epsilon: Array | None = None  # rates of false marks; without them a mark is proof
    # Means and scales over annotators (``alpha_mean``, ``sigma_alpha``, ...), and unknown scales of
    # priors.
    pooling: Mapping[str, Array] = field(default_factory=dict)
    link: Link = LOGISTIC.link  # F of the propensity
    of_class: Factor = LOGISTIC  # G, the curve of the class

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
        """A point from parameters in the paper's notation; without ``alpha`` s is constant."""
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
    def several(self) -> bool:
        """Whether there is an axis of annotators."""
        return self.beta.ndim > self.b.ndim

    gamma = property(lambda self: np.exp(self.log_w[..., 0]), doc="Guess rate γ.")
    lam = property(lambda self: np.exp(self.log_w[..., 1]), doc="Lapse rate λ.")
    rho = property(lambda self: np.exp(self.log_w[..., 2]), doc="Contrast 1 - γ - λ.")

    def rates(self, names: Iterable[str]) -> dict[str, Array]:
        """Some of the rates γ, λ and ρ, by name."""
        return {name: np.exp(self.log_w[..., RATES.index(name)]) for name in names}

    @property
    def point(self) -> Point:
        """A single point as an argument of the row formula."""
        return make_point(
            a=self.a,
            b=self.b,
            alpha=self.alpha,
            beta=self.beta,
            rates=self.log_w,
            class_rates=self.of_class.log_rates(),
            epsilon=0.0 if self.epsilon is None else self.epsilon,
        )

    def tau(self, X: Array) -> Array:
        """Linear predictor of t, ``(..., n)``."""
        return _raised(predict(self.a, X), self.b)

    def omega(self, X: Array) -> Array:
        """Linear predictor of s, ``(..., n)``; of several annotators ``(..., J, n)``."""
        return _raised(predict(self.alpha, X), self.beta)

    def t(self, X: Array) -> Array:
        """Class probability P(y=1 | x)."""
        return self.of_class.value(self.tau(X))

    def s(self, X: Array) -> Array:
        """Propensity P(l=1 | y=1, x) of every annotator."""
        return self.s_at(self.omega(X))

    def s_at(self, omega: Array) -> Array:
        """Propensity at values of the linear predictor."""
        return self.link.mixed_value(omega, self.log_w[..., None, :])

    def h(self, X: Array) -> Array:
        """Label probability P(l=1 | x) of every annotator."""
        t = self.t(X)
        t = t[..., None, :] if self.several else t
        if self.epsilon is None:
            return self.s(X) * t
        return self.s(X) * t + self.epsilon[..., None] * (1 - t)

    def anybody(self, X: Array, shown: NDArray[np.bool_]) -> Array:
        """Probability ``(..., n)`` that at least one annotator who is shown the row marks it."""
        if not self.several:
            return self.h(X)
        see = shown.T
        silent = np.exp((self._log_s(X)[1] * see).sum(axis=-2))
        t, quiet = self.t(X), np.ones(X.shape[0])
        if self.epsilon is not None:
            quiet = np.exp(np.log1p(-self.epsilon) @ see)
        return t * (1 - silent) + (1 - t) * (1 - quiet)

    def missed(self, X: Array) -> Array:
        """P(y=1 | x, nobody labelled): t Π(1 - s_j) / [t Π(1 - s_j) + (1 - t) Π(1 - ε_j)].

        Its log-odds are those of t plus Σ log(1 - s_j) - Σ log(1 - ε_j). With one annotator no
        logarithm is needed, unless an exponential would overflow.
        """
        odds, omega, complement = self._log_odds(X), self.omega(X), self.link.complement
        if not self.several and complement is not None and _moderate(odds) and _moderate(omega):
            not_s = complement(omega)
            not_s *= self.rho[..., None]
            not_s += self.lam[..., None]
            against = np.exp(np.negative(odds, out=odds), out=odds)
            if self.epsilon is not None:
                against *= 1 - self.epsilon[..., None]
            against += not_s
            return np.divide(not_s, against, out=against)
        log_not_s = self.link.mixed(omega, self.log_w[..., None, :])[1]
        log_odds = odds + (log_not_s.sum(axis=-2) if self.several else log_not_s)
        if self.epsilon is not None:
            with np.errstate(divide="ignore"):  # ε = 1, where an unmarked row is positive
                silent = np.log1p(-self.epsilon)
            log_odds -= (silent.sum(axis=-1) if self.several else silent)[..., None]
        return sigmoid(log_odds)

    def positive_if_marked(self, X: Array) -> Array:
        """P(y=1 | x, l=1) with one annotator: 1 unless negatives may be marked."""
        if self.epsilon is None:
            return np.ones((*self.b.shape, X.shape[0]))
        with np.errstate(divide="ignore"):  # ε = 0, where a mark is proof
            log_false = np.log(self.epsilon)[..., None]
        return sigmoid(self._log_odds(X) + self._log_s(X)[0] - log_false)

    def simulate(
        self, X: Array, rng: np.random.Generator, *, shown: NDArray[np.bool_] | None = None
    ) -> tuple[NDArray[np.int8], NDArray[np.int8]]:
        """Classes ``(..., n)`` and labels drawn from the model.

        Labels are ``(..., n)``, with several annotators ``(..., n, J)`` and `NOT_SHOWN` where
        ``shown`` (n, J) is false.
        """
        t = self.t(X)
        y = rng.random(t.shape) < t
        s = self.s(X)
        positive = y[..., None, :] if self.several else y
        chance = s if self.epsilon is None else np.where(positive, s, self.epsilon[..., None])
        drawn = rng.random(s.shape) < chance
        labels = (drawn & positive if self.epsilon is None else drawn).astype(np.int8)
        if self.several:
            labels = np.swapaxes(labels, -1, -2)
        if shown is not None:
            labels = np.where(shown, labels, np.int8(NOT_SHOWN))
        return y.astype(np.int8), labels

    def swap(self) -> Self:
        """The point S θ with (a, b) and (α, β) swapped; with several annotators by their means."""
        if not self.several:
            return replace(self, a=self.alpha, b=self.beta, alpha=self.a, beta=self.b)
        alpha, beta = self.alpha.mean(axis=-2), self.beta.mean(axis=-1)
        return replace(
            self,
            a=alpha,
            b=beta,
            alpha=self.alpha + (self.a - alpha)[..., None, :],
            beta=self.beta + (self.b - beta)[..., None],
            pooling={},
        )

    def _with_own(self, change: Callable[[Array, int], Array]) -> Self:
        """A function applied to every array of annotators' values and the axis of annotators."""
        own = {name: getattr(self, name) for name in OWN_AXIS}
        changed = {k: None if v is None else change(v, OWN_AXIS[k]) for k, v in own.items()}
        return replace(self, **changed)  # type: ignore[arg-type]

    def for_annotators(self, count: int) -> Self:
        """The same point with ``count`` identical annotators."""
        if count == 1 or self.several:
            return self
        return self._with_own(lambda v, axis: np.repeat(np.expand_dims(v, axis), count, axis=axis))

    def of_annotator(self, j: int) -> Self:
        """One of several annotators alone."""
        return self._with_own(lambda v, axis: np.take(v, j, axis=axis))

    def average(self) -> Self:
        """One annotator whose coefficients are the mean over annotators."""
        if not self.several:
            return self
        with np.errstate(divide="ignore"):
            log_w = np.log(np.exp(self.log_w).mean(axis=-2))
        return replace(self._with_own(lambda v, axis: v.mean(axis=axis)), log_w=log_w, pooling={})

    def take(self, index: Any) -> Self:
        """Some of the draws."""
        return self._each(lambda values: values[index])

    def thin(self, most: int) -> Self:
        """At most this many draws along one axis, evenly spaced."""
        return self.take(evenly_spaced(self.b.size, most))

    def take_flat(self) -> Self:
        """All draws along one axis."""
        k, lead = self.b.size, self.b.ndim
        return self._each(lambda values: values.reshape(k, *values.shape[lead:]))

    def choose(self, mask: NDArray[np.bool_], other: "Parameters") -> Self:
        """For every draw this point where ``mask`` is true, otherwise ``other``."""

        def pick(one: Array, two: Array) -> Array:
            return np.where(mask.reshape(*mask.shape, *[1] * (one.ndim - mask.ndim)), one, two)

        return self._each(pick, other)

    def _each(self, change: Callable[..., Array], *others: "Parameters") -> Self:
        """A function applied to every array, together with the arrays of other points."""
        pooling = {k: change(v, *(p.pooling[k] for p in others)) for k, v in self.pooling.items()}
        held: dict[str, Any] = {name: getattr(self, name) for name in ARRAYS}
        parts: dict[str, Any] = {
            name: change(values, *(getattr(p, name) for p in others))
            for name, values in held.items()
            if values is not None
        }
        return replace(self, pooling=pooling, **parts)

    def _log_odds(self, X: Array) -> Array:
        """Log-odds of t."""
        return self.of_class.log_odds(self.tau(X))

    def _log_s(self, X: Array) -> tuple[Array, Array]:
        """Logarithms of s and of 1 - s."""
        return self.link.mixed(self.omega(X), self.log_w[..., None, :])[:2]


def _raised(predictor: Array, intercept: Array) -> Array:
    """Add the intercepts to the predictors, in place because the arrays can be large."""
    predictor += intercept[..., None]
    return predictor


def _moderate(z: Array) -> bool:
    """Whether e^z and e^-z are finite, and their products with rates do not underflow."""
    return z.size == 0 or bool(max(z.max(), -z.min()) < 600)  # numbers end at e^±745


def stack(points: list[Parameters]) -> Parameters:
    """Several points as draws along a new first axis."""
    return points[0]._each(lambda *values: np.stack(values), *points[1:])


def mean_of(draws: Parameters) -> Parameters:
    """The point at the mean of draws along the first axis, coordinate by coordinate."""
    return draws._each(lambda values: values.mean(axis=0))


def sigma_norm(slope: Array, X: Array) -> Array:
    """Standard deviation of the linear predictor over the rows, ``(...)`` for ``(..., p)``."""
    if slope.ndim == 1 or is_sparse(X):
        return np.asarray(np.std(predict(slope, X), axis=-1))
    center, covariance = X.mean(axis=0), np.zeros((X.shape[1], X.shape[1]))
    for start in range(0, len(X), 4096):  # no second copy of X
        block = X[start : start + 4096] - center
        covariance += block.T @ block
    return np.sqrt(np.einsum("...i,ij,...j->...", slope, covariance / len(X), slope))
