"""The call that a fit prints: executed, it gives the same numbers."""

import numpy as np
import pandas as pd
import pytest

import bayes_lepu as lepu
from bayes_lepu import Prior
from tests.tiny import tiny_fit, tiny_table

pytestmark = pytest.mark.filterwarnings("ignore::bayes_lepu.IdentifiabilityWarning")
LAPLACE = {"method": "laplace", "draws": 50, "chains": 2}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(5)
    X = pd.DataFrame(rng.normal(size=(300, 3)), columns=["size", "light", "noise"])
    X["place"] = rng.choice(["inside", "outside"], 300)
    t = 1 / (1 + np.exp(-2 * X["size"] + 0.5))
    s = 1 / (1 + np.exp(-X["light"]))
    y = (rng.random(300) < t).astype(float)
    X["marked"] = (y * (rng.random(300) < s)).astype(int)
    X["other"] = (y * (rng.random(300) < 0.6)).astype(int)
    X["class"] = np.where((X["marked"] == 0) & (np.arange(300) % 7 == 0), y, np.nan)
    return X


def same_numbers(fit, **scope):
    """The fit that its call gives, with the same draws."""
    exec(fit.call, scope)
    again = scope["fit"]
    for name in ("a", "b", "alpha", "beta", "log_w"):
        mine, theirs = getattr(fit.draws, name), getattr(again.draws, name)
        np.testing.assert_allclose(theirs, mine, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(again.pi_draws, fit.pi_draws, rtol=1e-6)
    assert again.feature_names == fit.feature_names
    return again


FEATURES = ["size", "light", "noise", "place"]
ASIDE = ["other", "class"]
CASES = {
    "formulas": {
        "class_features": "~ bs(size, df=4) + place",
        "selection_features": "~ light + (1 | place)",
        "method": "map",
    },
    "exclude": {"exclude": [*ASIDE, "noise"], "method": "map"},
    "by column": {
        "exclude": ASIDE,
        "priors": {"alpha": {"light": Prior("positive", scale=1.0)}, "b": Prior("normal", scale=1)},
        **LAPLACE,
    },
    "false marks": {
        "exclude": ASIDE,
        "false_marks": Prior("beta", concentration=(1, 50)),
        **LAPLACE,
    },
    "penalties": {"exclude": ASIDE, "penalty": {"a": "l1"}, "C": np.float64(2.0), "method": "map"},
    "audited": {"y": "class", "audits": "random", "exclude": ["other"], "method": "map"},
    "columns": {
        "class_features": ["size", "place"],
        "selection_features": ["light"],
        "exclude": ASIDE,
        "standardize": False,
        "method": "map",
    },
}


@pytest.mark.parametrize("options", CASES.values(), ids=CASES)
def test_a_call_gives_the_same_numbers(table, options):
    fit = lepu.fit(table, "marked", model="spm", random_seed=1, **options)
    same_numbers(fit, X=table)


def test_labels_audits_and_weights_that_are_no_columns(table):
    X, w = table[FEATURES], np.arange(300) % 3 + 1.0
    given = {"l": table["marked"], "y": table["class"]}
    fit = lepu.fit(X, **given, sample_weight=w, model="spm", method="map", random_seed=1)
    same_numbers(fit, X=X, w=w, **given)


@pytest.mark.parametrize("missing", ["impute", "indicator"])
def test_missing_cells(table, missing):
    X = table[FEATURES].mask(np.random.default_rng(0).random((300, 4)) < 0.02)
    options = {"exclude": ["noise"], "missing": missing, "random_seed": 1}
    fit = lepu.fit(X, table["marked"], model="spm", method="map", **options)
    same_numbers(fit, X=X, l=table["marked"])


def test_several_annotators(table):
    X = table.drop(columns="class")
    fit = lepu.fit(X, ["marked", "other"], model="spm", random_seed=1, **LAPLACE)
    same_numbers(fit, X=X)
    X, L = table[FEATURES], table[["marked", "other"]]
    fit = lepu.fit(X, L, model="scar", random_seed=1, **LAPLACE)
    same_numbers(fit, X=X, l=L)


def test_a_chosen_model_with_visits(table):
    X, L = table[FEATURES], table[["marked", "other"]]
    visits = {"wind": np.random.default_rng(1).normal(size=(300, 2))}
    fit = lepu.fit(X, L, visits=visits, random_seed=1, **LAPLACE)
    same_numbers(fit, X=X, l=L, visits=visits)


def test_an_update_is_called_with_what_was_learned(table):
    fit = lepu.fit(table, "marked", model="spm", method="map", exclude=ASIDE, random_seed=1)
    updated = fit.update(y=table["class"], class_prior=(0.4, 0.1))
    same_numbers(updated, X=table, y=table["class"])
    assert updated.provenance.made_by == "update"


def test_an_update_leaves_columns_of_formulas_as_they_were(table):
    """Columns of a spline share a scale and are not standardised one by one."""
    fit = lepu.fit(table, "marked", model="spm", random_seed=1, **CASES["formulas"])
    updated = fit.update(y=table["class"])
    np.testing.assert_array_equal(updated.data.X, fit.data.X)
    assert updated.data.blocks == fit.data.blocks
    same_numbers(updated, X=table, y=table["class"])


def test_draws_of_a_trace_are_called_from_the_trace():
    X, l, _ = tiny_table()
    tree = tiny_fit("scar").tree
    fit = lepu.from_trace(tree, X, l, model="scar", random_seed=1)
    same_numbers(fit, X=X, l=l, trace=tree)


def test_options_come_back_from_a_file(table, tmp_path):
    options = {**CASES["by column"], **CASES["false marks"], "draws": np.int64(60)}
    fit = lepu.fit(table, "marked", model="spm", random_seed=np.int64(1), **options)
    loaded = lepu.load(fit.save(tmp_path / "fit.nc"))
    assert loaded.options == fit.options
    assert loaded.call == fit.call


def test_an_update_leaves_what_it_does_not_speak_of(table):
    X, l, y = table[FEATURES], table["marked"], table["class"]
    given = {"a": Prior("normal", scale=0.1)}
    options = {"y": y, "audits": "random", "priors": given, "random_seed": 1}
    fit = lepu.fit(X, l, model="scar", **options, **LAPLACE)
    assert fit.update(class_prior=(0.4, 0.05)).options.audits == "random"
    assert fit.update(y=y).options.audits == "chosen"
    assert fit.update(method="map").priors["a"] == given["a"]


def test_an_update_without_false_marks(table):
    X, l = table[FEATURES], table["marked"]
    marks = Prior("beta", concentration=(20, 80))
    fit = lepu.fit(X, l, model="scar", method="map", false_marks=marks, random_seed=1)
    updated = fit.update(false_marks=False)
    assert not updated.spec.false_marks
    same_numbers(updated, X=X, l=l)


def test_an_update_of_groups_finds_their_scale_anew(table):
    options = {"model": "scar", "class_features": "~ size + (1 | place)", "method": "map"}
    fit = lepu.fit(table, "marked", random_seed=1, **options)
    fresh = lepu.fit(table, "marked", y=table["class"], random_seed=1, **options)
    updated = fit.update(y=table["class"])
    own, new, wanted = (f.priors["a"].parts[-1].scale for f in (fit, updated, fresh))
    assert new == pytest.approx(wanted, rel=1e-6)
    assert new != pytest.approx(own, rel=1e-3)
    np.testing.assert_allclose(updated.draws.a, fresh.draws.a, rtol=1e-4, atol=1e-6)
