"""Basins that chains do not connect are mixed in proportion to their evidence."""

import numpy as np
import pytest

import bayes_lepu as lepu


def test_two_separate_answers_are_mixed_openly():
    """With a mask that hides nothing of weight, the mirror image stays a second answer."""
    rng = np.random.default_rng(4)
    X = rng.standard_normal((500, 3))
    truth = lepu.Parameters.of(a=[2.0, 1.0, 0.02], b=0.0, alpha=[-1.0, 2.0, 0.0], beta=0.3)
    _, l = truth.simulate(X, rng)
    with pytest.warns(lepu.IdentifiabilityWarning, match="2 separate modes"):
        fit = lepu.fit(
            X,
            l,
            model="spm",
            selection_features=[0, 1],
            priors=dict.fromkeys(("a", "b", "alpha", "beta"), lepu.Prior("normal", scale=2.5)),
            draws=300,
            tune=300,
            random_seed=1,
            progressbar=False,
        )
    shares = fit.quality.figures["mode_weights"]
    assert sum(shares) == pytest.approx(1)
    mode = fit.stats["mode"]
    assert mode.mean() == pytest.approx(shares[1], abs=0.1)
    by_mode = [fit.parameters.a[mode == m].mean(axis=0) for m in (0, 1)]
    assert np.linalg.norm(by_mode[0] - by_mode[1]) > 1
