"""Calibration of the posteriors: the bookkeeping here, the statistics in the long suite."""

import json

import arviz as az
import numpy as np
import pandas as pd
import pytest

import bayes_lepu as lepu
from bayes_lepu.calibration import THINNED, Calibration, outside_band
from tests.tiny import tiny_table

QUICK = {"model": "scar", "method": "laplace", "draws": 50, "random_seed": 3, "progressbar": False}


def test_a_calibration_goes_on_where_it_stopped(tmp_path):
    X = tiny_table()[0]
    whole = lepu.calibrate(X, replications=6, **QUICK)
    path = tmp_path / "ranks.jsonl"
    lepu.calibrate(X, replications=3, path=path, **QUICK)
    with path.open("a") as file:
        file.write('{"replication": 3, "ra')  # killed while writing
    again = lepu.calibrate(X, replications=6, path=path, **QUICK | {"random_seed": None})
    assert again.ranks.equals(whole.ranks)
    assert again.random_seed == 3
    assert again.unusable == whole.unusable
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["replication"] for line in lines[1:]] == list(range(6))
    with pytest.raises(lepu.ModelError, match=r"holds a calibration with another model, priors"):
        lepu.calibrate(X, path=path, **QUICK | {"model": "naive"})


def test_table_tree_and_plot():
    found = lepu.calibrate(tiny_table()[0], replications=6, **QUICK)
    table = found.to_frame()
    assert list(table.index) == ["a[heat]", "a[light]", "b", "c", "pi"]
    assert found.ranks.to_numpy().min() >= 0
    assert found.ranks.to_numpy().max() <= THINNED
    assert "Calibration of 5 quantities" in repr(found)
    with az.rc_context({"plot.backend": "none"}):
        assert found.plot() is not None


def test_several_annotators():
    X = tiny_table()[0]
    shown = np.ones((len(X), 3), dtype=bool)
    shown[:10, 2] = False
    found = lepu.calibrate(X, shown=shown, replications=2, **QUICK | {"random_seed": 1})
    assert {"pi", "sigma_c", "c"} <= set(found.ranks)


def test_wrong_arguments():
    X = tiny_table()[0]
    for options, message in (
        ({"replications": 0}, "replications = 0"),
        ({"draws": 5, "chains": 2}, "draws x chains = 10; 49 or more"),
        ({"priors": {"b": lepu.Prior("flat")}}, "Flat prior on b"),
        ({"shown": [[1, 0]]}, r"shown has shape \(1, 2\)"),
    ):
        with pytest.raises(lepu.LepuError, match=message):
            lepu.calibrate(X, **QUICK | options)
    nobody = {"b": lepu.Prior("normal", loc=-60.0, scale=1.0)}
    with pytest.raises(lepu.DataError, match="None of 2 replications could be fitted"):
        lepu.calibrate(X, priors=nobody, replications=2, **QUICK)


def test_the_band_notices_a_posterior_that_is_too_narrow():
    """U-shaped ranks, as overconfident posteriors give, fall outside the band."""
    u_shaped = np.array([0, 49] * 40 + list(range(50)) * 2)
    assert outside_band(u_shaped) > 0
    assert outside_band(np.array(list(range(50)) * 4)) == 0
    frame = {"narrow": u_shaped, "right": np.resize(np.arange(50), len(u_shaped))}
    table = Calibration(pd.DataFrame(frame), 0, 1).to_frame()
    assert table.loc["narrow", "spread"] > 1.2
    assert table.loc["right", "spread"] == pytest.approx(1.0, abs=0.1)
