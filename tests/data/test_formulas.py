"""Formulas: columns of both factors, splines, groups; what they learn travels with the fit."""

import json
import time
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.interpolate import BSpline

import bayes_lepu as lepu
from bayes_lepu import DataError
from bayes_lepu.actions.groups import own_values
from bayes_lepu.data.encoding import Encoding
from bayes_lepu.data.reading import read_data

N = 150


@pytest.fixture
def frame():
    rng = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "amount": rng.lognormal(size=N),
            "country": rng.choice(["DE", "FR", "US"], N, p=[0.5, 0.2, 0.3]),
            "merchant": rng.integers(0, 8, N),
            "marked": np.arange(N) % 3 == 0,
            "opened": pd.date_range("2024", periods=N),  # in no formula, so no problem
        }
    )


def refused(*parts):
    return pytest.raises(DataError, match="(?s)" + ".*".join(parts))


def read(frame, class_features, selection_features=None, **options):
    return read_data(
        frame,
        "marked",
        class_features=class_features,
        selection_features=selection_features,
        standardize=False,
        **options,
    )


def test_each_factor_owns_the_columns_of_its_formula(frame):
    data = read(frame, "~ bs(amount, df=5) + country", "~ log(amount) + country")
    assert {term: len(places) for term, places in data.terms.items()} == {
        "bs(amount, df=5)": 5,
        "country": 2,
        "log(amount)": 1,
    }
    assert data.user_columns == ("amount", "country")
    assert data.class_mask.tolist() == [True] * 7 + [False]
    assert data.selection_mask.tolist() == [False] * 5 + [True] * 3
    log = data.X[:, data.terms["log(amount)"][0]]
    np.testing.assert_allclose(log, np.log(frame["amount"]))


def test_splines_are_scipys(frame):
    """A cubic spline with knots at the quantiles, without its first column."""
    data = read(frame, "~ bs(amount, df=5)")
    x = frame["amount"].to_numpy()
    inner = np.quantile(x, [1 / 3, 2 / 3])
    knots = np.r_[[x.min()] * 4, inner, [x.max()] * 4]
    wanted = BSpline.design_matrix(x, knots, 3).toarray()[:, 1:]
    np.testing.assert_allclose(data.X, wanted, atol=1e-9)


def test_new_rows_use_what_was_learned(frame):
    data = read(frame, "~ bs(amount, df=4) + poly(amount, 2) + country:log(amount)")
    new = frame[frame["country"] == "US"].sample(frac=1, random_state=1)
    values, index = data.transform(new.drop(columns=["marked", "opened"]))
    np.testing.assert_allclose(values, data.X[index], atol=1e-12)


def test_levels_nobody_has_seen(frame):
    new = frame.head(2).assign(country="AT")
    with refused("has not seen", "country", "AT"):
        read(frame, "~ country").transform(new)
    data = read(frame, "~ country + log(amount)")
    data = replace(data, encoding=replace(data.encoding, accepts_unseen=True))
    np.testing.assert_array_equal(data.transform(new)[0][0, :2], 0)  # the reference
    group = read(frame, "~ (1 | merchant) + log(amount)")
    assert len(group.terms["1 | merchant"]) == 8
    values = group.transform(frame.head(2).assign(merchant=99))[0]
    np.testing.assert_array_equal(values[:, list(group.terms["1 | merchant"])], 0)


@pytest.mark.parametrize(
    ("term", "function"),
    [
        ("bs(amount, df=6)", lambda x: x),
        ("bs(log(amount), df=4)", np.log),
        ("cr(amount + 1, df=5)", lambda x: x + 1),
    ],
)
def test_the_argument_of_a_spline_and_its_values_outside_the_range(frame, term, function):
    """Its columns tell what it is of; beyond the training rows it keeps its last value."""
    data = read(frame, f"~ {term}")
    design = data.encoding.design
    found = design.argument(design.terms[0][0], data.X)
    np.testing.assert_allclose(found, function(frame["amount"]), rtol=1e-8)
    assert design.argument("country", data.X) is None
    order = frame["amount"].to_numpy().argsort()
    ends = data.X[order[[0, -1]]]
    beyond = frame.head(2).assign(amount=[frame["amount"].min() / 3, 100 * frame["amount"].max()])
    np.testing.assert_allclose(data.transform(beyond)[0], ends, atol=1e-12)


def test_rows_to_look_at_show_the_columns_of_the_user(frame):
    """Not those of a spline or of a group."""
    frame.loc[3:5, "amount"] = np.nan
    fit = lepu.fit(
        frame,
        "marked",
        class_features="~ bs(amount, df=4) + country + (1 | merchant) + amount:merchant",
        missing="impute",
        model="scar",
        method="map",
        random_seed=1,
    )
    rows = np.arange(N)
    shown = dict(own_values(fit.data, term, rows) for term in fit.data.terms if ":" not in term)
    amount = frame["amount"].fillna(frame["amount"].mean())
    np.testing.assert_allclose(shown["amount"].astype(float), amount, rtol=1e-8)
    assert shown["country"].tolist() == frame["country"].tolist()
    assert shown["merchant"].tolist() == frame["merchant"].astype(str).tolist()


@pytest.mark.parametrize("name", ["in ~ out", "a + b", "log", "C", "1st", "None", "<b>"])
def test_columns_of_any_name_stand_in_backticks(frame, name):
    data = read(frame.rename(columns={"amount": name}), f"~ `{name}`")
    assert data.p == 1


def test_names_in_backticks_work_inside_functions(frame):
    """`a.b`, `a b` and a_b are three columns, each with knots of its own."""
    rng = np.random.default_rng(5)
    names = ("a.b", "a b", "a_b", "None")
    values = {name: k + rng.lognormal(size=N) for k, name in enumerate(names)}
    table = frame.assign(**values)
    formula = "~ bs(`a.b`, df=4) + bs(`a b`, df=4) + log(`a_b` + 1) + sqrt(`None`) + `a b`"
    data = read(table, formula)
    assert data.user_columns == names
    one, two, log, root, bare = (list(places) for places in data.terms.values())
    for places, name in ((one, "a.b"), (two, "a b")):
        plain = read(frame.assign(x=table[name]), "~ bs(x, df=4)")
        np.testing.assert_allclose(data.X[:, places], plain.X)
    np.testing.assert_allclose(data.X[:, log[0]], np.log(table["a_b"] + 1))
    np.testing.assert_allclose(data.X[:, root[0]], np.sqrt(table["None"]))
    np.testing.assert_allclose(data.X[:, bare[0]], table["a b"])
    assert data.feature_names[log[0]] == "log(a_b + 1)"
    again = Encoding.from_dict(json.loads(json.dumps(data.encoding.to_dict())))
    values, _ = replace(data, encoding=again).transform(table[list(names)])
    np.testing.assert_allclose(values, data.X)
    with refused("'c.d'", "Columns"):
        read(table, "~ log(`c.d`)")
    with refused("cannot be evaluated", r"log\(-`a b`\)"):
        read(table, "~ log(-`a b`)")


def test_a_list_beside_a_formula_is_the_sum_of_its_columns(frame):
    listed = read(frame, "~ bs(amount, df=4)", ["country", "amount"])
    written = read(frame, "~ bs(amount, df=4)", "~ country + amount")
    assert listed.feature_names == written.feature_names
    np.testing.assert_array_equal(listed.X, written.X)
    np.testing.assert_array_equal(listed.selection_mask, written.selection_mask)
    odd = frame.rename(columns={"amount": "the amount"})
    assert "the amount" in read(odd, ["the amount"], "~ country").user_columns


def test_formulas_are_saved_with_the_fit(frame, tmp_path):
    fit = lepu.fit(
        frame,
        "marked",
        model="spm",
        method="map",
        class_features="~ bs(amount, df=4) + country",
        selection_features="~ poly(amount, 2) + (1 | merchant)",
        random_seed=1,
    )
    assert "formulas 'bs(amount, df=4) + country', 'poly(amount, 2) + (1 | merchant)'" in repr(fit)
    back = lepu.load(fit.save(tmp_path / "fit.nc"))
    assert back.data.encoding == fit.data.encoding
    new = frame.sample(frac=0.5, random_state=3)
    np.testing.assert_allclose(back.predict_proba(new), fit.predict_proba(new), atol=1e-12)
    np.testing.assert_allclose(back.propensity(new), fit.propensity(new), atol=1e-12)


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("~ I(amount ** 9 ** 9 ** 9)", r"9 \*\* 9 \*\* 9 in"),
        ("~ I(amount + (1 << (1 << 34)))", "uses lshift"),
        ("~ I(amount * 'x' * 10 ** 9)", "columns and numbers"),
        ("~ I(amount" + " + 1" * 3000 + ")", "is not a formula"),
        ("~ I(" + "-" * 2000 + "amount)", "is not a formula"),
        ("~ (amount + country) ** 99", "more than 3000 terms"),
        ("~ amount ^ 1000", "more than 3000 terms"),
        ("~ " + " * ".join(["amount", "country"] * 9), "more than 3000 terms"),
        ("~ amount" + " + amount" * 10**5, "900006 characters"),
        ("~ bs(amount, df=10**7)", "a whole number from 1 to 200"),
        ("~ bs(amount, knots=[0] * 10**7)", r"\[0\] \* 10 \*\* 7 in"),
        (f"~ bs(amount, knots={[0] * 300})", "a list of 300"),
        ("~ poly(amount, 1000000)", "a whole number from 1 to 200"),
        ("~ bs(amount, df=0)", "a whole number from 1 to 200"),
        ("~ amount | country", "several parts"),
        ("~ amount.__class__", "not a column"),
    ],
)
def test_a_hostile_formula_is_refused_at_once(frame, formula, message):
    """A formula comes out of saved files too: none may run code or take for ever."""
    began = time.process_time()
    with pytest.raises(lepu.DataError, match=message):
        lepu.fit(frame, "marked", model="scar", method="map", class_features=formula)
    assert time.process_time() - began < 2


def test_the_curve_of_a_spline_is_that_of_its_rows(frame):
    """The columns along a spline's range are those that rows with these values have."""
    data = read(frame, "~ bs(amount, df=5) + country + (1 | merchant)")
    design = data.encoding.design
    x, columns = design.curve("bs(amount, df=5)", 5)
    np.testing.assert_allclose([x[0], x[-1]], [frame["amount"].min(), frame["amount"].max()])
    rows = frame.head(5).assign(amount=x)
    wanted = data.transform(rows)[0][:, list(data.terms["bs(amount, df=5)"])]
    np.testing.assert_allclose(columns, wanted, atol=1e-12)
    assert design.curve("country", 5) is None
    assert design.blocks == ("bs(amount, df=5)", "1 | merchant")


def test_an_interaction_that_the_formulas_code_differently(frame):
    """Without the main effect an interaction has a column for every level."""
    data = read(frame, "~ amount:country", "~ amount + amount:country")
    names = np.array(data.feature_names)
    assert sorted(names[data.class_mask]) == [f"amount:country[{c}]" for c in ("DE", "FR", "US")]
    assert data.selection_mask.sum() == 3
    assert "amount" in names[data.selection_mask]
    np.testing.assert_allclose(data.transform(frame)[0], data.X)


def test_numbers_as_categories_keep_their_levels(frame):
    data = read(frame, "~ amount + C(merchant)")
    assert len(data.terms["C(merchant)"]) == 7
    np.testing.assert_allclose(data.transform(frame.iloc[:3])[0], data.X[:3])
    with refused("Levels that the fit has not seen", "merchant", "'99'"):
        data.transform(frame.assign(merchant=99))
