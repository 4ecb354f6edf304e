r"""Simulation-based calibration of the posteriors (long; `make test-all`).

Parameters are drawn from the prior, labels from the parameters, and a posterior from the labels.
The rank of every true quantity among L thinned draws of its posterior is then uniform on 0..L
(Talts et al., 2018, arXiv:1804.06788). It is so given any data: labels that cannot be fitted
(nobody marked) may be left out.
"""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import bayes_lepu as lepu
from bayes_lepu.model.density import LogDensity
from bayes_lepu.options import FitOptions, read_model

REPLICATIONS = 200
FALSE_ALARM = 0.01  # probability over all cases together
THINNED = 49  # draws that a truth is ranked among: ranks 0..49 fall into ten equal bins
BINS = 10
CASES = {
    "scar": {"model": "scar"},
    "spm, masked": {"model": "spm", "selection_features": [0]},
    "spm": {"model": "spm"},
    "psychm": {"model": "psychm"},
    "spm, Student t": {"model": "spm", "priors": {"a": lepu.Prior("student-t", scale=1.5, nu=4)}},
    "panel, scar": {"model": "scar", "shown": True},
    "panel, spm": {"model": "spm", "shown": True},
    "panel, psychm": {"model": "psychm", "shown": True},
}


def quantities(density, draws):
    """Every parameter (of annotators what they share and how much they differ), pi and c."""
    z, out = density.pack(draws), {}
    for block in density.layout.blocks:
        if block.role != "deviation" and block.size:
            at = density.layout.slices[block.name]
            names = [n.removeprefix("logit ").removeprefix("log ") for n in block.labels]
            out |= dict(zip(names, z[:, at].T, strict=True))
    t, s = draws.t(density.data.X), draws.s(density.data.X)
    out["pi"] = t.mean(axis=-1)
    if not draws.several and density.spec.n_rates == 2:
        out |= draws.rates(density.spec.shape_rates)
    if not draws.several and not density.spec.certain:
        out["c"] = (s * t).mean(axis=-1) / t.mean(axis=-1)
    return out


def ranks_of_truth(X, replications, *, model, shown=None, priors=None, **options):
    """One row per replication that can be fitted: how many of `THINNED` draws lie below the truth.

    Priors are those for labels of which half are marks, in every replication.
    """
    labels = (np.arange(len(X)) % 2).astype(float)
    template = labels if shown is None else np.where(shown, labels[:, None], np.nan)
    asked = FitOptions(X, template, model=model, priors=priors, random_seed=0, **options)
    spec, data, chosen = read_model(asked)
    density = LogDensity(spec, data, chosen, jacobian=True)
    sampling = {"draws": 350, "tune": 400, "chains": 2, "cores": 1, "progressbar": False}
    found = []
    for k in range(replications):
        rng = np.random.default_rng([1, k])
        truth = density.unpack(density.sample_prior(1, rng)[0])
        simulated = truth.simulate(data.X, rng, shown=shown)[1]
        marked = (simulated == 1).reshape(len(X), -1)
        if not marked.any(axis=0).all() or marked.any(axis=1).all():
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", lepu.LepuWarning)
            fit = lepu.fit(
                X,
                simulated if shown is None else np.where(shown, simulated, np.nan),
                model=model,
                priors=chosen,
                orientation="none",  # factors are named as the priors have them
                random_seed=int(rng.integers(2**31)),
                **sampling,
                **options,
            )
        thinned = np.linspace(0, fit.draws.b.size - 1, THINNED).astype(int)
        true = quantities(density, truth.take(None))
        drawn = quantities(density, fit.draws.take(thinned))
        found.append({name: int(np.sum(v < true[name][0])) for name, v in drawn.items()})
    return pd.DataFrame(found)


def outside_band(ranks, prob):
    """Bins of the rank histogram outside the simultaneous band of a uniform distribution."""
    counts = np.histogram(ranks, bins=BINS, range=(-0.5, THINNED + 0.5))[0]
    tail = (1 - prob) / 2 / BINS
    low, high = stats.binom.ppf([tail, 1 - tail], len(ranks), 1 / BINS)
    return int(np.sum((counts < low) | (counts > high)))


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_ranks_of_the_truth_are_uniform(case):
    rng = np.random.default_rng(99)
    options = dict(CASES[case])
    X = rng.standard_normal((200, 2))
    if options.pop("shown", False):
        options["shown"] = rng.random((200, 3)) < 0.7
    ranks = ranks_of_truth(X, REPLICATIONS, **options)
    print(case, ranks.describe().to_string(), sep="\n")
    assert len(ranks) > 0.5 * REPLICATIONS
    band = 1 - FALSE_ALARM / (len(CASES) * ranks.shape[1])
    assert [name for name in ranks if outside_band(ranks[name].to_numpy(), band)] == []
