"""SPM with false marks: a negative is labelled too, with probability ε.

    P(l = 1 | x) = t(x)·s(x) + (1 − t(x))·ε,     t(x) = σ(τ),  τ = a·x + b
                                                 s(x) = σ(ω),  ω = α·x + β

The columns of X have mean 0 and standard deviation 1. The likelihood uses the log-odds of a label,

    h / (1 − h) = (e^τ s + ε) / (e^τ (1 − s) + 1 − ε),

because 1 − h rounds to 0 in the tails. Audited rows have a class y (the others NaN) and the
likelihood P(y) P(l | y), with P(l = 1 | y = 1) = s and P(l = 1 | y = 0) = ε.
"""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from scipy.special import expit

ALL = slice(None)


def build(X, l, *, y=None, selection=ALL) -> pm.Model:
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
        epsilon = pm.Beta("epsilon", 1, 99)
        tau, omega = X @ a + b, X[:, columns] @ alpha + beta
        log_s, log_not_s = -pt.softplus(-omega), -pt.softplus(omega)
        log_eps, log_not_eps = pt.log(epsilon), pt.log1p(-epsilon)
        labelled = pm.math.logaddexp(tau + log_s, log_eps)
        logit_h = labelled - pm.math.logaddexp(tau + log_not_s, log_not_eps)
        if y is not None:
            given_y = pt.switch(y == 1, omega, log_eps - log_not_eps)
            logit_h = pt.switch(np.isnan(y), logit_h, given_y)
            pm.Bernoulli("y", logit_p=tau[~np.isnan(y)], observed=y[~np.isnan(y)])
        pm.Deterministic("pi", pm.math.sigmoid(tau).mean())
        pm.Bernoulli("l", logit_p=logit_h, observed=l, dims="obs")
    return model


def simulate(X, a, b, alpha, beta, epsilon, rng, *, selection=ALL):
    """Classes y and labels l of the rows of X."""
    y = rng.random(len(X)) < expit(X @ a + b)
    s = expit(X[:, selection] @ alpha + beta)
    return y, rng.random(len(X)) < np.where(y, s, epsilon)
