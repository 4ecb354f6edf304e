"""How much t and s depend on each of the user's columns."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

import bayes_lepu as lepu

MAP = {"method": "map", "random_seed": 1, "progressbar": False}


def test_of_independent_columns_in_a_straight_class_it_is_the_share_of_each():
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.normal(size=(2000, 3)), columns=list("abc"))
    y = rng.random(2000) < expit(0.3 * (2 * X["a"] + X["b"]))
    l = (y & (rng.random(2000) < 0.6)).astype(int)
    fit = lepu.fit(X, l, model="scar", **MAP)
    found = fit.importance()
    assert list(found.columns) == ["t"]
    assert list(found.index) == ["a", "b", "c"]
    # Small slopes make t nearly straight: the shares are those of the squared slopes.
    slopes = fit.coefficients().query("factor == 't' and scale == 'internal'")["mean"]
    squared = slopes.xs("t").reset_index("scale", drop=True).reindex(list("abc")) ** 2
    assert found["t"].to_numpy() == pytest.approx((squared / squared.sum()).to_numpy(), abs=0.06)


def test_of_a_learned_class_the_users_columns_are_shuffled():
    rng = np.random.default_rng(2)
    X = pd.DataFrame(rng.normal(size=(1500, 3)), columns=list("abc"))
    X["kind"] = rng.choice(["x", "y", "z"], 1500)
    y = rng.random(1500) < expit(4 - 4 * X["a"] ** 2)
    l = (y & (rng.random(1500) < expit(2 * X["b"]))).astype(int)
    fit = lepu.fit(X, l, model="spm", class_learner="trees", selection_features=["b", "c"], **MAP)
    found = fit.importance()
    assert set(found.index) == {"a", "b", "c", "kind"}  # no scores
    assert found["t"].idxmax() == "a"  # though its slope is near 0: the curve has its effect
    assert found.loc["a", "t"] > 0.5
    assert found.loc["b", "s"] > 0.8
    assert found.loc[["a", "kind"], "s"].to_list() == [0, 0]
    some = fit.importance(features=["b", "a"])
    pd.testing.assert_frame_equal(some, found.loc[["a", "b"]])


def test_an_unknown_column_is_refused():
    demo = lepu.load_demo()
    fit = lepu.fit(demo.X, demo.l, model="scar", **MAP)
    with pytest.raises(lepu.DataError, match="colour"):
        fit.importance(features=["colour"])
