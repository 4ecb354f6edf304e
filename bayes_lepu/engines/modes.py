r"""Distinct local maxima, compared by their t and s on the data rather than by coordinates.

Two optima are the same mode when their factors t and s agree on the data (RMS below 0.02). Where
swapping the factors is an exact symmetry, an optimum and its swap are one mode.

Some optima separate a few rows instead of describing all: one factor is 1 on almost all rows, and
the other factor alone fits the labels (`artefact`).
"""

from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Literal

import numpy as np
import pandas as pd

from bayes_lepu.data.pu_data import PUData, Sums
from bayes_lepu.data.weights import evenly_spaced
from bayes_lepu.engines.optimizers import Optimum
from bayes_lepu.factors import RATES
from bayes_lepu.links import Array
from bayes_lepu.model.density import LogDensity
from bayes_lepu.model.parameters import Parameters
from bayes_lepu.priors.prior import INTERCEPTS, SLOPES
from bayes_lepu.rows import Rows
from bayes_lepu.rows.formula import blocks_of_rows

SAME = 0.02  # RMS of the difference of probabilities within which two optima are one mode
LIKE = 0.10  # and within which one is nearly the other with its factors swapped
ENOUGH_ROWS = 4000  # at most, to compare optima; ten times as many for printed figures
Role = Literal["best", "same h", "swapped", "reversed", "SCAR-like", "divergent", "other"]
Pair = tuple[float, float]  # of (t, s)


@dataclass(frozen=True)
class PointFigures:
    """One point over all rows; what belongs to s is the mean over annotators."""

    pi: float  # class prior
    c: float  # label frequency
    norm: Pair  # standard deviations of the linear predictors
    nearly_one: Pair  # share of the rows on which t and s are above 0.95
    below_half: Pair  # number of rows on which they are below 0.5
    n: int


def point_figures(point: Parameters, data: PUData) -> PointFigures:
    """The figures of one point, in one pass over the rows."""
    some = data.evenly(ENOUGH_ROWS).X.mean(axis=0)[None]
    average = point.average()
    # Squares of what is left of a rough mean lose no digits, whatever the units.
    shift = float(average.tau(some)[0]), float(average.omega(some)[0])
    sums, marked, counts, n = data.total(partial(_sums, point=point, shift=shift))
    _, pi, *moments = sums / sums[0]
    first, second = np.reshape(moments, (2, 2))
    sd = np.sqrt(np.maximum(second - first**2, 0.0))
    return PointFigures(
        pi=float(pi),
        c=float(marked / sums[0]) / max(float(pi), 1e-300),
        norm=(float(sd[0]), float(sd[1])),
        nearly_one=(counts[0] / n, counts[1] / n),
        below_half=(float(counts[2]), float(counts[3])),
        n=int(n),
    )


def _sums(rows: Rows, point: Parameters, shift: Pair) -> Sums:
    """Weighted sums of 1, t and of powers of the predictors; Σ w s t; extreme rows; rows."""
    average = point.average()
    sums, marked, counts = np.zeros(6), 0.0, np.zeros(4)
    for block in blocks_of_rows(rows, 4096):  # whose numbers stay in cache
        X, w = block.X, block.weight
        tau, each_omega = average.tau(X), point.omega(X)
        omega = average.omega(X) if point.several else each_omega
        s = point.s_at(each_omega)
        t, x, y = average.of_class.value(tau), tau - shift[0], omega - shift[1]
        sums += np.stack([np.ones(len(w)), t, x, y, x * x, y * y]) @ w
        marked += float(((s * t) @ w).mean())
        each = s if point.several else s[None]
        extreme = ((t > 0.95).sum(), (each > 0.95).sum() / len(each))
        counts += np.array([*extreme, (t < 0.5).sum(), (each < 0.5).sum()], dtype=float)
    return sums, marked, counts, len(rows.weight)


@dataclass(frozen=True, eq=False)
class Mode:
    """A local maximum of the log posterior density.

    Attributes
    ----------
    point : Parameters
    z : array
        Coordinates.
    role : str
        How it relates to the best mode.
    logp, gap : float
        Log density (no Jacobian, up to the priors' constants); that of the best mode minus it.
    hits : int
        How many starts ended here.
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
    role: Role
    logp: float
    gap: float
    hits: int
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
        own = {field.name: getattr(self, field.name) for field in fields(self)[2:]}
        rates = {name: float(v.mean()) for name, v in self.point.rates(RATES[:-1]).items()}
        last = {name: own.pop(name) for name in ("converged", "artefact")}
        return own | rates | last


def mode_table(modes: tuple[Mode, ...]) -> pd.DataFrame:
    """All modes, best first."""
    return pd.DataFrame([m.record() for m in modes]).rename_axis("mode")


def distinct_optima(density: LogDensity, optima: list[Optimum]) -> list[Optimum]:
    """One optimum of every mode, best first, with the number of starts that ended there."""
    X = density.data.evenly(ENOUGH_ROWS).X
    merge_swaps = is_exchangeable(density)
    kept: list[Optimum] = []
    factors: list[tuple[Array, Array]] = []  # t and s of those kept
    for optimum in sorted(optima, key=lambda o: -o.logp):
        point = density.unpack(optimum.z)
        t, s = point.t(X), point.s(X)
        for i, (other_t, other_s) in enumerate(factors):
            apart = max(_rms(t - other_t), _rms(s - other_s))
            if merge_swaps:
                apart = min(apart, max(_rms(s - other_t), _rms(t - other_s)))
            if apart < SAME:
                kept[i] = replace(kept[i], hits=kept[i].hits + optimum.hits)
                break
        else:
            kept.append(optimum)
            factors.append((t, s))
    return kept


def describe_modes(density: LogDensity, optima: list[Optimum]) -> tuple[Mode, ...]:
    """Distinct optima with their figures, compared with the highest (of equal ones the first)."""
    data, top = density.data, max(o.logp for o in optima)
    X = data.X[evenly_spaced(data.X.shape[0], 10 * ENOUGH_ROWS)]
    some = X[evenly_spaced(X.shape[0], ENOUGH_ROWS)]
    highest = next(i for i, o in enumerate(optima) if top - o.logp < 1e-6)
    points = [density.unpack(o.z) for o in optima]
    best, modes = points[highest], []
    for point, optimum in zip(points, optima, strict=True):
        found = point_figures(point, data)
        mode = Mode(
            point=point,
            z=optimum.z,
            role="best" if point is best else _role(point, best, some),
            logp=optimum.logp,
            gap=top - optimum.logp,
            hits=optimum.hits,
            rms_h=_rms(point.h(X) - best.h(X)),
            rms_t=_rms(point.t(X) - best.t(X)),
            pi=found.pi,
            c=found.c,
            norm_a=found.norm[0],
            norm_alpha=found.norm[1],
            converged=optimum.converged,
            artefact=artefact(found) if density.spec.has_selection else "",
        )
        modes.append(mode)
    return tuple(modes)


def artefact(found: PointFigures) -> str:
    """Why a mode of a model with two factors is an artefact, in words; empty if it is none.

    If t is 1 on almost all rows, the annotator's factor is the only classifier. If s is 1, almost
    every positive is labelled, which is the naive model.
    """
    for k, name in enumerate("ts"):
        if found.nearly_one[k] > 0.95:  # a class prior of .9 with its own boundary stays below
            cut = int(found.below_half[k])
            tail = f" and cuts off {cut} of {found.n}" if cut else ""
            return f"{name} is 1 on almost all rows{tail}"
    return ""


def is_exchangeable(density: LogDensity) -> bool:
    """Whether the log density is unchanged by swapping the factors."""
    priors = density.priors
    return density.is_symmetric and all(priors[t] == priors[s] for t, s in (SLOPES, INTERCEPTS))


def _role(point: Parameters, best: Parameters, X: Array) -> Role:
    if np.max(np.std(point.s(X), axis=-1)) < 0.01:
        return "SCAR-like"
    if np.mean(np.abs(point.tau(X)) > 50) > 0.5 or np.mean(np.abs(point.omega(X)) > 50) > 0.5:
        return "divergent"
    cross = max(_rms(point.t(X) - best.swap().t(X)), _rms(point.swap().t(X) - best.t(X)))
    if cross < LIKE:
        return "swapped"
    f, g = X @ point.average().alpha, X @ best.average().alpha
    f, g = f - f.mean(), g - g.mean()
    if f @ g < -0.8 * np.sqrt((f @ f) * (g @ g)):
        return "reversed"
    return "same h" if _rms(point.h(X) - best.h(X)) < SAME else "other"


def distance(p: Parameters, q: Parameters, X: Array) -> float:
    """Distance of two points: the larger RMS difference of t and of s."""
    return max(_rms(p.t(X) - q.t(X)), _rms(p.s(X) - q.s(X)))


def _rms(d: Array) -> float:
    return float(np.sqrt(np.mean(d**2)))
