"""Identical rows are counted, and everything is as with the rows themselves."""

import numpy as np
import pandas as pd
import pytest

import bayes_lepu as lepu
from bayes_lepu.data.reading import read_data
from bayes_lepu.data.weights import find_repeats
from bayes_lepu.links import sigmoid
from bayes_lepu.model import get_model
from bayes_lepu.model.density import LogDensity
from bayes_lepu.options import choose_priors


def coarse(n=4000, seed=1):
    """A table of few different rows; w belongs to the annotator."""
    rng = np.random.default_rng(seed)
    x, w = rng.integers(-2, 3, n), rng.integers(0, 4, n)
    y = rng.random(n) < sigmoid(1.5 * x)
    marked = y & (rng.random(n) < sigmoid(w - 1.0))
    checked = np.where(~marked & (rng.random(n) < 0.05), y, np.nan)
    return pd.DataFrame({"x": x, "w": w}), marked.astype(int), checked


def test_repeats_are_those_of_numpy():
    rng = np.random.default_rng(2)
    table = rng.integers(0, 4, (2000, 3)).astype(float)
    table[::7, 0] = np.nan
    table[5, 1] = -0.0
    first, kind = find_repeats(table[:, :2], table[:, 2])
    np.testing.assert_array_equal(table[first][kind], table)
    assert len(first) == len(pd.DataFrame(table).drop_duplicates())
    assert (np.diff(first[pd.unique(kind)]) > 0).all()  # in the order of their first rows


@pytest.mark.parametrize("rows", [500, 3000])
def test_tables_without_many_repeats_stay_as_they_are(rows):
    data = read_data(np.random.default_rng(3).normal(size=(rows, 2)), np.arange(rows) % 3 == 0)
    assert data.distinct is data


def test_counts_give_the_density_of_the_rows():
    X, l, y = coarse()
    weight = np.random.default_rng(4).uniform(0.5, 2.0, len(X))
    for options in ({}, {"sample_weight": weight}):
        data = read_data(X, l, y=y, **options)
        few = data.distinct
        assert few.n < 100
        assert few.weight.sum() == pytest.approx(weight.sum() if options else len(X))
        spec = get_model("psychm")
        priors = choose_priors(spec, data)
        one, other = (LogDensity(spec, d, priors, jacobian=True) for d in (data, few))
        z = np.random.default_rng(5).normal(size=one.dim)
        assert other.logp(z) == pytest.approx(one.logp(z), rel=1e-12)


def test_a_fit_of_counted_rows_speaks_of_all_rows(monkeypatch):
    X, l, _ = coarse()
    masks = {"class_features": ["x"], "selection_features": ["w"]}
    fit = lepu.fit(X, l, model="spm", method="map", random_seed=1, **masks)
    with monkeypatch.context() as patch:
        patch.setattr("bayes_lepu.data.pu_data.find_repeats", lambda *tables, few: None)
        plain = lepu.fit(X, l, model="spm", method="map", random_seed=1, **masks)
    assert fit.data.n == len(X)
    assert fit.data.distinct.n < 100
    np.testing.assert_allclose(fit.parameters.a, plain.parameters.a, atol=1e-6)
    assert fit.pi_draws[0] == pytest.approx(plain.pi_draws[0], abs=1e-6)
    assert fit.pi_draws[0] == pytest.approx(fit.predict_proba(X)[:, 1].mean(), abs=1e-10)


WRITTEN = {
    "a list": {},
    "filled": {"missing": "impute"},
    "indicators": {"missing": "indicator"},
    "formulas": {
        "missing": "impute",
        "class_features": "~ bs(size, df=5) + poly(size, 2) + place",
        "selection_features": "~ scale(size) + (1 | place)",
    },
}


@pytest.mark.parametrize("options", WRITTEN.values(), ids=WRITTEN)
def test_a_weight_is_a_row_repeated(options, rng):
    """Also for what is learned: references, what fills gaps, knots, moments, averages."""
    n = 300
    table = pd.DataFrame(
        {
            "size": rng.lognormal(size=n),
            "place": rng.choice(["a", "b", "c"], n, p=[0.4, 0.3, 0.3]),
            "marked": np.arange(n) % 3 == 0,
        }
    )
    if options:
        table.loc[rng.choice(n, 40), "size"] = np.nan
        table.loc[rng.choice(n, 40), "place"] = None
    weight = rng.integers(0, 3, n) + 4 * (table["place"] == "c")
    options = options | {"standardize": False}
    one = read_data(table, "marked", sample_weight=weight, **options)
    rows = table.loc[np.repeat(table.index, weight)].reset_index(drop=True)
    other = read_data(rows, "marked", **options)
    assert one.feature_names == other.feature_names
    np.testing.assert_allclose(
        np.repeat(one.X, one.weight.astype(int), axis=0), other.X, atol=1e-10
    )
    new = pd.DataFrame({"size": [1.5, 2.5], "place": ["a", "b"]})
    np.testing.assert_allclose(one.transform(new)[0], other.transform(new)[0], atol=1e-10)
