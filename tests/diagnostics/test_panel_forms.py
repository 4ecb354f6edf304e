"""Forms of several annotators' marks: the gradient, and π where they are not independent."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

import bayes_lepu as lepu
from bayes_lepu.diagnostics.panel_forms import (
    INDEPENDENT,
    Panel,
    PanelForm,
    loglik_grad,
    panel_forms,
    shared_difficulty,
)
from bayes_lepu.factors import CURVES
from tests import annotated

A, B = np.array([2.0, -1.0, 0.0]), 0.3


def labelled(J, *, n=2000, seed=0, spread=0.0, shown=1.0, copied=0.0, random=0.0, along=None):
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
    labels[rng.random(n) < random, -1] = 1
    labels[rng.random((n, J)) > shown] = np.nan
    return X, labels, {"a": A, "b": B, "alpha": alpha, "beta": beta}, t


def made(J, *, constant=False, **options):
    X, labels, at, t = labelled(J, **options)
    every = np.ones(3, dtype=bool)
    known = np.full(len(X), -1, dtype=np.int8)
    panel = Panel(
        X,
        np.nan_to_num(labels, nan=-1).astype(np.int8),
        known,
        every,
        every & (not constant),
        np.zeros((J, 2)),
        np.ones(len(X)),
    )
    return panel, at, float(t.mean())


def held(table):
    """Lowest and highest π of independence and what predicts the labels as well, two sd wide."""
    kept = table[table["kept"] | (table.index == INDEPENDENT)]
    return (kept["pi"] - 2 * kept["sd"]).min(), (kept["pi"] + 2 * kept["sd"]).max()


FORMS = [
    PanelForm(INDEPENDENT),
    shared_difficulty(1.0),
    PanelForm("hard", np.array([0.0, -3.0]), np.array([0.8, 0.2])),
    PanelForm("copied", copied=(1, 0, 0.3)),
    PanelForm("cauchit", of_class=CURVES["cauchit"]),
    PanelForm("random", false_marks=True),
    PanelForm("rise", rise=0.5),
]


@pytest.mark.parametrize("form", FORMS, ids=lambda f: f.name)
def test_gradient(form):
    panel, _, _ = made(2, spread=1.0, n=60, shown=0.7)
    known = np.array(panel.known)
    free = np.flatnonzero(~(panel.labels == 1).any(axis=1))
    known[free[:5]], known[free[5:9]] = 0, 1
    panel = replace(panel, known=known, rates=np.array([[0.1, 0.05], [0.0, 0.0]]))
    rng = np.random.default_rng(1)
    z = rng.normal(size=4 + 2 * 4 + (2 if form.false_marks else 0))
    _, grad = loglik_grad(panel, z, form, A)
    numeric = [
        (loglik_grad(panel, z + e, form, A)[0] - loglik_grad(panel, z - e, form, A)[0]) / 2e-6
        for e in 1e-6 * np.eye(z.size)
    ]
    np.testing.assert_allclose(grad, numeric, rtol=1e-5, atol=1e-5)


def test_rows_that_are_hard_for_both_annotators():
    """Independence puts π too low; the forms that predict the labels as well hold the truth."""
    panel, at, pi = made(2, spread=1.5)
    table = panel_forms(panel, **at)
    difficulty = table["pi"][[INDEPENDENT, *(f"shared difficulty {u:g}" for u in (0.5, 1, 1.5))]]
    assert difficulty.is_monotonic_increasing
    assert difficulty.iloc[0] < pi - 0.03
    low, high = held(table)
    assert low < pi < high


def test_many_annotators_tell_the_spread():
    panel, at, pi = made(8, n=1500)
    table = panel_forms(panel, **at)
    assert table.loc[INDEPENDENT, "below"] < 4
    assert not table.loc["shared difficulty 1.5", "kept"]
    low, high = held(table)
    assert low < pi < high
    assert high - low < 0.1


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
    panel, at, pi = made(J, **options)
    if options.get("constant"):
        at["alpha"] = np.zeros_like(at["alpha"])
    table = panel_forms(panel, **at)
    assert table.loc[INDEPENDENT, "below"] > 4
    assert any(best in name for name in table.index[table["kept"]])
    low, high = held(table)
    assert low < pi < high


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::bayes_lepu.LepuWarning")
@pytest.mark.parametrize(
    ("J", "options"),
    [
        (2, {"spread": 1.5}),
        (2, {"copied": 0.5}),
        (5, {"spread": 1.5, "shown": 0.3}),
        (3, {"random": 0.1}),
        (10, {"spread": 1.0}),
    ],
    ids=["two, hard", "half copied", "incomplete", "one at random", "ten, hard"],
)
@pytest.mark.parametrize("seed", [0, 1])
def test_panels_do_not_mislead(J, options, seed):
    X, labels, _, t = labelled(J, n=1500, seed=seed, **options)
    fit = lepu.fit(
        X, labels, model="spm", draws=250, tune=400, chains=2, random_seed=0, progressbar=False
    )
    found = fit.identifiability
    low, high = found.pi_range
    truth = t[np.isfinite(labels).any(axis=1)].mean()
    assert found.level > 1 or low <= truth <= high


def test_false_marks_that_were_fitted_are_part_of_every_form():
    X, y, L = annotated.simulate(400, seed=6)
    rng = np.random.default_rng(1)
    L = L.where((y == 1)[:, None] | (rng.random(L.shape) > 0.08), 1.0)
    fit = lepu.fit(X, L, model="spm", method="map", false_marks=True, random_seed=1)
    forms = fit.identifiability.evidence.forms
    assert "marks at random" not in forms.table.index
    assert np.isfinite(forms.table["below"]).all()
    assert forms.own_gap < 10
