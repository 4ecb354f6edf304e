"""SPM: the probability of a label is the product of two logistic curves.

    P(l = 1 | x) = t(x)·s(x),     t(x) = σ(τ),  τ = a·x + b,     s(x) = σ(ω),  ω = α·x + β

The columns of X have mean 0 and standard deviation 1. The likelihood uses the log-odds of a label,

    h / (1 − h) = e^τ s / (1 + e^τ (1 − s)),

because 1 − t·s rounds to 0 in the tails. Without `selection` t and s can be swapped: then chains of
`pm.sample` may disagree on which is which.
"""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from scipy.special import expit

ALL = slice(None)


def build(X, l, *, selection=ALL) -> pm.Model:
    """The PyMC model of columns X (n, p), labels l (n,) and the columns of X that s depends on."""
    n, p = X.shape
    columns = np.arange(p)[selection]
    coords = {"obs": np.arange(n), "feature": np.arange(p), "selection_feature": columns}
    with pm.Model(coords=coords) as model:
        a = pm.Normal("a", 0, 2.5 / np.sqrt(p), dims="feature")
        b = pm.Normal("b", 0, 1.5)
        q = len(columns)
        alpha = pm.Normal("alpha", 0, 1.5 / np.sqrt(q), dims="selection_feature")
        beta = pm.Normal("beta", 0, 1.5)
        tau, omega = X @ a + b, X[:, columns] @ alpha + beta
        log_s, log_not_s = -pt.softplus(-omega), -pt.softplus(omega)
        logit_h = tau + log_s - pt.softplus(tau + log_not_s)
        pm.Deterministic("pi", pm.math.sigmoid(tau).mean())
        pm.Bernoulli("l", logit_p=logit_h, observed=l, dims="obs")
    return model


def simulate(X, a, b, alpha, beta, rng, *, selection=ALL):
    """Classes y and labels l of the rows of X."""
    y = rng.random(len(X)) < expit(X @ a + b)
    return y, y & (rng.random(len(X)) < expit(X[:, selection] @ alpha + beta))
