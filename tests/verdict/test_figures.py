"""The figures that single checks report, each computed once more in another way."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import bayes_lepu as lepu
from bayes_lepu.result.numbers_in_words import share
from bayes_lepu.verdict import evidence as figures
from bayes_lepu.verdict import (
    levels,
    remedies,
)
from bayes_lepu.verdict.climbing import Role
from bayes_lepu.verdict.evidence import Evidence
from tests import annotated
from tests.diagnosed import simulated_rows

pytestmark = pytest.mark.filterwarnings("ignore::bayes_lepu.LepuWarning")


@pytest.fixture(scope="module")
def subject():
    X, l = simulated_rows()
    return Evidence(
        lepu.fit(X[:600], l[:600], model="psychm", method="laplace", draws=200, random_seed=1)
    )


@pytest.fixture(scope="module")
def spm():
    X, l = simulated_rows()
    return Evidence(lepu.fit(X[:600], l[:600], model="spm", method="map", random_seed=1))


# Levels -------------------------------------------------------------------------------------------


def test_the_likelihood_set_over_the_posterior_interval(subject):
    (check,) = levels.check_against_profile(subject)
    pieces = subject.profile.likelihood_set(branches=levels.OWN_BRANCHES)
    low, high = np.quantile(subject.pi_given_naming, [0.025, 0.975])
    first, last = pieces[0][0], pieces[-1][1]
    assert check.figure == pytest.approx((last - first) / (high - low))
    assert f"likelihood {share(first)} to {share(last)}, posterior {share(low)}" in check.text


def test_the_table_of_figures(subject):
    """Widths row by row; no figure decides anything."""
    rates = pd.DataFrame({"z": [0.5, -2.0]})
    table = figures.table_of_figures(subject, rates)["value"]
    draws, X = subject.pivoted.take_flat(), subject.data.X
    for name, values in (("t", draws.t(X)), ("h", draws.h(X))):
        low, high = np.quantile(values, [0.025, 0.975], axis=0)
        assert table[f"width of {name}"] == pytest.approx(np.mean(high - low))
    assert table["largest z of the label rates"] == 2.0
    assert 0 < table["prior share of pi"] < 1
    found = subject.fit.identifiability
    assert set(found.figures.index) == set(table.index)
    assert not set(found.figures.index) & {check.name for check in found.checks}


def test_contraction_is_the_share_of_variance_removed(subject):
    found = levels.contractions(subject)
    after, before = subject.pivoted.take_flat(), subject.fit.prior_draws.take_flat()
    pairs = {
        "pi": (subject.pi_and_c[0], subject.fit.prior_pi_and_c[0]),
        "b": (after.b, before.b),
        "|alpha|": [np.std(p.alpha @ subject.data.X.T, axis=1) for p in (after, before)],
        "gamma": (np.exp(after.log_w[:, 0]), np.exp(before.log_w[:, 0])),
    }
    for name, (one, other) in pairs.items():
        assert found[name] == pytest.approx(1 - np.var(one) / np.var(other)), name


# Ranking and figures ------------------------------------------------------------------------------


@pytest.mark.parametrize("times", [0.0, 1.0, 3.0])
def test_the_share_of_the_prior(subject, times):
    """Of data that know as much as so many priors: 1 / (1 + times)."""
    local = replace(subject.local, data=times * subject.local.prior)
    share_of = figures.prior_share(SimpleNamespace(local=local))
    assert share_of == pytest.approx(1 / (1 + times))


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
    assert figures.norms_and_cosine(subject) == pytest.approx(wanted)


def test_a_point_estimate_of_several_annotators_knows_how_stable_its_ranking_is():
    """About as the Gaussian there says (500 draws); its one point agrees with itself."""
    X, _, L = annotated.simulate(300, seed=2)
    found = [
        levels.ranking_stability(Evidence(lepu.fit(X, L, model="spm", **options)))
        for options in (
            {"method": "map", "random_seed": 1},
            {"method": "laplace", "random_seed": 1, "draws": 500},
        )
    ]
    assert 1 - found[0] == pytest.approx(1 - found[1], rel=0.25)
    assert found[0] < 0.999


def test_without_a_column_the_exchanged_answer_may_be_gone():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(500, 3))
    y = rng.random(500) < 1 / (1 + np.exp(0.3 - X @ [2.5, 1.0, 0.0]))
    l = y & (rng.random(500) < 1 / (1 + np.exp(-X @ [0.0, 0.5, 1.2] - 0.2)))
    fit = lepu.fit(X, l, model="spm", method="map", random_seed=1)
    masked = fit.update(selection_features=["x1", "x2"])
    left = [p for p in Evidence(masked).peaks if p.role is Role.EXCHANGED]
    gap = remedies.masked_gap(Evidence(fit), 0)
    assert gap == (
        np.inf if not left else pytest.approx(Evidence(masked).peaks[0].logp - left[0].logp)
    )
    assert gap > 10
