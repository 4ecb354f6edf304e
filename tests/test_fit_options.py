"""Options that `fit` refuses, and what it says then."""

import numpy as np
import pytest

import bayes_lepu as lepu
from bayes_lepu.errors import ModelError


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    return X, (rng.random(200) < 1 / (1 + np.exp(1 - X[:, 0]))).astype(int)


@pytest.mark.parametrize("seed", [-1, 2**63, 1.5, True, "1"])
def test_a_seed_that_is_none(rows, seed):
    with pytest.raises(ModelError, match=r"random_seed = .*; a whole number from 0"):
        lepu.fit(*rows, model="naive", method="map", random_seed=seed)


@pytest.mark.parametrize("method", ["nuts", "laplace"])
def test_too_few_draws_to_judge_convergence(rows, method):
    with pytest.raises(ModelError, match="draws = 3; a whole number of at least 4"):
        lepu.fit(*rows, model="naive", method=method, draws=3, chains=1)


def test_the_fewest_draws_allowed_have_an_effective_size(rows):
    few = {"draws": 4, "tune": 100, "chains": 1, "random_seed": 1, "progressbar": False}
    fit = lepu.fit(*rows, model="naive", method="nuts", **few)
    assert not fit.is_point
    assert np.isfinite(fit.summary()["ess_bulk"].to_numpy(dtype=float)).all()


@pytest.mark.parametrize("value", ["a", None, 1.5, float("nan")])
def test_target_accept_is_a_share(rows, value):
    with pytest.raises(ModelError, match=r"target_accept = .*a number between 0 and 1"):
        lepu.fit(*rows, model="spm", method="nuts", target_accept=value)
