"""The verdict of weighted rows is that of rows repeated as often as they count."""

import numpy as np
import pandas as pd
import pytest

import bayes_lepu as lepu
from bayes_lepu.data.weights import total_and_error
from bayes_lepu.links import sigmoid
from bayes_lepu.verdict.labels import scores
from tests import annotated

pytestmark = pytest.mark.filterwarnings("ignore::bayes_lepu.LepuWarning")
MAP = {"method": "map", "random_seed": 1}
# Their texts tell numbers of starts, simulated p values, or how many of 100 rows are the same.
TELL_MORE = {"convergence"}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(400, 3)), columns=["u", "v", "w"])
    y = rng.random(400) < sigmoid(2.5 * X["u"] + X["v"] - 0.3)
    l = y & (rng.random(400) < sigmoid(1.2 * X["w"] + 0.5 * X["v"] + 0.2))
    return X, l.astype(int), np.where(X["u"] > 0.5, 3, 1)


def repeated(X, l, weight):
    rows = np.repeat(np.arange(len(X)), weight)
    return X.iloc[rows].reset_index(drop=True), np.asarray(l)[rows]


@pytest.mark.parametrize("model", ["scar", "spm"])
def test_one_annotator(table, model):
    X, l, weight = table
    one = lepu.fit(X, l, model=model, sample_weight=weight, **MAP).identifiability
    other = lepu.fit(*repeated(X, l, weight), model=model, **MAP).identifiability
    assert one.level == other.level
    np.testing.assert_allclose(one.pi_range, other.pi_range, atol=0.01)
    mine, theirs = (v.to_frame().drop(TELL_MORE, errors="ignore") for v in (one, other))
    assert mine["status"].to_dict() == theirs["status"].to_dict()
    for name in ("orientation", "label rate by score"):
        if name in mine.index:
            assert mine.loc[name, "text"] == theirs.loc[name, "text"]


def test_several_annotators():
    X, _, L = annotated.simulate(250, seed=4)
    weight = np.where(X["heat"] > 0.3, 3, 1)
    rows = np.repeat(np.arange(250), weight)
    one = lepu.fit(X, L, model="scar", sample_weight=weight, **MAP).identifiability
    again = X.iloc[rows].reset_index(drop=True), L.iloc[rows].reset_index(drop=True)
    other = lepu.fit(*again, model="scar", **MAP).identifiability
    assert one.level == other.level
    np.testing.assert_allclose(one.pi_range, other.pi_range, atol=0.005)
    tables = one.evidence.fit.agreement(), other.evidence.fit.agreement()
    np.testing.assert_array_equal(*(table["observed"] for table in tables))


def test_rows_that_count_nothing_are_held_against_nothing(table):
    X, l, _ = table
    weight = np.ones(len(X))
    weight[:100] = 0
    wrong = np.where(np.arange(len(X)) < 100, 1 - l, l)
    fit = lepu.fit(X, wrong, model="spm", sample_weight=weight, **MAP)
    h, labels = scores(fit.draws, fit.data)
    assert h.size == 300
    np.testing.assert_array_equal(labels, l[100:])
    assert fit.identifiability.to_frame().loc["label rate by score", "status"] == "passed"


def test_the_error_of_a_weighted_sum():
    rng = np.random.default_rng(2)
    values, counts = rng.normal(size=50), rng.integers(0, 4, 50)
    rows = np.repeat(values, counts)
    wanted = rows.sum(), np.sqrt(rows.size) * rows.std()
    assert total_and_error(values, counts.astype(float)) == pytest.approx(wanted)
    share = rng.uniform(0.5, 1.5, 50)
    mean = np.average(values, weights=share)
    _, error = total_and_error(values, share)
    assert error == pytest.approx(np.linalg.norm(share * (values - mean)))


def test_comparisons_count_as_repeated_rows_do(table):
    X, l, weight = table
    options = {"method": "laplace", "draws": 500, "chains": 2, "random_seed": 1}
    fits = {m: lepu.fit(X, l, model=m, sample_weight=weight, **options) for m in ("scar", "spm")}
    again = {m: lepu.fit(*repeated(X, l, weight), model=m, **options) for m in fits}
    one, other = (lepu.compare(f, round_to="none") for f in (fits, again))
    np.testing.assert_allclose(one["elpd"], other["elpd"].loc[one.index], atol=1.5)
    plain = lepu.fit(X, l, model="spm", **options)
    with pytest.raises(lepu.DataError, match="other weights"):
        lepu.compare({"scar": fits["scar"], "spm": plain})
