"""The embedded demo: one table everywhere, a known biased annotator, what it says of itself."""

import numpy as np
import pandas as pd

from bayes_lepu.datasets import load_demo


def within(rate: float, expected: float, n: int) -> bool:
    """Is an observed rate within 4 binomial standard errors of the expected one?"""
    return abs(rate - expected) <= 4 * np.sqrt(max(expected * (1 - expected), 1e-12) / n)


def test_demo_is_the_same_table_everywhere() -> None:
    data = load_demo()
    assert data.X.shape == (2500, 6)
    assert int(data.l.sum()) == 790
    assert int(data.y.sum()) == 1262
    np.testing.assert_allclose(
        data.X.sum().to_numpy(), [9944.2, 9440.8, 8281.5, 301372.0, 5982.42, 25615.0], rtol=1e-9
    )
    pd.testing.assert_frame_equal(data.X, load_demo().X)


def test_demo_truth_is_a_psychm_on_standardised_columns() -> None:
    data = load_demo()
    truth = data.truth
    Z = ((data.X - data.X.mean()) / data.X.std(ddof=0)).to_numpy()
    t = 1 / (1 + np.exp(-(Z @ truth["a"] + truth["b"])))
    s = 0.10 + 0.85 / (1 + np.exp(-(Z @ truth["alpha"] + truth["beta"])))
    np.testing.assert_allclose(data.t, t, rtol=1e-10)
    np.testing.assert_allclose(data.s, s, rtol=1e-10)
    assert truth["gamma"] == 0.10
    assert truth["lam"] == 0.05
    assert np.all(data.l <= data.y)
    assert within(data.y.mean(), truth["pi"], 2500)
    assert within(data.l[data.y == 1].mean(), truth["c"], int(data.y.sum()))
