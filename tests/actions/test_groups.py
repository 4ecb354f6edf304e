"""Shares by group and their ratios: what is known of them where the level of π is not."""

import json

import numpy as np
import pandas as pd
import pytest

from bayes_lepu.errors import DataError, ModelError
from tools import ratio_study
from tools.defaults_version import defaults_version
from tools.ratio_study import fitted, made

pytestmark = pytest.mark.filterwarnings("ignore::bayes_lepu.LepuWarning")


@pytest.fixture(scope="module")
def case():
    frame, l, y, truth = made(0)
    return frame, l, y, truth, fitted(frame, l)


def test_shares_by_group(case):
    frame, l, y, _, fit = case
    table = fit.class_prior(by="region")
    for name in ("north", "south"):
        here = (frame["region"] == name).to_numpy()
        row = table.loc[name]
        assert row["low"] <= y[here].mean() <= row["high"]
        assert row["low"] <= row["lower"] <= row["mean"] <= row["upper"] <= row["high"]
        assert (row["rows"], row["marked"]) == (here.sum(), l[here].sum())
        by_hand = fit.missed()["mean"].to_numpy()[here].mean()
        assert row["mean"] == pytest.approx(by_hand, abs=0.003)
    assert "one rate in each group" in table.attrs["rests_on"]
    cut = fit.class_prior(by=pd.qcut(frame["a"], 4))
    assert len(cut) == 4
    assert cut["mean"].is_monotonic_increasing
    assert fit.class_prior(by=["region"]).equals(table)
    assert list(fit.class_prior().index[:2]) == ["pi", "c"]


def test_missed_positives_by_group(case):
    frame, l, y, _, fit = case
    table, whole = fit.missed(total=True, by="region"), fit.missed(total=True).loc["as named"]
    for name, row in table.iterrows():
        here = (frame["region"] == name).to_numpy() & (l == 0)
        assert row["open"] == here.sum()
        assert row["low"] <= y[here].sum() <= row["high"]
        assert row["mean"] == pytest.approx(fit.missed()["mean"].to_numpy()[here].sum(), rel=0.02)
    assert table["mean"].sum() == pytest.approx(whole["mean"], rel=0.02)
    assert table["low"].sum() <= whole["mean"] <= table["high"].sum()
    with pytest.raises(ModelError, match="total=True, by"):
        fit.missed(by="region")


def test_a_ratio_of_a_point_estimate_has_no_range(case):
    frame, l, *_ = case
    found = fitted(frame, l, method="map").compare_groups("region", "north", "south")
    assert list(found.table) == ["mean"]
    assert "laplace" in found.doubts[-1]


def test_a_ratio_is_known_where_the_level_is_not(case):
    _, _, _y, truth, fit = case
    found = fit.compare_groups("region", "north", "south")
    ratio, whole = found.table.loc["ratio"], found.table.loc["all"]
    assert ratio["low"] < truth < ratio["high"]
    assert np.log(ratio["high"] / ratio["low"]) < 0.5 * np.log(whole["high"] / whole["low"])
    assert "even where the level of π is not" in found.rests_on
    assert found.doubts == ()
    assert "rests on: positives are marked at one rate in each group" in repr(found)
    back = fit.compare_groups("region", "south", "north").table
    assert back.loc["ratio", "mean"] == pytest.approx(1 / ratio["mean"])
    assert back.loc["difference", "mean"] == pytest.approx(-found.table.loc["difference", "mean"])


def test_what_a_ratio_rests_on(case):
    frame, l, _, _, fit = case
    scar = fitted(frame[list("abc")], l, model="scar", selection_features=None)
    found = scar.compare_groups(frame["region"], "north", "south")
    assert found.rests_on.startswith("positives are marked at the same rate everywhere")
    found = fit.compare_groups(frame["a"] > 0, True, False)
    assert "marked alike in all groups" in found.rests_on
    values = fit.compare_groups(frame["region"].to_numpy(), "north", "south")
    assert values.rests_on.startswith("positives are marked at one rate in each group")
    cut = pd.qcut(frame["a"], 4)
    varying = fitted(frame, l, selection_features=["a"], method="map")
    assert "one rate in each group" not in varying.class_prior(by=cut).attrs["rests_on"]
    assert varying.compare_groups(cut, str(cut.min()), cut.max()).table.loc["ratio", "mean"] < 1
    both = fitted(frame, l, selection_features=["region", "a"], method="map")
    found = both.compare_groups("region", "north", "south")
    assert found.rests_on.startswith("the form of the propensity")
    assert "lower" not in found.table  # a point estimate has no interval


def test_a_condition_that_fails_is_named():
    """The class rises less steeply in the north: the ratio is wrong, and the check says why."""
    frame, l, _, truth = made(1, n=8000, slope=0.3)
    found = fitted(frame, l).compare_groups("region", "north", "south")
    assert not found.table.loc["ratio", "low"] < truth < found.table.loc["ratio", "high"]
    assert any("less steeply with the class in 'north'" in doubt for doubt in found.doubts)
    assert "but: " in repr(found)


def test_groups_that_hardly_overlap_are_named(case):
    frame, _l, _, _, fit = case
    found = fit.compare_groups(pd.qcut(frame["a"], 5, labels=list("vwxyz")), "v", "z")
    assert any("rows of 'z' have scores in the range of" in doubt for doubt in found.doubts)


def test_ranges_are_those_of_the_verdict(case):
    """The level moves as far in all groups together as the range of π, the ratio far less."""
    low, high = case[-1].identifiability.pi_range
    whole = case[-1].compare_groups("region", "north", "south").table.loc["all"]
    assert whole["low"] == pytest.approx(low, abs=0.01)
    assert whole["high"] == pytest.approx(high, abs=0.01)


def test_both_orientations_count_where_nobody_names_the_factors(case):
    frame, l = case[:2]
    fit = fitted(frame[["a", "b"]], l, class_features=None, selection_features=None)
    assert fit.identifiability.level == 3
    found = fit.compare_groups(frame["a"] > 0, True, False)
    (doubt,) = [d for d in found.doubts if d.startswith("with t and s swapped")]
    other = float(doubt.split()[-1])
    assert found.table.loc["ratio", "low"] <= other <= found.table.loc["ratio", "high"]
    assert not found.table.loc["ratio", "lower"] <= other <= found.table.loc["ratio", "upper"]


def test_an_unknown_group_is_refused(case):
    with pytest.raises(DataError, match="no group 'east'; one of north, south"):
        case[-1].compare_groups("region", "north", "east")
    few = np.where(np.arange(3000) < 3, "few", "many")
    (doubt, *_) = case[-1].compare_groups(few, "few", "many").doubts
    assert doubt.startswith("'few' has only 3 rows")


# Stored figures ---------------------------------------------------------------------------------

STORED = json.loads(ratio_study.RUNS.read_text(encoding="utf-8"))


def test_the_stored_ranges_cover():
    """Where the group alone decides on s, the ratio is half as uncertain as π; else it is less."""
    for way, widest in (("by group", 0.5), ("common", 0.75)):
        runs = [run for run in STORED["runs"] if run["way"] == way]
        assert len(runs) >= 20
        assert np.mean([ratio_study.covered(run) for run in runs]) >= 0.9
        assert np.median([ratio_study.width(run) for run in runs]) <= widest
        assert np.mean([run["doubt"] for run in runs]) <= 0.1
    assert all(run["doubt"] for run in STORED["runs"] if run["way"] == "less steep")


def test_the_stored_figures_are_those_of_the_page_and_of_these_defaults():
    assert STORED["defaults"] == defaults_version(), "run python -m tools.ratio_study"
    assert ratio_study.table(STORED["runs"]) in ratio_study.PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("way", "seed"),
    [("by group", 0), *(pytest.param(w, 3, marks=pytest.mark.slow) for w in ratio_study.WAYS)],
)
def test_a_set_of_the_study_again(way, seed):
    (stored,) = [r for r in STORED["runs"] if (r["way"], r["seed"]) == (way, seed)]
    assert ratio_study.compared(way, seed) == pytest.approx(stored, abs=0.002)
