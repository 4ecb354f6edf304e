"""The verdict asks whether the class is curved before it speaks of the annotator."""

import numpy as np
import pytest
from scipy.special import expit

import bayes_lepu as lepu
from bayes_lepu.choosing import classes_to_compare, held_out
from bayes_lepu.defaults import default_priors_of
from bayes_lepu.verdict.class_prior import weak_density

MAP = {"method": "map", "random_seed": 1, "progressbar": False}


def rows(score, propensity, seed, n=1500):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    y = rng.random(n) < expit(score(X))
    return X, (y & (rng.random(n) < propensity(X))).astype(int)


def ring(X):
    """No product of two straight factors: a hump in one direction would be one."""
    return 5 - 4 * np.hypot(X[:, 0], X[:, 1])


def hump(X):
    return 4 - 4 * X[:, 0] ** 2


def status(fit, name):
    return [c.status for c in fit.identifiability.checks if c.name == name]


@pytest.mark.parametrize("model", ["spm", "scar"])
def test_a_straight_model_of_a_curved_class_is_told_to_bend(model):
    X, l = rows(ring, lambda X: 0.5, 1)
    fit = lepu.fit(X, l, model=model, **MAP)
    assert status(fit, "straight class") == ["failed"]
    assert "passed" not in status(fit, "constancy of s")
    assert "failed" not in status(fit, "constancy of s")  # the annotator is not blamed
    assert "the class is curved" in fit.answer.trust
    assert "class_learner=['kernel', 'trees']" in fit.answer.call
    fit = lepu.fit(X, l, model=model, class_learner=["boosting", "trees"], **MAP)
    assert status(fit, "straight class") == []


@pytest.mark.parametrize("model", ["spm", "scar"])
def test_an_annotator_who_varies_is_not_taken_for_a_curve(model):
    X, l = rows(lambda X: 4 * X[:, 0], lambda X: expit(2 * X[:, 3]), 2)
    assert status(lepu.fit(X, l, model=model, **MAP), "straight class") == ["passed"]


@pytest.mark.parametrize(("varies", "wanted"), [(1.5, "passed"), (0.0, "weak")])
def test_of_a_column_that_was_named_little_is_asked(varies, wanted):
    X, l = rows(ring, lambda X: expit(varies * X[:, 3] - 0.3), 8)
    options = {"class_learner": ["boosting"], "selection_features": [3]}
    fit = lepu.fit(X, l, model="spm", **options, **MAP)
    (check,) = (c for c in fit.identifiability.checks if c.name == "constancy of s")
    assert check.status == wanted
    assert check.threshold == "beyond 2.0"


def test_the_lead_is_that_of_held_out_labels_and_widens_the_range():
    X, l = rows(ring, lambda X: 0.5, 3)
    fit = lepu.fit(X, l, model="spm", **MAP)
    bend = fit.identifiability.evidence.bend
    plain, bent = classes_to_compare(fit.data.counted(), "auto", 1, ["kernel"])
    learned = held_out(fit.spec, bent, default_priors_of(fit.spec, bent.part), 1)
    straight = held_out(fit.spec, plain, default_priors_of(fit.spec, plain.part), 1)
    weak = held_out(fit.spec, plain, weak_density(fit.spec, plain.part).priors, 1)
    better = max(straight.held_out, weak.held_out)
    assert bend.lead == pytest.approx(learned.held_out - better, abs=1e-6)
    low, high = fit.identifiability.pi_range
    assert low <= bend.pi <= high


@pytest.mark.filterwarnings("ignore::bayes_lepu.LepuWarning")
def test_a_panel_on_a_hump_does_not_call_its_order_reliable():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(700, 3))
    y = rng.random(700) < expit(hump(X))
    L = np.column_stack([y & (rng.random(700) < c) for c in (0.5, 0.6)]).astype(int)
    fit = lepu.fit(X, L, model="spm", **MAP)
    assert status(fit, "straight class") == ["failed"]
    assert fit.identifiability.level == 4
    assert "reliable" not in fit.answer.trust
