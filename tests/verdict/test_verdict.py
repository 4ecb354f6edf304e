"""The verdict where the model is wrong: what was found to mislead, and must not again."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

import bayes_lepu as lepu
from bayes_lepu.rows import formula
from bayes_lepu.verdict import evidence, forms, records, rivals, separation
from bayes_lepu.verdict.evidence import Evidence
from tools.verdict_study import is_swapped, simulate

pytestmark = pytest.mark.filterwarnings("ignore::bayes_lepu.LepuWarning")


def fitted(family, regime, seed=1):
    case = simulate(family, regime, seed, n=2500)
    return case, lepu.fit(case.X, case.l, method="map", random_seed=0, **case.options)


def honest(case, found):
    """A verdict does not mislead: below level 1, or with the truth inside its range as printed."""
    low, high = found.pi_range[0] - records.ROUNDING, found.pi_range[1] + records.ROUNDING
    return found.level > 1 or low <= case.pi <= high


@pytest.mark.parametrize("family", ["mask", "psychm"])
def test_false_marks_are_no_level_one(family):
    _, fit = fitted(family, "false marks .05")
    found = fit.identifiability
    status = {c.name: c.status for c in found.checks}
    assert status["form of h"] == "failed"
    assert found.level > 1


def test_the_score_test_keeps_its_level_on_straight_columns():
    """20 SCAR sets at .05: one rejection expected, 5 or more have p = .003."""
    rejected, rng = 0, np.random.default_rng(4)
    for seed in range(20):
        X = rng.normal(size=(800, 3))
        truth = lepu.Parameters.of(a=[2.0, 1.0, 0.0], b=0.3, gamma=0.6, lam=0.4)
        _, l = truth.simulate(X, rng)
        fit = lepu.fit(X, l, model="scar", method="map", random_seed=seed)
        (found,) = rivals.check_along_t(Evidence(fit))
        rejected += found.figure < 0.05
    assert rejected < 5


def test_the_efficient_score_against_a_refit():
    """In a linear-Gaussian likelihood the score test is the exact drop of half the squares."""
    rng = np.random.default_rng(0)
    D, q = rng.normal(size=(200, 4)), rng.normal(size=(200, 1))
    y = rng.normal(size=200) + 0.2 * q[:, 0]
    full = np.hstack([D, q])
    beta = np.linalg.lstsq(D, y, rcond=None)[0]
    grad, info = full.T @ (y - D @ beta), full.T @ full
    score, variance = rivals.efficient_score(grad, info, np.arange(5) < 4, np.eye(5)[4])
    drop = np.sum((y - D @ beta) ** 2) - np.linalg.lstsq(full, y, rcond=None)[1][0]
    assert score**2 / variance == pytest.approx(drop)


def test_what_was_not_computed_supports_no_level(monkeypatch):
    case = simulate("scar", "as usual", 2, n=2500)
    fit = lepu.fit(case.X, case.l, method="map", random_seed=0, **case.options)
    assert fit.identifiability.level == 1
    monkeypatch.setattr(evidence, "MAX_DIM", 3)
    found = lepu.diagnose(fit)
    assert found.level == 4
    assert "not computed" in {c.status for c in found.checks}
    assert "not computed" in found.verdict


def test_very_many_rows_are_judged_on_a_part_and_it_is_said(monkeypatch):
    """A quarter of the rows: the same answer, wider."""
    _, fit = fitted("scar", "as usual")
    sets = [fit.identifiability.evidence.likelihood_range]
    monkeypatch.setattr(evidence, "JUDGED_ROWS", 625)
    monkeypatch.setattr(evidence, "JUDGED_LABELS", 10)
    monkeypatch.setattr(forms, "MAX_CELLS", 400)
    found = fitted("scar", "as usual")[1].identifiability
    texts = {c.name: c.text for c in found.checks}
    assert "Judged on 625 of 2,500 rows" in texts["s along t"]
    assert "Judged on 313 of 2,500 rows" in texts["form range"]
    sets.append(found.evidence.likelihood_range)
    (low, high), (wide_low, wide_high) = sets
    assert wide_low < high
    assert low < wide_high
    assert wide_high - wide_low > 1.4 * (high - low)
    monkeypatch.setattr(evidence, "JUDGED_LABELS", 10**6)
    assert Evidence(fit).weak.data.n == 2500


def test_audits_of_obvious_rows_tell_nothing_about_pi():
    """60 of the most obvious negatives: no more is known than before."""
    case = simulate("mask", "cauchit class", 1, n=2500)
    y = np.full(len(case.l), np.nan)
    y[np.argsort(np.where(case.l == 0, case.tau, np.inf))[:60]] = 0
    fit = lepu.fit(case.X, case.l, y=y, method="map", random_seed=0, **case.options)
    assert "parametric form" in fit.identifiability.carried_by
    assert honest(case, fit.identifiability)


@pytest.mark.parametrize("family", ["mask", "scar", "psychm", "audit"])
def test_a_refit_climbs_the_likelihood_of_its_form(family):
    """Value and gradient against those of NumPy, for every form."""
    _, fit = fitted(family, "as usual")
    subject = Evidence(fit)
    point = subject.inside(subject.peaks[0].point)
    problem = forms.Problem.of(subject.weak.data, point, fit.spec.propensity)
    own = forms.Form("own", problem.of_class)
    groups = forms.list_forms(own, kept_out=family in ("scar", "mask"))
    for form in itertools.chain(*groups):
        refit = forms.Refit.of(problem, form)
        z, E, ridge = refit.z + 0.05, refit.E, refit.precision
        args = refit.rows, refit.links, refit.point(z)
        value, grad = formula.loglik_grad(*args)
        loss, slope = refit.loss(z)
        assert -loss == pytest.approx(value - 0.5 * ridge @ z**2, rel=1e-9)
        np.testing.assert_allclose(-slope, E.T @ grad - ridge * z, rtol=1e-7, atol=1e-7)


def test_the_likelihood_depends_on_neither_the_penalty_nor_the_method():
    case = simulate("mask", "as usual", 2, n=2500)
    X, l, ends = case.X[:1200], case.l[:1200], []
    quick = {"draws": 100, "tune": 150, "chains": 2, "progressbar": False}
    ways = ({}, {"C": 0.01}, {"C": 100.0}, {"method": "laplace", "draws": 200})
    for way in (*ways, {"method": "nuts", **quick}):
        fit = lepu.fit(X, l, random_seed=0, **{"method": "map"} | case.options | way)
        found = fit.identifiability.evidence
        kept = found.forms.kept["pi"]
        ends.append([*found.likelihood_range, kept.min(), kept.max()])
    np.testing.assert_allclose(ends, np.tile(ends[0], (5, 1)), atol=0.01)


def test_the_range_of_a_posterior_holds_its_interval_under_every_form():
    """Priors move a posterior; the interval of one form is then too short on the other side."""
    case = simulate("scar", "as usual", 2, n=2500)
    X, l = case.X[:600], case.l[:600]
    point = lepu.fit(X, l, model="scar", method="map").identifiability
    fit = lepu.fit(X, l, model="scar", method="laplace", draws=500, random_seed=0)
    found = fit.identifiability
    kept = found.evidence.forms.kept["pi"]
    low, high = np.quantile(fit.pi_draws, [0.025, 0.975])
    low, high = low + (kept.min() - kept.iloc[0]), high + (kept.max() - kept.iloc[0])
    assert kept.max() > kept.min()
    least = max(min(low, point.pi_range[0]), l.mean())  # the marked rows are positive
    assert found.pi_range[0] == pytest.approx(least, abs=1e-3)
    assert found.pi_range[1] == pytest.approx(max(high, point.pi_range[1]), abs=1e-3)


def test_a_poor_gaussian_is_no_level_one():
    """Pareto k above .7: the draws do not describe the posterior, so nothing rests on them."""
    case = simulate("scar", "as usual", 2, n=2500)
    fit = lepu.fit(case.X, case.l, model="scar", method="laplace", draws=250, random_seed=1)
    assert fit.identifiability.level == 1
    vars(fit)["quality"] = replace(fit.quality, trusted=False)
    assert lepu.diagnose(fit).level == 2


def test_each_basin_is_judged_by_itself():
    """Two basins, one of them with chains that disagree: pooled they look fine."""
    rng = np.random.default_rng(0)
    basin = rng.integers(0, 2, size=(4, 400)).astype(float)
    values = rng.normal(size=(4, 400))
    values += np.where(basin == 1, 50.0 + 3.0 * np.arange(4)[:, None], 0.0)
    pooled = separation.worst_r_hat({"pi": values})[1]
    parts = separation.by_basin({"pi": values}, basin)
    assert max(separation.worst_r_hat(part)[1] for part in parts) > 1.5 > pooled


def test_a_penalty_that_exchanges_the_factors_is_no_level_one():
    """One guess in a hundred: the likelihood tells t from s, and the default penalty does not."""
    case, fit = fitted("psychm", "guesses of 1 %", 201)
    found = fit.identifiability
    exchanged = is_swapped(fit, case)
    assert Evidence(fit).contradicted == exchanged
    assert not (exchanged and found.level == 1)


def test_the_page_says_what_the_stored_runs_say():
    import pandas as pd

    from tools.verdict_study import PAGE, page_text, read_runs

    assert PAGE.read_text(encoding="utf-8") == page_text(pd.DataFrame(read_runs()))
