"""Statistics: known parameters come back, and the classifiers come close to the ceiling."""

import numpy as np
import pytest

import bayes_lepu as lepu
from bayes_lepu import Parameters
from bayes_lepu.model import REGISTRY
from bayes_lepu.model.density import LogDensity
from bayes_lepu.priors.prior import penalty_priors

N = 20_000


def truth_of(model, rng, p=5):
    """|a| = 4, |α| = 2, γ = λ = .1; a ⟂ α, since (nearly) opposite slopes hide λ altogether."""
    directions = np.linalg.qr(rng.normal(size=(p, 2)))[0].T
    a, alpha = 4 * directions[0], 2 * directions[1]
    b, beta = 0.5 * rng.normal(size=2)
    return {
        "naive": Parameters.of(a=a, b=b, gamma=1.0),
        "scar": Parameters.of(a=a, b=b, gamma=0.4, lam=0.6),
        "spm": Parameters.of(a=a, b=b, alpha=alpha, beta=beta),
        "psychm": Parameters.of(a=a, b=b, alpha=alpha, beta=beta, gamma=0.1, lam=0.1),
    }[model]


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("model", REGISTRY)
def test_parameters_are_recovered(model, seed):
    """Every coordinate within 4 standard errors of the truth, the errors neither tiny nor idle."""
    rng = np.random.default_rng([seed, 7])
    truth = truth_of(model, rng)
    X = rng.normal(size=(N, 5))
    l = truth.simulate(X, rng)[1]
    fit = lepu.fit(X, l, model=model, method="map", C=1e-4, standardize=False, random_seed=0)
    spec = REGISTRY[model]
    priors = spec.complete_priors(penalty_priors("l2", 1e-4), None)
    density = LogDensity(spec, fit.data, priors)
    estimate, wanted = fit.modes[0].z, density.pack(truth)
    errors = np.sqrt(np.diag(np.linalg.inv(density.observed_information(estimate))))
    away = (estimate - wanted) / errors
    assert np.abs(away).max() < 4, dict(zip(density.names, away, strict=True))
    assert errors.max() < 0.6
    assert np.sqrt(np.mean(away**2)) > 0.3  # the errors are not simply too large
    # A likelihood-ratio statistic of the truth: chi-square with as many degrees of freedom.
    here, there = (density.logp(z) - density.log_prior(z) for z in (estimate, wanted))
    statistic = 2 * (here - there)
    k = density.dim
    assert k - 4 * np.sqrt(2 * k) < statistic < k + 5 * np.sqrt(2 * k)
