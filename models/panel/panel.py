"""Panel: several annotators of the same rows, one propensity each, partially pooled.

    P(l_1, …, l_J | x) = t Π_j s_j^l_j (1 − s_j)^(1 − l_j)  +  (1 − t) [no annotator marked the row]

    t = σ(τ),  τ = a·x + b,     s_j = σ(ω_j),  ω_j = α_j·x + β_j,
    α_j = ᾱ + σ_α z_j,          β_j = β̄ + σ_β z'_j,          z, z' ~ Normal(0, 1)

The columns of X have mean 0 and standard deviation 1. L is 1 where the annotator marked the row, 0
where not, and −1 where the row was not shown. For a row that nobody marked, with Π = Π (1 − s_j),
the sum is (1 − t)(1 + e^τ Π).
"""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from scipy.special import expit

ALL = slice(None)


def log_rows(L, tau, omega):
    """Log-likelihood of every row of labels."""
    own = pt.switch(pt.eq(L, 1), -pt.softplus(-omega), -pt.softplus(omega))
    log_product = pt.switch(L < 0, 0, own).sum(axis=-1)
    nobody = -pt.softplus(tau) + pt.softplus(tau + log_product)
    return pt.switch(pt.eq(L, 1).any(axis=-1), log_product - pt.softplus(-tau), nobody)


def build(X, L, *, selection=ALL) -> pm.Model:
    """The PyMC model of columns X (n, p), labels L (n, J) and the columns that s depends on."""
    (n, p), columns = X.shape, np.arange(X.shape[1])[selection]
    coords = {"obs": np.arange(n), "feature": np.arange(p), "selection_feature": columns}
    with pm.Model(coords=coords | {"annotator": np.arange(L.shape[1])}) as model:
        a = pm.Normal("a", 0, 2.5 / np.sqrt(p), dims="feature")
        b = pm.Normal("b", 0, 1.5)
        q = np.sqrt(len(columns))
        alpha_mean = pm.Normal("alpha_mean", 0, 1.5 / q, dims="selection_feature")
        beta_mean = pm.Normal("beta_mean", 0, 1.5)
        sigma_alpha = pm.HalfNormal("sigma_alpha", 1 / q)
        sigma_beta = pm.HalfNormal("sigma_beta", 1)
        own = ("annotator", "selection_feature")
        z_alpha = pm.Normal("z_alpha", 0, 1, dims=own)
        z_beta = pm.Normal("z_beta", 0, 1, dims="annotator")
        alpha = pm.Deterministic("alpha", alpha_mean + sigma_alpha * z_alpha, dims=own)
        beta = pm.Deterministic("beta", beta_mean + sigma_beta * z_beta, dims="annotator")
        tau, omega = X @ a + b, X[:, columns] @ alpha.T + beta
        pm.Deterministic("pi", pm.math.sigmoid(tau).mean())
        rows = {"logp": log_rows, "signature": "(),(j)->(j)", "dims": ("obs", "annotator")}
        pm.CustomDist("L", tau, omega, observed=L, **rows)
    return model


def simulate(X, a, b, alpha, beta, rng, *, selection=ALL):
    """Classes y and labels L of the rows of X, all shown to everybody."""
    y = rng.random(len(X)) < expit(X @ a + b)
    s = expit(X[:, selection] @ alpha.T + beta)
    return y, y[:, None] & (rng.random(s.shape) < s)
