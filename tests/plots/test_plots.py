"""Plots: what they draw is what the fit says, on every backend."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

import bayes_lepu as lepu
from bayes_lepu import plots
from bayes_lepu.errors import DataError, ModelError
from bayes_lepu.links import sigmoid
from bayes_lepu.plots import panels, pictures
from tests.reports import NAMES, hostile_fit

mpl.use("Agg")

ALL = [getattr(plots, name) for name in plots.__all__]


@pytest.fixture(scope="module")
def fit():
    return hostile_fit()


@pytest.fixture(autouse=True)
def close_figures():
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


@pytest.mark.parametrize("plot", ALL, ids=plots.__all__)
def test_every_backend(plot, fit, tmp_path):
    from arviz_plots import PlotCollection

    made = plot(fit)
    assert isinstance(made, PlotCollection)
    axes = made.viz["plot"].to_numpy().ravel()
    drawn = [len(ax.lines) + len(ax.collections) for ax in axes]
    assert min(drawn) > 0
    made.savefig(tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 2000
    assert plot(fit, backend="none").backend == "none"
    assert plot(fit, backend="plotly").viz["figure"].item().to_json()


@pytest.mark.parametrize("learner", [None, "boosting"])
def test_curves_are_averages_of_predictions_with_the_column_moved(learner):
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.normal(size=(600, 3)), columns=list("abc"))
    l = (rng.random(600) < 0.5 * sigmoid(4 - 4 * np.hypot(X["a"], X["b"]))).astype(int)
    fit = lepu.fit(X, l, model="scar", class_learner=learner, method="map", random_seed=1)
    along, rows = pictures.effect_of(fit, "a"), X.iloc[panels.some_rows(600, pictures.ROWS)]
    moved = rows.assign(a=along.x[9])
    expected = fit.predict_proba(moved)[:, 1].mean()
    assert along.t[0, 9] == pytest.approx(expected, rel=1e-3)  # rounding at a split moves a row
    assert along.s[0, 9] == pytest.approx(fit.propensity(moved)["mean"].mean())
    assert np.all(np.diff(along.t[[1, 0, 2]], axis=0) >= 0)
    assert set(pictures.top_features(fit)) == {"a", "b", "c"}  # the user's columns, no scores


@pytest.mark.filterwarnings("ignore::bayes_lepu.IdentifiabilityWarning")
def test_categories_and_flags_are_bars():
    rng = np.random.default_rng(0)
    n = 400
    frame = pd.DataFrame(
        {
            "size": rng.normal(size=n),
            "land": rng.choice(["north", "south", "west"], n),
            "flag": rng.integers(0, 2, n),
        }
    )
    l = (rng.random(n) < 1 / (1 + np.exp(-frame["size"] - (frame["land"] == "west")))).astype(int)
    fit = lepu.fit(frame, l, model="spm", method="laplace", draws=50, random_seed=1)
    assert set(pictures.top_features(fit)) == {"size", "land", "flag"}
    land, flag = pictures.effect_of(fit, "land"), pictures.effect_of(fit, "flag")
    levels = list(land.levels)
    assert sorted(levels) == ["north", "south", "west"]
    assert flag.levels == ("0", "1")
    assert pictures.effect_of(fit, "size").levels == ()
    # The value at a level is the average over the rows moved to it.
    draws, X = fit.draws.thin(pictures.DRAWS), fit.data.X[panels.some_rows(n, pictures.ROWS)]
    moved = X.copy()
    for j in fit.data.terms["land"]:
        here = fit.feature_names[j] == "land=west"
        moved[:, j] = (here - fit.data.center[j]) / fit.data.scale[j]
    at_west = land.t[0, levels.index("west")]
    assert at_west == pytest.approx(float(draws.t(moved).mean()))
    axes = plots.plot_propensity(fit, features=["land"]).viz["plot"].to_numpy().ravel()[0]
    assert [t.get_text() for t in axes.get_xticklabels()] == levels


def test_label_rates_by_a_category_of_two_levels():
    rng = np.random.default_rng(4)
    X = pd.DataFrame({"size": rng.normal(size=300), "sort": rng.choice(["old", "new"], 300)})
    l = (rng.random(300) < 0.3 + 0.2 * (X["sort"] == "new")).astype(int)
    fit = lepu.fit(X, l, model="naive", method="map", random_seed=1)
    table = pictures.grouped_rates(fit, "sort")
    # A point estimate has the width of chance: 89 % of a Gaussian.
    sd = np.sqrt(table["predicted"] * (1 - table["predicted"]) / table["rows"])
    np.testing.assert_allclose(table["upper"] - table["lower"], 2 * 1.598 * sd, rtol=0.25)
    observed = l.groupby(X["sort"]).mean()
    np.testing.assert_allclose(table["observed"], observed)
    (axes,) = plots.plot_label_rate(fit, by="sort").viz["plot"].to_numpy().ravel()
    assert axes.get_xlabel() == "sort"
    assert [label.get_text() for label in axes.get_xticklabels()] == ["new", "old"]


def test_rare_classes_get_axes_that_fit_them():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 2))
    y = rng.random(6000) < 1 / (1 + np.exp(-(2 * X[:, 0] - 6)))
    l = (y & (rng.random(6000) < 0.6)).astype(int)
    fit = lepu.fit(X, l, model="scar", method="laplace", draws=100, random_seed=1)
    pi = float(fit.pi_draws.mean())
    assert pi < 0.05
    for plot in (plots.plot_prior_posterior, plots.plot_profile):
        axes = plot(fit).viz["plot"].to_numpy().ravel()[0]
        assert fit.pi_draws.min() < axes.get_xlim()[1] < 0.4
    axes = plots.plot_class_probability(fit).viz["plot"].to_numpy().ravel()[0]
    assert axes.get_xlim()[0] > 0.5


def test_area_below_the_class_curve_is_the_class_prior(fit):
    _, t, h, observed = pictures.ranked_groups(fit)
    assert t[0].mean() == pytest.approx(float(fit.draws.thin(panels.DRAWS).t(fit.data.X).mean()))
    assert np.all(np.diff(t[0]) >= 0)
    assert np.all(h[0] <= t[0])
    assert observed.mean() == pytest.approx(fit.data.l.mean(), abs=0.01)


def test_prior_and_posterior_are_those_of_the_fit(fit):
    pairs = pictures.prior_and_posterior(fit)
    table = fit.class_prior()
    assert list(pairs) == ["pi", "c", "gamma", "lambda"]
    for name in ("pi", "c"):
        prior, posterior = pairs[name]
        assert posterior.mean() == pytest.approx(table.loc[name, "mean"])
        # Two samples of 1000 prior draws.
        tolerance = 4 * table.loc[f"prior of {name}", "sd"] * np.sqrt(2 / 1000)
        assert prior.mean() == pytest.approx(table.loc[f"prior of {name}", "mean"], abs=tolerance)


def test_dollars_are_not_mathematics(fit):
    made = plots.plot_propensity(fit, features=["$x^2$ & 100%"])
    axes = made.viz["plot"].to_numpy().ravel()[0]
    assert axes.get_xlabel() == r"\$x^2\$ & 100%"


def test_wrong_questions_are_refused(fit):
    with pytest.raises(DataError, match="'nope'"):
        plots.plot_propensity(fit, features=["nope"])
    with pytest.raises(DataError, match="at least one"):
        plots.plot_propensity(fit, features=[])
    with pytest.raises(DataError, match="nope"):
        plots.plot_label_rate(fit, by="nope")
    with pytest.raises(ModelError, match="sigma"):
        plots.plot_prior_posterior(fit, var_names=["sigma"])
    point = hostile_fit(method="map")
    with pytest.raises(ModelError, match="point estimate"):
        plots.plot_prior_posterior(point)
    with pytest.raises(ModelError, match="one factor"):
        plots.plot_orientation(hostile_fit(model="scar", method="map"))


def test_point_estimates_have_curves_without_width():
    point = hostile_fit(method="map")
    s = pictures.effect_of(point, NAMES[0]).s
    np.testing.assert_array_equal(s[1], s[2])
    for plot in (plots.plot_propensity, plots.plot_class_probability, plots.plot_label_rate):
        plot(point)


def test_terms_of_a_formula_are_drawn_over_the_columns_of_the_table():
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(
        {"amount": np.exp(rng.normal(4, 1, 300)), "night": rng.integers(0, 2, 300)}
    )
    l = (rng.random(300) < 0.6 * sigmoid(2 * np.log(frame["amount"]) - 8)).astype(int)
    formula = "~ log(amount) + night + night:log(amount)"
    fit = lepu.fit(frame, l, model="scar", method="map", class_features=formula, random_seed=1)
    assert set(pictures.top_features(fit)) == {"log(amount)", "night"}
    along = pictures.effect_of(fit, "log(amount)")
    ends = frame["amount"].quantile([0.005, 0.995])
    nearest = [frame["amount"].iloc[(frame["amount"] - end).abs().argmin()] for end in ends]
    np.testing.assert_allclose(along.x[[0, -1]], nearest)
    for plot, options in (
        (plots.plot_propensity, {"features": ["log(amount)"]}),
        (plots.plot_label_rate, {"by": "log(amount)"}),
    ):
        axes = plot(fit, **options).viz["plot"].to_numpy().ravel()[0]
        assert axes.get_xlabel() == "amount"
        assert axes.get_xlim()[1] > 100
