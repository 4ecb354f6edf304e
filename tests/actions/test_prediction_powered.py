"""Counts by random audits: against the textbook, against refits, and by simulation."""

import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm, t

import bayes_lepu as lepu
from bayes_lepu.actions.audits import Round, Stratum, estimate_positives
from bayes_lepu.actions.groups import read_groups
from bayes_lepu.errors import DataError, ModelError
from tools import audit_study, rounds_study

pytestmark = pytest.mark.filterwarnings("ignore::bayes_lepu.LepuWarning")


@pytest.fixture(scope="module")
def rows():
    """SPM whose columns name the factors, with a category that is told apart."""
    rng = np.random.default_rng(4)
    X = pd.DataFrame(rng.normal(size=(2000, 3)), columns=list("abc"))
    X["place"] = rng.choice(["hill", "lake", "wood"], size=2000)
    values = np.column_stack([X[list("abc")], X["place"] == "lake"])
    truth = lepu.Parameters.of(a=[2, 1, 0, 1], b=-1.0, alpha=[0, 0, 1.5, 0], beta=0.0)
    y, l = truth.simulate(values, rng)
    return X, y, l, rng.choice(np.flatnonzero(l == 0), 100, replace=False)


def audited(rows, at=None, **options):
    X, y, l, random = rows
    at = random if at is None else at
    known = np.full(len(l), np.nan)
    known[at] = y[at]
    given = {"model": "spm", "method": "laplace", "draws": 200, "selection_features": ["c"]}
    return lepu.fit(X, l, y=known, random_seed=1, **given | {"audits": "random"} | options)


@pytest.fixture(scope="module")
def fit(rows):
    return audited(rows)


def by_hand(y, N):
    """Agresti and Coull's interval of a number of positives, with n - 2 and Student's quantile."""
    z, m = norm.ppf(0.975), len(y)
    size = m + z**2
    share = (y.sum() + z**2 / 2) / size
    half = t.ppf(0.975, size - 1) * np.sqrt(share * (1 - share) / (size - 2) * (1 - m / N))
    return N * np.clip([share - half, share + half], y.sum() / N, 1 - (m - y.sum()) / N)


@pytest.mark.parametrize("positives", [0, 3, 30])
def test_without_predictions_it_is_agresti_and_coull(positives):
    y, none = (np.arange(30) < positives).astype(float), np.zeros(30)
    one = Round(y, none, none, np.ones(30), 0.0, 500.0, 30 / 500)
    stratum = Stratum((one,), float(positives), 470.0)
    estimate, low, high = estimate_positives([stratum], 0.95, trust=0.0)
    assert estimate == pytest.approx(np.clip(500 * positives / 30, positives, 470 + positives))
    np.testing.assert_allclose([low, high], by_hand(y, 500))


@pytest.mark.parametrize("design", ["random", "group", "weighted", "three rounds", "sequential"])
def test_stored_coverage(design):
    runs = [r for r in json.loads(audit_study.RUNS.read_text()) if r["design"] == design]
    assert len(runs) >= 20
    assert min(r["covered"] for r in runs) >= 0.93
    assert np.mean([r["covered"] for r in runs]) >= 0.95


@pytest.mark.parametrize("design", ["random", "sequential"])
def test_a_regime_of_the_study_again(design):
    """The regime of this design that is quickest to repeat, all replications of it."""
    runs = [r for r in json.loads(audit_study.RUNS.read_text()) if r["design"] == design]
    stored = min(runs, key=lambda r: r.get("audits", r["m"]))
    again = audit_study.regime(design, stored["share"], stored["model"], stored["m"])
    assert again == pytest.approx(stored, abs=1e-3)


def test_the_page_shows_the_stored_figures():
    text = audit_study.PAGE.read_text(encoding="utf-8")
    assert audit_study.table(json.loads(audit_study.RUNS.read_text())) in text


def test_a_fit_saves_audits_on_public_tables():
    runs = json.loads(rounds_study.RUNS.read_text())
    assert len(runs) >= 4
    for found in runs.values():
        assert np.mean([f["audits"] for f in found]) < np.mean([f["audits alone"] for f in found])
        assert np.median([abs(f["error"]) for f in found]) < rounds_study.WITHIN
    assert np.mean([f["covered"] for found in runs.values() for f in found]) >= 0.93
    assert rounds_study.table(runs) in rounds_study.PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("method", ["laplace", "map"])
def test_the_count_of_a_fit(rows, method):
    _X, y, l, at = rows
    options = {"draws": 200} if method == "laplace" else {"draws": 1000}
    fit = audited(rows, method=method, **options)
    table = fit.audit_estimate(ci_prob=0.95)
    row = table.loc["missed"]
    missed = y[l == 0].sum() - y[at].sum()
    assert row["lower"] < missed < row["upper"]
    assert row["upper"] - row["lower"] < row["alone_upper"] - row["alone_lower"]
    np.testing.assert_allclose(
        [row["alone_lower"], row["alone_upper"]], by_hand(y[at], (l == 0).sum()) - y[at].sum()
    )
    known = l.sum() + y[at].sum()
    assert table.loc["positives", "upper"] == pytest.approx(row["upper"] + known)
    assert table.loc["share", "upper"] == pytest.approx((row["upper"] + known) / len(l))
    assert np.isnan(row["model_lower"]) == (method == "map")


def test_groups(rows, fit):
    X, y, _l, at = rows
    table = fit.audit_estimate(by="place", ci_prob=0.95)
    for place in ("hill", "lake", "wood"):
        here = (X["place"] == place).to_numpy()
        row = table.loc[(place, "share")]
        assert row["lower"] < y[here].mean() < row["upper"]
        assert row["audits"] == here[at].sum()
    same = fit.audit_estimate(by=X["place"].sample(frac=1, random_state=1), ci_prob=0.95)
    pd.testing.assert_frame_equal(table, same)
    two = fit.audit_estimate(by=X[["place"]].assign(high=X["a"] > 0), ci_prob=0.95)
    here = ((X["place"] == "hill") & (X["a"] > 0))[at]
    assert two.loc[("hill, True", "share"), "audits"] == here.sum()
    assert fit.audit_estimate(by=["place"]).index.names == ["place", "quantity"]


def test_weighted_rows_count_by_their_weights(rows):
    _X, y, l, _at = rows
    w = np.where(np.arange(len(l)) % 2, 3.0, 1.0)
    table = audited(rows, sample_weight=w).audit_estimate(ci_prob=0.95)
    row = table.loc["positives"]
    assert row["lower"] < w @ y < row["upper"]


def test_false_marks_need_audited_marks(rows):
    X, y, l, at = rows
    rng = np.random.default_rng(6)
    marked = l | ((y == 0) & (rng.random(len(l)) < 0.1))
    rows = X, y, marked, at
    with pytest.raises(ModelError, match="audit marked rows"):
        audited(rows, np.flatnonzero(marked == 0)[:50], false_marks=True).audit_estimate()
    both = np.flatnonzero(rng.random(len(l)) < 0.1)
    row = audited(rows, both, false_marks=True).audit_estimate(ci_prob=0.95).loc["positives"]
    assert row["audits"] == len(both)
    assert row["lower"] < y.sum() < row["upper"]


def test_everything_audited_is_exact(rows):
    _X, y, l, _ = rows
    fit = audited(rows, np.flatnonzero(l == 0))
    row = fit.audit_estimate().loc["positives"]
    assert row["estimate"] == row["lower"] == row["upper"] == y.sum()
    assert "every unlabelled row has been checked" in str(fit)
    assert fit.answer.help == ""


def test_the_count_stands_first_on_the_card(rows, fit):
    name, text = next(iter(fit.answer.facts().items()))
    assert name == "by audits"
    assert text.startswith("By 100 rows audited at random, whatever the model: about ")
    assert "disagrees" not in text
    assert all(c.status == "passed" for c in fit.identifiability.checks if "audit" in c.name)
    wrong = audited(rows, class_prior=(0.9, 0.005))
    assert "disagrees: trust the audits." in wrong.answer.audited
    assert "by audits" not in audited(rows, audits="chosen").answer.facts()


def test_rows_that_are_not_random_are_found_out(rows):
    """60 positives and 20 negatives reported back as random ones."""
    _, y, l, _ = rows
    rng = np.random.default_rng(1)
    at = [rng.choice(np.flatnonzero((l == 0) & (y == c)), k, False) for c, k in ((1, 60), (0, 20))]
    fit = audited(rows, np.concatenate(at))
    (check,) = [c for c in fit.identifiability.checks if c.name == "random audits"]
    assert check.status == "failed"
    assert check.figure > 4.5
    assert fit.identifiability.level > 1
    assert "parametric form" in fit.identifiability.carried_by
    assert "do not look like a random part" in fit.answer.audited


def test_wrong_questions_are_refused(rows, fit):
    X = rows[0]
    with pytest.raises(ModelError, match='audits="random"'):
        audited(rows, audits="chosen").audit_estimate()
    for by, words in (
        ("region", "'region' is no column of this fit"),
        (X["a"], "2000 different values"),
        (np.arange(3), "by has 3 values"),
        (X["place"].iloc[:50], "no value for some rows"),
        (X["place"].where(X["a"] > 0), "missing values"),
        ([], "or a value for every row"),
        (["place", "region"], "'region' is no column of this fit"),
        (lambda table: table["region"], "or a value for every row"),
    ):
        with pytest.raises(DataError, match=words):
            read_groups(fit.data, by)
    assert read_groups(SimpleNamespace(n=20), np.arange(20) % 2).names == (0, 1)
