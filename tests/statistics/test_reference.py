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


def test_folders_are_the_models():
    assert {path.name for path in MODELS.iterdir() if path.is_dir()} == {*NAMES, "panel"}


@pytest.mark.parametrize("name", NAMES)
def test_each_folder_is_complete(name):
    files = {path.name for path in (MODELS / name).iterdir()}
    assert files == {"card.md", f"{name}.py", f"{name}.stan", "graph.svg", "reference.json"}


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


@pytest.mark.parametrize("name", NAMES)
def test_reference_meets_its_own_definition(name):
    reference = load(name)
    found, settings = reference["diagnostics"], reference["settings"]
    assert settings["chains"] >= 4
    assert found["max_rhat"] <= 1.005
    assert min(found["min_ess_bulk"], found["min_ess_tail"]) >= 4000
    assert found["divergences"] == 0
    assert reference["modes"].get("gap", np.inf) >= 10
    for figures in reference["posterior"].values():
        assert figures["mcse_mean"] <= figures["sd"] / np.sqrt(4000) * 1.1
        quantiles = [figures[f"q{q}"] for q in (5, 25, 50, 75, 95)]
        assert quantiles == sorted(quantiles)


@pytest.mark.parametrize("name", NAMES)
def test_every_parameter_is_in_the_card(name):
    card = (MODELS / name / "card.md").read_text(encoding="utf-8")
    parameters = {key.split("[")[0] for key in load(name)["posterior"]}
    rows = {line.split("|")[1].strip(" `") for line in card.splitlines() if line.startswith("| `")}
    assert parameters == rows
