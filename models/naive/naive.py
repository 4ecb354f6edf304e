"""Naive: the label is the class, so this is logistic regression on l.

    P(l = 1 | x) = t(x) = σ(a·x + b)

The columns of X have mean 0 and standard deviation 1.
"""

import numpy as np
import pymc as pm
from scipy.special import expit


def build(X, l) -> pm.Model:
    """The PyMC model of columns X (n, p) and labels l (n,)."""
    n, p = X.shape
    with pm.Model(coords={"obs": np.arange(n), "feature": np.arange(p)}) as model:
        a = pm.Normal("a", 0, 2.5 / np.sqrt(p), dims="feature")
        b = pm.Normal("b", 0, 1.5)
        tau = X @ a + b
        pm.Deterministic("pi", pm.math.sigmoid(tau).mean())
        pm.Bernoulli("l", logit_p=tau, observed=l, dims="obs")
    return model


def simulate(X, a, b, rng):
    """Classes y and labels l of the rows of X."""
    y = rng.random(len(X)) < expit(X @ a + b)
    return y, y
