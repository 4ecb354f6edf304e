"""Truths on which the verdict is tried: thirty regimes of four families, half of them wrong.

A *family* is a truth and the way it is fitted; a *regime* changes one thing about it. In the first
half of the regimes the fitted model is right, in the second half it is not: the class has another
link, a ceiling or a curve, marks are false, or the propensity follows the class's own score.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.special import expit, ndtr

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
REGIMES = {**WELL, **WRONG}

LINKS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "logistic": expit,
    "probit": lambda z: ndtr(z / 1.7),
    "cloglog": lambda z: -np.expm1(-np.exp(np.minimum(z / 1.3 - 0.4, 30))),
    "loglog": lambda z: np.exp(-np.exp(np.minimum(-z / 1.3 - 0.4, 700))),
    "cauchit": lambda z: 0.5 + np.arctan(z / 1.3) / np.pi,
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
    if truth.columns == "uniform":
        X = rng.uniform(-1, 1, (n, p)) * np.sqrt(3)
    if truth.columns == "binary":
        X[:, -2:] = 2.0 * (rng.random((n, 2)) < 0.5) - 1
    return X


def simulate(family: str, regime: str, seed: int) -> Case:
    """One data set of a family under a regime."""
    rng = np.random.default_rng([seed, *f"{family} {regime}".encode()])
    base = Truth(n=6000, size=5.0, size_s=5.0) if family == "psychm" else Truth()
    changes = dict(REGIMES[regime])
    if "n" in changes and family == "psychm":
        changes["n"] = int(2.4 * changes["n"])
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
    tau = truth.size * X @ a + b
    if truth.curve == "quadratic":
        tau += 0.3 * truth.size * (X[:, 1] ** 2 - 1)
    if truth.curve == "interaction":
        tau += 0.4 * truth.size * X[:, 0] * X[:, 1]
    if truth.curve == "unmeasured":
        tau += 0.4 * truth.size * rng.normal(size=truth.n)
    if truth.curve == "mixture":
        tau *= np.where(rng.random(truth.n) < 0.7, 1.2, 0.3)
    t = truth.ceiling * LINKS[truth.link](tau)
    omega = truth.size_s * X @ alpha + beta
    if family == "scar":
        omega = np.full(truth.n, np.log(truth.c / (1 - truth.c)))
    if truth.curve_s == "quadratic":
        omega += 0.8 * (X[:, 2] ** 2 - 1)
    z = (tau - tau.mean()) / tau.std()
    omega += truth.rise * z
    if family == "scar" and truth.link_s != "logistic":
        omega += X @ alpha
    s = LINKS[truth.link_s](omega)
    if family == "psychm":
        s = 0.1 + 0.85 * s
    if truth.s_of_t:
        s = 0.1 + 0.8 * t
    y = rng.random(truth.n) < t
    l = (y & (rng.random(truth.n) < s)) | (~y & (rng.random(truth.n) < truth.false))
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
