"""Categories, missing cells and frames of any kind: what a table becomes, what is kept of it."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import xarray as xr

import bayes_lepu as lepu
from bayes_lepu import DataError
from bayes_lepu.data.encoding import Encoding
from bayes_lepu.data.reading import read_data

N = 120


@pytest.fixture
def frame():
    rng = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "amount": rng.normal(100, 20, N),
            "country": rng.choice(["DE", "FR", "US"], N, p=[0.2, 0.5, 0.3]),
            "size": pd.Categorical(rng.choice(["L", "M", "S"], N), ["S", "M", "L", "XL"]),
            "flag": rng.random(N) < 0.4,
            "age": pd.array(rng.integers(18, 80, N), dtype="Int64"),
        }
    )


@pytest.fixture
def labels():
    return np.arange(N) % 3 == 0


def refused(*parts):
    return pytest.raises(DataError, match="(?s)" + ".*".join(parts))


def raw(data):
    return pd.DataFrame(data.X * data.scale + data.center, columns=data.feature_names)


def test_categories_become_indicators_of_all_levels_but_the_reference(frame, labels):
    """The reference is the most frequent level."""
    data = read_data(frame, labels)
    size = f"size_{frame['size'].mode()[0]}"
    wanted = pd.get_dummies(frame, dtype=float).drop(columns=["country_FR", size, "size_XL"])
    wanted.columns = [c.replace("_", "=") for c in wanted.columns]
    wanted = wanted[list(data.feature_names)].astype(float)
    pd.testing.assert_frame_equal(raw(data), wanted)
    assert data.terms == {
        "amount": (0,),
        "country": (1, 2),
        "size": (3, 4),
        "flag": (5,),
        "age": (6,),
    }


def test_the_order_of_the_categories_does_not_matter(frame, labels):
    """Priors of slopes are not the same for every reference, so the order may not choose it."""
    other = frame.assign(size=frame["size"].cat.reorder_categories(["XL", "M", "L", "S"]))
    found = [lepu.fit(X, labels, model="scar", method="map") for X in (frame, other)]
    np.testing.assert_allclose(*(fit.predict_proba(frame) for fit in found), rtol=1e-6)


def test_masks_take_a_category_as_a_whole_or_by_level(frame, labels):
    data = read_data(frame, labels, class_features=["country", "age"], selection_features=[2])
    assert np.flatnonzero(data.class_mask).tolist() == [1, 2, 6]
    assert np.flatnonzero(data.selection_mask).tolist() == [3, 4]
    one = read_data(frame, labels, class_features=["country=US"])
    assert np.flatnonzero(one.class_mask).tolist() == [2]
    with refused("names 'contry'", "Did you mean 'country'"):
        read_data(frame, labels, class_features=["contry"])


def test_levels_of_numbers_are_found_in_other_types(frame, labels):
    frame["branch"] = pd.Categorical(np.arange(N) % 3)
    data = read_data(frame, labels)
    wanted = data.X[:9]
    for kind in (int, float, str, "Int64", "category"):
        new = frame.head(9).assign(branch=(np.arange(9) % 3).astype(int)).astype({"branch": kind})
        np.testing.assert_allclose(data.transform(new)[0], wanted, atol=1e-12)


def test_levels_that_no_training_row_had(frame, labels):
    data = read_data(frame, labels)
    new = frame.head(4).assign(country=["US", "AT", "CH", "AT"])
    with refused("has not seen", r"country \('AT', 'CH' in row 1 and 2 more\)", "accept_unseen"):
        data.transform(new)
    data = replace(data, encoding=replace(data.encoding, accepts_unseen=True))
    reference = data.transform(new)[0]
    np.testing.assert_allclose(
        reference[1:], data.transform(new.assign(country="FR"))[0][1:], atol=1e-12
    )


@pytest.fixture
def holes(frame):
    frame.loc[3:12, "amount"] = np.nan
    frame.loc[10:14, "country"] = None
    frame.loc[20, "age"] = pd.NA
    return frame


def test_what_stands_in_missing_cells(holes, labels):
    """Of new rows, too: what the training rows say."""
    data = read_data(holes, labels, missing="impute")
    assert "amount missing" not in data.feature_names
    np.testing.assert_allclose(raw(data)["amount"][5], holes["amount"].mean())
    new = holes.iloc[[11]].assign(amount=np.nan)
    np.testing.assert_allclose(data.transform(new)[0][0], data.X[11], atol=1e-12)
    assert raw(data).loc[11, ["country=DE", "country=US"]].abs().max() < 1e-12  # the reference
    data = read_data(holes, labels, missing="indicator")
    table = raw(data)
    gap = holes["amount"].isna()
    np.testing.assert_array_equal(table["amount missing"] > 0.5, gap)
    np.testing.assert_allclose(table["amount"][gap], holes["amount"].mean())
    np.testing.assert_array_equal(table["country=(missing)"] > 0.5, holes["country"].isna())
    assert data.terms["amount"] == (0, 1)
    new = holes.head(2).assign(amount=np.nan, country=None, flag=[True, False], size=None)
    values = pd.DataFrame(data.transform(new)[0] * data.scale + data.center, columns=table.columns)
    np.testing.assert_allclose(values["amount missing"], 1)
    np.testing.assert_allclose(values["amount"], holes["amount"].mean())
    np.testing.assert_allclose(values["country=(missing)"], 1)


@pytest.mark.parametrize(
    ("convert", "how"),
    [
        (pa.RecordBatch.from_pandas, "X.to_pandas"),
        (lambda f: f.to_records(index=False), "pd.DataFrame"),
        (xr.DataArray, "X.to_pandas"),
        (lambda f: f.to_dict("list"), "pd.DataFrame"),
    ],
)
def test_frames_that_are_not_known_are_not_read_by_position(frame, labels, convert, how):
    numbers = frame[["amount", "age"]]
    fitted = read_data(numbers, labels)
    for read in (fitted.transform, lambda X: read_data(X, labels)):
        with refused("column names are not read here", how):
            read(convert(numbers[["age", "amount"]]))


def test_everything_wrong_is_told_at_once(holes, labels):
    holes["opened"] = pd.date_range("2024", periods=N)
    holes["customer_id"] = np.arange(N) + 1000
    holes["note"] = [f"note {i}" for i in range(N)]
    holes["one"] = 1.0
    holes["heat"] = ["warm", *map(str, range(N - 1))]
    with pytest.raises(DataError) as caught:
        read_data(holes, labels)
    text = str(caught.value)
    for part in (
        "amount (10), country (5), age (1)",
        "Dates or times: opened",
        "customer_id (for example 1000), note (for example 'note 0')",
        "Constant column(s): one",
        "heat ('warm' in row 0)",
    ):
        assert part in text


def test_the_encoding_travels_with_the_fit_and_its_file(holes, labels, tmp_path):
    fit = lepu.fit(holes, labels, model="scar", method="map", missing="indicator", random_seed=1)
    assert "categories country (4 levels), size (3 levels)" in repr(fit)
    assert "amount (10)" in repr(fit)
    back = lepu.load(fit.save(tmp_path / "fit.nc"))
    assert back.data.encoding == fit.data.encoding
    assert Encoding.from_dict(json.loads(json.dumps(fit.data.encoding.to_dict()))) == (
        fit.data.encoding
    )
    new = holes.sample(frac=1, random_state=2)[::-1]
    np.testing.assert_allclose(back.predict_proba(new), fit.predict_proba(new), atol=1e-12)
    strange = new.assign(country="AT")
    with refused("has not seen", "accept_unseen"):
        back.predict_proba(strange)
    assert np.isfinite(back.accept_unseen().predict_proba(strange)).all()
