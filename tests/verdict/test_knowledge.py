"""Knowledge from outside: taken up, held against the labels, and named among what carries π."""

import warnings

import numpy as np
import pandas as pd
import pytest
from annotated import simulate

import bayes_lepu as lepu
from bayes_lepu.errors import IdentifiabilityWarning
from bayes_lepu.verdict.evidence import Evidence
from bayes_lepu.verdict.labels import check_knowledge

MASKS = {"class_features": [0, 1], "selection_features": [2]}
TRUTH = lepu.Parameters.of(a=[2.5, -1.5, 0], b=-0.5, alpha=[0, 0, 1.5], beta=0.5)


def simulated(seed=1, n=1500):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y, l = TRUTH.simulate(X, rng)
    return X, y, l


@pytest.fixture(scope="module")
def fit():
    X, _, l = simulated()
    return lepu.fit(X, l, model="spm", method="map", random_seed=1, **MASKS)


def knowledge(fit):
    return list(check_knowledge(Evidence(fit)))


def test_a_true_figure_passes_and_is_taken_up(fit):
    _, y, _ = simulated()
    new = fit.update(class_prior=(float(y.mean()), 0.02))
    assert new.data.outside[0].tolist() == [y.mean(), 0.02]
    (record,) = knowledge(new)
    assert record.status == "passed"
    assert abs(new.pi_draws[0] - y.mean()) < 0.03


@pytest.mark.parametrize("known", ["class_prior", "label_frequency"])
def test_a_figure_from_outside_binds_the_range(fit, known):
    _, y, l = simulated()
    true = {"class_prior": y.mean(), "label_frequency": l.sum() / y.sum()}[known]
    low, high = fit.update(**{known: (float(true), 0.01)}).identifiability.pi_range
    error = 0.01 if known == "class_prior" else y.mean() / true * 0.01
    assert low <= y.mean() <= high
    assert high - low < 5 * error  # 3.9 standard errors, and what 1/c bends
    wide = fit.identifiability.pi_range
    assert high - low < wide[1] - wide[0]


def test_a_figure_the_labels_contradict_is_a_warning_with_both_numbers(fit):
    _, y, _ = simulated()
    wrong = float(y.mean()) + 0.25
    new = fit.update(class_prior=(wrong, 0.01))
    with pytest.warns(
        IdentifiabilityWarning, match=f"{wrong:.3g} ± 0.01 from outside, 0\\."
    ) as got:
        (record,) = knowledge(new)
    assert record.status == "failed"
    assert len(got) == 1
    assert record.open


@pytest.mark.parametrize("model", ["scar", "spm"])
def test_a_figure_that_several_annotators_contradict_is_a_warning(model):
    """Rows labelled by two tell π: a true figure passes, one that is off by .25 does not."""
    X, y, L = simulate(500, seed=5)
    pi, wrong = float(y.mean()), float(y.mean()) + 0.25
    options = {"model": model, "method": "map", "random_seed": 1}
    if model == "scar":  # every annotator finds half of the positives, whatever they look like
        marks = np.random.default_rng(6).random(L.shape) < 0.5
        L = pd.DataFrame(y[:, None] * marks, columns=L.columns)
    (record,) = knowledge(lepu.fit(X, L, class_prior=(pi, 0.02), **options))
    assert record.status == "passed"
    new = lepu.fit(X, L, class_prior=(wrong, 0.01), **options)
    with pytest.warns(IdentifiabilityWarning, match=f"{wrong:.3g} ± 0.01 from outside, 0\\."):
        (record,) = knowledge(new)
    assert record.status == "failed"
    assert "knowledge from outside" in {c.name for c in diagnosed(new)}


def diagnosed(fit):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fit.identifiability.checks
