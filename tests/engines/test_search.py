"""The search over parts of the rows ends no lower than a search over all rows."""

import numpy as np
import pytest

from bayes_lepu.data.reading import read_data
from bayes_lepu.defaults import default_penalties
from bayes_lepu.engines.map import fit_map
from bayes_lepu.engines.optimizers import optimise
from bayes_lepu.model import Parameters, get_model
from bayes_lepu.model.density import LogDensity


@pytest.mark.filterwarnings("ignore::bayes_lepu.IdentifiabilityWarning")
@pytest.mark.parametrize("model", ["spm", "psychm"])
def test_the_search_in_stages_finds_the_highest_mode(model):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(8000, 4))
    a, alpha = rng.normal(size=(2, 4))
    truth = Parameters.of(a=2 * a, b=0.3, alpha=alpha, beta=0.0, gamma=0.05, lam=0.05)
    data, spec = read_data(X, truth.simulate(X, rng)[1]), get_model(model)
    priors = spec.complete_priors(default_penalties(data), None)
    found = fit_map(spec, data, priors, rng=np.random.default_rng(0))
    best, density = max(mode.logp for mode in found.modes), LogDensity(spec, data, priors)
    near_truth = density.pack(truth)
    starts = [near_truth, density.swap(near_truth), *rng.normal(size=(8, density.dim))]
    assert best >= max(optimise(density, z).logp for z in starts) - 0.01
