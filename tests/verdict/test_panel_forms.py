"""Forms of several annotators' marks: the gradient, and π where they are not independent."""

import numpy as np
import pytest
from scipy.special import expit, logsumexp

import bayes_lepu as lepu
from bayes_lepu.data.reading import read_data
from bayes_lepu.factors import CURVES, get_factor
from bayes_lepu.model.parameters import Parameters
from bayes_lepu.verdict.forms import (
    INDEPENDENT,
    Form,
    Problem,
    Refit,
    compared,
    dependent,
    refit_forms,
    shared_difficulty,
    shifted,
)
from tests import annotated

A, B = np.array([2.0, -1.0, 0.0]), 0.3


def labelled(
    J, *, n=2000, seed=0, spread=0.0, shown=1.0, copied=0.0, skips=0.0, random=0.0, along=None
):
    """X, the labels of J annotators (NaN where not shown), their truth and t."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    alpha = np.array([0.0, 0.5, 1.0]) + rng.normal(0, 0.5, size=(J, 3))
    if along is not None:
        alpha = np.tile(along * A, (J, 1))
    beta = rng.normal(0, 0.3, J)
    t = expit(X @ A + B)
    y = rng.random(n) < t
    u = spread * rng.normal(size=n)
    s = expit(X @ alpha.T + beta + u[:, None])
    labels = (y[:, None] & (rng.random((n, J)) < s)).astype(float)
    same = rng.random(n) < copied
    labels[same, 1] = labels[same, 0]
    labels[(labels[:, 0] == 1) & (rng.random(n) < skips), -1] = 0
    labels[rng.random(n) < random, -1] = 1
    labels[rng.random((n, J)) > shown] = np.nan
    return X, labels, {"a": A, "b": B, "alpha": alpha, "beta": beta}, t


def made(J, *, constant=False, gamma=0.0, lam=0.0, y=None, **options):
    """The problem at the truth (without slopes of s if ``constant``), and π."""
    X, labels, at, t = labelled(J, **options)
    if constant:
        at["alpha"] = np.zeros_like(at["alpha"])
        gamma, lam = expit(at["beta"]), 1 - expit(at["beta"])
    rates = np.broadcast_arrays(gamma, lam, 1 - gamma - lam, at["beta"])[:3]
    with np.errstate(divide="ignore"):
        point = Parameters(**at | {"b": np.array(B)}, log_w=np.log(np.array(rates)).T)
    known = None if y is None else y(labels)
    data = read_data(X, labels, y=known, standardize=False)
    propensity = get_factor("constant" if constant else "logistic" if not gamma else "psychometric")
    return Problem.of(data, point, propensity), float(t.mean())


def held(table):
    """Lowest and highest π of independence and what predicts the labels as well, two sd wide."""
    kept = table[table["kept"] | (table.index == INDEPENDENT)]
    return (kept["pi"] - 2 * kept["sd"]).min(), (kept["pi"] + 2 * kept["sd"]).max()


OWN = CURVES["logistic"]
FORMS = [
    Form(INDEPENDENT, OWN),
    shared_difficulty(1.0, OWN),
    Form("hard", OWN, parts=shifted(np.array([0.0, -3.0]), np.array([0.8, 0.2]))),
    Form("copied", OWN, parts=dependent(1, 0, 0.3, skips=False)),
    Form("cauchit", CURVES["cauchit"]),
    Form("random", OWN, false_marks=None),
    Form("rise", OWN, rise=0.5),
]


def audited(labels):
    """Some rows that nobody marked, checked."""
    y = np.full(len(labels), np.nan)
    free = np.flatnonzero(~(labels == 1).any(axis=1) & np.isfinite(labels).any(axis=1))
    y[free[:5]], y[free[5:9]] = 0, 1
    return y


@pytest.mark.parametrize("form", FORMS, ids=lambda f: f.name)
def test_gradient(form):
    problem, _ = made(2, spread=1.0, n=60, shown=0.7, gamma=0.1, lam=0.05, y=audited)
    refit = Refit.of(problem, form)
    z = np.random.default_rng(1).normal(size=refit.z.size)
    numeric = [(refit.loss(z + e)[0] - refit.loss(z - e)[0]) / 2e-6 for e in 1e-6 * np.eye(z.size)]
    np.testing.assert_allclose(refit.loss(z)[1], numeric, rtol=1e-5, atol=1e-5)


def test_mixtures_are_what_they_say():
    """Against the sum over difficulties, and over who was copied, written out row by row."""
    problem, _ = made(2, spread=1.0, n=60, shown=0.7)
    labels, X, at = problem.rows.labels, problem.rows.X, problem.start
    t = expit(X @ at.a + at.b)

    def log_cells(shift):
        s = expit(at.alpha @ X.T + at.beta[:, None] + shift)
        return np.where(labels == 1, np.log(s), np.where(labels == 0, np.log1p(-s), 0.0))

    nobody = (labels != 1).all(axis=0)
    difficulty = shared_difficulty(1.0, OWN)
    by_node = [log_cells(u).sum(axis=0) + log_share
               for _, log_share, u in difficulty.parts(problem.rows)]  # fmt: skip
    expected = np.log(t * np.exp(logsumexp(by_node, axis=0)) + (1 - t) * nobody)
    found = Refit.of(problem, difficulty).found[0]
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)

    one, other = np.exp(log_cells(0.0))
    both = (labels >= 0).all(axis=0)
    mixed = np.where(both, 0.7 * one * other + 0.3 * one * (labels[0] == labels[1]), one * other)
    copied = Refit.of(problem, Form("copied", OWN, parts=dependent(1, 0, 0.3, skips=False)))
    expected = np.log(t * mixed + (1 - t) * nobody)
    np.testing.assert_allclose(copied.found[0], expected, rtol=1e-9)


def test_rows_that_are_hard_for_both_annotators():
    """Independence puts π too low; the forms that predict the labels as well hold the truth."""
    problem, pi = made(2, spread=1.5)
    table = compared(refit_forms(problem))
    difficulty = table["pi"][[INDEPENDENT, *(f"shared difficulty {u:g}" for u in (0.5, 1, 1.5))]]
    assert difficulty.is_monotonic_increasing
    assert difficulty.iloc[0] < pi - 0.03
    low, high = held(table)
    assert low < pi < high


@pytest.mark.parametrize("skips", [0.3, 0.8, 0.95])
def test_a_colleague_who_skips_what_is_marked_already(skips):
    """Independence takes rows marked once for many missed by both: π comes out too high."""
    problem, pi = made(2, skips=skips)
    table = compared(refit_forms(problem))
    assert table.loc[INDEPENDENT, "pi"] > pi + 0.05 * skips
    assert table["kept"][[name for name in table.index if "skips" in name]].any()
    low, high = held(table)
    assert low < pi < high


@pytest.mark.parametrize(
    ("J", "options", "best"),
    [
        (2, {"copied": 0.5}, "copied"),
        (3, {"random": 0.1}, "marks at random"),
        (5, {"spread": 1.5, "shown": 0.3}, "shared difficulty"),
        (4, {"along": 0.5, "constant": True}, "rises"),
    ],
    ids=["half copied", "one marks at random", "incomplete and hard", "constant but rising"],
)
def test_what_independence_hides_is_the_better_form(J, options, best):
    """Panels that the verdict once called separable, with π .07 to .18 off."""
    problem, pi = made(J, **options)
    table = compared(refit_forms(problem))
    assert table.loc[INDEPENDENT, "below"] > 4
    assert any(best in name for name in table.index[table["kept"]])
    low, high = held(table)
    assert low < pi < high


def test_false_marks_that_were_fitted_are_part_of_every_form():
    X, y, L = annotated.simulate(400, seed=6)
    rng = np.random.default_rng(1)
    L = L.where((y == 1)[:, None] | (rng.random(L.shape) > 0.08), 1.0)
    fit = lepu.fit(X, L, model="spm", method="map", false_marks=True, random_seed=1)
    forms = fit.identifiability.evidence.forms
    assert "marks at random" not in forms.table.index
    assert np.isfinite(forms.table["below"]).all()
    assert forms.own_gap < 10
