"""How the answer moves with the annotator, without any form, and with each column."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

import bayes_lepu as lepu
from bayes_lepu.priors.prior import Prior

pytestmark = pytest.mark.filterwarnings("ignore::bayes_lepu.LepuWarning")
DEMO = lepu.load_demo()
MAP = {"method": "map", "random_seed": 1, "progressbar": False}


@pytest.fixture(scope="module")
def spm():
    return lepu.fit(DEMO.X, DEMO.l, model="spm", **MAP)


def test_each_scale_is_the_fit_with_that_prior(spm):
    table = spm.sensitivity(scales=(1.0, 0.0))
    assert list(table.index) == [0.0, 1.0]
    priors = {"alpha": Prior("normal", scale=1.0 / np.sqrt(6)), "a": spm.priors["a"]}
    same = lepu.fit(DEMO.X, DEMO.l, model="spm", priors=priors, **MAP)
    assert table.loc[1.0, "class_prior"] == pytest.approx(same.pi_draws[0], abs=1e-5)
    scar = lepu.fit(DEMO.X, DEMO.l, model="scar", priors={"a": spm.priors["a"]}, **MAP)
    assert table.loc[0.0, "class_prior"] == pytest.approx(scar.pi_draws[0], abs=1e-5)
    expected = scar.missed(total=True).loc["as named", "mean"]
    assert table.loc[0.0, "missed"] == pytest.approx(expected, rel=1e-5)


def test_a_wider_annotator_fits_the_labels_at_least_as_well(spm):
    table = spm.sensitivity()
    assert (np.diff(table["behind"]) <= 1e-6).all()
    assert table["behind"].min() == 0
    assert table["same_rows"].between(0, 1).all()


def test_a_constant_annotator_is_asked_too():
    fit = lepu.fit(DEMO.X, DEMO.l, model="scar", **MAP)
    table = fit.sensitivity(scales=(0.0, 1.0))
    assert table.loc[0.0, "class_prior"] == pytest.approx(fit.pi_draws[0], abs=1e-5)
    assert table.loc[0.0, "same_rows"] == 1.0
    assert table.loc[1.0, "class_prior"] > table.loc[0.0, "class_prior"]


def test_senseless_scales_several_annotators_and_unknown_columns_are_refused(spm):
    for scales in ((-1.0,), (), (np.nan,)):
        with pytest.raises(lepu.DataError, match="from 0"):
            spm.sensitivity(scales=scales)
    with pytest.raises(lepu.DataError, match="colour"):
        spm.importance(features=["colour"])
    fit = lepu.fit(DEMO.X, np.column_stack([DEMO.l, DEMO.y]), model="spm", **MAP)
    with pytest.raises(lepu.ModelError, match="annotators"):
        fit.sensitivity()
    with pytest.raises(lepu.ModelError, match="one annotator"):
        fit.bounds()


# Without any form -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def rows():
    """A class with a cauchit link, and s between .3 and .7: no fitted form is right."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(4000, 2))
    t = 0.5 + np.arctan(2 * X @ [2.0, -1.0]) / np.pi
    s = 0.3 + 0.4 / (1 + np.exp(-X[:, 0]))
    y = rng.random(4000) < t
    return X, y & (rng.random(4000) < s), y, float(t.mean())


@pytest.fixture(scope="module")
def fit(rows):
    X, l, _, _ = rows
    return lepu.fit(X, l, model="spm", method="laplace", draws=100, random_seed=1)


def test_bounds_hold_the_truth_where_the_form_is_wrong(rows, fit):
    pi = rows[-1]
    table = fit.bounds(s_min=0.3, s_max=0.7)
    assert len(table) == 2
    assert np.all((table["lowest"] <= pi) & (pi <= table["highest"]))
    assert np.all(table["lowest"] <= table["lower"])
    assert np.all(table["lower"] <= table["upper"])


def test_ends_by_hand(fit):
    h = fit.draws.take(slice(None)).h(fit.data.X)
    table = fit.bounds(s_min=0.4, s_max=0.9)
    assert table["lower"].iloc[0] == pytest.approx(h.mean())
    assert table["upper"].iloc[0] == 1.0
    assert table["lower"].iloc[1] == pytest.approx(np.minimum(h / 0.9, 1).mean())
    assert table["upper"].iloc[1] == pytest.approx(np.minimum(h / 0.4, 1).mean())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"s_min": 1.5}, "between 0 and 1"),
        ({"s_min": 0.8, "s_max": 0.3}, "s_min < s_max"),
    ],
)
def test_senseless_assumptions_are_refused(fit, options, words):
    with pytest.raises(lepu.ModelError, match=words):
        fit.bounds(**options)


# Columns ----------------------------------------------------------------------------------------


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
