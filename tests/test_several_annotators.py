"""Fits of several annotators: recovery, what a fit answers, checks and level, saving."""

from dataclasses import replace

import numpy as np
import pytest
from annotated import PICKY, simulate

import bayes_lepu as lepu

QUICK = {"draws": 300, "tune": 300, "chains": 2, "cores": 1, "progressbar": False}


@pytest.fixture(scope="module")
def picky():
    """Annotators steeper than the class, a third of the cells not shown, ten rows unseen."""
    X, y, L = simulate(1500, seed=11, hidden=0.3)
    L.iloc[:10] = np.nan
    return X, y, L, lepu.fit(X, L, model="spm", random_seed=3, **QUICK)


def standard_score(draws, truth):
    return abs(draws.mean(axis=0) - truth) / draws.std(axis=0)


def test_recovery_with_annotators_steeper_than_the_class(picky):
    X, y, _, fit = picky
    scale, values = fit.data.scale, X.to_numpy()
    assert standard_score(fit.pi_draws, PICKY.t(values).mean()) < 4
    assert (standard_score(fit.draws.a, PICKY.a * scale) < 4).all()
    assert (standard_score(fit.draws.alpha, PICKY.alpha * scale) < 4).all()
    # The factor called t is the true one, not the steeper one.
    assert (PICKY.omega(values).std(axis=1) > np.std(PICKY.tau(values))).all()
    best = (PICKY.t(values) > 0.5) == y
    assert (fit.predict(X) == y).mean() > best.mean() - 0.02
    assert fit.identifiability.level == 1
    assert "annotators independent given x and y" in fit.identifiability.carried_by
    assert "orientation rule" not in fit.identifiability.carried_by


def test_what_a_fit_answers(picky):
    X, _, L, fit = picky
    proba = fit.predict_proba(X)
    assert proba.shape == (1500, 2)
    table = fit.class_probability(X.head(7), ci_prob=0.8)
    np.testing.assert_allclose(table["mean"], proba[:7, 1])
    assert (table["lower"] < table["mean"]).all()
    s = fit.propensity(X.head(4))
    assert list(s.index[:3]) == [(0, "anna"), (0, "ben"), (0, "cleo")]
    inside = fit.data.transform(X.head(4))[0]
    for j, name in enumerate(fit.data.annotators):
        one = s.xs(name, level="annotator")["mean"]
        np.testing.assert_allclose(one, fit.draws.s(inside)[:, j].mean(axis=0))
    prior = fit.class_prior()
    names = ["c[anna]", "c[ben]", "c[cleo]"]
    assert list(prior.index) == ["pi", "c", *names, "prior of pi", "prior of c"]
    assert prior.loc["prior of pi", "sd"] > 5 * prior.loc["pi", "sd"]
    people = fit.annotators()
    assert people["seen"].tolist() == L.notna().sum().tolist()
    assert people["labelled"].tolist() == L.sum().astype(int).tolist()
    np.testing.assert_allclose(people["mean"], fit.c_by_annotator.mean(axis=0))
    assert "motion +" in people.loc["cleo", "differs_in"]  # 1.2, where the average is 0.8
    assert "motion -" in people.loc["ben", "differs_in"]  # 0.4


def test_missed_rows(picky):
    _, y, L, fit = picky
    missed = fit.missed()
    marked = (L.max(axis=1) == 1).to_numpy()
    np.testing.assert_allclose(missed["mean"][marked], 1.0, atol=1e-12)
    open_rows = ~marked
    expected, found = missed["mean"][open_rows].sum(), y[open_rows].sum()
    sd = np.sqrt((missed["mean"] * (1 - missed["mean"]))[open_rows].sum())
    assert abs(expected - found) < 4 * (sd + 1500 * fit.pi_draws.std())
    unseen = missed.iloc[:10]["mean"]  # nobody's silence says nothing
    np.testing.assert_allclose(unseen, fit.draws.t(fit.data.X[:10]).mean(axis=0), rtol=1e-9)


@pytest.mark.slow
def test_a_shared_difficulty_is_noticed():
    """Positives that are hard for everybody: π is too low, and the check says so."""
    point = replace(PICKY, alpha=PICKY.alpha * 0.5)
    X, y, L = simulate(1500, point=point, seed=1, difficulty=2.0)
    fit = lepu.fit(X, L, model="spm", random_seed=1, **QUICK)
    assert fit.pi_draws.mean() + 3 * fit.pi_draws.std() < y.mean()
    found = fit.identifiability
    check = next(c for c in found.checks if c.name == "form of marking")
    assert check.status == "failed"
    assert "too low" in check.remedy
    assert found.level == 2


def test_without_shared_rows_the_level_is_honest():
    X, _, L = simulate(240, seed=8)
    alone = L[["anna", "ben"]].where((np.arange(240) % 2)[:, None] == np.arange(2))
    fit = lepu.fit(X, alone, model="spm", random_seed=1, **QUICK | {"draws": 100, "tune": 200})
    found = fit.identifiability
    status = {c.name: c.status for c in found.checks}
    assert status["overlap"] == "failed"
    assert found.level >= 3
    assert "prior" in found.carried_by
