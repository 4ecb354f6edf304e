"""A fit: predictions by formulas written here, bounded memory, files that explain themselves."""

import tracemalloc
import warnings
from dataclasses import replace
from datetime import timedelta, timezone

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import bayes_lepu as lepu
from bayes_lepu import DataError, FileFormatError, ModelError, Parameters
from bayes_lepu.actions.missed import read_open
from bayes_lepu.fitted import Fit
from bayes_lepu.model import REGISTRY
from bayes_lepu.model.parameters import stack
from bayes_lepu.result import summaries
from bayes_lepu.result.saved import read_tree, write_tree

MODELS = list(REGISTRY)
ODD = ["a/b", "<b>height</b>", "größe (cm)", "x' OR 1=1; --", "new\nline"]
TRUTH = Parameters.of(
    a=[2.0, -1.5, 0.5, 0.0, 1.0],
    b=0.5,
    alpha=[0.3, 1.0, -0.5, 0.8, 0.0],
    beta=0.5,
    gamma=0.15,
    lam=0.1,
)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 5))
    y, l = TRUTH.simulate(X, rng)
    index = pd.Index([f"row {i}" for i in range(400)], name="id")
    X = pd.DataFrame(X * [1, 10, 0.1, 3, 1] + [0, 5, 0, -2, 1], columns=ODD, index=index)
    audited = pd.Series(np.where(np.arange(400) % 10 == 0, y, np.nan), index=index)
    return X, pd.Series(l, index=index), audited


def quick(table, model, **options):
    X, l, _ = table
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lepu.IdentifiabilityWarning)
        return lepu.fit(X, l, model=model, method="map", random_seed=1, **options)


@pytest.fixture(scope="module")
def fits(table):
    return {model: quick(table, model) for model in MODELS}


def with_draws(fit, n_chains=2, n_draws=30):
    """The same fit with draws around its estimate instead of the estimate alone."""
    rng = np.random.default_rng(3)
    point, p = fit.draws.take(0), fit.data.p
    t, s = 0.2 * fit.data.class_mask, 0.2 * fit.data.selection_mask * fit.spec.has_selection

    def one():
        return Parameters(
            point.a + t * rng.normal(size=p),
            point.b + 0.2 * rng.normal(),
            point.alpha + s * rng.normal(size=p),
            point.beta + s.max() * rng.normal(),
            point.log_w,
        )

    draws = stack([stack([one() for _ in range(n_draws)]) for _ in range(n_chains)])
    names = ("spec", "data", "priors", "modes", "orientation", "provenance")
    return Fit(
        **{n: getattr(fit, n) for n in names},
        options=replace(fit.options, method="laplace"),
        parameters=draws,
        stats={"energy": rng.normal(size=(n_chains, n_draws))},
    )


# Predictions --------------------------------------------------------------------------------------


def formulas(fit, X):
    """t, s, h and P(y=1 | l=0) of every draw, from the coefficients on the user's own scale."""
    values, point = X.to_numpy(), fit.draws
    scale, center = fit.data.scale, fit.data.center
    answers = []
    for k in range(point.b.size):
        a, alpha = point.a[k] / scale, point.alpha[k] / scale
        b, beta = point.b[k] - a @ center, point.beta[k] - alpha @ center
        t = 1 / (1 + np.exp(-(values @ a + b)))
        s0 = 1 / (1 + np.exp(-(values @ alpha + beta)))
        gamma, lam, _ = np.exp(point.log_w[k])
        s = gamma + (1 - gamma - lam) * s0
        answers.append((t, s, s * t, t * (1 - s) / (1 - s * t)))
    return np.array(answers)


METHODS = ("class_probability", "propensity", "label_probability", "missed")


@pytest.mark.parametrize("model", MODELS)
def test_predictions_of_a_point_estimate(table, fits, model):
    X, fit = table[0].iloc[::-1].iloc[:50], fits[model]
    wanted = formulas(fit, X)[0]
    for method, values in zip(METHODS, wanted, strict=True):
        got = getattr(fit, method)(X)
        assert list(got.columns) == ["mean"]
        pd.testing.assert_index_equal(got.index, X.index)
        np.testing.assert_allclose(got["mean"], values, rtol=1e-9, atol=1e-12)
    proba = fit.predict_proba(X)
    assert proba.shape == (50, 2)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    np.testing.assert_allclose(proba[:, 1], wanted[0], rtol=1e-9)
    np.testing.assert_array_equal(fit.predict(X), (wanted[0] > 0.5).astype(int))
    prior = fit.class_prior()["mean"]
    everything = formulas(fit, table[0])[0]
    assert prior["pi"] == pytest.approx(everything[0].mean())
    assert prior["c"] == pytest.approx(everything[2].mean() / everything[0].mean())


@pytest.mark.parametrize("model", MODELS)
def test_predictions_of_draws(table, fits, model):
    X, fit = table[0].iloc[:40], with_draws(fits[model])
    wanted = formulas(fit, X)
    for j, method in enumerate(METHODS):
        got = getattr(fit, method)(X, ci_prob=0.8)
        assert list(got.columns) == ["mean", "lower", "upper"]
        np.testing.assert_allclose(got["mean"], wanted[:, j].mean(axis=0), rtol=1e-9)
        lower, upper = np.quantile(wanted[:, j], (0.1, 0.9), axis=0)
        np.testing.assert_allclose(got["lower"], lower, rtol=1e-9)
        np.testing.assert_allclose(got["upper"], upper, rtol=1e-9)
    np.testing.assert_allclose(fit.predict_proba(X)[:, 1], wanted[:, 0].mean(axis=0), rtol=1e-9)


def test_missed_rows_are_rated_by_the_draws_that_decide_takes(fits):
    fit = with_draws(fits["spm"], n_chains=4, n_draws=300)
    rows, (reading,) = read_open(fit, both=False)
    assert reading.draws.b.size <= 1000 < fit.draws.b.size
    np.testing.assert_allclose(fit.missed()["mean"].iloc[rows], reading.mean, rtol=1e-9)


def test_new_rows_are_matched_by_name(table, fits):
    X, fit = table[0], fits["psychm"]
    np.testing.assert_array_equal(fit.predict_proba(X[ODD[::-1]]), fit.predict_proba(X))
    with pytest.raises(DataError, match="missing column"):
        fit.propensity(X.drop(columns="a/b"))


@pytest.mark.parametrize("ci_prob", [0.0, 1.0, 1.5, -0.2])
def test_intervals_need_a_probability(table, fits, ci_prob):
    with pytest.raises(ModelError, match=r"ci_prob = .*between 0 and 1"):
        with_draws(fits["spm"]).propensity(table[0], ci_prob=ci_prob)


def test_memory_is_bounded(fits, monkeypatch):
    """400 draws x 20,000 rows is 64 MB as one array; in blocks it is never more than a few."""
    monkeypatch.setattr(summaries, "BLOCK_CELLS", 100_000)
    fit = with_draws(fits["psychm"], n_chains=4, n_draws=100)
    X = np.random.default_rng(0).normal(size=(20_000, 5))
    tracemalloc.start()
    got = fit.class_probability(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16e6
    monkeypatch.setattr(summaries, "BLOCK_CELLS", 10**9)
    pd.testing.assert_frame_equal(got, fit.class_probability(X))


# Tables and display -------------------------------------------------------------------------------


def test_repr_computes_nothing(fits):
    """What it shows was found by `fit`; the verdict comes with print(fit), and stays."""
    fit = replace(fits["spm"])
    repr(fit)
    kept = set(vars(fit))
    assert "print(fit)" in repr(fit)
    assert set(vars(fit)) == kept
    assert "identifiability" not in kept
    assert fit.identifiability.verdict in str(fit)
    assert repr(fit) == str(fit)


def test_html_escapes_names(fits):
    html = fits["spm"]._repr_html_()
    assert "<b>height</b>" not in html
    assert html.count("<tr>") >= 5


# Files --------------------------------------------------------------------------------------------


def same(one, two):
    for name in ("a", "b", "alpha", "beta", "log_w"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))


def check_round_trip(fit, path, X):
    assert fit.save(path) == path
    loaded = lepu.load(path)
    assert type(loaded) is Fit
    same(loaded.parameters, fit.parameters)
    assert loaded.spec == fit.spec
    assert loaded.priors == dict(fit.priors)
    assert loaded.method == fit.method
    assert loaded.orientation == fit.orientation
    assert loaded.options == fit.options
    assert loaded.provenance == fit.provenance
    for name in ("X", "l", "y", "kind", "center", "scale", "class_mask", "selection_mask"):
        got, wanted = getattr(loaded.data, name), getattr(fit.data, name)
        np.testing.assert_array_equal(got, wanted)
        assert got.dtype == wanted.dtype
    assert loaded.data.X.flags.c_contiguous
    assert loaded.data.feature_names == fit.data.feature_names
    assert loaded.data.named == fit.data.named
    assert list(loaded.data.index) == list(fit.data.index)
    assert len(loaded.modes) == len(fit.modes)
    pd.testing.assert_frame_equal(loaded.mode_table(), fit.mode_table(), check_dtype=False)
    for mine, theirs in zip(loaded.modes, fit.modes, strict=True):
        same(mine.point, theirs.point)
        np.testing.assert_array_equal(mine.z, theirs.z)
    for key, value in fit.stats.items():
        np.testing.assert_array_equal(loaded.stats[key], value)
    np.testing.assert_array_equal(loaded.predict_proba(X), fit.predict_proba(X))
    pd.testing.assert_frame_equal(loaded.missed(X), fit.missed(X))
    assert loaded.density.logp(loaded.modes[0].z) == fit.density.logp(fit.modes[0].z)
    return loaded


@pytest.mark.parametrize("model", MODELS)
def test_round_trip(table, fits, tmp_path, model):
    loaded = check_round_trip(fits[model], tmp_path / "fit.nc", table[0])
    assert repr(loaded) == repr(fits[model])
    check_round_trip(with_draws(fits[model]), tmp_path / "draws.nc", table[0])


@pytest.mark.parametrize("model", ["scar", "spm", "psychm"])
def test_round_trip_with_masks_and_audited_rows(table, tmp_path, model):
    selection = {} if model == "scar" else {"selection_features": ["a/b", "new\nline"]}
    fit = quick(
        table,
        model,
        y=table[2],
        class_features=ODD[:4],
        **selection,
        penalty={"a": "l1"},
        C={"a": 2.0},
    )
    loaded = check_round_trip(fit, tmp_path / "fit.nc", table[0])
    assert loaded.data.n_audited == fit.data.n_audited > 0
    check_round_trip(with_draws(fit), tmp_path / "draws.nc", table[0])


@pytest.mark.parametrize(
    "index",
    [
        pd.RangeIndex(400),
        pd.Index(np.linspace(0, 1, 400)),
        pd.Index([f"é{i}" for i in range(400)]),
        pd.DatetimeIndex([pd.NaT, *pd.date_range("2020", periods=399, freq="7ns")]),
        pd.date_range("2020-10-24", periods=400, freq="15min", tz="Europe/Berlin"),
    ],
    ids=["range", "float", "str", "nanoseconds", "time zone"],
)
def test_round_trip_of_row_labels(table, tmp_path, index):
    X, l, _ = table
    X, l = X.set_axis(index), l.set_axis(index)
    fit = lepu.fit(X, l, model="naive", method="map", random_seed=0)
    loaded = check_round_trip(fit, tmp_path / "fit.nc", X)
    assert loaded.data.index.equals(index)
    assert loaded.data.index.dtype == index.dtype


@pytest.mark.parametrize(
    "index",
    [
        pd.date_range("2020", periods=400, tz=timezone(timedelta(hours=1), "here")),
        pd.MultiIndex.from_product([["a", "b"], range(200)]),
        pd.CategoricalIndex(["x", "y"] * 200),
    ],
    ids=["zone without a name", "multi", "categories"],
)
def test_other_row_labels_are_saved_as_text(table, tmp_path, index):
    X, l, _ = table
    fit = lepu.fit(X.set_axis(index), l.set_axis(index), model="naive", method="map")
    loaded = lepu.load(fit.save(tmp_path / "fit.nc"))
    assert list(loaded.data.index) == [str(v) for v in index]


def test_round_trip_of_an_array_fit(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 5))
    fit = lepu.fit(X, TRUTH.simulate(X, rng)[1], model="naive", method="map")
    loaded = check_round_trip(fit, tmp_path / "fit.nc", X)
    assert not loaded.data.named


def test_files_that_are_no_fits(fits, tmp_path):
    with pytest.raises(FileFormatError, match=r"none.nc does not exist.*Fit.save"):
        lepu.load(tmp_path / "none.nc")
    text = tmp_path / "text.nc"
    text.write_text("not a netCDF file")
    with pytest.raises(FileFormatError, match=r"text.nc is not a netCDF file"):
        lepu.load(text)
    with pytest.raises(FileFormatError):
        lepu.load(tmp_path)
    foreign = tmp_path / "foreign.nc"
    xr.Dataset({"a": ("x", [1.0])}).to_netcdf(foreign, engine="h5netcdf")
    with pytest.raises(FileFormatError, match=r"foreign.nc does not end in the checksum"):
        lepu.load(foreign)
    write_tree(xr.DataTree(xr.Dataset({"a": ("x", [1.0])})), foreign)
    with pytest.raises(FileFormatError, match=r"not a saved fit of this kind \(format None"):
        lepu.load(foreign)


def newer(tree):
    text = str(tree["state/call"]["JSON"].item())
    tree["state/call"]["JSON"] = text.replace('"propensity": "logistic"', '"propensity": "newer"')


CHANGED = {
    r"version 0.*reads version": lambda tree: tree.attrs.update(format_version=0),
    r"version two.*reads version": lambda tree: tree.attrs.update(format_version="two"),
    r"propensity .newer.; this release knows one": newer,
    r"cut.nc is incomplete.*modes": lambda tree: tree["state"].__delitem__("modes"),
}


@pytest.mark.parametrize("message", CHANGED)
def test_other_versions_unknown_models_and_incomplete_files_are_refused(fits, tmp_path, message):
    tree = read_tree(fits["spm"].save(tmp_path / "cut.nc"))
    CHANGED[message](tree)
    with pytest.raises(FileFormatError, match=message):
        lepu.load(write_tree(tree, tmp_path / "cut.nc"))


def test_many_rows_tell_pi_by_some_of_them(monkeypatch):
    """Exact at the mean draw, and every draw to a small part of the spread."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 3))
    l = (rng.random(5000) < 0.5 / (1 + np.exp(-2 * X[:, 0]))).astype(int)
    fit = lepu.fit(X, l, model="scar", method="laplace", draws=100, random_seed=0)
    exact = fit.class_prior_draws(fit.parameters)[0]
    monkeypatch.setattr(summaries, "MANY_ROWS", 1500)
    near = fit.class_prior_draws(fit.parameters)[0]
    assert 0 < np.max(np.abs(near - exact)) < 0.2 * np.std(exact)
