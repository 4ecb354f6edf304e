"""The panel in the catalogue: its data, and Stan's log density against ours."""

import json

import numpy as np
import pytest

from tools.reference_panel import (
    FILE,
    PRIORS,
    density_points,
    log_posterior,
    reference_panel,
)


@pytest.fixture(scope="module")
def recorded():
    return json.loads(FILE.read_text(encoding="utf-8"))


def test_reference_data_are_the_recorded_ones(recorded):
    data = reference_panel()
    assert data.sha256() == recorded["data"]["sha256"]
    assert int((data.L == 1).sum()) == recorded["data"]["labels"]
    assert recorded["priors"] == PRIORS


@pytest.mark.parametrize("rows", ["plain", "audited"])
def test_log_density_is_stans(recorded, rows):
    """Both keep every constant, so they are equal outright; predictors reach several hundred."""
    stored = recorded["log_density"]
    assert stored["points"] == density_points()
    ours = [log_posterior(point, audited=rows == "audited") for point in stored["points"]]
    np.testing.assert_allclose(ours, stored[rows], rtol=0, atol=1e-8)


@pytest.mark.slow
def test_our_posterior_is_stans(recorded):
    """|m - m'| within four standard errors of the difference for every quantity."""
    from arviz_stats.base import array_stats

    import bayes_lepu as lepu

    data = reference_panel()
    fit = lepu.fit(
        data.X,
        np.where(data.L < 0, np.nan, data.L),
        model="spm",
        selection_features=[1, 2],
        priors={
            name: lepu.Prior("normal", scale=PRIORS[f"scale_{name}"])
            for name in ("a", "b", "alpha_mean", "beta_mean")
        },
        standardize=False,
        draws=2000,
        random_seed=1,
        progressbar=False,
    )
    posterior = fit.tree["posterior"]
    for key, figures in recorded["posterior"].items():
        name, _, rest = key.partition("[")
        index = tuple(int(i) for i in rest.rstrip("]").split(",")) if rest else ()
        if name in ("alpha", "alpha_mean"):
            index = (*index[:-1], index[-1] - 1)  # the masked column is left out
        draws = posterior[name].to_numpy()[(..., *index)]
        error = np.hypot(float(array_stats.mcse(draws, method="mean")), figures["mcse_mean"])
        assert abs(draws.mean() - figures["mean"]) < 4 * error, key
