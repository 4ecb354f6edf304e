"""The catalogue in models/: its folders, its data, and Stan's log density against ours."""

import json
from pathlib import Path

import numpy as np
import pytest

from tools.reference import (
    NAMES,
    audited_kinds,
    density_points,
    log_posterior,
    priors,
    reference_data,
)

MODELS = Path(__file__).resolve().parents[2] / "models"


def load(name):
    return json.loads((MODELS / name / "reference.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", NAMES)
def test_reference_data_are_the_recorded_ones(name):
    recorded, data = load(name)["data"], reference_data(name)
    assert data.sha256() == recorded["sha256"]
    labelled = int(np.isin(data.kind, (1, 4, 5)).sum())
    assert (len(data.X), labelled) == (recorded["n"], recorded["labelled"])
    np.testing.assert_allclose(data.X.mean(axis=0), 0, atol=1e-8)
    np.testing.assert_allclose(data.X.std(axis=0), 1, atol=1e-8)
    assert load(name)["priors"] == priors(name)


@pytest.mark.parametrize("rows", ["plain", "audited"])
@pytest.mark.parametrize("name", NAMES)
def test_log_density_is_stans_up_to_a_constant(name, rows):
    recorded, data = load(name)["log_density"], reference_data(name)
    kind = data.kind if rows == "plain" else audited_kinds(data)
    assert recorded["points"] == density_points(name)
    ours = [log_posterior(name, point, data.X, kind) for point in recorded["points"]]
    difference = np.array(ours) - np.array(recorded[rows])
    assert len(difference) == 8
    np.testing.assert_allclose(difference, difference[0], rtol=0, atol=1e-8)
