"""Every way to write the same data is the same data."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from annotated import simulate

from bayes_lepu.data.reading import read_data

N = 60
RNG = np.random.default_rng(3)
L = np.arange(N) % 3 == 0
Y = np.where(np.arange(N) % 7 == 1, np.arange(N) % 2, np.nan)
Y[L] = np.nan
NUMBERS = pd.DataFrame(RNG.normal(size=(N, 3)), columns=["height", "width", "depth"])
MIXED = NUMBERS.assign(
    country=RNG.choice(["DE", "FR", "US"], N),
    flag=RNG.random(N) < 0.4,
    age=pd.array(RNG.integers(18, 80, N), dtype="Int64"),
)
MIXED.loc[3:12, "height"] = np.nan
MIXED.loc[10:14, "country"] = None
MIXED.loc[20, "age"] = pd.NA


def same(data, wanted):
    np.testing.assert_allclose(data.X, wanted.X, atol=1e-12)
    np.testing.assert_array_equal(data.labels, wanted.labels)
    np.testing.assert_array_equal(data.y, wanted.y)
    np.testing.assert_array_equal(data.kind, wanted.kind)


def series(dtype):
    return lambda values: pd.Series(values).astype(dtype)


LABELS = {
    **{kind.__name__: lambda l, kind=kind: l.astype(kind) for kind in (np.int8, int, float, bool)},
    **{kind: series(kind) for kind in ("Int64", "boolean", "Float64", "object", "int8")},
    "list": lambda l: l.tolist(),
    "column": lambda l: l.astype(int)[:, None],
    "frame": lambda l: pd.DataFrame({"l": l.astype(int)}),
    "1 or NaN": lambda l: np.where(l, 1.0, np.nan),
    "1 or NA": lambda l: pd.Series(np.where(l, 1, None), dtype="Int64"),
    "True or None": lambda l: [True if v else None for v in l],
    "masked": lambda l: np.ma.masked_array(np.ones(N), mask=~l),
    "polars": lambda l: pl.Series(np.where(l, 1, 0)),
    "arrow": lambda l: pa.chunked_array([np.where(l, 1, 0)]),
}


@pytest.mark.parametrize("write", LABELS.values(), ids=LABELS)
def test_labels(write):
    data = read_data(NUMBERS, write(L))
    assert data.l.dtype == np.int8
    same(data, read_data(NUMBERS, L))


@pytest.mark.parametrize("dtype", ["Int64", "boolean", "object", "Float64"])
def test_audited_classes(dtype):
    values = [None if np.isnan(v) else bool(v) for v in Y]
    given = pd.Series(values, dtype="object").astype(dtype)
    same(read_data(NUMBERS, L, y=given), read_data(NUMBERS, L, y=Y))


ARRAYS = {
    "array": np.asarray,
    "columns first": np.asfortranarray,
    "lists": lambda X: X.tolist(),
    "a view": lambda X: X[::-1].copy()[::-1],
}


@pytest.mark.parametrize("write", ARRAYS.values(), ids=ARRAYS)
def test_arrays(write):
    """New rows of an array, and of a frame after a fit on an array, are taken in order."""
    data, wanted = read_data(write(NUMBERS.to_numpy()), L), read_data(NUMBERS, L)
    same(data, wanted)
    assert data.feature_names == ("x0", "x1", "x2")
    assert not data.named
    for fitted, new in ((data, NUMBERS), (wanted, NUMBERS.to_numpy())):
        np.testing.assert_allclose(fitted.transform(new)[0], wanted.X, atol=1e-12)


FRAMES = {
    "polars": pl.from_pandas,
    "arrow": pa.Table.from_pandas,
    "nullable types": lambda X: X.convert_dtypes(dtype_backend="numpy_nullable"),
    "types of Arrow": lambda X: X.convert_dtypes(dtype_backend="pyarrow"),
}


@pytest.mark.parametrize("missing", ["indicator", "impute"])
@pytest.mark.parametrize("write", FRAMES.values(), ids=FRAMES)
def test_frames(write, missing):
    """With labels and classes that are columns or not; new rows are matched by name."""
    wanted = read_data(MIXED, L, y=Y, missing=missing)
    same(read_data(write(MIXED), L, y=Y, missing=missing), wanted)
    whole = MIXED.assign(marked=np.where(L, 1, 0), checked=Y, file=[f"f{i}" for i in range(N)])
    data = read_data(write(whole), "marked", y="checked", exclude=["file"], missing=missing)
    same(data, wanted)
    assert data.encoding.columns == wanted.encoding.columns
    full = whole[MIXED.notna().all(axis=1)].reset_index(drop=True)
    new = full[MIXED.columns]
    for table in (full, new, new[new.columns[::-1]]):
        values, _ = data.transform(write(table))
        np.testing.assert_allclose(values, wanted.transform(new)[0], atol=1e-12)


X3, _, L3 = simulate(N, seed=5, hidden=0.2)
SEVERAL = {
    "array": lambda L: L.to_numpy(),
    "Int64": lambda L: L.astype("Int64"),
    "None": lambda L: L.astype(object).where(L.notna(), None),
    "boolean": lambda L: L.astype("boolean"),
    "objects": lambda L: L.to_numpy(dtype=object),
    "lists": lambda L: L.to_numpy().tolist(),
    "polars": lambda L: pl.from_pandas(L.reset_index(drop=True).astype("boolean")),
    "arrow": lambda L: pa.Table.from_pandas(L.reset_index(drop=True).astype("boolean")),
}


@pytest.mark.parametrize("write", SEVERAL.values(), ids=SEVERAL)
def test_labels_of_several_annotators(write):
    labels = write(L3)
    data = read_data(X3, labels)
    same(data, read_data(X3, L3))
    names = L3.columns if hasattr(labels, "columns") else [f"annotator_{k}" for k in range(3)]
    assert data.annotators == tuple(names)


@pytest.mark.parametrize("write", [pl.from_pandas, pa.Table.from_pandas])
def test_visits(write):
    """Of annotators in another order."""
    hours = pd.DataFrame(np.arange(3.0 * N).reshape(N, 3), columns=["cleo", "anna", "ben"])
    wanted = read_data(X3, L3, visits={"hours": hours.set_axis(X3.index)})
    same(read_data(X3, L3, visits={"hours": write(hours)}), wanted)
