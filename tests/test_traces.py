"""Draws of PyMC that come back as a fit."""

import warnings

import arviz as az
import numpy as np
import pymc as pm
import pytest
import xarray as xr
from scipy.special import expit

import bayes_lepu as lepu
from bayes_lepu.engines.folding import has_heavy_tail, log_side_weights
from tests.tiny import tiny_fit, tiny_table

EQUAL = {name: lepu.Prior("normal", scale=2.0) for name in ("a", "b", "alpha", "beta")}


def rows(name):
    X, l, L = tiny_table()
    return X, L if name == "panel" else l


@pytest.mark.parametrize("name", ["naive", "scar", "panel"])
def test_a_fit_comes_back_from_its_own_tree(name):
    fit = tiny_fit(name)
    again = lepu.from_trace(fit.tree, *rows(name), model=fit.spec.name, random_seed=1)
    for field in ("a", "b", "alpha", "beta", "log_w"):
        ours, theirs = getattr(fit.parameters, field), getattr(again.parameters, field)
        np.testing.assert_allclose(theirs, ours, rtol=1e-9, atol=1e-12)
    assert again.options.tune == 200
    np.testing.assert_array_equal(again.stats["diverging"], fit.stats["diverging"])


def exchanged(tree, chains):
    """The posterior with the factors of some chains exchanged, as PyMC may leave them."""
    posterior = tree["posterior"].to_dataset().copy(deep=True)
    for one, other in (("a", "alpha"), ("b", "beta")):
        mine, theirs = posterior[one].to_numpy().copy(), posterior[other].to_numpy().copy()
        posterior[one][chains], posterior[other][chains] = theirs[chains], mine[chains]
    return posterior


@pytest.mark.slow
def test_chains_in_different_orders_are_brought_into_one(tmp_path):
    X, l = rows("spm")
    fit = lepu.fit(
        X, l, model="spm", priors=EQUAL, draws=100, tune=200, random_seed=1, progressbar=False
    )
    mixed = exchanged(fit.tree, [1, 3])
    again = lepu.from_trace(mixed, X, l, model="spm", priors=EQUAL, random_seed=1)
    np.testing.assert_allclose(again.parameters.a, fit.parameters.a)
    np.testing.assert_allclose(again.parameters.beta, fit.parameters.beta)
    assert again.orientation.settled_by == "rule"
    assert again.orientation.probability == pytest.approx(0.5)
    assert again.stats["mirrored"].mean(axis=1).round().tolist() == [0, 1, 0, 1]
    assert again.identifiability.level == fit.identifiability.level
    np.testing.assert_allclose(again.missed()["mean"], fit.missed()["mean"])
    assert again.report(tmp_path / "page.html").stat().st_size > 1000


@pytest.mark.parametrize("scale", [1.0, 0.3, 0.03])
def test_chains_that_stayed_in_the_improbable_order_are_noticed(scale):
    """By the priors all mass is in one order of t and s, and chains are in the other one."""
    X, l = rows("spm")
    priors = EQUAL | {"alpha": lepu.Prior("normal", scale=scale)}
    options = {"model": "spm", "priors": priors, "orientation": "none", "random_seed": 1}
    fit = lepu.fit(X, l, method="laplace", draws=50, chains=2, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("error", lepu.ConvergenceWarning)
        lepu.from_trace(fit.tree, X, l, **options)
    with pytest.warns(lepu.ConvergenceWarning, match="stayed in one order of t and s"):
        lepu.from_trace(exchanged(fit.tree, [0, 1]), X, l, **options)
    if scale == 0.03:
        told = "1 of 2 chains stayed in an order of t and s"
        with pytest.warns(lepu.ConvergenceWarning, match=told):
            again = lepu.from_trace(exchanged(fit.tree, [1]), X, l, **options)
        assert np.abs(again.parameters.alpha).max() < 0.2
        assert again.orientation.probability > 1 - 1e-12


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("mass", [0.7, 1 - 1e-9, 1e-40])
def test_weights_make_up_for_the_shares_of_the_chains(share, mass, rng):
    """Normals of these masses on the two sides, sampled in other shares."""
    n = 40_000
    mirrored = rng.random(n) < share
    u = rng.normal(np.where(mirrored, 0.5, 0.0))
    log_odds = np.log(mass) - np.log1p(-mass) - 0.5 * u**2 + 0.5 * (u - 0.5) ** 2
    W = np.exp(log_side_weights(log_odds, mirrored))
    assert np.average(expit(log_odds), weights=W) == pytest.approx(mass, abs=0.02)
    assert np.average(u, weights=W) == pytest.approx(0.5 * (1 - mass), abs=0.05)


@pytest.mark.parametrize(("k", "heavy"), [(0.2, False), (1.2, True)])
def test_weights_of_few_draws_that_stand_for_many_are_noticed(k, heavy, rng):
    assert has_heavy_tail(rng.exponential(k, size=(2, 1000))) is heavy  # Pareto weights
    assert not has_heavy_tail(np.zeros((2, 1000)))
    assert not has_heavy_tail(1e-15 * rng.normal(size=(2, 1000)))


def test_what_the_trace_lacks_is_listed():
    X, l = rows("spm")
    with pytest.raises(lepu.ModelError, match=r"lacks alpha, beta, rates of the model 'psychm'"):
        lepu.from_trace(tiny_fit("scar").tree, X, l, model="psychm")
    with pytest.raises(lepu.ModelError, match=r"has heat, light as feature; heat, size is expect"):
        lepu.from_trace(tiny_fit("scar").tree, X.rename(columns={"light": "size"}), l, model="scar")
    with pytest.raises(lepu.ModelError, match=r"trace is a dict without a group 'posterior'"):
        lepu.from_trace({}, X, l)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_draws_that_are_no_numbers_are_refused(value):
    posterior = tiny_fit("scar").tree["posterior"].to_dataset().copy(deep=True)
    posterior["b"][0, 3] = value
    with pytest.raises(lepu.ModelError, match=r"draws of b that are no finite numbers"):
        lepu.from_trace(posterior, *rows("scar"), model="scar")


@pytest.mark.parametrize("name", ["scar", "panel"])
def test_other_rows_than_those_sampled_are_refused(name):
    fit, (X, l) = tiny_fit(name), rows(name)
    for table, labels in ((X[::-1], l), (X, l[::-1].set_axis(l.index)), (X[5:], l[5:])):
        with pytest.raises(lepu.DataError, match=r"sampled on other rows than these \d+: its '"):
            lepu.from_trace(fit.tree, table, labels.set_axis(table.index), model=fit.spec.name)


def test_columns_are_matched_by_name_and_other_variables_are_named():
    X, l = rows("scar")
    posterior = tiny_fit("scar").tree["posterior"].to_dataset()
    posterior["shop"] = posterior["b"] * 0
    with pytest.warns(lepu.LepuWarning, match="The trace also has shop, which model='scar'"):
        fit = lepu.from_trace(posterior.isel(feature=[1, 0]), X, l, model="scar", random_seed=1)
    np.testing.assert_array_equal(fit.parameters.a, tiny_fit("scar").parameters.a)


def test_draws_of_another_density_are_noticed():
    """As after a pm.Potential, or with other priors; a constant makes no difference."""
    X, l = rows("scar")
    tree = tiny_fit("scar").tree.copy()
    stats = tree["sample_stats"].to_dataset()
    pi = tree["posterior"]["pi"].to_numpy()
    tree["sample_stats"] = stats.assign(lp=stats["lp"] + 7.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", lepu.LepuWarning)
        lepu.from_trace(tree, X, l, model="scar", random_seed=1)
    tree["sample_stats"] = stats.assign(lp=stats["lp"] - 0.5 * ((pi - 0.2) / 0.02) ** 2)
    with pytest.warns(lepu.LepuWarning, match="another density.*Potential.*priors="):
        fit = lepu.from_trace(tree, X, l, model="scar", random_seed=1)
    np.testing.assert_array_equal(fit.parameters.a, tiny_fit("scar").parameters.a)


def test_rows_are_compared_by_the_traces_own_likelihood(tmp_path):
    """Of another density, with a term that the fit leaves out; refused where it is lacking."""
    X, l = rows("scar")
    plain = tiny_fit("scar")
    groups = {g: plain.tree[g].to_dataset() for g in ("posterior", "log_likelihood")}
    groups["posterior"] = groups["posterior"].assign(shop=groups["posterior"]["b"] * 0)
    better = groups | {"log_likelihood": groups["log_likelihood"] + 0.5}
    options = {"model": "scar", "random_seed": 1}
    with pytest.warns(lepu.LepuWarning, match=r"also has shop.*LOO.*pm\.compute_log_likelihood"):
        fit = lepu.from_trace(xr.DataTree.from_dict(better), X, l, **options)
    for one in (fit, lepu.load(fit.save(tmp_path / "fit.nc"))):
        table = lepu.compare({"plain": plain, "shop": one}, round_to="none")
        assert table.index[0] == "shop"
        assert table["elpd_diff"].abs().max() == pytest.approx(0.5 * len(l))
    with pytest.warns(lepu.LepuWarning):
        without = lepu.from_trace(groups["posterior"], X, l, **options)
    for ask in (lambda: lepu.compare({"a": plain, "b": without}), lambda: az.loo(without.idata)):
        with pytest.raises(lepu.ModelError, match=r"Call pm\.compute_log_likelihood\(trace"):
            ask()


TRUTHS = {
    "spm": lepu.Parameters.of(a=[3.0, -1.0], b=0.5, alpha=[0.5, 1.5], beta=0.5),
    "psychm": lepu.Parameters.of(
        a=[3.0, -1.0], b=0.5, alpha=[0.5, 2.0], beta=0.5, gamma=0.15, lam=0.05
    ),
}


def round_trip(name, seed, rows=600, draws=500):
    """Gaps of means over their Monte-Carlo error, and the share of mirrored draws by chain."""
    rng = np.random.default_rng([seed, 14])
    X = rng.normal(size=(rows, 2))
    _, l = TRUTHS[name].simulate(X, rng)
    with lepu.build_model(X, l, model=name, priors=EQUAL):
        trace = pm.sample(
            draws=draws,
            tune=draws,
            chains=4,
            cores=1,
            target_accept=0.9,
            random_seed=seed,
            progressbar=False,
            nuts_sampler="pymc",
        )
    shared = {"model": name, "priors": EQUAL, "random_seed": seed}
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        theirs = lepu.from_trace(trace, X, l, **shared)
    if any("stayed in one order" in str(w.message) for w in told):
        return {}, [0.0]  # nothing to compare: the user knows
    ours = lepu.fit(X, l, draws=draws, tune=draws, cores=1, progressbar=False, **shared)
    scores = {}
    for variable in ("pi", "c", "a", "alpha"):
        x, y = (fit.tree["posterior"][variable] for fit in (theirs, ours))
        error = np.hypot(az.mcse(x), az.mcse(y))
        scores[variable] = float(
            abs((x.mean(("chain", "draw")) - y.mean(("chain", "draw"))) / error).max()
        )
    return scores, theirs.stats["mirrored"].mean(axis=1).tolist()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", TRUTHS)
def test_round_trip_of_ten_seeds(name):
    found = [round_trip(name, seed) for seed in range(10)]
    compared = [scores for scores, _ in found if scores]
    assert len(compared) >= 3  # PyMC's own chains cross in 4 or more, by its version
    assert max(max(scores.values()) for scores in compared) < 4
    assert any(max(shares) - min(shares) > 0.5 for _, shares in found)  # chains that disagreed
