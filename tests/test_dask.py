"""Partitions of a cluster: the answer of one process, also when a worker is lost."""

import os
import signal
import warnings

import numpy as np
import pandas as pd
import pytest

import bayes_lepu as lepu

dd = pytest.importorskip("dask.dataframe", reason="dask is not installed")
da = pytest.importorskip("dask.array")
bag = pytest.importorskip("dask.bag")
distributed = pytest.importorskip("distributed", reason="distributed is not installed")

OPTIONS = {"model": "naive", "method": "map", "random_seed": 0, "progressbar": False}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 3))
    l = (rng.random(3000) < 1 / (1 + np.exp(-X @ [1.0, -1.0, 0.5]))).astype(int)
    return pd.DataFrame(X, columns=["size", "light", "speed"]).assign(marked=l)


@pytest.fixture(scope="module")
def alone(table):
    return lepu.fit(table, "marked", **OPTIONS)


@pytest.fixture
def in_this_process():
    """A client whose worker is a thread of this process: no start of others to wait for."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with (
            distributed.LocalCluster(
                n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
            ) as cluster,
            distributed.Client(cluster) as client,
        ):
            yield client


@pytest.mark.filterwarnings("ignore")
def test_partitions_give_the_numbers_of_the_whole(table, alone, in_this_process):
    rows = dd.from_pandas(table, npartitions=3)
    fit = lepu.dask.fit(rows, "marked", **OPTIONS)
    own = alone.coefficients().to_numpy()
    np.testing.assert_allclose(fit.coefficients().to_numpy(), own, atol=1e-8)
    scores = lepu.dask.predict_proba(fit, rows.drop(columns="marked")).compute()
    np.testing.assert_allclose(scores, alone.predict_proba(table), atol=1e-8)
    values = da.from_array(table[["size", "light", "speed"]].to_numpy(), chunks=(1100, 3))
    labels = da.from_array(table["marked"].to_numpy(), chunks=1100)
    by_array = lepu.dask.fit(values, labels, client=in_this_process, **OPTIONS)
    np.testing.assert_allclose(by_array.draws.a, fit.draws.a, atol=1e-8)
    np.testing.assert_allclose(
        lepu.dask.predict_proba(by_array, values).compute(), scores, atol=1e-8
    )


def test_what_cannot_be_read(table):
    rows = dd.from_pandas(table, npartitions=2)
    with pytest.raises(lepu.DataError, match="No Dask client is active"):
        lepu.dask.fit(rows, "marked", **OPTIONS)
    cut = da.ones((10, 4), chunks=(5, 2))
    with pytest.raises(lepu.DataError, match="along its rows only"):
        lepu.dask.fit(cut, da.ones(10, chunks=5), client=object(), **OPTIONS)
    with pytest.raises(lepu.DataError, match=r"rechunk"):
        lepu.dask.fit(da.ones((10, 2)), da.ones(10, chunks=5), client=object(), **OPTIONS)
    with pytest.raises(lepu.DataError, match="Dask DataFrame or array"):
        lepu.dask.predict_proba(None, table)


ROWS, MARKS = da.ones((10, 2), chunks=5), da.ones(10, chunks=5)
ODD = {
    "labels apart": (dd.from_pandas(pd.DataFrame({"x": [1.0, 2.0]})), MARKS, "l a Array"),
    "a table in memory": (pd.DataFrame({"x": [1.0]}), "x", "X is a DataFrame and l a str"),
    "a bag": (bag.from_sequence([1, 2]), bag.from_sequence([0, 1]), "X is a Bag"),
    "one dimension": (MARKS, MARKS, r"shape \(10,\); rows and columns"),
    "unknown lengths": (ROWS[MARKS > 0], MARKS[MARKS > 0], "compute_chunk_sizes"),
    "labels as a table": (ROWS, ROWS, "the same rows in the same blocks"),
    "no client": (ROWS, MARKS, "client is a object"),
}


@pytest.mark.parametrize("what", ODD)
def test_odd_input_is_an_error_that_says_what_is_expected(what):
    X, l, message = ODD[what]
    with pytest.raises(lepu.DataError, match=message):
        lepu.dask.fit(X, l, client=object(), **OPTIONS)


@pytest.mark.filterwarnings("ignore")
def test_empty_partitions_and_fits_without_rows(table, alone, in_this_process, tmp_path):
    rows = dd.from_pandas(table, npartitions=3)
    some = rows.map_partitions(
        lambda part: part[part.index >= 1000]
    )  # the first partition has no rows left
    fit = lepu.dask.fit(some, "marked", **OPTIONS)
    own = lepu.fit(table.iloc[1000:], "marked", **OPTIONS)
    np.testing.assert_allclose(fit.draws.a, own.draws.a, atol=1e-8)
    shipped = lepu.load(alone.save(tmp_path / "fit.nc", data=False))
    scores = lepu.dask.predict_proba(shipped, some.drop(columns="marked")).compute()
    np.testing.assert_allclose(scores, alone.predict_proba(table.iloc[1000:]), atol=1e-12)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_lost_worker_changes_nothing(tmp_path):
    rng = np.random.default_rng(1)
    truth = lepu.Parameters.of(a=[2.0, -1.0], b=0.0, alpha=[0.5, 0.5], beta=0.0)
    X = rng.normal(size=(40_000, 2))
    table = pd.DataFrame(X, columns=["size", "light"]).assign(marked=truth.simulate(X, rng)[1])
    pytest.importorskip("pyarrow")
    table.to_parquet(tmp_path / "rows.parquet", row_group_size=10_000)
    options = OPTIONS | {"model": "spm"}
    alone = lepu.fit(table, "marked", **options)
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        rows = dd.read_parquet(tmp_path / "rows.parquet", split_row_groups=True)
        killed = []
        submit = client.map

        def map_and_kill(*args, **kwargs):
            found = submit(*args, **kwargs)
            if len(killed) < 12:  # in the middle of the climb
                killed.append(None)
            elif len(killed) == 12:
                killed.append(os.kill(next(iter(cluster.workers.values())).pid, signal.SIGKILL))
            return found

        client.map = map_and_kill
        fit = lepu.dask.fit(rows, "marked", client=client, **options)
    assert len(killed) == 13
    np.testing.assert_allclose(
        fit.coefficients().to_numpy(), alone.coefficients().to_numpy(), atol=1e-8
    )
