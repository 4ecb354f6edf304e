"""SCAR: every positive is labelled with the same probability c.

    P(l = 1 | x) = c·t(x),     t(x) = σ(τ),     τ = a·x + b

The columns of X have mean 0 and standard deviation 1. The likelihood uses the log-odds of a label,

    h / (1 − h) = e^τ c / (1 + e^τ (1 − c)),

because 1 − c·t rounds to 0 in the tails.
"""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from scipy.special import expit


def build(X, l) -> pm.Model:
    """The PyMC model of columns X (n, p) and labels l (n,)."""
    n, p = X.shape
    with pm.Model(coords={"obs": np.arange(n), "feature": np.arange(p)}) as model:
        a = pm.Normal("a", 0, 2.5 / np.sqrt(p), dims="feature")
        b = pm.Normal("b", 0, 1.5)
        c = pm.Beta("c", 1, 1)
        tau = X @ a + b
        logit_h = tau + pt.log(c) - pt.softplus(tau + pt.log1p(-c))
        pm.Deterministic("pi", pm.math.sigmoid(tau).mean())
        pm.Bernoulli("l", logit_p=logit_h, observed=l, dims="obs")
    return model


def simulate(X, a, b, c, rng):
    """Classes y and labels l of the rows of X."""
    y = rng.random(len(X)) < expit(X @ a + b)
    return y, y & (rng.random(len(X)) < c)
