"""The figures that single checks report, each computed once more in another way."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import bayes_lepu as lepu
from bayes_lepu.verdict import levels
from bayes_lepu.verdict.evidence import Evidence
from tests.diagnosed import simulated_rows

pytestmark = pytest.mark.filterwarnings("ignore::bayes_lepu.LepuWarning")


@pytest.fixture(scope="module")
def subject():
    X, l = simulated_rows()
    return Evidence(
        lepu.fit(X[:600], l[:600], model="psychm", method="laplace", draws=200, random_seed=1)
    )


# Levels -------------------------------------------------------------------------------------------


def test_the_table_of_figures(subject):
    """Widths row by row; no figure decides anything."""
    table = subject.figures["value"]
    draws, X = subject.pivoted.take_flat(), subject.data.X
    for name, values in (("t", draws.t(X)), ("h", draws.h(X))):
        low, high = np.quantile(values, [0.025, 0.975], axis=0)
        assert table[f"width of {name}"] == pytest.approx(np.mean(high - low))
    shares = np.var(subject.pi_draws) / np.var(subject.fit.prior_pi_and_c[0])
    assert table["contraction of pi"] == pytest.approx(1 - shares)
    assert 0 < table["prior share of pi"] < 1
    found = subject.fit.identifiability
    assert set(found.figures.index) == set(table.index)
    assert not set(found.figures.index) & {check.name for check in found.checks}


def test_every_parameter_that_the_prior_moves_is_among_the_figures(subject):
    """Power scaling of the coordinates against ArviZ on the file's own groups."""
    import arviz as az

    options = {"var_names": ["a", "alpha", "b", "beta", "pi"], "round_to": 6}
    wanted = az.psense_summary(subject.fit.tree, **options)
    found = levels.power_scaling(subject)
    np.testing.assert_allclose(found.loc[wanted.index, "prior"], wanted["prior"], atol=1e-5)
    np.testing.assert_allclose(found["likelihood"]["pi"], wanted["likelihood"]["pi"], atol=0.02)
    moved = {f"prior sensitivity of {name}" for name in found.index[found["prior"] >= 0.05]}
    assert moved
    assert moved <= set(subject.figures.index)


# Ranking and figures ------------------------------------------------------------------------------


def test_rankings_agree_as_their_correlations_say(subject):
    draws, X = subject.pivoted.take_flat().a, subject.data.X
    scores, mean = X @ draws.T, X @ draws.mean(axis=0)
    wanted = np.mean([np.corrcoef(score, mean)[0, 1] for score in scores.T])
    assert levels.ranking_stability(subject) == pytest.approx(wanted, rel=1e-9)
    small = replace(subject.pivoted, a=1e-3 * subject.pivoted.a)
    small = SimpleNamespace(fit=subject.fit, data=subject.data, pivoted=small)
    assert levels.ranking_stability(small) == pytest.approx(wanted, rel=1e-9)
    (check,) = levels.check_ranking(subject)
    assert check.figure == pytest.approx(wanted, rel=1e-9)
    predictors = X @ subject.point.a, X @ subject.point.alpha
    wanted = [v.std() for v in predictors] + [np.corrcoef(*predictors)[0, 1]]
    names = ["sd of t's predictor", "sd of s's predictor", "correlation of the predictors"]
    assert subject.figures.loc[names, "value"].tolist() == pytest.approx(wanted)
