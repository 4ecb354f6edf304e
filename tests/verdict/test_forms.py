"""Other forms and the naming, the order of the rows, masks and audits that they put in doubt."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

import bayes_lepu as lepu
from bayes_lepu.factors import CURVES
from bayes_lepu.verdict import forms
from bayes_lepu.verdict.evidence import Evidence
from bayes_lepu.verdict.forms import Form, Problem
from bayes_lepu.verdict.records import Aspect

pytestmark = pytest.mark.filterwarnings("ignore::bayes_lepu.LepuWarning")


def open_checks(found):
    return {c.name: c for c in found.checks if c.open}


def doubtful_rows(n=3000, seed=3):
    """Positives near the boundary are marked half as often as clear ones; h is that of SCAR."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    tau = X @ [3.0, -2.0, 0.0]
    t = expit(tau + np.log(2))
    y = rng.random(n) < t
    l = y & (rng.random(n) < 0.6 * expit(tau) / t)
    return X, l.astype(int), float(t.mean())


def test_doubtful_positives_leave_h_as_it_is():
    X, l, _ = doubtful_rows()
    fit = lepu.fit(X, l, model="scar", method="map", random_seed=0)
    subject = Evidence(fit)
    problem = Problem.of(subject.weak.data, subject.peaks[0].point, fit.spec.propensity)
    refit = problem.refit(Form("logistic", CURVES["logistic"]))
    own, other = refit.figures(), refit.doubtful()
    assert other["pi"] > own["pi"] + 0.03
    assert other["pi"] * other["c"] == pytest.approx(own["pi"] * own["c"], rel=1e-9)
    # P(y=1 | x, l=0) = (t - h) / (1 - h), with the h of the fitted form.
    tau, c = refit.score[l == 0], expit(refit.point(refit.z).beta[0])
    h = c * expit(tau)
    np.testing.assert_allclose(own["missed"], (expit(tau) - h) / (1 - h), atol=1e-9)
    np.testing.assert_allclose(other["missed"], (expit(tau + np.log(2)) - h) / (1 - h), atol=1e-9)


def test_the_range_holds_the_truth_where_doubtful_positives_are_marked_less():
    """The labels are those of SCAR to the letter, and its own estimate is too low."""
    X, l, pi = doubtful_rows()
    found = lepu.fit(X, l, model="scar", method="map", random_seed=0).identifiability
    low, high = found.pi_range
    assert low < pi < high
    assert forms.DOUBTFUL in found.evidence.forms.kept.index


def test_false_marks_that_would_turn_the_naming_leave_it_open():
    """A floor of false marks looks like guesses of the annotator: PsychM takes him for t."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 4))
    y = rng.random(3000) < expit(5 * X[:, 0])
    l = (y & (rng.random(3000) < expit(5 * X[:, 1]))) | (~y & (rng.random(3000) < 0.03))
    fit = lepu.fit(X, l.astype(int), model="psychm", method="map", random_seed=0)
    found = fit.identifiability
    assert "orientation with false marks" in open_checks(found)
    assert found.level >= 3


def test_guesses_that_name_the_factors_are_said_to():
    """And false marks would not turn a naming that the labels bear out."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(3000, 4))
    s = 0.12 + 0.85 * expit(3 * X[:, 1])
    l = (rng.random(3000) < expit(4 * X[:, 0])) & (rng.random(3000) < s)
    found = lepu.fit(X, l.astype(int), model="psychm", method="map", random_seed=0).identifiability
    assert found.level == 1
    assert "orientation with false marks" in {c.name for c in found.checks if c.status == "passed"}
    assert any("γ belongs to the annotator" in carrier for carrier in found.carried_by)


def test_a_column_that_enters_s_after_all_does_not_name_the_factors():
    rng = np.random.default_rng(2)
    X = pd.DataFrame(rng.normal(size=(3000, 3)), columns=["size", "light", "noise"])
    y = rng.random(3000) < expit(2 * X["size"])
    l = (y & (rng.random(3000) < expit(1 - 4 * X["size"] + X["light"]))).astype(int)
    options = {"model": "spm", "method": "map", "selection_features": ["light"], "random_seed": 0}
    found = lepu.fit(X, l, **options).identifiability
    assert Aspect.ORIENTATION in open_checks(found)["s along t"].bears_on
    assert found.level >= 3


@pytest.mark.parametrize("turned", [False, True])
def test_audits_are_held_against_the_fit(turned):
    """Classes of audited rows as they are, and the share of positives among them turned round."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(2500, 3))
    y = rng.random(2500) < expit(3 * X[:, 0])
    l = (y & (rng.random(2500) < 0.5)).astype(int)
    known = np.full(2500, np.nan)
    some = np.flatnonzero(l == 0)[:150]
    known[some] = ~y[some] if turned else y[some]
    fit = lepu.fit(X, l, y=known, model="scar", method="map", random_seed=0)
    assert ("audited rows" in open_checks(fit.identifiability)) == turned
