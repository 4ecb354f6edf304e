"""The data door: everything a user may hand in, and what it says about what it refuses."""

import re

import numpy as np
import pandas as pd
import pytest
from annotated import simulate

import bayes_lepu as lepu
from bayes_lepu import DataError, DataWarning, ModelError
from bayes_lepu.data.reading import read_data
from bayes_lepu.links import RowKind
from bayes_lepu.model import get_model
from bayes_lepu.options import choose_priors

N = 60
X, _, L = simulate(N, seed=5, hidden=0.2)


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(N, 3)), columns=["height", "width", "depth"])
    return X * [10.0, 0.1, 1.0] + [170.0, 3.0, 0.0]


@pytest.fixture
def labels(frame):
    return np.arange(N) % 3 == 0


def refused(*parts, error=DataError):
    """An error whose message has all the parts: got, expected, what to do."""
    return pytest.raises(error, match="(?s)" + ".*".join(map(re.escape, parts)))


def test_user_data_are_neither_changed_nor_shared(frame, labels):
    copy, X = frame.copy(), frame.to_numpy(copy=True)
    l, y = np.asarray(labels, dtype=np.int8), np.where(labels, 1.0, np.nan)
    for standardize in (True, False):
        read_data(frame, labels, standardize=standardize)
        data = read_data(X, l, y=y, standardize=standardize)
        for own in (data.X, data.l, data.y, data.kind):
            assert not any(np.shares_memory(own, theirs) for theirs in (X, l, y))
    pd.testing.assert_frame_equal(frame, copy)
    np.testing.assert_array_equal(X, copy)


def test_standardised_columns(frame, labels):
    data = read_data(frame, labels)
    np.testing.assert_allclose(data.X.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(data.X.std(axis=0), 1, rtol=1e-12)
    np.testing.assert_allclose(data.X * data.scale + data.center, frame, rtol=1e-12)


def test_masks_by_name_position_and_label(frame, labels):
    wanted = [True, False, True]
    for columns in (
        ["depth", "height"],
        [2, 0],
        ("height", 2),
        np.array([0, 2]),
        frame.columns[[0, 2]],
    ):
        data = read_data(frame, labels, class_features=columns)
        assert data.class_mask.tolist() == wanted
        assert data.selection_mask.all()
        assert not data.swap_symmetric


def test_masks_of_tables_with_numbered_columns_are_labels(frame, labels):
    numbered = frame.set_axis([1, 2, 3], axis=1)
    data = read_data(numbered, labels, selection_features=[1])
    assert data.selection_mask.tolist() == [True, False, False]
    with refused("selection_features names 0", "Columns: 1, 2, 3"):
        read_data(numbered, labels, selection_features=[0])


@pytest.mark.parametrize("unit", [1e-290, 1e-160, 1e160, 1e290])
def test_columns_whose_squares_cannot_be_computed(frame, labels, unit):
    data = read_data(frame * [1.0, 1.0, unit], labels)
    np.testing.assert_allclose(data.X, read_data(frame, labels).X, rtol=1e-12, atol=1e-12)
    with refused("depth", "too large or too small", "standardize=True"):
        read_data(frame * [1.0, 1.0, unit], labels, standardize=False)


def test_more_unpenalised_parameters_than_rows_warn():
    rng = np.random.default_rng(1)
    X, l = rng.normal(size=(8, 12)), np.array([0, 1] * 4)
    with pytest.warns(DataWarning, match=r"8 rows for \d+ unpenalised.*penalty") as caught:
        lepu.build_model(X, l, model="naive", priors={"a": lepu.Prior("flat")})
    assert caught[0].filename == __file__


def test_naive_cannot_hold_a_missed_positive(frame, labels):
    y = np.full(N, np.nan)
    y[1] = 1
    with pytest.raises(ModelError, match=r"1 unlabelled row.*naive.*'scar', 'spm' or 'psychm'"):
        lepu.fit(frame, labels, y=y, model="naive")


def test_coefficients_on_the_original_scale_give_the_same_predictor(frame, labels):
    data = read_data(frame, labels)
    rng = np.random.default_rng(2)
    slope, intercept = rng.normal(size=(4, 5, 3)), rng.normal(size=(4, 5))
    raw, level = data.original_scale(slope, intercept)
    internal = slope @ data.X.T + intercept[..., None]
    np.testing.assert_allclose(raw @ frame.to_numpy().T + level[..., None], internal, atol=1e-10)


# Several annotators  ----------------------------------------------------------------------------


def test_kinds_of_rows():
    y = np.full(N, np.nan)
    labelled = L.max(axis=1).to_numpy() == 1
    y[np.flatnonzero(~labelled)[:4]] = [1, 1, 0, 0]
    kind = read_data(X, L, y=y).kind
    assert (kind[labelled] == RowKind.LABELLED).all()
    rows = np.flatnonzero(~labelled)[:4]
    expected = [RowKind.MISSED, RowKind.MISSED, RowKind.NEGATIVE, RowKind.NEGATIVE]
    assert kind[rows].tolist() == expected


def test_a_long_table_is_refused_with_the_line_that_turns_it():
    long = L.rename_axis("frame").reset_index().melt("frame", var_name="who", value_name="mark")
    long = long.dropna().sample(frac=1.0, random_state=1)
    with refused("one for every 'frame' and 'who'") as caught:
        read_data(X, long)
    code = re.search(r"Use (l\.pivot.*?\(X\.index\))", str(caught.value))[1]
    turned = eval(code, {"l": long, "X": X})
    np.testing.assert_array_equal(read_data(X, turned).labels, read_data(X, L).labels)


def test_naive_annotators_who_differ_are_refused():
    with refused("marked by one annotator and not by another", error=lepu.ModelError):
        lepu.fit(X, L, model="naive", method="map")


def test_priors_are_checked():
    spm, scar = get_model("spm"), get_model("scar")
    data = read_data(X, L)
    with refused("'alpha'", "alpha_mean", error=lepu.ModelError):
        choose_priors(spm, data, priors={"alpha": lepu.Prior("normal", scale=1.0)})
    with refused("'alpha_mean'", "not a parameter of scar", error=lepu.ModelError):
        choose_priors(scar, data, priors={"alpha_mean": lepu.Prior("normal", scale=1.0)})
    with refused("sigma_beta cannot have a normal prior", "halfnormal", error=lepu.ModelError):
        choose_priors(spm, data, priors={"sigma_beta": lepu.Prior("normal", scale=1.0)})
    with refused("a Prior is expected", error=lepu.ModelError):
        choose_priors(spm, data, priors={"a": 2.5})
