"""Comparing fits: of the same rows only, and of very many rows by some of them."""

import numpy as np
import pytest

import bayes_lepu as lepu
from tests.tiny import tiny_fit, tiny_table

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # few rows, few draws


def test_fits_of_other_rows_are_refused():
    X, l, _ = tiny_table()
    options = {"model": "scar", "method": "laplace", "draws": 50, "random_seed": 1}
    first = tiny_fit("spm")
    for other, message in (
        (
            lepu.fit(X[::-1].set_axis(X.index), l, **options),
            "other values in the column '(heat|light)",
        ),
        (lepu.fit(X, 1 - l, **options), "other labels"),
        (lepu.fit(X[:-1], l[:-1], **options), "other labels"),
        (lepu.fit(X, l, y=np.where(np.arange(len(l)) < 9, l, np.nan), **options), "other audited"),
    ):
        with pytest.raises(lepu.DataError, match=message):
            lepu.compare({"first": first, "other": other})


def test_too_few_draws_are_refused_before_anything_is_computed():
    X, l, _ = tiny_table()
    few = lepu.fit(X, l, model="scar", method="laplace", draws=4, random_seed=1)
    with pytest.raises(lepu.ModelError, match=r"'few' has \d+ draws; at least 25"):
        lepu.compare({"many": tiny_fit("spm"), "few": few})


def test_columns_may_differ():
    X, l, _ = tiny_table()
    options = {"model": "scar", "method": "laplace", "draws": 50, "random_seed": 1}
    more = lepu.fit(X.assign(square=X["heat"] ** 2), l, **options)
    assert len(lepu.compare({"plain": lepu.fit(X, l, **options), "more": more})) == 2


def test_some_rows_stand_for_very_many(monkeypatch):
    fits = {name: tiny_fit(name) for name in ("naive", "spm")}
    whole = lepu.compare(fits, round_to="none")
    monkeypatch.setattr("bayes_lepu.comparison.MANY_CELLS", 100)
    monkeypatch.setattr("bayes_lepu.comparison.SOME_ROWS", 55)
    monkeypatch.setattr("bayes_lepu.result.tree.MAX_CELLS", 55 * fits["spm"].draws.b.size)
    some = lepu.compare(fits, round_to="none")
    # Over 60 seeds, LOO by 30 of the 60 rows strays from that of all by .12 se (naive) and .43 se
    # (spm), standard deviations. By 55 rows, drawn without replacement, it should be .3 times that:
    # the bound is four of them for the spm.
    gap = (some["elpd"] - whole["elpd"].loc[some.index]).abs()
    assert (gap < 0.5 * whole["se"].loc[some.index]).all()
