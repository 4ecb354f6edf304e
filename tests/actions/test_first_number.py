"""The first number is the one that the verdict stands behind, wherever it is asked for."""

import time
from functools import cache

import numpy as np
import pytest

import bayes_lepu as lepu
from bayes_lepu.actions.missed import alternatives_of
from bayes_lepu.actions.plain_answer import answer
from bayes_lepu.result.numbers_in_words import say_count, share
from bayes_lepu.verdict.forms import missed_between
from bayes_lepu.verdict.labels import audits_alone
from bayes_lepu.verdict.records import Identifiability
from tools.verdict_study import audited, fitted, is_swapped, simulate, try_one

pytestmark = pytest.mark.filterwarnings("ignore::bayes_lepu.LepuWarning")


@cache
def judged(family, regime, seed=1, method="map"):
    return fitted(simulate(family, regime, seed), method)


# 1, 10: one range, first, everywhere ------------------------------------------------------------


@pytest.mark.parametrize(
    ("family", "regime", "method"), [("mask", "few rows", "laplace"), ("auto", "few rows", "map")]
)
def test_one_range_comes_first_everywhere(family, regime, method):
    fit = judged(family, regime, method=method)
    total, prior = fit.missed(total=True), fit.class_prior()
    assert list(total.columns[:2]) == list(prior.columns[:2]) == ["low", "high"]
    low, high = total[["low", "high"]].iloc[0]
    assert fit.answer.range == (low, high)
    assert fit.answer.missed.startswith(f"Between {say_count(low)} and {say_count(high)} positives")
    assert total["mean"].between(low, high).all()
    assert fit.answer is fit.answer
    for sentence in (fit.answer.missed, fit.answer.look, fit.answer.trust):
        assert sentence in repr(fit)
        assert not set(sentence) & set("πσγλαβ·")
    first = fit.decide(budget=100)
    assert list(first.outcome.columns[:2]) == ["low", "high"]
    for name in total.columns:
        assert first.outcome.loc[("as named", "total"), name] == total.loc["as named", name]
    by_all, exact = repr(first).splitlines()[1:3]
    assert by_all.startswith("  over all models that fit the labels equally well: ")
    assert "if this model is exact" in exact
    ends = prior.loc["pi", ["low", "high"]]
    said = next(line for line in str(fit).splitlines() if "share positive" in line)
    assert f"{share(ends['low'])} to {share(ends['high'])}; if this model is exact" in said


# 2: what no labels can show is part of the sentence ----------------------------------------------


def test_level_one_names_what_no_labels_can_show():
    fit = judged("mask", "few rows", method="laplace")
    trust = answer(fit, Identifiability(1, "", (), ())).trust
    assert "nobody marked a case more readily for being clear" in trust
    assert "Only rows audited at random can" in trust


def test_the_yield_of_all_rows_is_the_count():
    """What is promised of the first rows and the number missed have the same two ends."""
    fit = judged("mask", "few rows")
    hits = alternatives_of(fit, fit.identifiability).hits
    ends = missed_between(fit.data, *fit.identifiability.pi_range)
    np.testing.assert_allclose(hits[:, -1], ends, rtol=1e-3)


def test_a_model_that_predicts_better_is_part_of_the_range():
    """The first on a list until there are enough: no constant s, and its own π is far too low."""
    run, fit = try_one("scar", "quota by columns", 31), judged("scar", "quota by columns", 31)
    assert run["low"] <= run["missed"] <= run["high"]
    best = max(fit.identifiability.evidence.rivals, key=lambda rival: rival.elpd)
    assert fit.identifiability.pi_range[0] <= best.pi <= fit.identifiability.pi_range[1]


# 3, 4: audits -------------------------------------------------------------------------------------


def test_random_audits_settle_the_total_of_a_public_table():
    from sklearn.datasets import load_breast_cancer

    X, benign = load_breast_cancer(return_X_y=True)
    X, y = (X - X.mean(axis=0)) / X.std(axis=0), benign == 0
    rng = np.random.default_rng(3)
    l = (y & (rng.random(len(y)) < 1 / (1 + np.exp(-X[:, 4])))).astype(int)
    options = audited(l, y, rng)
    fit = lepu.fit(X[:, :10], l, model="spm", method="map", random_seed=0, **options)
    assert fit.identifiability.level == 1
    low, high = fit.missed(total=True).loc["as named", ["low", "high"]]
    assert low <= y[(l == 0) & np.isnan(options["y"])].sum() <= high <= 3 * low


def test_a_model_that_the_labels_contradict_does_not_narrow_what_audits_say():
    fit = judged("audit", "false marks .05", 1001)
    found, (pi, error) = fit.identifiability, audits_alone(fit)
    assert "form of h" in {c.name for c in found.checks if c.open}
    assert found.pi_range[0] <= pi - 2 * error + 1e-9
    assert found.pi_range[1] >= pi + 2 * error - 1e-9


# 5: the naming of the model that was chosen -------------------------------------------------------


def test_auto_does_not_name_the_factors_by_a_rule_where_s_is_constant():
    case = simulate("scar", "as usual", 1)
    fit = lepu.fit(case.X, case.l, method="map", random_seed=0)
    assert fit.spec.name == "scar"
    assert fit.identifiability.level < 3
    assert "orientation rule" not in fit.identifiability.carried_by


def test_no_factor_is_named_wrongly_by_learned_columns():
    """Two straight factors: a learned column may bend the wrong one, and lead by chance."""
    case = simulate("auto", "cauchit class", 31)
    fit = fitted(case, "map")
    assert fit.identifiability.level >= 3 or not is_swapped(fit, case)


# 6: rare classes; and what is promised of the first rows ------------------------------------------


@pytest.mark.parametrize("regime", ["rare, 2 %", "forty marks"])
def test_the_first_figures_of_few_marks_hold_the_truth(regime):
    run = try_one("scar", regime, 1)
    assert run["low"] - 0.5 <= run["missed"] <= run["high"] + 0.5
    assert run["hits_low"] - 0.5 <= run["hits"] <= run["hits_high"] + 0.5


# 7: priors that the data contradict ---------------------------------------------------------------


def test_priors_that_move_the_answer_are_no_level_one():
    case = simulate("scar", "as usual", 1)
    priors = {"a": lepu.Prior("normal", scale=0.1)}
    fit = lepu.fit(case.X, case.l, model="scar", method="map", priors=priors, random_seed=0)
    assert fit.identifiability.level > 1
    prior = fit.class_prior().loc["pi"]
    assert prior["low"] <= prior["mean"] <= prior["high"]


# 8: Laplace's method ------------------------------------------------------------------------------


def test_laplace_can_be_used_for_guesses_and_lapses():
    fit = judged("psychm", "few rows", method="laplace")
    assert fit.quality.trusted


# 12: the verdict is computed once, kept, and shown after load -------------------------------------


def test_a_printed_fit_is_judged_once_and_shown_at_no_cost_after_load(tmp_path, monkeypatch):
    fit = judged("mask", "few rows", method="laplace")
    loaded = lepu.load(fit.save(tmp_path / "fit.nc"))
    monkeypatch.setattr("bayes_lepu.fitted.diagnose", None)  # nothing is judged again
    start = time.process_time()
    assert str(loaded) == str(fit)
    assert time.process_time() - start < 0.05
    assert repr(loaded.decide(budget=100)) == repr(fit.decide(budget=100))
    assert loaded.missed(total=True).equals(fit.missed(total=True))
    assert loaded.class_prior().equals(fit.class_prior())
