"""t, s, h and missed positives as arrays, the table of parameters, and options of the sampler."""

from dataclasses import replace

import arviz as az
import numpy as np
import pytest

import bayes_lepu as lepu
from bayes_lepu.actions.plain_answer import answer
from tests.tiny import tiny_fit, tiny_table


def test_summary_takes_the_options_of_arviz():
    fit = tiny_fit("psychm")
    table = fit.summary(var_names=["pi"], ci_prob=0.5, round_to="none")
    low, high = np.quantile(fit.pi_draws, [0.25, 0.75])
    np.testing.assert_allclose(
        table.filter(like="eti50").to_numpy(dtype=float)[0], [low, high], rtol=1e-9
    )
    assert list(fit.summary(var_names="pi").index) == ["pi"]
    others = set(fit.summary(var_names=["~pi"]).index)
    assert others & {"b", "pi"} == {"b"}
    with pytest.raises(lepu.ModelError, match=r"'gama'.*Known: .*\bpi\b"):
        fit.summary(var_names=["gama"])
    with pytest.raises(lepu.ModelError, match="ci_prob = 2"):
        fit.summary(ci_prob=2)


def test_intervals_have_the_level_that_arviz_is_set_to():
    fit = tiny_fit("psychm")
    assert f"{az.rcParams['stats.ci_prob']:.0%}" == "89%"
    with az.rc_context({"stats.ci_prob": 0.5}):
        prior, table = fit.class_prior().loc["pi"], fit.summary(var_names=["pi"])
        decision, page = fit.decide(budget=5), replace(fit)
        sentences = answer(fit, fit.identifiability)
        assert "50% interval" in repr(page)
        assert "50% interval" in sentences.missed
    half = np.quantile(fit.pi_draws, [0.25, 0.75])
    np.testing.assert_allclose(prior[["lower", "upper"]], half)
    assert table.filter(like="eti50").shape[1] == 2
    assert decision.ci_prob == sentences.decision.ci_prob == 0.5
    again = fit.decide(budget=5)
    assert again.ci_prob == 0.89
    assert (again.rows["lower"] < decision.rows["lower"]).all()


def test_the_fewest_draws_allowed_have_an_effective_size():
    few = {"draws": 4, "tune": 100, "chains": 1, "random_seed": 1, "progressbar": False}
    fit = lepu.fit(*tiny_table()[:2], model="naive", method="nuts", **few)
    assert np.isfinite(fit.summary()["ess_bulk"].to_numpy(dtype=float)).all()
