"""Dask collections: the numbers of one table in memory, with a client and without one."""

import numpy as np
import pandas as pd
import pytest

import bayes_lepu as lepu

dd = pytest.importorskip("dask.dataframe", reason="dask is not installed")
da = pytest.importorskip("dask.array")
bag = pytest.importorskip("dask.bag")

N = 9000
OPTIONS = {"model": "spm", "method": "map", "random_seed": 0, "progressbar": False}
NUMBERS = ["size", "light", "speed"]


@pytest.fixture(scope="module")
def table():
    """Numbers in single precision, a category, audits and weights."""
    rng = np.random.default_rng(0)
    truth = lepu.Parameters.of(a=[2.0, -1.0, 0.5], b=-0.5, alpha=[0.0, 0.6, 0.4], beta=0.3)
    X = rng.normal(size=(N, 3))
    y, l = truth.simulate(X, rng)
    audited = np.where((rng.random(N) < 0.01) & (l == 0), y.astype(float), np.nan)
    frame = pd.DataFrame(X.astype(np.float32), columns=NUMBERS)
    return frame.assign(
        marked=l,
        checked=audited,
        weight=rng.integers(0, 4, N),
        place=rng.choice(["a", "b", "c"], N, p=[0.2, 0.5, 0.3]),
    )


@pytest.fixture(scope="module")
def plain(table):
    return table[[*NUMBERS, "marked"]]


@pytest.fixture(autouse=True)
def small_samples(monkeypatch):
    """So few rows in memory that most of this table are in the partitions."""
    for name, rows in (("POOL_ROWS", 1200), ("FEWEST_POOLED", 300)):
        monkeypatch.setattr(lepu.dask, name, rows)
    for name, rows in (("FEWEST_JUDGED", 1000), ("LABELLED_JUDGED", 100)):
        monkeypatch.setattr(lepu.dask, name, rows)


def cut(table, parts=3):
    return dd.from_pandas(table, npartitions=parts)


@pytest.fixture(scope="module")
def whole(plain):
    return lepu.fit(plain, "marked", **OPTIONS)


@pytest.fixture
def by_partition(plain):
    return lepu.fit(cut(plain), "marked", **OPTIONS)


def same(found, wanted, atol=1e-6):
    np.testing.assert_allclose(
        found.coefficients().to_numpy(), wanted.coefficients().to_numpy(), atol=atol
    )
    np.testing.assert_allclose(found.pi_draws, wanted.pi_draws, atol=atol)
    assert found.priors == wanted.priors


def test_partitions_give_the_numbers_of_the_whole(by_partition, whole):
    assert by_partition.data.n < by_partition.data.n_all == N
    same(by_partition, whole)
    assert by_partition.modes[0].logp == pytest.approx(whole.modes[0].logp, abs=1e-6)
    np.testing.assert_allclose(by_partition.c_draws, whole.c_draws, atol=1e-6)
    for rule, sizes in whole.orientation.sizes.items():
        assert by_partition.orientation.sizes[rule] == pytest.approx(sizes, abs=1e-6)


@pytest.mark.filterwarnings("ignore")
def test_a_client_gives_the_same(plain, whole):
    distributed = pytest.importorskip("distributed", reason="distributed is not installed")
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster),
    ):
        fit = lepu.fit(cut(plain), "marked", **OPTIONS)
        same(fit, whole)
        scores = lepu.dask.predict_proba(fit, cut(plain)).compute()
    np.testing.assert_allclose(scores, whole.predict_proba(plain), atol=1e-6)


KNOWN = {
    "weights, audits, a category, columns of t": {
        "sample_weight": "weight",
        "y": "checked",
        "class_features": ["size", "place"],
    },
    "a class prior from outside": {
        "model": "scar",
        "class_prior": (0.4, 0.01),
        "exclude": ["checked", "weight", "place"],
    },
    "exact zeros": {"penalty": "l1", "C": 20.0, "exclude": ["checked", "weight"]},
}


@pytest.mark.parametrize("options", KNOWN.values(), ids=KNOWN)
def test_options_mean_the_same(table, options):
    options = OPTIONS | options
    found, wanted = (lepu.fit(rows, "marked", **options) for rows in (cut(table), table))
    assert found.feature_names == wanted.feature_names
    np.testing.assert_array_equal(found.data.kind_counts, wanted.data.kind_counts)
    np.testing.assert_allclose(found.data.scale, wanted.data.scale, rtol=1e-12)
    same(found, wanted)
    missed = [fit.missed(total=True).loc["as named", "mean"] for fit in (found, wanted)]
    assert missed[0] == pytest.approx(missed[1], rel=1e-6)


def test_laplace(plain):
    options = OPTIONS | {"model": "scar", "method": "laplace", "draws": 250}
    found, wanted = (lepu.fit(rows, "marked", **options) for rows in (cut(plain), plain))
    assert found.priors == wanted.priors
    assert found.quality.figures["pareto_k"] < 0.7
    a, b = wanted.class_prior().loc["pi"], found.class_prior().loc["pi"]
    assert b["mean"] == pytest.approx(a["mean"], abs=4 * a["sd"] / np.sqrt(500))
    assert b["sd"] == pytest.approx(a["sd"], rel=0.15)


def test_few_rows_are_read_into_memory(plain, monkeypatch):
    monkeypatch.undo()
    few = plain.iloc[:500]
    fit = lepu.fit(cut(few), "marked", **OPTIONS)
    assert fit.data.in_memory
    same(fit, lepu.fit(few, "marked", **OPTIONS), atol=1e-12)


def test_partitions_without_rows(plain):
    rows = cut(plain).map_partitions(lambda part: part[part.index >= N // 3])
    fit = lepu.fit(rows, "marked", **OPTIONS | {"model": "naive"})
    wanted = lepu.fit(plain.iloc[N // 3 :], "marked", **OPTIONS | {"model": "naive"})
    same(fit, wanted)
    scores = lepu.dask.predict_proba(fit, rows).compute()
    np.testing.assert_allclose(scores, wanted.predict_proba(plain.iloc[N // 3 :]), atol=1e-6)


def test_the_verdict_says_by_which_rows_it_judges(by_partition, tmp_path):
    assert by_partition.sample.data.in_memory
    text = str(by_partition)
    assert f"{N} rows" in text
    assert "judged by 1000 rows at random" in text
    for ask in (by_partition.missed, lambda: by_partition.decide(budget=5)):
        with pytest.raises(lepu.ModelError, match=r"not in memory.*fit\.sample"):
            ask()
    loaded = lepu.load(by_partition.save(tmp_path / "fit.nc"))
    assert loaded.data.n_all == N
    np.testing.assert_allclose(loaded.pi_draws, by_partition.pi_draws)
    np.testing.assert_allclose(loaded.sample.draws.a, by_partition.sample.draws.a)
    with pytest.raises(lepu.DataError, match="not here"):
        loaded.missed(total=True)


BAD = {
    "no such column": (lambda t: (cut(t), "market"), "market.*Did you mean 'marked'"),
    "labels in memory": (lambda t: (cut(t), t["marked"]), r"name of a column.*X\.assign\(l=l\)"),
    "no labels": (lambda t: (cut(t), None), "l is a NoneType"),
    "one class": (lambda t: (cut(t.assign(marked=0)), "marked"), "0 everywhere"),
    "labels of two": (lambda t: (cut(t.assign(marked=2)), "marked"), "the values 2; 0/1"),
    "no rows": (lambda t: (cut(t[:0], 1), "marked"), "empty"),
    "a bag": (lambda t: (bag.from_sequence([1, 2]), "l"), "X is a Bag"),
    "an array": (lambda t: (da.ones((10, 2)), "marked"), "X is a Array.*from_dask_array"),
    "several annotators": (lambda t: (cut(t), ["marked", "size"]), "of one annotator"),
    "a bad cell": (lambda t: (cut(broken(t, np.inf)), "marked"), "Infinite.*light"),
    "a missing cell": (lambda t: (cut(broken(t, np.nan)), "marked"), "without a value.*light"),
    "a file": (lambda t: ("rows.parquet", "marked"), r"dask\.dataframe\.read_parquet"),
    "several frames": (lambda t: ([t, t], "marked"), r"list of data frames.*pd\.concat"),
}


def broken(table, value):
    table = table.copy()
    table.iloc[7777, table.columns.get_loc("light")] = value
    return table


@pytest.mark.parametrize("what", BAD)
def test_bad_input_is_an_error_that_says_what_is_expected(plain, what):
    given, message = BAD[what]
    with pytest.raises(lepu.DataError, match=f"(?s){message}"):
        lepu.fit(*given(plain), **OPTIONS)


def test_weights_and_rows_to_rate(plain, whole):
    with pytest.raises(lepu.DataError, match=r"sums to .* in all"):
        lepu.fit(cut(plain.assign(w=1e300)), "marked", sample_weight="w", **OPTIONS)
    with pytest.raises(lepu.DataError, match="Dask DataFrame is expected"):
        lepu.dask.predict_proba(whole, plain)
    with pytest.raises(lepu.DataError, match=r"lepu\.dask\.predict_proba"):
        whole.predict_proba(cut(plain))


def test_rows_that_change_between_passes_are_refused(plain):
    rng = np.random.default_rng(0)
    rows = cut(plain).map_partitions(lambda part: part.iloc[: rng.integers(1500, 3000)])
    with pytest.raises(lepu.DataError, match=r"rows in the first pass and \d+ in a later one"):
        lepu.fit(rows, "marked", **OPTIONS)
