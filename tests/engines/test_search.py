"""The search over a part of the rows ends where the search over all rows ends."""

import warnings

import numpy as np
import pytest

from bayes_lepu import IdentifiabilityWarning
from bayes_lepu.data.reading import read_data
from bayes_lepu.defaults import default_penalties
from bayes_lepu.engines import optimizers, search
from bayes_lepu.engines.map import fit_map
from bayes_lepu.model import Parameters, get_model
from bayes_lepu.priors.prior import penalty_priors

CLOSE = 0.01  # nats


def drawn(seed, n, p):
    """Labels of a random regime: steep or flat factors, guesses and lapses, rare or common."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    if seed % 3 == 1:
        X[:, 1], X[:, 2] = 0.8 * X[:, 0] + 0.6 * X[:, 1], np.exp(X[:, 2])
    a, alpha = rng.normal(size=(2, p))
    gamma, lam = [(1e-300, 1e-300), (0.05, 0.05), (0.2, 0.1)][rng.integers(3)]
    truth = Parameters.of(
        a=a * rng.choice([1, 2, 4]) / np.linalg.norm(a),
        b=rng.choice([-3, -1, 0, 1]),
        alpha=alpha * rng.choice([0, 0.5, 1, 2]) / np.linalg.norm(alpha),
        beta=rng.choice([-1, 0, 1]),
        gamma=gamma,
        lam=lam,
    )
    return read_data(X, truth.simulate(X, rng)[1])


def highest_modes(data, model, seed, monkeypatch):
    """Log density of the best mode by the search in stages, and by the one over all rows."""
    spec = get_model(model)
    given = default_penalties(data) if seed % 2 else penalty_priors("l2", 0.01)
    priors = spec.complete_priors(given, None)
    tops = []
    for in_stages in (True, False):
        with monkeypatch.context() as patch, warnings.catch_warnings():
            warnings.simplefilter("ignore", IdentifiabilityWarning)
            if not in_stages:
                for module in (search, optimizers):
                    patch.setattr(module, "part_of", lambda density, size=None: density)
            found = fit_map(spec, data, priors, rng=np.random.default_rng(0))
        tops.append(max(mode.logp for mode in found.modes))
    return tops


@pytest.mark.parametrize(("model", "seed"), [("spm", 3), ("spm", 4), ("psychm", 5)])
def test_stages_end_at_the_same_optimum(model, seed, monkeypatch):
    data = drawn(seed, 8000, 4)
    staged, whole = highest_modes(data, model, seed, monkeypatch)
    assert staged == pytest.approx(whole, abs=CLOSE)
