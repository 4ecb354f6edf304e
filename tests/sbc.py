"""Simulation-based calibration: ranks of the truth among posterior draws must be uniform.

Draw parameters from the prior, data from the parameters, and a posterior from the data; the rank of
every true quantity among thinned draws is then uniform (Talts et al., 2018, arXiv:1804.06788).
"""

import warnings

import numpy as np
from scipy import stats

import bayes_lepu as lepu
from bayes_lepu.data import read_data
from bayes_lepu.models import get_model
from bayes_lepu.priors import default_priors
from bayes_lepu.result.predictive import prior_parameters

RANKS = 49  # thinned draws: ranks 0..49 fall into ten equal bins
BINS = 10


def ranks(model: str, seed: int, *, n: int = 200, p: int = 2, mask: bool = False) -> dict:
    """Rank of each true quantity in one replication (None where the data were unusable)."""
    rng = np.random.default_rng([seed, 99])
    X = rng.standard_normal((n, p))
    columns = [0] if mask else None
    template = read_data(X, np.arange(n) % 2, selection_features=columns)
    spec = get_model(model)
    priors = spec.complete_priors(default_priors(p, 1 if mask else p), None)
    truth = prior_parameters(spec, template, priors, 1, rng).take(0)
    _, l = truth.simulate(template.X, rng)
    if not 0 < l.sum() < n:
        return {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lepu.LepuWarning)
        fit = lepu.fit(
            X,
            l,
            model=model,
            selection_features=columns,
            priors=priors,
            orientation="none",
            draws=7 * RANKS,
            tune=400,
            chains=2,
            cores=1,
            n_starts=4,
            random_seed=seed,
            progressbar=False,
        )
    posterior = quantities(model, fit.draws, fit.data.X)
    true_values = quantities(model, truth, fit.data.X)
    thin = np.linspace(0, fit.draws.b.size - 1, RANKS).astype(int)
    return {k: int(np.sum(v[thin] < true_values[k])) for k, v in posterior.items()}


def quantities(model: str, point: lepu.Parameters, X: np.ndarray) -> dict:
    """The quantities whose calibration is checked."""
    out = {"a[0]": point.a[..., 0], "b": point.b, "pi": point.t(X).mean(axis=-1)}
    if model == "scar":
        out["c"] = point.gamma
    else:
        out |= {"alpha[0]": point.alpha[..., 0], "beta": point.beta}
    if model == "psychm":
        out |= {"gamma": point.gamma, "lambda": point.lam}
    return out


def outside_band(values: list[int], prob: float = 0.99) -> int:
    """Bins of the rank histogram outside the simultaneous band of a uniform distribution."""
    counts = np.histogram(values, bins=BINS, range=(-0.5, RANKS + 0.5))[0]
    tail = (1 - prob) / 2 / BINS
    low, high = stats.binom.ppf([tail, 1 - tail], len(values), 1 / BINS)
    return int(np.sum((counts < low) | (counts > high)))
