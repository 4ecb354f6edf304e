r"""Distinct local maxima, compared by what they say rather than by their coordinates.

Two optima are the same mode when their factors t and s agree on the data (RMS below 0.02). In SPM
with exchangeable priors an optimum and its swap are one mode: an exact symmetry, not a second
answer of the data.

Some optima do not describe the rows but cut a few of them off: one factor is 1 on almost all rows,
and the other one does the work of both. Such a mode bears the name of its artefact (`artefact`).
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import Literal
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd

from bayes_lepu.data.pu_data import PUData, Sums
from bayes_lepu.data.weights import evenly_spaced
from bayes_lepu.engines.optimizers import Optimum
from bayes_lepu.factors import RATES
from bayes_lepu.links import Array, sigmoid
from bayes_lepu.model.density import LogDensity
from bayes_lepu.model.parameters import Parameters
from bayes_lepu.priors.prior import INTERCEPTS, SLOPES
from bayes_lepu.rows import Rows
from bayes_lepu.rows.formula import blocks_of_rows

SAME = 0.02  # RMS of the difference of probabilities within which two optima are one mode
LIKE = 0.10  # and within which one is nearly the other with its factors swapped
ENOUGH_ROWS = 4000  # at most, to tell optima apart; ten times as many for what is shown
Role = Literal["best", "same h", "swapped", "reversed", "SCAR-like", "divergent", "other"]
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
    norm: Pair
    flatness: Pair
    correlation: Pair
    nearly_one: Pair
    below_half: Pair
    n: int


def point_figures(point: Parameters, data: PUData) -> PointFigures:
    """The figures of one point, in one pass over the rows; asked for again, without one."""
    known = _known.setdefault(point, WeakKeyDictionary())
    if data not in known:
        known[data] = _figures(point, data)
    return known[data]


def _figures(point: Parameters, data: PUData) -> PointFigures:
    some = data.evenly(ENOUGH_ROWS).X.mean(axis=0)[None]
    average = point.average()
    # Squares of what is left of a rough mean lose no digits, whatever the units.
    shift = float(average.tau(some)[0]), float(average.omega(some)[0])
    moments, marked, counts, n = data.total(partial(_sums, point=point, shift=shift))
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
    """Weighted products of what is averaged, Σ w s t, counts of extreme rows, rows."""
    average = point.average()
    moments, marked, counts = np.zeros((8, 8)), 0.0, np.zeros(4)
    for block in blocks_of_rows(rows, 4096):  # whose numbers stay in cache
        X, w = block.X, block.weight
        tau, each_omega = average.tau(X), point.omega(X)
        omega = average.omega(X) if point.several else each_omega
        s = point.s_at(each_omega)
        t, f = average.of_class.value(tau), sigmoid(omega)
        h = s * t if not point.several and point.epsilon is None else average.h(X)
        columns = np.stack(
            [np.ones(len(w)), tau - shift[0], omega - shift[1], t, f, h, t * (1 - t), f * (1 - f)]
        )
        moments += (columns * w) @ columns.T
        marked += float(((s * t) @ w).mean())
        each = s if point.several else s[None]
        extreme = ((t > 0.95).sum(), (each > 0.95).sum() / len(each))
        counts += np.array([*extreme, (t < 0.5).sum(), (each < 0.5).sum()], dtype=float)
    return moments, marked, counts, len(rows.weight)


@dataclass(frozen=True, eq=False)
class Mode:
    """A local maximum of the log posterior density.

    Attributes
    ----------
    point : Parameters
    z : array
        Coordinates.
    logp : float
        Log density (no Jacobian), up to the priors' constants.
    gap : float
        Log density of the best mode minus this one.
    hits : int
        How many starts ended here.
    role : str
        How it relates to the best mode.
    rms_h, rms_t : float
        Root mean squared difference from the best mode's h and t over the data.
    pi, c, norm_a, norm_alpha : float
        Class prior, label frequency, sd of the two linear predictors.
    converged : bool
    artefact : str
        What makes the mode an artefact; empty for one that describes the rows.
    """

    point: Parameters
    z: Array
    logp: float
    gap: float
    hits: int
    role: Role
    rms_h: float
    rms_t: float
    pi: float
    c: float
    norm_a: float
    norm_alpha: float
    converged: bool
    artefact: str = ""

    def record(self) -> dict[str, float | int | str | bool]:
        """One row of the mode table."""
        return {
            "role": self.role,
            "logp": self.logp,
            "gap": self.gap,
            "hits": self.hits,
            "rms_h": self.rms_h,
            "rms_t": self.rms_t,
            "pi": self.pi,
            "c": self.c,
            "norm_a": self.norm_a,
            "norm_alpha": self.norm_alpha,
            **{name: float(v.mean()) for name, v in self.point.rates(RATES[:-1]).items()},
            "converged": self.converged,
            "artefact": self.artefact,
        }


def mode_table(modes: tuple[Mode, ...]) -> pd.DataFrame:
    """All modes, best first."""
    return pd.DataFrame([m.record() for m in modes]).rename_axis("mode")


def distinct_optima(density: LogDensity, optima: list[Optimum]) -> list[Optimum]:
    """One optimum of every mode, best first, with the number of starts that ended there."""
    X = density.data.evenly(ENOUGH_ROWS).X
    merge_swaps = is_exchangeable(density)
    kept: list[Optimum] = []
    spoken: list[tuple[Array, Array]] = []  # t and s of those kept
    for optimum in sorted(optima, key=lambda o: -o.logp):
        point = density.unpack(optimum.z)
        t, s = point.t(X), point.s(X)
        for i, (other_t, other_s) in enumerate(spoken):
            apart = max(_rms(t - other_t), _rms(s - other_s))
            if merge_swaps:
                apart = min(apart, max(_rms(s - other_t), _rms(t - other_s)))
            if apart < SAME:
                kept[i] = replace(kept[i], hits=kept[i].hits + optimum.hits)
                break
        else:
            kept.append(optimum)
            spoken.append((t, s))
    return kept


def distinct_modes(density: LogDensity, optima: list[Optimum]) -> tuple[Mode, ...]:
    """The distinct modes that optima belong to, best first."""
    kept = distinct_optima(density, optima)
    best = density.unpack(kept[0].z)
    points = [best, *(density.unpack(o.z) for o in kept[1:])]
    return tuple(
        describe_mode(density, point, o, best=best, best_logp=kept[0].logp, hits=o.hits)
        for point, o in zip(points, kept, strict=True)
    )


def describe_mode(
    density: LogDensity,
    point: Parameters,
    optimum: Optimum,
    *,
    best: Parameters,
    best_logp: float,
    hits: int,
) -> Mode:
    """A mode with its figures."""
    found = point_figures(point, density.data)
    mode = Mode(
        point=point,
        z=optimum.z,
        logp=optimum.logp,
        gap=best_logp - optimum.logp,
        hits=hits,
        role="best",
        rms_h=0.0,
        rms_t=0.0,
        pi=found.pi,
        c=found.c,
        norm_a=found.norm[0],
        norm_alpha=found.norm[1],
        converged=optimum.converged,
        artefact=artefact(found) if density.spec.has_selection else "",
    )
    return compare_mode(mode, best, density.data.X)


def artefact(found: PointFigures) -> str:
    """What makes a mode of a model with two factors an artefact, in words; empty if nothing does.

    A factor that is 1 on almost all rows says nothing of them. For t this means that almost
    everybody is positive and the annotator's factor is the only classifier left; for s that almost
    every positive is labelled, which is the naive reading. A factor that leaves 1 only for a few
    rows beyond a steep plane is how an over-fitted optimum looks.
    """
    for k, name in enumerate("ts"):
        if found.nearly_one[k] <= 0.95:  # a class prior of .9 with its own boundary stays below
            continue
        cut = int(found.below_half[k])
        tail = f" and cuts off {cut} of {found.n}" if cut else ""
        return f"{name} is 1 on almost all rows{tail}"
    return ""


def compare_mode(mode: Mode, best: Parameters, X: Array) -> Mode:
    """The mode with its role relative to the best one."""
    if mode.point is best:
        return replace(mode, role="best", rms_h=0.0, rms_t=0.0)
    X = X[evenly_spaced(X.shape[0], 10 * ENOUGH_ROWS)]
    return replace(
        mode,
        role=_role(mode.point, best, X[evenly_spaced(X.shape[0], ENOUGH_ROWS)]),
        rms_h=_rms(mode.point.h(X) - best.h(X)),
        rms_t=_rms(mode.point.t(X) - best.t(X)),
    )


def is_exchangeable(density: LogDensity) -> bool:
    """Whether the log density is unchanged by exchanging the factors."""
    priors = density.priors
    return density.is_symmetric and all(priors[t] == priors[s] for t, s in (SLOPES, INTERCEPTS))


def swap_mode(density: LogDensity, mode: Mode) -> Mode:
    """The same mode with its factors exchanged, which is a symmetry of the density."""
    point = mode.point.swap()
    found = point_figures(point, density.data)
    return replace(
        mode,
        point=point,
        z=density.swap(mode.z),
        pi=found.pi,
        c=found.c,
        norm_a=mode.norm_alpha,
        norm_alpha=mode.norm_a,
        artefact=artefact(found),
    )


def _role(point: Parameters, best: Parameters, X: Array) -> Role:
    if np.max(np.std(point.s(X), axis=-1)) < 0.01:
        return "SCAR-like"
    if np.mean(np.abs(point.tau(X)) > 50) > 0.5 or np.mean(np.abs(point.omega(X)) > 50) > 0.5:
        return "divergent"
    cross = max(_rms(point.t(X) - best.swap().t(X)), _rms(point.swap().t(X) - best.t(X)))
    if cross < LIKE:
        return "swapped"
    cosine = _cosine(point.average().alpha, best.average().alpha, X)
    if cosine < -0.8:
        return "reversed"
    return "same h" if _rms(point.h(X) - best.h(X)) < SAME else "other"


def _cosine(u: Array, v: Array, X: Array) -> float:
    f, g = X @ u, X @ v
    f, g = f - f.mean(), g - g.mean()
    return float(f @ g) / max(float(np.sqrt((f @ f) * (g @ g))), 1e-300)


def distance(p: Parameters, q: Parameters, X: Array) -> float:
    """How differently two points speak: the larger RMS difference of t and of s."""
    return max(_rms(p.t(X) - q.t(X)), _rms(p.s(X) - q.s(X)))


def _rms(d: Array) -> float:
    return float(np.sqrt(np.mean(d**2)))
