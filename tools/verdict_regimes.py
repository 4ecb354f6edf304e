"""Truths on which the verdict is tried: fifty regimes of four families, most of them wrong.

A *family* is a truth and the way it is fitted; a *regime* changes one thing about it. In the
regimes of `WELL` the fitted model is right. In those of `WRONG` it is not: the class has another
link, a ceiling or a curve, marks are false, or the propensity follows the class's own score. Those
of `HARD` were written later, to make a verdict lie that had held on the others: thresholds and
bent columns, drift, groups, repeated rows, noise in one corner, a column that both factors miss.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.special import expit, ndtr, stdtr

FAMILIES = ("mask", "audit", "scar", "psychm")


@dataclass(frozen=True)
class Truth:
    """Settings of one simulated data set."""

    n: int = 2500
    p: int = 5
    size: float = 4.0  # sd of the predictor of t, for normal columns
    size_s: float = 1.0
    b: float | None = None  # drawn where None
    beta: float | None = None
    c: float = 0.6
    columns: str = "normal"
    link: str = "logistic"
    link_s: str = "logistic"
    ceiling: float = 1.0
    false: float = 0.0
    curve: str = ""  # of the predictor of t
    curve_s: str = ""
    rise: float = 0.0  # of s with the standardised predictor of t
    s_of_t: bool = False
    floor: float = 0.0  # of t
    ceiling_s: float = 1.0
    guess: float = 0.1  # of PsychM
    corner: float = 0.0  # rate of false marks where the first column exceeds 1
    near: float = 0.0  # rate of false marks where t is between .1 and .5
    repeats: int = 1  # how often every row occurs, label and all


WELL: dict[str, dict[str, Any]] = {
    "as usual": {},
    "steep": {"size": 6.0},
    "moderate": {"size": 2.5},
    "rare": {"b": -4.0},
    "common": {"b": 2.5},
    "few marked": {"beta": -1.5, "c": 0.25},
    "most marked": {"beta": 1.7, "c": 0.85},
    "few rows": {"n": 1000},
    "many rows": {"n": 8000},
    "twelve columns": {"p": 12},
    "heavy tails": {"columns": "student"},
    "skew columns": {"columns": "exponential"},
    "correlated columns": {"columns": "correlated"},
    "uniform columns": {"columns": "uniform"},
    "two binary columns": {"columns": "binary"},
    "very few rows": {"n": 400},
    "very many rows": {"n": 20_000},
    "long tails together": {"columns": "lognormal"},
    "rare and few marked": {"b": -4.0, "beta": -1.0, "c": 0.3},
    "guesses of 1 %": {"guess": 0.01},
}
WRONG: dict[str, dict[str, Any]] = {
    "probit class": {"link": "probit"},
    "cloglog class": {"link": "cloglog"},
    "loglog class": {"link": "loglog"},
    "cauchit class": {"link": "cauchit"},
    "ceiling .9": {"ceiling": 0.9},
    "false marks .02": {"false": 0.02},
    "false marks .05": {"false": 0.05},
    "quadratic class": {"curve": "quadratic"},
    "interaction in the class": {"curve": "interaction"},
    "s rises with the score": {"rise": 0.75},
    "s = .1 + .8 t": {"s_of_t": True},
    "quadratic propensity": {"curve_s": "quadratic"},
    "cauchit propensity": {"link_s": "cauchit", "size_s": 2.0},
    "column not measured": {"curve": "unmeasured"},
    "two populations": {"curve": "mixture"},
}
HARD: dict[str, dict[str, Any]] = {
    "robit class": {"link": "robit"},
    "floor .03": {"floor": 0.03},
    "ceiling .7": {"ceiling": 0.7},
    "bent columns": {"curve": "bent"},
    "threshold": {"curve": "threshold"},
    "drift in time": {"curve": "drift"},
    "groups": {"curve": "groups"},
    "repeated rows": {"repeats": 3},
    "false marks in a corner": {"corner": 0.25},
    "false marks near the border": {"near": 0.15},
    "s falls with the score": {"rise": -0.75},
    "s rises late": {"rise": 1.5, "beta": -1.0, "c": 0.3},
    "ceiling of s .6": {"ceiling_s": 0.6},
    "steps in s": {"curve_s": "threshold"},
    "a column both miss": {"curve": "unmeasured", "curve_s": "unmeasured"},
}
REGIMES = {**WELL, **WRONG, **HARD}

LINKS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "logistic": expit,
    "probit": lambda z: ndtr(z / 1.7),
    "cloglog": lambda z: -np.expm1(-np.exp(np.minimum(z / 1.3 - 0.4, 30))),
    "loglog": lambda z: np.exp(-np.exp(np.minimum(-z / 1.3 - 0.4, 700))),
    "cauchit": lambda z: 0.5 + np.arctan(z / 1.3) / np.pi,
    "robit": lambda z: stdtr(3, z / 1.5),
}


@dataclass(frozen=True, eq=False)
class Case:
    """One data set: what the fit sees, and what it should find."""

    X: np.ndarray
    l: np.ndarray
    options: dict[str, Any]
    t: np.ndarray = field(repr=False)
    tau: np.ndarray = field(repr=False)

    @property
    def pi(self) -> float:
        """Mean of the true class probability over the rows."""
        return float(self.t.mean())


def columns_of(truth: Truth, rng: np.random.Generator) -> np.ndarray:
    """The table of features, columns of mean 0 and sd 1."""
    n, p = truth.n, truth.p
    X = rng.normal(size=(n, p))
    if truth.columns == "student":
        X = rng.standard_t(5, size=(n, p)) / np.sqrt(5 / 3)
    if truth.columns == "exponential":
        X = rng.exponential(size=(n, p)) - 1
    if truth.columns == "correlated":
        X = np.sqrt(0.5) * X + np.sqrt(0.5) * rng.normal(size=(n, 1))
    if truth.columns == "lognormal":
        X = np.exp(0.6 * (np.sqrt(0.5) * X + np.sqrt(0.5) * rng.normal(size=(n, 1))))
        X = (X - np.exp(0.18)) / np.sqrt(np.exp(0.36) * np.expm1(0.36))
    if truth.columns == "uniform":
        X = rng.uniform(-1, 1, (n, p)) * np.sqrt(3)
    if truth.columns == "binary":
        X[:, -2:] = 2.0 * (rng.random((n, 2)) < 0.5) - 1
    return X


def _curve(kind: str, X: np.ndarray, left_out: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """What joins the straight line of t's predictor, in units of the line's sd."""
    if kind == "quadratic":
        return 0.3 * (X[:, 1] ** 2 - 1)
    if kind == "interaction":
        return 0.4 * X[:, 0] * X[:, 1]
    if kind == "unmeasured":
        return 0.4 * left_out
    if kind == "bent":
        return 0.7 * np.tanh(2 * X[:, 1])
    if kind == "threshold":
        return 0.5 * np.sign(X[:, 1] - 0.5)
    if kind == "drift":
        return np.linspace(-0.5, 0.5, len(X))
    if kind == "groups":
        return 0.4 * rng.normal(size=40)[rng.integers(40, size=len(X))]
    return np.zeros(len(X))


def simulate(family: str, regime: str, seed: int) -> Case:
    """One data set of a family under a regime."""
    rng = np.random.default_rng([seed, *f"{family} {regime}".encode()])
    base = Truth(n=6000, size=5.0, size_s=5.0) if family == "psychm" else Truth()
    changes = dict(REGIMES[regime])
    if "n" in changes and family == "psychm":
        changes["n"] = min(int(2.4 * changes["n"]), 20_000)
    if family == "psychm":
        changes.pop("size_s", None)
    truth = replace(base, **changes)
    X = columns_of(truth, rng)
    p = truth.p
    a, alpha = rng.normal(size=p), rng.normal(size=p)
    a /= np.linalg.norm(a)
    if family == "mask":
        a[0] = np.copysign(max(abs(a[0]), 0.5), a[0])
        a /= np.linalg.norm(a)
        alpha[0] = 0.0
    else:
        alpha -= a * (alpha @ a)
    alpha /= np.linalg.norm(alpha)
    b = rng.normal(0, 0.7) if truth.b is None else truth.b
    beta = rng.normal(0, 0.7) if truth.beta is None else truth.beta
    left_out = rng.normal(size=truth.n)
    tau = truth.size * X @ a + b + truth.size * _curve(truth.curve, X, left_out, rng)
    if truth.curve == "mixture":
        tau *= np.where(rng.random(truth.n) < 0.7, 1.2, 0.3)
    t = truth.floor + (truth.ceiling - truth.floor) * LINKS[truth.link](tau)
    omega = truth.size_s * X @ alpha + beta
    if family == "scar":
        omega = np.full(truth.n, np.log(truth.c / (1 - truth.c)))
    if truth.curve_s == "quadratic":
        omega += 0.8 * (X[:, 2] ** 2 - 1)
    if truth.curve_s == "threshold":
        omega += 1.5 * np.sign(X[:, 2])
    if truth.curve_s == "unmeasured":
        omega += left_out
    z = (tau - tau.mean()) / tau.std()
    omega += truth.rise * z
    if family == "scar" and truth.link_s != "logistic":
        omega += X @ alpha
    s = truth.ceiling_s * LINKS[truth.link_s](omega)
    if family == "psychm":
        s = truth.guess + (0.95 - truth.guess) * s
    if truth.s_of_t:
        s = 0.1 + 0.8 * t
    y = rng.random(truth.n) < t
    false = truth.false + truth.corner * (X[:, 0] > 1) + truth.near * ((t > 0.1) & (t < 0.5))
    l = (y & (rng.random(truth.n) < s)) | (~y & (rng.random(truth.n) < false))
    if truth.repeats > 1:
        again = np.arange(truth.n) % (truth.n // truth.repeats)
        X, t, tau, y, l = X[again], t[again], tau[again], y[again], l[again]
    model = {"mask": "spm", "audit": "spm"}.get(family, family)
    options: dict[str, Any] = {"model": model}
    if family == "mask":
        options["selection_features"] = list(range(1, p))
    if family == "audit":
        checked = np.full(truth.n, np.nan)
        some = rng.choice(np.flatnonzero(~l), 100, replace=False)
        checked[some] = y[some]
        options["y"] = checked
    return Case(X, l.astype(int), options, t, tau)
