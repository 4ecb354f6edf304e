r"""The arguments of the likelihood: rows, links, and a point of parameter space.

Everything is a tuple of arrays, so that NumPy and compiled code take the same arguments. The
gradient and the information are arranged in one flat order,

    a (p), b, and then for every annotator j: α_j (p), β_j, u_j, v_j, e_j,

with u and v the coordinates of the rates γ and λ (see `bayes_lepu.factors.factor`) and
e the logit of the rate of false marks.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse

from bayes_lepu.factors import Link
from bayes_lepu.factors.curves import LOGISTIC
from bayes_lepu.factors.dispatch import code_of
from bayes_lepu.links import Array

NOT_SHOWN = -1  # in labels: the annotator did not see the row
UNKNOWN = -1  # in known: nobody checked the class
OWN = 3  # u, v and e stand after the slopes and the intercept of every annotator

CERTAIN_LINK = np.array([-np.inf, -np.inf, 0.0])  # log rates of a link that is not mixed


class Rows(NamedTuple):
    """The data. Build it with `make_rows`."""

    X: Array  # (n, p), C order
    labels: NDArray[np.int8]  # (J, n): 1, 0 or NOT_SHOWN, annotator by annotator
    known: NDArray[np.int8]  # (n,): the audited class, 1, 0 or UNKNOWN
    weight: Array  # (n,)


class Codes(NamedTuple):
    """The links as arguments of compiled code, valid in this process."""

    of_selection: int
    of_class: int


class Links(NamedTuple):
    """The links of the propensity and of the class."""

    of_selection: Link = LOGISTIC
    of_class: Link = LOGISTIC

    @property
    def codes(self) -> Codes:
        """The codes of the links for compiled code."""
        return Codes(code_of(self.of_selection), code_of(self.of_class))


class Point(NamedTuple):
    """Values of all parameters. Build it with `make_point`."""

    a: Array  # (p,)
    b: float
    class_rates: Array  # (3,) log rates of the class probability
    alpha: Array  # (J, p)
    beta: Array  # (J,)
    rates: Array  # (J, 3) log rates of the propensities
    epsilon: Array  # (J,) rates of false marks; 0 where a mark is proof


def make_rows(
    X: Any,
    labels: ArrayLike,
    *,
    known: ArrayLike | None = None,
    weight: ArrayLike | None = None,
) -> Rows:
    """Rows with the types and memory order of compiled code.

    ``X`` (n, p) may be sparse; ``labels`` (n,) or (n, J) are 1, 0 or NOT_SHOWN, audited classes
    ``known`` (n,) 1, 0 or UNKNOWN.
    """
    X = X if issparse(X) else np.ascontiguousarray(X, dtype=float)
    n = X.shape[0]
    columns = np.asarray(labels, dtype=np.int8)
    columns = columns[:, None] if columns.ndim == 1 else columns
    nobody = np.full(n, UNKNOWN, dtype=np.int8)
    return Rows(
        X,
        np.ascontiguousarray(columns.T),
        nobody if known is None else np.ascontiguousarray(known, dtype=np.int8),
        np.ones(n) if weight is None else np.ascontiguousarray(weight, dtype=float),
    )


def make_point(
    *,
    a: ArrayLike,
    b: Any,
    alpha: ArrayLike,
    beta: ArrayLike,
    rates: ArrayLike = CERTAIN_LINK,
    epsilon: ArrayLike = 0.0,
    class_rates: ArrayLike = CERTAIN_LINK,
) -> Point:
    """A point with the types of compiled code; a single annotator needs no axis.

    ``rates`` (log rates) and ``epsilon`` without an annotator axis apply to all annotators.
    """
    beta = np.atleast_1d(np.array(beta, dtype=float))
    J = beta.size
    return Point(
        np.array(a, dtype=float),
        float(b),
        np.array(class_rates, dtype=float),
        np.array(alpha, dtype=float).reshape(J, -1),
        beta,
        np.array(np.broadcast_to(np.asarray(rates, dtype=float), (J, 3))),
        np.array(np.broadcast_to(np.asarray(epsilon, dtype=float), (J,))),
    )


class Entries(NamedTuple):
    """The entries of a flat vector by name, as views of it."""

    a: NDArray[Any]  # (..., p)
    b: NDArray[Any]  # (...)
    alpha: NDArray[Any]  # (..., J, p)
    beta: NDArray[Any]  # (..., J)
    uv: NDArray[Any]  # (..., J, 2)
    e: NDArray[Any]  # (..., J)

    def of_annotator(self, j: int) -> "Entries":
        """The entries of one annotator only, without the axis of annotators."""
        own = self.alpha[..., j, :], self.beta[..., j], self.uv[..., j, :], self.e[..., j]
        return Entries(self.a, self.b, *own)


class FlatOrder(NamedTuple):
    """The positions of all parameters in the flat order."""

    p: int
    J: int

    @property
    def width(self) -> int:
        """Entries of one annotator."""
        return self.p + 1 + OWN

    @property
    def size(self) -> int:
        """Entries in all."""
        return self.p + 1 + self.J * self.width

    def entries(self, flat: NDArray[Any]) -> Entries:
        """The entries of vectors ``(..., size)`` by name; of ``arange(size)`` their places."""
        p = self.p
        own = flat[..., p + 1 :].reshape(*flat.shape[:-1], self.J, self.width)
        of_class = flat[..., :p], flat[..., p]
        return Entries(
            *of_class, own[..., :p], own[..., p], own[..., p + 1 : p + OWN], own[..., p + OWN]
        )

    def of_class(self) -> slice:
        """Entries of (a, b)."""
        return slice(0, self.p + 1)

    def of_selection(self, j: int) -> slice:
        """Entries of (α_j, β_j)."""
        start = self.p + 1 + j * self.width
        return slice(start, start + self.p + 1)

    def own(self, j: int) -> slice:
        """Entries of (u_j, v_j, e_j)."""
        stop = self.p + 1 + (j + 1) * self.width
        return slice(stop - OWN, stop)


def flat_order(rows: Rows) -> FlatOrder:
    """The flat order for these rows."""
    return FlatOrder(rows.X.shape[1], rows.labels.shape[0])
