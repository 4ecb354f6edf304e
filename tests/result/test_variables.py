"""The variables of a fit against those that PyMC computes from its own graph."""

import numpy as np
import pymc as pm
import pytest
from pymc.stats import compute_log_likelihood, compute_log_prior

import bayes_lepu as lepu
from bayes_lepu.model.density import LogDensity
from tests.tiny import FITS, tiny_fit, tiny_table

# PyTensor's compiler takes half a minute for each of these graphs; a few draws need none.
SLOWLY = {"compile_kwargs": {"mode": "FAST_COMPILE"}, "progressbar": False}
FEW = {"draw": slice(0, 5)}


def few_draws(fit):
    return fit.tree.isel(FEW, missing_dims="ignore")


@pytest.fixture(scope="module")
def hierarchical():
    X, l, _ = tiny_table()
    scale = lepu.Prior("halfnormal", scale=1.0)
    return lepu.fit(
        X,
        l,
        model="spm",
        method="laplace",
        draws=50,
        chains=2,
        class_features=["heat"],
        selection_features=["heat", "light"],
        priors={"a": lepu.Prior("normal", scale=scale)},
        random_seed=1,
    )


@pytest.mark.parametrize("name", [*FITS, "hierarchical"])
def test_tree_holds_the_variables_of_the_model(name, request):
    fit = request.getfixturevalue(name) if name == "hierarchical" else tiny_fit(name)
    model, posterior = fit.model, few_draws(fit)["posterior"].to_dataset()
    for variable in [*model.free_RVs, *model.deterministics]:
        dims = model.named_vars_to_dims.get(variable.name, ())
        assert posterior[variable.name].dims == ("chain", "draw", *dims)
        for dim in dims:
            assert list(posterior[dim].to_numpy()) == list(model.coords[dim])
    found = pm.compute_deterministics(posterior, model=model, **SLOWLY)
    for variable, values in found.data_vars.items():
        np.testing.assert_allclose(posterior[variable], values, rtol=1e-9, err_msg=variable)


@pytest.mark.parametrize("name", [*FITS, "hierarchical"])
def test_log_prior_and_log_likelihood_are_those_of_pymc(name, request):
    fit = request.getfixturevalue(name) if name == "hierarchical" else tiny_fit(name)
    tree = few_draws(fit)
    for compute, group in (
        (compute_log_prior, "log_prior"),
        (compute_log_likelihood, "log_likelihood"),
    ):
        found = compute(tree, model=fit.model, extend_inferencedata=False, **SLOWLY)
        found = found.rename({"L": "l"} if "L" in found else {})
        assert set(found.data_vars) == set(tree[group].data_vars)
        for variable, values in found.data_vars.items():
            np.testing.assert_allclose(tree[group][variable], values, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", FITS)
def test_lp_is_the_density_of_the_draws(name):
    fit = tiny_fit(name)
    density = LogDensity(fit.spec, fit.data, fit.priors, jacobian=True)
    lp = fit.tree["sample_stats"]["lp"].to_numpy()
    assert lp[2, 7] == pytest.approx(density.logp(density.pack(fit.parameters.take((2, 7)))))


@pytest.mark.parametrize("name", FITS)
def test_pymc_replicates_the_labels_as_the_fit_does(name):
    fit = tiny_fit(name)
    tree = fit.tree.isel({"draw": slice(0, 50)}, missing_dims="ignore")
    theirs = pm.sample_posterior_predictive(tree, model=fit.model, random_seed=1, **SLOWLY)
    theirs = theirs["posterior_predictive"]["L" if name == "panel" else "l"]
    theirs = (theirs == 1).any("annotator") if name == "panel" else theirs
    ours = fit.tree["posterior_predictive"]["l"].isel(draw=slice(0, 50))
    assert theirs.dims == ours.dims
    assert list(theirs["obs"].to_numpy()) == list(fit.data.index)
    # The same 200 draws of the parameters: what is left is the chance of single labels.
    error = np.sqrt(2 * 0.25 / 200)
    gap = (theirs.mean(("chain", "draw")) - ours.mean(("chain", "draw"))).to_numpy()
    assert np.abs(gap).max() < 5 * error
    assert abs(gap.mean()) < 4 * error / np.sqrt(len(fit.data.index))
