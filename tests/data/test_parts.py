"""Rows that are not in memory: the same numbers as in memory, by sums over parts."""

import numpy as np
import pandas as pd
import pytest

import bayes_lepu as lepu
from bayes_lepu.cli.sheets import read_batches, read_sheet
from bayes_lepu.data.parts import random_keys
from bayes_lepu.data.reading import read_data
from bayes_lepu.data.streams import as_source, read_parts
from bayes_lepu.inference.subsample import subsample
from bayes_lepu.settling.counting import count_missed

N = 30_000
OPTIONS = {"model": "spm", "method": "map", "random_seed": 0, "progressbar": False}


@pytest.fixture(scope="module")
def table():
    """Numbers in single precision, a category, audits and weights."""
    rng = np.random.default_rng(0)
    truth = lepu.Parameters.of(a=[2.0, -1.0, 0.5], b=-0.5, alpha=[0.0, 0.6, 0.4], beta=0.3)
    X = rng.normal(size=(N, 3))
    y, l = truth.simulate(X, rng)
    audited = np.where((rng.random(N) < 0.01) & (l == 0), y.astype(float), np.nan)
    frame = pd.DataFrame(X.astype(np.float32), columns=["size", "light", "speed"])
    return frame.assign(
        marked=l, checked=audited, weight=rng.integers(1, 4, N), place=rng.choice(["a", "b"], N)
    )


def batches(table, size=7001):
    return [table.iloc[i : i + size] for i in range(0, len(table), size)]


@pytest.fixture(scope="module")
def both(table):
    """The same fit in memory and in parts."""
    plain = table[["size", "light", "speed", "marked"]]
    return lepu.fit(plain, "marked", **OPTIONS), lepu.fit(batches(plain), "marked", **OPTIONS)


def test_parts_give_the_numbers_of_the_whole(both):
    whole, parts = both
    assert parts.data.n < parts.data.n_all == N
    np.testing.assert_allclose(
        parts.coefficients().to_numpy(), whole.coefficients().to_numpy(), atol=1e-8
    )
    assert parts.modes[0].logp == pytest.approx(whole.modes[0].logp, abs=1e-6)
    np.testing.assert_allclose(parts.pi_draws, whole.pi_draws, atol=1e-10)
    np.testing.assert_allclose(parts.c_draws, whole.c_draws, atol=1e-10)
    for rule, sizes in whole.orientation.sizes.items():
        assert parts.orientation.sizes[rule] == pytest.approx(sizes, abs=1e-8)


def test_what_is_missed_in_all_is_counted_by_a_pass(both):
    whole, parts = both
    own = whole.missed(total=True).loc["as named", "mean"]
    assert parts.missed(total=True).loc["as named", "mean"] == pytest.approx(own, rel=1e-9)


def test_the_verdict_says_by_which_rows_it_judges(both):
    _, parts = both
    assert parts.sample.data.parts is None
    assert parts.sample.data.n == parts.data.n
    text = str(parts)
    assert f"{N} rows" in text
    assert "judged by 20000 rows at random" in text


@pytest.mark.parametrize("ask", [lambda f: f.missed(), lambda f: f.decide(budget=5)])
def test_single_rows_are_asked_for_by_passing_them(both, ask):
    with pytest.raises(lepu.ModelError, match=r"not in memory.*fit\.sample"):
        ask(both[1])


def test_categories_weights_audits_and_columns_of_s(table):
    options = OPTIONS | {"sample_weight": "weight", "y": "checked", "class_features": ["size"]}
    whole, parts = (lepu.fit(rows, "marked", **options) for rows in (table, batches(table)))
    assert parts.feature_names == whole.feature_names
    np.testing.assert_array_equal(parts.data.kind_counts, whole.data.kind_counts)
    np.testing.assert_allclose(parts.data.scale, whole.data.scale, rtol=1e-12)
    np.testing.assert_allclose(
        parts.coefficients().to_numpy(), whole.coefficients().to_numpy(), atol=1e-7
    )
    np.testing.assert_allclose(parts.pi_draws, whole.pi_draws, atol=1e-8)
    missed = [count_missed(fit, both=False).loc["as named", "mean"] for fit in (whole, parts)]
    assert missed[1] == pytest.approx(missed[0], rel=1e-6)


def test_the_prior_probability_known_from_outside_is_a_sum_too(table):
    plain = table[["size", "light", "speed", "marked"]]
    options = OPTIONS | {"model": "scar", "class_prior": (0.4, 0.01)}
    whole, parts = (lepu.fit(rows, "marked", **options) for rows in (plain, batches(plain)))
    np.testing.assert_allclose(
        parts.coefficients().to_numpy(), whole.coefficients().to_numpy(), atol=1e-7
    )


def test_laplace_by_passes(table):
    plain = table[["size", "light", "speed", "marked"]]
    options = OPTIONS | {"model": "scar", "method": "laplace", "draws": 250}
    whole, parts = (lepu.fit(rows, "marked", **options) for rows in (plain, batches(plain)))
    assert parts.quality.figures["pareto_k"] < 0.7
    a, b = whole.class_prior().loc["pi"], parts.class_prior().loc["pi"]
    assert b["mean"] == pytest.approx(a["mean"], abs=4 * a["sd"] / np.sqrt(500))
    assert b["sd"] == pytest.approx(a["sd"], rel=0.15)


def test_a_saved_fit_keeps_what_passes_found(both, tmp_path):
    _, parts = both
    loaded = lepu.load(parts.save(tmp_path / "fit.nc"))
    assert loaded.data.n_all == N
    np.testing.assert_allclose(loaded.pi_draws, parts.pi_draws)
    np.testing.assert_allclose(loaded.sample.draws.a, parts.sample.draws.a)
    with pytest.raises(lepu.DataError, match="not here"):
        loaded.missed(total=True)


def test_files_data_sets_functions_and_lists_are_the_same(table, both, tmp_path):
    pq = pytest.importorskip("pyarrow.parquet")
    dataset = pytest.importorskip("pyarrow.dataset")
    import pyarrow as pa

    plain = pa.Table.from_pandas(table[["size", "light", "speed", "marked"]])
    files = [tmp_path / "one.parquet", tmp_path / "two.parquet"]
    pq.write_table(plain.slice(0, 11_000), files[0])
    pq.write_table(plain.slice(11_000), files[1])
    names = [str(f) for f in files]
    for given in (names, dataset.dataset(names), lambda: map(pd.read_parquet, files)):
        data = read_parts(
            as_source(given),
            "marked",
            y=None,
            sample_weight=None,
            false_marks=False,
            missing="error",
            standardize=True,
            progressbar=False,
        )
        np.testing.assert_allclose(data.X, both[1].data.X, rtol=1e-12)
    fitted = lepu.fit(tmp_path, "marked", **OPTIONS | {"model": "naive"})
    assert fitted.data.n_all == N


def test_the_sample_is_the_same_wherever_the_rows_are(table, both):
    whole = read_data(table[["size", "light", "speed"]], table["marked"])
    mine, theirs = subsample(whole, 2000), subsample(both[1].data, 2000)
    np.testing.assert_allclose(mine.X, theirs.X, rtol=1e-9)
    np.testing.assert_allclose(mine.weight, theirs.weight)


def test_random_keys_do_not_depend_on_the_cuts():
    np.testing.assert_array_equal(
        random_keys(0, 100), np.concatenate([random_keys(0, 37), random_keys(37, 63)])
    )


def test_nuts_is_refused_with_the_reason(table):
    with pytest.raises(lepu.ModelError, match=r"method='nuts'.*tens of thousands.*laplace"):
        lepu.fit(batches(table), "marked")


def test_models_are_averaged_in_memory_only(table):
    with pytest.raises(lepu.ModelError, match="row by row"):
        lepu.fit(batches(table), "marked", model="auto", method="laplace")


@pytest.mark.parametrize(
    ("X", "l", "message"),
    [
        (lambda t: iter(batches(t)), "marked", "gone through once only"),
        (lambda t: "nowhere.parquet", "marked", "no such file"),
        (batches, "market", "market"),
        (batches, lambda t: t["marked"], "the name of a column"),
        (lambda t: [t.assign(marked=0)], "marked", "0 everywhere"),
        (lambda t: [t.assign(marked=2)], "marked", "only 0"),
        (lambda t: lambda: iter([]), "marked", "empty"),
        (lambda t: lambda: None, "marked", "returned a NoneType"),
        (lambda t: Once(batches(t)), "marked", "30000 rows in the first pass and 0 in a later"),
        (lambda t: [t, t[["light", "marked"]]], "marked", "Part 1 of X has the columns light"),
        (lambda t: [t, pd.concat([t, t[["size"]]], axis=1)], "marked", "duplicate column names"),
    ],
)
def test_what_cannot_be_read(table, X, l, message):
    with pytest.raises(lepu.DataError, match=message):
        lepu.fit(X(table), l(table) if callable(l) else l, **OPTIONS)


class Once:
    """What says that it can be gone through, and gives its batches the first time only."""

    def __init__(self, parts):
        self.parts = iter(parts)

    def __iter__(self):
        return self.parts


@pytest.mark.parametrize("passes", [1, 2, 3, 5])
@pytest.mark.parametrize("then", [lambda parts: parts[:1], lambda parts: [*parts, *parts]])
def test_a_table_that_changes_between_passes_is_refused(table, passes, then):
    small = batches(table[["size", "light", "marked"]].iloc[:900], 300)
    begun = []

    def begin():
        begun.append(True)
        return iter(small if len(begun) <= passes else then(small))

    with pytest.raises(lepu.DataError, match=r"900 rows in .* and \d+ in a later"):
        lepu.fit(begin, "marked", **OPTIONS)


def test_a_file_that_changes_between_passes_is_refused(table, tmp_path):
    path = tmp_path / "rows.parquet"
    table[["size", "light", "marked"]].iloc[:900].to_parquet(path)
    source = as_source(path)
    assert sum(len(part) for part in source) == 900
    table[["light", "size", "marked"]].iloc[900:1800].to_parquet(path)
    with pytest.raises(lepu.DataError, match="changed while it was being read"):
        list(source)
    path.unlink()
    with pytest.raises(lepu.DataError, match="No such file"):
        list(source)


@pytest.mark.parametrize(("value", "message"), [(np.nan, "without a value"), (np.inf, "Infinite")])
def test_a_bad_cell_of_a_later_part_is_found(table, value, message):
    small = table[["size", "light", "marked"]].iloc[:900].astype(float)
    small.iloc[777, 1] = value
    with pytest.raises(lepu.DataError, match=f"{message}.*light"):
        lepu.fit(batches(small, 300), "marked", **OPTIONS)


def test_missing_rows_cannot_be_dropped_by_passes(table):
    with pytest.raises(lepu.DataError, match="needs the table in memory"):
        lepu.fit(batches(table), "marked", missing="drop", **OPTIONS)


def test_an_unseen_level_is_named(table):
    rare = table.assign(place=np.where(np.arange(N) == 29_999, "z", table["place"]))
    fitted = lepu.fit(
        batches(rare), "marked", unseen="average", exclude=["checked", "weight"],
        **OPTIONS | {"model": "naive"},
    )  # fmt: skip
    assert fitted.data.n_all == N


@pytest.mark.parametrize("ending", ["parquet", "feather", "csv"])
@pytest.mark.parametrize("damage", ["empty", "cut", "noise"])
def test_a_damaged_file_is_an_error_that_says_so(table, tmp_path, ending, damage):
    path, small = tmp_path / f"rows.{ending}", table[["size", "marked"]].iloc[:3000]
    {"parquet": small.to_parquet, "feather": small.reset_index(drop=True).to_feather}.get(
        ending, lambda p: small.to_csv(p, index=False)
    )(path)
    noise = np.random.default_rng(0).bytes(5000)
    content = {"empty": b"", "cut": path.read_bytes()[:1000], "noise": noise}[damage]
    path.write_bytes(content)
    if (ending, damage) == ("csv", "cut"):  # the rows that are left are a table
        path.write_bytes(content + b",,,\n")
    with pytest.raises(lepu.DataError):
        lepu.fit(path, "marked", **OPTIONS)


def damaged_page(path, table):
    """A Parquet file with checksums, in which a stretch of one page became zeros."""
    table.to_parquet(path, compression="none", use_dictionary=False, write_page_checksum=True)
    content = bytearray(path.read_bytes())
    at = content.find(table["size"].to_numpy()[1000:1010].tobytes())
    assert at > 0
    content[at : at + 400] = bytes(400)
    path.write_bytes(content)


def test_zeros_in_a_page_with_a_checksum_are_no_numbers(table, tmp_path):
    path = tmp_path / "rows.parquet"
    damaged_page(path, table[["size", "marked"]].iloc[:3000])
    with pytest.raises(lepu.DataError, match="CRC"):
        lepu.fit(path, "marked", **OPTIONS)
    with pytest.raises(lepu.DataError, match="CRC"):
        read_sheet(path)
    with pytest.raises(lepu.DataError, match="CRC"):
        list(read_batches(path, rows=500))


def test_a_part_whose_rows_do_not_count_changes_nothing(table):
    small = table[["size", "light", "marked", "weight"]].iloc[:900].copy()
    small.loc[small.index[300:600], "weight"] = 0
    options = {"y": None, "sample_weight": "weight", "false_marks": False, "missing": "error"}
    parts = read_parts(
        as_source(batches(small, 300)), "marked", standardize=True, progressbar=False, **options
    )
    whole = read_data(small, "marked", standardize=True, **options)
    np.testing.assert_allclose(parts.center, whole.center)
    np.testing.assert_allclose(parts.scale, whole.scale)
