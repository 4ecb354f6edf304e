"""Decisions: what is promised is what is found."""

import numpy as np
import pandas as pd
import pytest

import bayes_lepu as lepu
from bayes_lepu.actions.decisions import decide, rule_of
from bayes_lepu.actions.missed import Alternatives
from bayes_lepu.errors import ModelError
from bayes_lepu.model.density import row_terms
from bayes_lepu.plots.pictures import ranking_curves
from tests.tiny import tiny_fit, tiny_table

MASKS = {"class_features": [0, 1, 2], "selection_features": [3, 4]}
TRUTH = lepu.Parameters.of(a=[2.5, -1.5, 1, 0, 0], b=-1.0, alpha=[0, 0, 0, 1.5, -1], beta=0.3)


def simulated(seed, n=2500):
    """Rows of a set at level 1: the columns tell the factors apart."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    y, l = TRUTH.simulate(X, rng)
    return X, y, l


def laplace(X, l, seed, draws=100):
    return lepu.fit(X, l, model="spm", method="laplace", draws=draws, random_seed=seed, **MASKS)


@pytest.fixture(scope="module")
def known():
    """A set at level 1 with its classes."""
    X, y, l = simulated(1)
    frame = pd.DataFrame(X, columns=list("abcde"), index=[f"r{i}" for i in range(len(X))])
    masks = {"class_features": list("abc"), "selection_features": list("de")}
    fit = lepu.fit(frame, l, model="spm", method="laplace", draws=100, random_seed=1, **masks)
    return fit, frame, y, l


@pytest.fixture(scope="module")
def unnamed():
    """A set in which nothing tells the factors apart."""
    X, _, l = simulated(2)
    return lepu.fit(X, l, model="spm", method="laplace", draws=100, random_seed=1)


def test_rows_are_the_most_probable_ones_and_their_mean_is_the_precision(known):
    fit, frame, _, l = known
    found = fit.decide(budget=150)
    probability = fit.missed(frame)["mean"][l == 0].sort_values(ascending=False)
    assert list(found.rows.index) == list(probability.index[:150])
    assert list(frame.index[found.positions]) == list(found.rows.index)
    outcome = found.outcome.loc["as named"]
    assert outcome.loc["precision", "mean"] == pytest.approx(probability.iloc[:150].mean())
    assert outcome.loc["positives", "mean"] == pytest.approx(probability.iloc[:150].sum())
    assert found.candidates == (l == 0).sum()
    assert list(found.draws) == ["as named"]
    assert list(found.draws["as named"].columns) == ["positives", "precision", "recall", "total"]
    assert "150 of" in repr(found)


def test_intervals_hold_the_noise_of_a_finite_set(known):
    """Var = Var(sum of m) + E(sum of m (1 - m)): the two sources of uncertainty."""
    fit, _, _, _ = known
    found = fit.decide(budget=150)
    m = fit.draws.missed(fit.data.X[found.positions])
    both = np.var(m.sum(axis=1)) + np.mean((m * (1 - m)).sum(axis=1))
    sd = found.outcome.loc[("as named", "positives"), "sd"]
    assert sd == pytest.approx(np.sqrt(both), rel=0.15)  # 400 draws: 3.5 % of Monte-Carlo error


def test_the_rule_by_cost(known):
    fit, _, _, _ = known
    costly = fit.decide(cost=(1, 3))
    assert costly.rows["missed"].min() > 0.25
    assert len(fit.decide(budget=len(costly.rows) + 1).rows.query("missed > 0.25")) == len(
        costly.rows
    )


def test_new_rows_can_be_decided_on(known):
    fit, frame, _, _ = known
    new = frame.iloc[:50]
    found = fit.decide(new, budget=5)
    assert set(found.rows.index) <= set(new.index)
    assert fit.missed(new, total=True).loc["as named", "mean"] == pytest.approx(
        fit.missed(new)["mean"].sum()
    )


def test_audited_rows_are_neither_counted_nor_chosen(known):
    _, frame, y, l = known
    checked = np.full(len(l), np.nan)
    audited = np.flatnonzero(l == 0)[:300]
    checked[audited] = y[audited]
    fit = lepu.fit(frame, l, y=checked, model="scar", method="laplace", draws=100, random_seed=1)
    found = fit.decide(budget=5000, ci_prob=0.9)
    assert set(found.positions).isdisjoint(audited)
    assert found.candidates == (l == 0).sum() - 300


def test_both_namings_are_told_where_the_naming_is_open(unnamed):
    assert unnamed.identifiability.level == 3
    total = unnamed.missed(total=True)
    assert list(total.index) == ["as named", "swapped"]
    swapped = unnamed.draws.swap().missed(unnamed.data.X[unnamed.data.l == 0]).sum(axis=1).mean()
    assert total.loc["swapped", "mean"] == pytest.approx(swapped)
    found = unnamed.decide(budget=50)
    assert list(found.draws) == ["as named", "swapped"]
    assert "swapped" in found.rows


def test_a_point_estimate_has_no_interval():
    X, _, l = simulated(3)
    fit = lepu.fit(X, l, model="spm", method="map", random_seed=1, **MASKS)
    found = fit.decide(budget=20)
    assert "lower" not in found.rows
    assert list(found.outcome.columns) == ["low", "high", "mean"]
    assert list(fit.missed(total=True).columns) == ["low", "high", "mean"]


def test_where_marks_alone_are_identified_they_order_the_rows(known):
    fit, frame, _, l = known
    open_rows = np.flatnonzero(l == 0)
    h = fit.label_probability(frame.iloc[open_rows])["mean"].to_numpy()
    none = Alternatives(None)
    chosen = decide(fit, None, rule_of(50, None), identified=4, known=none).positions
    assert set(chosen) == set(open_rows[np.argsort(-h, kind="stable")[:50]])
    assert set(chosen) != set(
        decide(fit, None, rule_of(50, None), identified=2, known=none).positions
    )


def test_curves_agree_with_decisions(known):
    fit, _, _, l = known
    curves = ranking_curves(fit)
    line = curves.iloc[40]
    found = fit.decide(budget=int(line["rows"])).outcome.loc["as named"]
    assert line["found"] == pytest.approx(found.loc["positives", "mean"])
    assert curves.iloc[-1]["rows"] == (l == 0).sum()
    assert np.all(np.diff(curves["found"]) >= 0)


@pytest.fixture(scope="module")
def weighted_and_repeated():
    X, y, l = simulated(5, 900)
    y = np.where((l == 0) & (np.arange(900) < 40), y, np.nan)
    weight = np.where(np.arange(900) % 2, 3.0, 1.0)
    rows = np.repeat(np.arange(900), weight.astype(int))
    options = {"model": "scar", "method": "laplace", "draws": 250, "random_seed": 1}
    weighted = lepu.fit(X, l, y=y, sample_weight=weight, **options)
    return weighted, lepu.fit(X[rows], l[rows], y=y[rows], **options)


def test_weighted_rows_are_counted_as_if_they_were_repeated(weighted_and_repeated):
    tables = [fit.missed(total=True).loc["as named"] for fit in weighted_and_repeated]
    assert tables[0]["mean"] == pytest.approx(tables[1]["mean"], rel=1e-6)
    assert tables[0]["sd"] == pytest.approx(tables[1]["sd"], rel=0.1)  # 1000 draws
    answers = [fit.answer for fit in weighted_and_repeated]
    weighted, plain = (answer.missed.split(". ")[-1] for answer in answers)
    assert weighted == plain.replace("open.", "open, counted by their weights.")
    assert answers[0].total.loc["as named", "mean"] == tables[0]["mean"]
    assert answers[0].trust == answers[1].trust
    row_by_row = weighted_and_repeated[0].decide(budget=10)
    assert row_by_row.candidates == (weighted_and_repeated[0].data.kind == 0).sum()


@pytest.mark.parametrize("false_marks", [False, True])
def test_rows_of_the_fit_are_rated_by_all_that_is_known_of_them(false_marks):
    """The same for one annotator as for several, whose formula is that of the likelihood."""
    X, y, l = simulated(6, 600)
    checked = np.where(np.arange(600) < 60, y, np.nan)
    options = {"model": "spm", "method": "laplace", "draws": 50, "random_seed": 1}
    fit = lepu.fit(X, l, y=checked, false_marks=false_marks, **options, **MASKS)
    found = fit.missed()["mean"].to_numpy()
    np.testing.assert_allclose(found, row_terms(fit.draws, fit.data)[1].mean(axis=0), rtol=1e-9)
    np.testing.assert_array_equal(found[:60], y[:60])
    marked = found[60:][l[60:] == 1]
    assert (marked < 1).any() if false_marks else (marked == 1).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "no rule"),
        ({"budget": 5, "cost": (1, 1)}, "budget and cost"),
        ({"budget": 0}, "budget = 0"),
        ({"budget": 2.5}, "budget = 2.5"),
        ({"cost": (1, 0)}, "cost = "),
        ({"cost": (1, 2, 3)}, "cost = "),
    ],
)
def test_unclear_rules_are_refused(known, options, message):
    with pytest.raises(ModelError, match=message):
        known[0].decide(**options)


def test_rows_that_were_not_shown_were_not_missed_by_everybody():
    """Totals, decisions and audits of several annotators count who saw which row."""
    fit = tiny_fit("panel")
    unmarked = fit.data.l == 0
    by_row = fit.missed()["mean"].to_numpy()[unmarked]
    assert fit.missed(total=True)["mean"].iloc[0] == pytest.approx(by_row.sum())
    seen_by_all = fit.missed(tiny_table()[0])["mean"].to_numpy()[unmarked]
    assert by_row.sum() > seen_by_all.sum()
    rows = fit.decide(budget=5).rows["missed"]
    np.testing.assert_allclose(rows, fit.missed().loc[rows.index, "mean"])
    plan = fit.suggest_audit(5).rows["missed"]
    np.testing.assert_allclose(plan, fit.missed().loc[plan.index, "mean"])
