"""The data door: everything a user may hand in, and what it says about what it refuses."""

import numpy as np
import pandas as pd
import pytest

import bayes_lepu as lepu
from bayes_lepu import DataError, DataWarning, ModelError
from bayes_lepu.data.reading import read_data
from bayes_lepu.links import RowKind

N = 60


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(N, 3)), columns=["height", "width", "depth"])
    return X * [10.0, 0.1, 1.0] + [170.0, 3.0, 0.0]


@pytest.fixture
def labels(frame):
    return np.arange(N) % 3 == 0


def refused(*parts):
    """A DataError whose message has all the parts: got, expected, what to do."""
    return pytest.raises(DataError, match="(?s)" + ".*".join(parts))


# What comes in ------------------------------------------------------------------------------------


def test_columns_of_any_numeric_type(labels):
    ramp = np.arange(N)
    X = pd.DataFrame(
        {
            "nullable": pd.Series(ramp, dtype="Int64"),
            "nullable float": pd.Series(ramp / 7, dtype="Float64"),
            "flag": ramp % 2 == 0,
            "nullable flag": pd.Series(ramp % 5 == 0, dtype="boolean"),
            "small": ramp.astype(np.uint8),
            "single": ramp.astype(np.float32),
        }
    )
    data = read_data(X, labels, standardize=False)
    assert data.X.dtype == np.float64
    assert data.X.flags.c_contiguous
    np.testing.assert_array_equal(data.X, X.astype(float).to_numpy())


def test_user_data_are_never_changed(frame, labels):
    copy, array = frame.copy(), frame.to_numpy(copy=True)
    before = array.copy()
    for standardize in (True, False):
        read_data(frame, labels, standardize=standardize)
        read_data(array, labels, standardize=standardize)
    pd.testing.assert_frame_equal(frame, copy)
    np.testing.assert_array_equal(array, before)


def test_standardised_columns(frame, labels):
    data = read_data(frame, labels)
    np.testing.assert_allclose(data.X.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(data.X.std(axis=0), 1, rtol=1e-12)
    np.testing.assert_allclose(data.X * data.scale + data.center, frame, rtol=1e-12)


def test_row_kinds_from_audited_classes(frame, labels):
    y = np.full(N, np.nan)
    y[[0, 1, 2]] = [1, 1, 0]  # row 0 is labelled
    data = read_data(frame, labels, y=y)
    assert data.kind[:4].tolist() == [
        RowKind.LABELLED,
        RowKind.MISSED,
        RowKind.NEGATIVE,
        RowKind.LABELLED,
    ]
    assert data.n_audited == 2


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


# What is refused ----------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_non_finite_values(frame, labels, bad):
    frame.iloc[4, 1] = frame.iloc[5, 1] = bad
    what, remedy = ("without a value", "drop") if np.isnan(bad) else ("Infinite", "np.nan")
    with refused(what, r"width \(2\)", remedy):
        read_data(frame, labels)
    with refused(what, r"x1 \(2\)"):
        read_data(frame.to_numpy(), labels)


def test_many_bad_columns_are_counted_not_listed(labels):
    X = np.random.default_rng(0).normal(size=(N, 27))
    X[0] = np.nan
    with refused(r"x0 \(1\), x1 \(1\)", r"x19 \(1\) and 7 more"):
        read_data(X, labels)


@pytest.mark.parametrize("shape", [(0, 3), (N, 0)])
def test_empty_tables(shape):
    for X in (
        np.ones(shape),
        pd.DataFrame(np.ones(shape)),
        pd.DataFrame(np.ones(shape), dtype=object),
    ):
        with refused("empty", "At least one row and one column"):
            read_data(X, np.ones(shape[0]))


def test_no_labelled_rows(frame):
    with refused("No row is labelled", "nothing to learn"):
        read_data(frame, np.zeros(N))


def test_all_rows_labelled(frame):
    with refused("Every row is labelled", "unlabelled rows are needed", "add the background"):
        read_data(frame, np.ones(N))


def test_constant_columns(frame, labels):
    frame["one"], frame["big"], frame["zero"] = 1.0, 1e9 + 0.1, 0.0
    for standardize in (True, False):
        with refused("Constant column", "one, big, zero", "drop them"):
            read_data(frame, labels, standardize=standardize)


@pytest.mark.parametrize("unit", [1e-290, 1e-160, 1e160, 1e290])
def test_columns_whose_squares_cannot_be_computed(frame, labels, unit):
    data = read_data(frame * [1.0, 1.0, unit], labels)
    np.testing.assert_allclose(data.X, read_data(frame, labels).X, rtol=1e-12, atol=1e-12)
    with refused("depth", "too large or too small", "standardize=True"):
        read_data(frame * [1.0, 1.0, unit], labels, standardize=False)


def test_columns_up_to_the_largest_numbers(frame, labels):
    ramp = np.linspace(0.5, 1.0, N)
    data = read_data(frame.assign(depth=1.7e308 * ramp), labels)
    np.testing.assert_allclose(data.X[:, 2], (ramp - ramp.mean()) / ramp.std(), rtol=1e-10)


def test_a_fit_shares_no_memory_with_the_caller(labels):
    X = np.random.default_rng(0).normal(size=(len(labels), 2))
    l, y = np.asarray(labels, dtype=np.int8), np.where(labels, 1.0, np.nan)
    for standardize in (True, False):
        data = read_data(X, l, y=y, standardize=standardize)
        for own in (data.X, data.l, data.y, data.kind):
            assert not any(np.shares_memory(own, theirs) for theirs in (X, l, y))


@pytest.mark.parametrize("value", ["no", 1, None, 0.0])
def test_standardize_is_a_flag(frame, labels, value):
    with refused("standardize=", "True or False is expected"):
        read_data(frame, labels, standardize=value)


def test_duplicate_names(frame, labels):
    with refused("duplicate column names: height", "rename or drop"):
        read_data(frame.set_axis(["height", "width", "height"], axis=1), labels)
    with refused("duplicate column names: 1"):
        read_data(frame.set_axis([1, "1", 2], axis=1), labels)


def test_names_that_no_file_can_hold(frame, labels):
    with refused(r"holds '\\ud800', half of a character", "Rename the column"):
        names = pd.Index(["height", "wide\ud800", "depth"], dtype=object)
        read_data(frame.set_axis(names, axis=1), labels)


@pytest.mark.parametrize(
    ("column", "parts"),
    [
        (pd.Series([1, "x", 3] * 20, dtype=object), ("Text among numbers", "'x'", "to_numeric")),
        (pd.Series(["1", "2", "3"] * 20), ("Numbers written as text", "to_numeric", "category")),
        (pd.Series([f"{i},5" for i in range(N)]), ("decimal comma", "'0,5'", "decimal=','")),
        (pd.Series(["1.234,5", "7", "x,y"] * 20), ("decimal comma", "'1.234,5'")),
        (pd.Series(pd.date_range("2020", periods=N)), ("Dates", "kind", "2020-01-01", "dt.days")),
        (pd.Series([f"2020-01-{d:02}" for d in range(1, 31)] * 2), ("Dates", "as text", "exclude")),
        (pd.Series(pd.timedelta_range("1h", periods=N)), ("Durations", "kind", "total_seconds")),
        (pd.Series(1j * np.arange(N)), ("Complex", "real numbers", "kind")),
        (pd.Series([f"a{i}" for i in range(N)]), ("Identifiers", "kind", "set_index")),
        (pd.Series([[1, 2]] * N), ("neither numbers nor categories", "kind", "exclude")),
        (pd.Series([None] * N), ("without any value", "kind", "exclude")),
        (pd.Series(["a"] * N), ("Constant", "kind", "no information")),
    ],
)
def test_columns_that_are_not_numbers(frame, labels, column, parts):
    frame["kind"] = column
    with refused(*parts):
        read_data(frame, labels)


@pytest.mark.parametrize("dtype", [object, str, complex])
def test_arrays_that_are_not_numbers(frame, labels, dtype):
    with refused("X holds", "numbers are expected", "astype"):
        read_data(frame.to_numpy().astype(dtype), labels)


@pytest.mark.parametrize("dtype", [object, "str", "category"])
def test_words_and_blanks_are_recoded_by_the_word(frame, dtype):
    l = pd.Series(np.resize(["yes", None], N), dtype=dtype)
    with refused("l holds 'yes'; 0/1", r"\(l == 'yes'\)"):
        read_data(frame, l)
    with refused("y holds 'yes'; 0, 1 or NaN", r"y.map\(\{'yes': 1\}\)"):
        read_data(frame, np.resize([0, 1], N), y=l)


@pytest.mark.parametrize("option", ["class_features", "selection_features"])
def test_masks_that_do_not_fit(frame, labels, option):
    for columns, parts in (
        (["weight"], ("weight", "not a column", "height, width, depth")),
        ([3], ("3", "not a column")),
        ([-1], ("-1", "not a column")),
        ([], ("empty", "at least one", "scar")),
        ("height", ("single value", r"\['height'\]")),
        (1, ("single value", r"\[1\]")),
        ([True, False, True], ("True", "boolean mask", "flatnonzero")),
    ):
        with refused(option, *parts):
            read_data(frame, labels, **{option: columns})


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


# New rows -----------------------------------------------------------------------------------------


def test_one_new_row_may_be_constant(frame, labels):
    data = read_data(frame, labels)
    np.testing.assert_allclose(data.transform(frame.iloc[[7]])[0], data.X[[7]], atol=1e-12)


def test_coefficients_on_the_original_scale_give_the_same_predictor(frame, labels):
    data = read_data(frame, labels)
    rng = np.random.default_rng(2)
    slope, intercept = rng.normal(size=(4, 5, 3)), rng.normal(size=(4, 5))
    raw, level = data.original_scale(slope, intercept)
    internal = slope @ data.X.T + intercept[..., None]
    np.testing.assert_allclose(raw @ frame.to_numpy().T + level[..., None], internal, atol=1e-10)


def test_rows_as_often_as_they_count(frame, labels):
    counts = np.arange(N) % 4
    data = read_data(frame, labels, sample_weight=counts)
    every = data.as_counted(10**6)
    np.testing.assert_array_equal(every.X, np.repeat(data.X, counts, axis=0))
    assert not every.weighted
    some = data.as_counted(40)
    assert some.n == 40
    assert set(map(tuple, some.X)) <= set(map(tuple, every.X))
    share = read_data(frame, labels, sample_weight=np.where(counts, 0.5, 0.0))
    np.testing.assert_array_equal(share.as_counted(10**6).X, share.X[counts > 0])
    plain = read_data(frame, labels)
    assert plain.as_counted(10**6) is plain
