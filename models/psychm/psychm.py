"""PsychM: an annotator with guesses γ and lapses λ.

    P(l = 1 | x) = t(x)·s(x),     t(x) = σ(τ),                          τ = a·x + b
                                  s(x) = γ + (1 − γ − λ)·σ(ω),          ω = α·x + β

The columns of X have mean 0 and standard deviation 1. With ρ = 1 − γ − λ, both s = γ + ρ σ(ω) and
1 − s = λ + ρ σ(−ω) are sums of positive terms. The likelihood uses the log-odds of a label,

    h / (1 − h) = e^τ s / (1 + e^τ (1 − s)),

because 1 − t·s rounds to 0 in the tails.
"""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from scipy.special import expit


def build(X, l) -> pm.Model:
    """The PyMC model of columns X (n, p) and labels l (n,)."""
    n, p = X.shape
    rate = ["gamma", "lambda", "rho"]
    with pm.Model(coords={"obs": np.arange(n), "feature": np.arange(p), "rate": rate}) as model:
        a = pm.Normal("a", 0, 2.5 / np.sqrt(p), dims="feature")
        b = pm.Normal("b", 0, 1.5)
        alpha = pm.Normal("alpha", 0, 1.5 / np.sqrt(p), dims="feature")
        beta = pm.Normal("beta", 0, 1.5)
        rates = pm.Dirichlet("rates", np.ones(3), dims="rate")
        log_gamma, log_lam, log_rho = (pt.log(rates[k]) for k in range(3))
        tau, omega = X @ a + b, X @ alpha + beta
        log_s = pm.math.logaddexp(log_gamma, log_rho - pt.softplus(-omega))
        log_not_s = pm.math.logaddexp(log_lam, log_rho - pt.softplus(omega))
        logit_h = tau + log_s - pt.softplus(tau + log_not_s)
        pm.Deterministic("pi", pm.math.sigmoid(tau).mean())
        pm.Bernoulli("l", logit_p=logit_h, observed=l, dims="obs")
    return model


def simulate(X, a, b, alpha, beta, rates, rng):
    """Classes y and labels l of the rows of X."""
    gamma, _, rho = rates
    y = rng.random(len(X)) < expit(X @ a + b)
    return y, y & (rng.random(len(X)) < gamma + rho * expit(X @ alpha + beta))
