"""Random tables and options: an answer within its range or an error of ours, and nothing else.

The examples are small on purpose: what breaks is found in the shapes, scales and types.
"""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

import bayes_lepu as lepu

FAST, SLOW, BATCHES = 300, 2000, 20
SCALES = (1e-300, 1e-160, 1e-30, 1e-8, 1.0, 1e8, 1e30, 1e160, 1e300)
KINDS = ("array", "float32", "int", "bool", "frame", "index", "fortran", "read-only")


@st.composite
def tables(draw):
    """A table and labels: odd shapes, scales, types and dependences between columns."""
    n, p = draw(st.integers(2, 40)), draw(st.integers(1, 5))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    X = rng.normal(size=(n, p)) * draw(st.sampled_from(SCALES))
    shape = draw(st.sampled_from(("plain", "twin", "sum", "constant", "nearly constant", "huge")))
    if shape == "twin":
        X[:, -1] = X[:, 0]
    elif shape == "sum":
        X[:, -1] = X.sum(axis=1)
    elif shape == "constant":
        X[:, 0] = X[0, 0]
    elif shape == "nearly constant":
        X[:, 0] = X[0, 0]
        X[-1, 0] *= 1.5
    elif shape == "huge":
        X[0] *= 1e6
    rate = draw(st.sampled_from(("rare", "half", "most", "separable")))
    labels = np.zeros(n, dtype=int)
    if rate == "rare":
        labels[rng.integers(n)] = 1
    elif rate == "half":
        labels = (rng.random(n) < 0.5).astype(int)
    elif rate == "most":
        labels[:] = 1
        labels[rng.integers(n)] = 0
    else:
        labels = (X[:, 0] > np.median(X[:, 0])).astype(int)
    kind = draw(st.sampled_from(KINDS))
    return _as_kind(X, kind, rng), labels


def _as_kind(X, kind, rng):
    if kind == "float32":
        with np.errstate(over="ignore"):
            return X.astype(np.float32)
    if kind == "int":
        return np.round(X / np.max(np.abs(X)) * 100).astype(np.int64)
    if kind == "bool":
        return X > 0
    if kind == "fortran":
        return np.asfortranarray(X)
    if kind == "read-only":
        X.flags.writeable = False
        return X
    if kind in ("frame", "index"):
        index = rng.permutation(len(X)) if kind == "index" else None
        return pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])], index=index)
    return X


OPTIONS = st.fixed_dictionaries(
    {"model": st.sampled_from(lepu.list_models()), "method": st.just("map")},
    optional={
        "penalty": st.sampled_from(("l2", "l1", "none")),
        "C": st.sampled_from((0, 1e-12, 1e-3, 1, np.float32(0.5), 1e6, 1e200, -1, np.nan)),
        "standardize": st.sampled_from((True, False, "no")),
        "orientation": st.sampled_from(("sigma-norm", "norm", "energy", "none", "best")),
        "random_seed": st.sampled_from((0, 7, -1)),
    },
)


def check(table, options, *, judge):
    X, labels = table
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", lepu.LepuWarning)
        try:
            fit = lepu.fit(X, labels, **options)
        except lepu.LepuError as error:
            assert len(str(error)) > 20  # noqa: PT017 - either outcome is right
            return
        for values in (
            fit.predict_proba(X)[:, 1],
            fit.propensity(X)["mean"],
            fit.missed(X)["mean"],
        ):
            assert np.isfinite(values).all()
            assert (values >= 0).all()
            assert (values <= 1).all()
        assert 0 <= fit.pi_draws[0] <= 1
        if judge:
            assert "level" in str(fit)


quiet = settings(
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@settings(quiet, max_examples=FAST)
@given(table=tables(), options=OPTIONS)
def test_any_table_gets_an_answer_or_a_clear_error(table, options):
    check(table, {**options}, judge=False)


@pytest.mark.slow
@pytest.mark.parametrize("batch", range(BATCHES))
def test_many_tables_get_an_answer_and_a_verdict(batch):
    @seed(batch)
    @settings(quiet, max_examples=SLOW // BATCHES, derandomize=False)
    @given(table=tables(), options=OPTIONS)
    def run(table, options):
        check(table, options, judge=True)

    run()


@settings(quiet, max_examples=15)
@given(table=tables(), options=OPTIONS)
def test_any_answer_can_be_printed(table, options):
    check(table, {**options}, judge=True)
