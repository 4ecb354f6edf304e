"""Every statistic and plot of ArviZ that applies, on every model."""

import arviz as az
import numpy as np
import pytest
import xarray as xr

import bayes_lepu as lepu
from tests.tiny import FITS, tiny_fit, tiny_table

pytestmark = [
    # What ArviZ thinks of 400 draws of 60 rows is not what is tested here.
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]

TWO = {"var_names": ["a", "pi"]}

STATISTICS = {  # of each kind: draws, log likelihoods, predictions, priors, sampler
    "bfmi": {},
    "diagnose": TWO,
    "ess": {},
    "loo": {},
    "loo_metrics": {"kind": "acc"},
    "loo_pit": {},
    "loo_r2": {"var_name": "l", "n_simulations": 50},
    "loo_subsample": {"observations": 20},
    "metrics": {"kind": "acc"},
    "psense_summary": TWO,
    "rhat": {},
    "summary": {},
}

PLOTS = {
    "plot_dist": TWO,
    "plot_energy": {},
    "plot_forest": TWO,
    "plot_loo_pit": {},
    "plot_pair": {"var_names": ["b", "pi"]},
    # ArviZ cannot colour divergences where there is exactly one.
    "plot_parallel": {**TWO, "aes_by_visuals": {"line": []}},
    "plot_ppc_dist": {"num_samples": 10},
    "plot_ppc_pava": {},
    "plot_ppc_rootogram": {},
    "plot_prior_posterior": TWO,
    "plot_trace_dist": TWO,
}

EACH = [pytest.param(n, marks=() if n in ("psychm", "panel") else pytest.mark.slow) for n in FITS]


@pytest.fixture(autouse=True)
def no_drawing():
    with az.rc_context({"plot.backend": "none"}):
        yield


@pytest.mark.parametrize("name", EACH)
def test_statistics(name):
    fitted = tiny_fit(name).tree
    for function, options in STATISTICS.items():
        assert getattr(az, function)(fitted, **options) is not None, function
    assert az.loo_i(0, fitted) is not None
    assert az.bayes_factor(fitted, var_names="b", ref_vals=0.0) is not None
    loo = az.loo(fitted, pointwise=True)
    assert np.isfinite(loo.elpd)
    assert list(loo.elpd_i["obs"].to_numpy()) == list(tiny_table()[0].index)


@pytest.mark.parametrize("name", EACH)
def test_plots(name):
    fitted = tiny_fit(name).tree
    for function, options in PLOTS.items():
        assert getattr(az, function)(fitted, **options) is not None, function
    assert az.plot_khat(az.loo(fitted, pointwise=True)) is not None
    # These two make a dimension "alpha" beside the variables of the posterior.
    posterior = fitted["posterior"].to_dataset()
    renamed = fitted.assign({"posterior": xr.DataTree(posterior.rename(_other_alpha(posterior)))})
    assert az.plot_psense_dist(renamed, **TWO) is not None
    assert az.plot_psense_quantities(renamed, **TWO) is not None


def _other_alpha(posterior):
    return {"alpha": "slopes of s"} if "alpha" in posterior else {}


def test_several_fits():
    fits = {name: tiny_fit(name).tree for name in FITS[:4]}
    table = az.compare(fits)
    assert set(table.index) == set(fits)
    assert az.plot_compare(table) is not None
    assert az.weight_predictions(list(fits.values()), weights=[0.25] * 4) is not None
    assert az.plot_forest(fits, var_names=["a", "pi"]) is not None
    both, options = (fits["spm"], fits["psychm"]), {"var_names": ["a"], "num_samples": 100}
    assert az.wasserstein(*both, **options) >= 0
    assert az.kl_divergence(*both, **options) is not None


def test_a_saved_fit_has_the_draws(tmp_path):
    fit = tiny_fit("scar")
    with az.from_netcdf(fit.save(tmp_path / "fit.nc")) as tree:
        assert set(tree.children) == {"posterior", "sample_stats", "state"}
        assert az.summary(tree, var_names=["c"]).shape[0] == 1
    fit.tree.to_netcdf(tmp_path / "tree.nc")
    with az.from_netcdf(tmp_path / "tree.nc") as tree:
        assert az.loo(tree).elpd == pytest.approx(az.loo(fit.tree).elpd)


def test_tree_says_where_it_comes_from():
    fit = tiny_fit("spm")
    assert fit.idata is fit.tree
    attrs = fit.tree["posterior"].attrs
    assert attrs["creation_library"] == "bayes_lepu"
    assert attrs["inference_library"] == "nutpie"
    assert attrs["tuning_steps"] == 200
    assert attrs["sampling_time"] > 0
    assert attrs["created_at"].startswith("20")
    assert list(fit.tree["observed_data"].data_vars) == ["l"]
    assert list(fit.tree["posterior"]["draw"].to_numpy()) == list(range(100))


def test_rows_are_computed_as_far_as_they_are_asked_for(monkeypatch):
    fit = lepu.fit(*tiny_table()[:2], model="scar", method="laplace", draws=50, random_seed=1)
    values = fit.tree["log_likelihood"]["l"]
    monkeypatch.setattr("bayes_lepu.result.tree.MAX_CELLS", 50 * 3)
    few = values.isel(obs=[5, 2, 9], chain=0).to_numpy()
    with pytest.raises(lepu.ModelError, match=r"These are 1.2e\+04 numbers, more than"):
        values.to_numpy()
    monkeypatch.undo()
    np.testing.assert_array_equal(few, values.to_numpy()[0][:, [5, 2, 9]])
    np.testing.assert_array_equal(values.isel(obs=7, draw=3), values.to_numpy()[:, 3, 7])
    again = fit.tree["posterior_predictive"]["l"]
    np.testing.assert_array_equal(again.isel(obs=slice(3, 6)), again.to_numpy()[..., 3:6])
