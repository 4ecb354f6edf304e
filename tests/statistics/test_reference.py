"""The catalogue in models/: its folders, its data, and Stan's log density against ours."""

import json
from pathlib import Path

import numpy as np
import pytest

import bayes_lepu as lepu
from tools import reference_panel as panel
from tools.reference import (
    NAMES,
    audited_kinds,
    density_points,
    log_posterior,
    priors,
    reference_data,
)

MODELS = Path(__file__).resolve().parents[2] / "models"
EVERY = (*NAMES, "panel")


def load(name):
    return json.loads((MODELS / name / "reference.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", EVERY)
def test_reference_data_are_the_recorded_ones(name):
    recorded = load(name)
    if name == "panel":
        data, labels = panel.reference_panel(), recorded["data"]["labels"]
        found, wanted = int((data.L == 1).sum()), panel.PRIORS
    else:
        data, labels = reference_data(name), recorded["data"]["labelled"]
        found, wanted = int(np.isin(data.kind, (1, 4, 5)).sum()), priors(name)
        np.testing.assert_allclose(data.X.mean(axis=0), 0, atol=1e-8)
        np.testing.assert_allclose(data.X.std(axis=0), 1, atol=1e-8)
    assert data.sha256() == recorded["data"]["sha256"]
    assert (found, recorded["priors"]) == (labels, wanted)


@pytest.mark.parametrize("rows", ["plain", "audited"])
@pytest.mark.parametrize("name", EVERY)
def test_log_density_is_stans(name, rows):
    """Up to a constant; outright for the panel, whose twin keeps every constant."""
    recorded, audited = load(name)["log_density"], rows == "audited"
    if name == "panel":
        assert recorded["points"] == panel.density_points()
        ours = [panel.log_posterior(point, audited=audited) for point in recorded["points"]]
    else:
        assert recorded["points"] == density_points(name)
        data = reference_data(name)
        kind = audited_kinds(data) if audited else data.kind
        ours = [log_posterior(name, point, data.X, kind) for point in recorded["points"]]
    difference = np.array(ours) - np.array(recorded[rows])
    known = 0.0 if name == "panel" else difference[0]
    np.testing.assert_allclose(difference, known, rtol=0, atol=1e-8)


@pytest.mark.slow
def test_our_posterior_of_the_panel_is_stans():
    """|m - m'| within four standard errors of the difference for every quantity."""
    from arviz_stats.base import array_stats

    data = panel.reference_panel()
    fit = lepu.fit(
        data.X,
        np.where(data.L < 0, np.nan, data.L),
        model="spm",
        selection_features=[1, 2],
        priors={
            name: lepu.Prior("normal", scale=panel.PRIORS[f"scale_{name}"])
            for name in ("a", "b", "alpha_mean", "beta_mean")
        },
        standardize=False,
        draws=2000,
        random_seed=1,
        progressbar=False,
    )
    posterior = fit.tree["posterior"]
    for key, figures in load("panel")["posterior"].items():
        name, _, rest = key.partition("[")
        index = tuple(int(i) for i in rest.rstrip("]").split(",")) if rest else ()
        if name in ("alpha", "alpha_mean"):
            index = (*index[:-1], index[-1] - 1)  # the masked column is left out
        draws = posterior[name].to_numpy()[(..., *index)]
        error = np.hypot(float(array_stats.mcse(draws, method="mean")), figures["mcse_mean"])
        assert abs(draws.mean() - figures["mean"]) < 4 * error, key
