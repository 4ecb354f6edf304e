r"""What a point of parameter space says of the rows as a whole: π, c, and the sizes of its factors.

Everything here is made of sums over the rows, so that one pass is enough, wherever the rows are.
"""

from dataclasses import dataclass, replace
from functools import partial
from weakref import WeakKeyDictionary

import numpy as np

from bayes_lepu.data.pu_data import PUData, Sums
from bayes_lepu.links import sigmoid
from bayes_lepu.model.parameters import Parameters
from bayes_lepu.rows import Rows

NEARLY_ONE = 0.95  # a factor above it says yes
BLOCK_ROWS = 4096  # at a time, so that the numbers of a row stay in cache
ENOUGH_ROWS = 4000  # for a rough mean

Pair = tuple[float, float]  # of (t, s)

_known: "WeakKeyDictionary[Parameters, WeakKeyDictionary[PUData, PointFigures]]" = (
    WeakKeyDictionary()
)


@dataclass(frozen=True)
class PointFigures:
    """One point over all rows; what belongs to s is the mean over annotators.

    Attributes
    ----------
    pi, c : float
        Class prior and label frequency.
    mean_s : float
        Mean of the propensity over all rows.
    norm : pair of float
        Standard deviations of the linear predictors.
    flatness : pair of float
        Mean of :math:`f^2 (1-f)^2` with f the logistic function of a linear predictor.
    correlation : pair of float
        Of these f with the label probability h.
    nearly_one, below_half : pair of float
        Share of the rows on which t and s are above 0.95, and number on which they are below 0.5.
    n : int
        Number of rows.
    """

    pi: float
    c: float
    mean_s: float
    norm: Pair
    flatness: Pair
    correlation: Pair
    nearly_one: Pair
    below_half: Pair
    n: int

    def swap(self) -> "PointFigures":
        """Those of the point with its factors exchanged, where s is logistic without rates."""
        pairs = ("norm", "flatness", "correlation", "nearly_one", "below_half")
        return replace(
            self,
            pi=self.mean_s,
            c=self.c * self.pi / max(self.mean_s, 1e-300),
            mean_s=self.pi,
            **{name: getattr(self, name)[::-1] for name in pairs},
        )


def point_figures(point: Parameters, data: PUData) -> PointFigures:
    """The figures of one point, in one pass over the rows; asked for again, without one."""
    known = _known.setdefault(point, WeakKeyDictionary())
    if data not in known:
        known[data] = _figures(point, data)
    return known[data]


def swapped_figures(point: Parameters, swapped: Parameters, data: PUData) -> PointFigures:
    """The figures of an exchanged point without a pass, where the exchange is a symmetry."""
    found = point_figures(point, data).swap()
    _known.setdefault(swapped, WeakKeyDictionary())[data] = found
    return found


def _figures(point: Parameters, data: PUData) -> PointFigures:
    some = data.evenly(ENOUGH_ROWS).X.mean(axis=0)[None]
    average = point.average()
    # Squares of what is left of a rough mean lose no digits, whatever the units.
    shift = float(average.tau(some)[0]), float(average.omega(some)[0])
    moments, marked, sum_s, counts, n = data.total(partial(_sums, point=point, shift=shift))
    means = moments / moments[0, 0]
    first = means[0]
    covariance = means - np.outer(first, first)
    sd = np.sqrt(np.maximum(np.diag(covariance), 0.0))

    def correlation(k: int) -> float:
        return float(covariance[k, H] / max(sd[k] * sd[H], 1e-300))

    pi = float(first[T])
    return PointFigures(
        pi=pi,
        c=float(marked / moments[0, 0]) / max(pi, 1e-300),
        mean_s=float(sum_s / moments[0, 0]),
        norm=(float(sd[TAU]), float(sd[OMEGA])),
        flatness=(float(means[FLAT_T, FLAT_T]), float(means[FLAT_S, FLAT_S])),
        correlation=(correlation(T), correlation(S)),
        nearly_one=(counts[0] / n, counts[1] / n),
        below_half=(float(counts[2]), float(counts[3])),
        n=int(n),
    )


# Places among what is averaged over the rows; the first is 1.
TAU, OMEGA, T, S, H, FLAT_T, FLAT_S = range(1, 8)


def _sums(rows: Rows, point: Parameters, shift: Pair) -> Sums:
    """Weighted products of what is averaged, Σ w s t, Σ w s, counts of extreme rows, rows."""
    average = point.average()
    moments, marked, sum_s, counts = np.zeros((8, 8)), 0.0, 0.0, np.zeros(4)
    n = rows.X.shape[0]
    for start in range(0, n, BLOCK_ROWS):
        X = rows.X[start : start + BLOCK_ROWS]
        m = X.shape[0]
        w = rows.weight[start : start + BLOCK_ROWS] if rows.weight.size else np.ones(m)
        tau, each_omega = average.tau(X), point.omega(X)
        omega = average.omega(X) if point.several else each_omega
        s = point.s_at(each_omega)
        t, f = average.of_class.value(tau), sigmoid(omega)
        h = s * t if not point.several and point.epsilon is None else average.h(X)
        columns = np.stack(
            [np.ones(m), tau - shift[0], omega - shift[1], t, f, h, t * (1 - t), f * (1 - f)]
        )
        moments += (columns * w) @ columns.T
        marked += float(((s * t) @ w).mean())
        sum_s += float((s @ w).mean())
        each = s if point.several else s[None]
        extreme = ((t > NEARLY_ONE).sum(), (each > NEARLY_ONE).sum() / len(each))
        counts += np.array([*extreme, (t < 0.5).sum(), (each < 0.5).sum()], dtype=float)
    return moments, marked, sum_s, counts, n
