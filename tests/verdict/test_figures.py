"""The figures that single checks report, each computed once more in another way."""

import numpy as np
import pytest

import bayes_lepu as lepu
from bayes_lepu.verdict import class_prior, separation
from bayes_lepu.verdict.evidence import Evidence
from tests.diagnosed import simulated_rows

pytestmark = pytest.mark.filterwarnings("ignore::bayes_lepu.LepuWarning")


@pytest.fixture(scope="module")
def subject():
    X, l = simulated_rows()
    return Evidence(
        lepu.fit(X[:600], l[:600], model="psychm", method="laplace", draws=200, random_seed=1)
    )


def test_the_table_of_figures(subject):
    """No figure decides anything."""
    table = subject.figures["value"]
    shares = np.var(subject.pi_draws) / np.var(subject.fit.prior_pi_and_c[0])
    assert table["contraction of pi"] == pytest.approx(1 - shares)
    predictors = subject.data.X @ subject.point.a, subject.data.X @ subject.point.alpha
    wanted = [v.std() for v in predictors] + [np.corrcoef(*predictors)[0, 1]]
    names = ["sd of t's predictor", "sd of s's predictor", "correlation of the predictors"]
    assert table[names].tolist() == pytest.approx(wanted)
    found = subject.fit.identifiability
    assert set(found.figures.index) == set(table.index)
    assert not set(found.figures.index) & {check.name for check in found.checks}


def test_every_parameter_that_the_prior_moves_is_among_the_figures(subject):
    """Power scaling of the coordinates against ArviZ on the file's own groups."""
    import arviz as az

    options = {"var_names": ["a", "alpha", "b", "beta", "pi"], "round_to": 6}
    wanted = az.psense_summary(subject.fit.tree, **options)
    found = class_prior.power_scaling(subject)
    np.testing.assert_allclose(found.loc[wanted.index, "prior"], wanted["prior"], atol=1e-5)
    np.testing.assert_allclose(found["likelihood"]["pi"], wanted["likelihood"]["pi"], atol=0.02)
    moved = {f"prior sensitivity of {name}" for name in found.index[found["prior"] >= 0.05]}
    assert moved
    assert moved <= set(subject.figures.index)


def test_rankings_agree_as_their_correlations_say(subject):
    draws, X = subject.pivoted.take_flat().a, subject.data.X
    scores, mean = X @ draws.T, X @ draws.mean(axis=0)
    wanted = np.mean([np.corrcoef(score, mean)[0, 1] for score in scores.T])
    assert separation.ranking_stability(subject) == pytest.approx(wanted, rel=1e-9)
