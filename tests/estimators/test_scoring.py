"""Scores without true classes: definitions, unbiasedness by simulation, errors, scorers."""

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.metrics import brier_score_loss, f1_score, log_loss, roc_auc_score
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bayes_lepu.errors import DataError, ModelError
from bayes_lepu.estimators import (
    PUClassifier,
    ipw_accuracy,
    ipw_auc,
    ipw_brier,
    ipw_class_prior,
    ipw_f1,
    ipw_precision,
    ipw_recall,
    ipw_scorer,
    label_brier,
    label_calibration_error,
    label_log_loss,
    label_scorer,
)


def population(n, rng):
    """Rows with class probability t, propensity s, and an imperfect score f of the class."""
    x = rng.normal(size=(n, 2))
    t = 1 / (1 + np.exp(-(1.5 * x[:, 0] - 0.5)))
    s = 0.2 + 0.7 / (1 + np.exp(-(x[:, 0] + x[:, 1])))
    f = 1 / (1 + np.exp(-(1.2 * x[:, 0] + 0.5 * x[:, 1])))
    return t, s, np.round(f, 2)  # rounding makes ties


def labelled(n, rng):
    t, s, f = population(n, rng)
    y = rng.random(n) < t
    return (y & (rng.random(n) < s)).astype(int), y, s, f


def truth():
    """Rates of the judged classifier in the population, by a large sample with t in place of y."""
    t, _, f = population(4_000_000, np.random.default_rng(99))
    d = f > 0.5
    pi, hit, called = t.mean(), (t * d).mean(), d.mean()
    # AUC with soft classes: pairs weighted by t_i (1 - t_j), by score value.
    values, place = np.unique(f, return_inverse=True)
    pos, neg = np.bincount(place, t), np.bincount(place, 1 - t)
    assert len(values) < 200
    below = np.cumsum(neg) - neg
    auc = (pos * (below + neg / 2)).sum() / (pos.sum() * neg.sum())
    return {
        "prior": pi,
        "accuracy": (t * d + (1 - t) * (1 - d)).mean(),
        "brier": (t * (1 - f) ** 2 + (1 - t) * f**2).mean(),
        "recall": hit / pi,
        "precision": hit / called,
        "f1": 2 * hit / (pi + called),
        "auc": auc,
    }


FUNCTIONS = {
    "prior": lambda l, f, s: ipw_class_prior(l, s),
    "accuracy": lambda l, f, s: ipw_accuracy(l, f > 0.5, s),
    "brier": ipw_brier,
    "recall": lambda l, f, s: ipw_recall(l, f > 0.5, s),
    "precision": lambda l, f, s: ipw_precision(l, f > 0.5, s),
    "f1": lambda l, f, s: ipw_f1(l, f > 0.5, s),
    "auc": ipw_auc,
}


@pytest.fixture(scope="module")
def simulated():
    """Estimates and standard errors over many samples of 1500 rows with known propensity."""
    rng = np.random.default_rng(1)
    out = {name: [] for name in FUNCTIONS}
    for _ in range(1500):
        l, _, s, f = labelled(1500, rng)
        for name, function in FUNCTIONS.items():
            e = function(l, f, s)
            out[name].append((e.value, e.standard_error))
    return {name: np.array(rows) for name, rows in out.items()}, truth()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_inverse_propensity_estimates_are_unbiased(simulated, name):
    estimates, true = simulated
    values = estimates[name][:, 0]
    monte_carlo = values.std() / np.sqrt(len(values))
    # Ratios have a bias of order variance: at most a few hundredths of their own sd here.
    bias = 0.05 * values.std() if name in ("recall", "f1", "auc") else 0.0
    assert abs(values.mean() - true[name]) < 4 * monte_carlo + bias


@pytest.mark.parametrize("name", FUNCTIONS)
def test_standard_errors_are_those_of_the_estimates(simulated, name):
    estimates, true = simulated
    values, errors = estimates[name].T
    # sd of a sample sd: about 1/sqrt(2 n) of it, 1.8 % here.
    assert np.sqrt(np.mean(errors**2)) == pytest.approx(values.std(), rel=0.08)
    covered = np.mean(np.abs(values - true[name]) < 1.96 * errors)
    assert abs(covered - 0.95) < 4 * np.sqrt(0.95 * 0.05 / len(values)) + 0.01


def test_a_classifier_judged_by_labels_as_if_they_were_classes_is_judged_wrongly(simulated):
    """Precision against l is far off, so the estimates above are doing something."""
    _, true = simulated
    rng = np.random.default_rng(2)
    l, _, _, f = labelled(100_000, rng)
    assert true["precision"] - np.mean(l[f > 0.5]) > 0.15


def test_with_every_positive_labelled_the_estimates_are_the_usual_metrics():
    rng = np.random.default_rng(3)
    _, y, _, f = labelled(2000, rng)
    d = f > 0.5
    assert ipw_class_prior(y, 1.0).value == pytest.approx(y.mean())
    assert ipw_accuracy(y, d, 1.0).value == pytest.approx(np.mean(y == d))
    assert ipw_brier(y, f, 1.0).value == pytest.approx(brier_score_loss(y, f))
    assert ipw_f1(y, d, 1.0).value == pytest.approx(f1_score(y, d))
    assert ipw_recall(y, d, 1.0).value == pytest.approx(np.mean(d[y]))
    assert ipw_precision(y, d, 1.0).value == pytest.approx(np.mean(y[d]))
    assert ipw_auc(y, f, 1.0).value == pytest.approx(roc_auc_score(y, f))


def test_auc_equals_the_double_sum():
    rng = np.random.default_rng(4)
    l, _, s, f = labelled(60, rng)
    w = l / s
    k = (f[:, None] > f[None]) + 0.5 * (f[:, None] == f[None])
    off = ~np.eye(60, dtype=bool)
    pairs = np.outer(w, 1 - w)
    assert ipw_auc(l, f, s).value == pytest.approx((pairs * k)[off].sum() / pairs[off].sum())


def test_one_draw_of_the_propensity_is_a_known_propensity():
    rng = np.random.default_rng(0)
    l, d = rng.integers(0, 2, 50), rng.integers(0, 2, 50)
    s = rng.uniform(0.8, 1.0, 50)
    for score in (ipw_accuracy, ipw_recall, ipw_auc):
        assert score(l, d, s[None]) == score(l, d, s)
    assert ipw_class_prior(l, s[None]) == ipw_class_prior(l, s)


def test_an_uncertain_propensity_widens_the_standard_error_to_its_due():
    """A constant propensity estimated from 100 audited positives, as draws from its posterior."""
    rng = np.random.default_rng(5)
    c, n, covered, ignored = 0.4, 2000, [], []
    for _ in range(400):
        y = rng.random(n) < 0.5
        l = (y & (rng.random(n) < c)).astype(int)
        seen = rng.binomial(100, c)
        draws = rng.beta(1 + seen, 1 + 100 - seen, size=100)
        e = ipw_class_prior(l, np.repeat(draws[:, None], n, axis=1))
        covered.append(abs(e.value - 0.5) < 1.96 * e.standard_error)
        point = ipw_class_prior(l, (1 + seen) / 102)
        ignored.append(abs(point.value - 0.5) < 1.96 * point.standard_error)
    margin = 4 * np.sqrt(0.95 * 0.05 / 400)
    assert abs(np.mean(covered) - 0.95) < margin + 0.01
    assert np.mean(ignored) < 0.75  # as if the propensity were known: far too sure


def test_label_scores_follow_their_definitions():
    rng = np.random.default_rng(6)
    h = rng.random(500)
    l = (rng.random(500) < h).astype(int)
    assert label_brier(l, h) == pytest.approx(brier_score_loss(l, h))
    assert label_log_loss(l, h) == pytest.approx(log_loss(l, h))
    assert np.isfinite(label_log_loss([0, 1], [1.0, 0.0]))


def test_calibration_error_is_small_for_the_true_h_and_not_for_another():
    rng = np.random.default_rng(7)
    h = rng.random(20_000)
    l = rng.random(20_000) < h
    # Sum over 10 bins of |mean of n/10 centred Bernoulli| / 10: about sqrt(10/n) E|N(0, 1)| sd.
    noise = np.sqrt(10 / 20_000) * np.sqrt(2 / np.pi) * np.sqrt(np.mean(h * (1 - h)))
    assert label_calibration_error(l, h) < 3 * noise
    assert label_calibration_error(l, h**2) > 0.1
    assert label_calibration_error([0, 1], [0.5, 0.5], n_bins=1) == pytest.approx(0.0)


def test_equal_h_gives_equal_scores_whichever_factor_is_the_classifier():
    """What (X, l) cannot see: exchanged factors have the same label scores, not the same AUC."""
    rng = np.random.default_rng(8)
    t, s, _ = population(4000, rng)
    y = rng.random(4000) < t
    l = (y & (rng.random(4000) < s)).astype(int)
    assert label_brier(l, s * t) == label_brier(l, t * s)
    assert roc_auc_score(y, t) - roc_auc_score(y, s) > 0.05
    # A propensity from outside tells them apart; the one of the exchanged fit confirms it.
    assert ipw_auc(l, t, s).value > ipw_auc(l, s, s).value
    assert ipw_auc(l, s, t).value > ipw_auc(l, t, t).value


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: label_brier([0, 2], [0.1, 0.2]), "0 or 1"),
        (lambda: label_brier([0, 1], [0.1, 1.2]), "probability"),
        (lambda: label_calibration_error([0, 1], [0.1, 0.2], n_bins=3), "n_bins"),
        (lambda: ipw_class_prior([0, 1], [0.5, 0.0]), "propensity goes from 0"),
        (lambda: ipw_class_prior([0, 1], [0.5, 1.5]), "expected numbers in"),
        (lambda: ipw_class_prior([0, 1], [0.5, 0.5, 0.5]), "propensity has shape"),
        (lambda: ipw_accuracy([0, 1], [0.5, 0.5], 0.5), "predicted must be"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(DataError, match=message):
        call()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: label_scorer("brier"), "score = 'brier' is not a function; label_brier, label_"),
        (lambda: ipw_scorer("auc", 0.6), "score = 'auc' is not a function; ipw_accuracy, ipw_"),
        (lambda: ipw_scorer(ipw_auc, [0.6, 0.7]), "propensity is a list; a number, or a function"),
    ],
)
def test_scorers_say_what_they_accept(call, message):
    with pytest.raises(ModelError, match=message):
        call()


def test_nothing_to_divide_by_gives_nan():
    assert np.isnan(ipw_precision([0, 1], [0, 0], 0.5).value)
    assert np.isnan(ipw_auc([1, 1], [0.1, 0.2], 1.0).value)


def test_scorers_work_in_cross_validation_and_pipelines():
    rng = np.random.default_rng(9)
    X = rng.normal(size=(600, 2))
    y = rng.random(600) < 1 / (1 + np.exp(-2 * X[:, 0]))
    l = np.where(y & (rng.random(600) < 0.6), "yes", "no")
    pipeline = make_pipeline(StandardScaler(), PUClassifier(model="scar"))
    plain = cross_val_score(PUClassifier(model="scar"), X, l, scoring=label_scorer(), cv=3)
    piped = cross_val_score(pipeline, X, l, scoring=label_scorer(), cv=3)
    np.testing.assert_allclose(plain, piped, rtol=1e-3)
    np.testing.assert_allclose(plain, cross_val_score(PUClassifier(model="scar"), X, l, cv=3))
    auc = cross_val_score(PUClassifier(model="naive"), X, l, scoring=ipw_scorer(ipw_auc, 0.6), cv=3)
    assert auc.mean() == pytest.approx(roc_auc_score(y, X[:, 0]), abs=0.1)
    by_x = ipw_scorer(ipw_brier, lambda rows: np.full(len(rows), 0.6))
    fitted = PUClassifier(model="scar").fit(X, l)
    assert -0.25 < by_x(fitted, X, l) < 0
    accuracy = ipw_scorer(ipw_accuracy, 0.6)(fitted, X, l)
    se = ipw_accuracy(l == "yes", fitted.predict(X) == "yes", 0.6).standard_error
    assert abs(accuracy - np.mean(fitted.predict(X) == np.where(y, "yes", "no"))) < 4 * se
