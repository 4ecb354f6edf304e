"""Tiny fits of every model, and of three annotators, for tests of what one can do with a fit."""

import warnings
from functools import cache

import numpy as np
import pandas as pd

import bayes_lepu as lepu

ROWS = 60
FITS = ("naive", "scar", "spm", "psychm", "panel")
TRUTH = lepu.Parameters.of(a=[2.0, -1.0], b=0.5, alpha=[0.3, 1.0], beta=0.5, gamma=0.1, lam=0.1)


@cache
def tiny_table() -> tuple[pd.DataFrame, pd.Series, pd.DataFrame]:
    """Columns, labels of one annotator, and labels of three of whom one saw part of the rows."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        rng.normal(size=(ROWS, 2)) * [1, 5] + [0, 2],
        columns=["heat", "light"],
        index=[f"row {i}" for i in range(ROWS)],
    )
    inside = (X.to_numpy() - [0, 2]) / [1, 5]
    y, l = TRUTH.simulate(inside, rng)
    s = TRUTH.s(inside)
    L = (rng.random((3, ROWS)) < [0.9 * s, s, 0.6 * s]).T & (y == 1)[:, None]
    table = pd.DataFrame(L.astype(float), columns=["anna", "ben", "carl"], index=X.index)
    table.iloc[:10, 2] = np.nan
    return X, pd.Series(l, index=X.index), table


@cache
def tiny_fit(name: str) -> lepu.Fit:
    """A short NUTS fit by one of `FITS`."""
    X, l, L = tiny_table()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lepu.LepuWarning)
        return lepu.fit(
            X,
            L if name == "panel" else l,
            model="psychm" if name == "panel" else name,
            draws=100,
            tune=200,
            chains=4,
            cores=1,
            random_seed=1,
            progressbar=False,
        )
