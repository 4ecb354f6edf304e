"""The answer in plain sentences: every level has its words, and every call can be run."""

import numpy as np
import pandas as pd
import pytest

import bayes_lepu as lepu
from bayes_lepu.actions.plain_answer import answer
from bayes_lepu.verdict.records import Aspect, Check, Identifiability, Offer
from tests.actions.test_decisions import simulated

SYMBOLS = "πσγλαβ·"
USEFUL = Offer(50, 0.05, 0.02, 0.0, 0.0)


@pytest.fixture(scope="module")
def table():
    X, _, l = simulated(4, 1200)
    return {"X": pd.DataFrame(X, columns=list("abcde")), "l": l}


@pytest.fixture(scope="module")
def fit(table):
    return lepu.fit(**table, model="spm", method="laplace", draws=100, random_seed=1)


def judged(level, *, checks=(), offer=None):
    return Identifiability(level, "In symbols.", ("data",), checks, offer=offer)


def test_the_audit_that_is_offered_can_be_planned(fit):
    offer, given = fit.identifiability.offer, {"fit": fit}
    exec(offer.call, given)
    assert len(given["plan"].rows) == offer.rows
    # Laplace draws that cannot be trusted come first: the answer then asks for better ones.
    assert fit.answer.call in {offer.call, 'fit.update(method="nuts")'}


@pytest.mark.parametrize(
    ("level", "words"),
    [
        (1, "The labels identify the order of the rows and the total"),
        (2, "The order of the rows is reliable, the total is not"),
        (3, "These labels do not show which factor is the class"),
        (4, "Do not rely on it"),
    ],
)
def test_every_level_has_its_words(fit, level, words):
    said = answer(fit, judged(level))
    assert said.trust.startswith(words)
    assert ("annotator swapped" in said.missed) == (level >= 3)
    assert said.help == said.call == ""


def test_a_failed_computation_is_said_first(fit):
    failed = Check(
        "convergence", "failed", 1.2, "", "R-hat is 1.20.", bears_on=(Aspect.COMPUTATION,)
    )
    said = answer(fit, judged(1, checks=(failed,)))
    assert said.trust.startswith("Do not use it yet")
    assert "R-hat is 1.20." in said.trust
    assert (said.call, said.flags) == ('fit.update(method="nuts")', "--method nuts")


def test_an_unsettled_computation_is_mended_before_anything_else():
    X, _, l = simulated(4, 300)
    options = {"draws": 50, "tune": 100, "random_seed": 1, "progressbar": False}
    fit = lepu.fit(X, l, model="scar", chains=1, **options)
    said = fit.answer
    assert "With one chain R-hat cannot be computed" in said.trust
    assert said.help.startswith("Sample four chains")
    assert said.call == 'lepu.fit(X, l, model="scar", chains=4)'
    assert said.flags == "--chains 4"
    failed = Check("sampler", "failed", 9.0, "", "", "Raise it.", bears_on=(Aspect.COMPUTATION,))
    approximate = lepu.fit(X, l, model="spm", method="laplace", draws=25, random_seed=1)
    unsettled = judged(2, checks=(failed,), offer=USEFUL)
    assert answer(approximate, unsettled).call == 'fit.update(method="nuts")'


def test_advice_that_changes_nothing_is_not_given(fit):
    idle = judged(2, offer=Offer(50, 0.008, 0.0079, 0.0, 0.0))
    assert answer(fit, idle).help == ""
    assert "suggest_audit" not in str(idle)
    said = answer(fit, judged(2, offer=USEFUL))
    assert said.help.endswith(": the total would be known to ±24 instead of ±60.")
    assert said.call == USEFUL.call == "plan = fit.suggest_audit(50)"
    assert USEFUL.call in str(judged(2, offer=USEFUL))


def test_the_naive_model_promises_nothing():
    X, _, l = simulated(4, 600)
    fit = lepu.fit(X, l, model="naive", method="map", random_seed=1)
    assert "by assumption" in fit.answer.missed
    assert np.isnan(fit.answer.decision.outcome["mean"]).sum() == 0
