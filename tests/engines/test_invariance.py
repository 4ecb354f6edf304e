"""The answer does not depend on the order of rows and columns, on units, or on the seed."""

from multiprocessing.pool import ThreadPool

import numpy as np
import pytest
from scipy.special import expit

import bayes_lepu as lepu

pytestmark = pytest.mark.filterwarnings("ignore::bayes_lepu.LepuWarning")


def table(seed, n=300, p=4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) * rng.uniform(0.3, 3.0, p) + rng.normal(size=p)
    t = expit(2 * X[:, 0] / X[:, 0].std() - 0.5)
    s = expit(1.5 * X[:, 1] / X[:, 1].std() + 0.3)
    return X, (rng.random(n) < 0.05 * (1 - t) + 0.95 * s * t).astype(int)


def changes(X, l):
    """The same data told in other ways: (rows told, labels told, answers back in the old order)."""
    n, p = X.shape
    rows, columns = np.random.default_rng(1).permutation(n), np.arange(p)[::-1]
    scale = np.array([1e-6, -3.0, 1.0, 1e5])[:p]
    back = np.argsort(rows)
    return {
        "rows": (X[rows], l[rows], back),
        "columns": (np.ascontiguousarray(X[:, columns]), l, slice(None)),
        "units": (X * scale + np.array([1.0, 0.0, -20.0, 3.0])[:p], l, slice(None)),
    }


@pytest.mark.parametrize("model", ["scar", "spm", "psychm"])
@pytest.mark.parametrize("change", ["rows", "columns", "units"])
def test_map_finds_the_same_optimum_however_the_table_is_told(model, change):
    for data_seed in (1, 2):
        X, l = table(data_seed)
        told, labels, back = changes(X, l)[change]
        one = lepu.fit(X, l, model=model, method="map", random_seed=1)
        other = lepu.fit(told, labels, model=model, method="map", random_seed=2)
        assert other.modes[0].logp == pytest.approx(one.modes[0].logp, abs=1e-3)
        difference = other.predict_proba(told)[back, 1] - one.predict_proba(X)[:, 1]
        assert np.max(np.abs(difference)) < 0.02


def test_the_exchanged_mode_is_always_looked_for():
    """Without guesses and lapses PsychM is SPM, whose exchange has the same likelihood."""
    X, l = table(4)
    fit = lepu.fit(X, l, model="psychm", method="map", random_seed=1)
    best, others = fit.modes[0], fit.modes[1:]
    swapped = fit.density.logp(fit.density.swap(best.z))
    assert all(m.logp <= best.logp + 1e-9 for m in others)
    assert any(m.logp >= swapped - 1e-6 for m in others)


@pytest.mark.parametrize("model", ["scar", "spm", "psychm"])
def test_rows_told_twice_are_rows_of_weight_two(model):
    X, l = table(6)
    weighted = lepu.fit(X, l, model=model, method="map", sample_weight=np.full(len(l), 2.0))
    told = lepu.fit(np.vstack([X, X]), np.r_[l, l], model=model, method="map")
    assert told.modes[0].logp == pytest.approx(weighted.modes[0].logp, abs=1e-4)
    np.testing.assert_allclose(told.predict_proba(X), weighted.predict_proba(X), atol=2e-3)


def seeded(method):
    """A fit of its own seed, from whatever thread or process."""
    X, l = table(7, n=80, p=2)
    options = {"draws": 20, "tune": 30, "chains": 2, "cores": 1, "progressbar": False}
    fit = lepu.fit(X, l, model="scar", method=method, random_seed=3, **options)
    return fit.parameters.a


@pytest.mark.parametrize("method", ["map", "laplace", "nuts"])
def test_one_seed_gives_one_result_in_any_thread(method):
    here = seeded(method)
    with ThreadPool(2) as pool:
        for there in pool.map(seeded, [method] * 3):
            np.testing.assert_array_equal(there, here)
