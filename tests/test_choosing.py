"""``model="auto"`` takes the model that the labels ask for."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

import bayes_lepu as lepu
from bayes_lepu.choosing import FOLDS, Candidate, _folds, choose

MAP = {"method": "map", "random_seed": 1, "progressbar": False}


def marked(score, propensity, seed):
    rng = np.random.default_rng(seed)
    y = rng.random(len(score)) < expit(score)
    return (y & (rng.random(len(score)) < propensity)).astype(int)


@pytest.fixture(scope="module")
def table():
    return np.random.default_rng(0).normal(size=(1500, 4))


def test_a_straight_class_marked_at_random(table):
    l = marked(3 * table[:, 0] - 2 * table[:, 1], 0.5, 1)
    fit = lepu.fit(table, l, **MAP)
    assert (fit.spec.name, fit.data.learned) == ("scar", None)
    assert "straight lines in the columns (learned ones: " in repr(fit)


def test_a_curved_class_marked_at_random(table):
    """Two straight factors would follow the curve and call half of it the annotator."""
    l = marked(4 * (np.abs(table[:, 0]) - 1) + 2 * table[:, 1] * table[:, 2], 0.5, 2)
    fit = lepu.fit(table, l, **MAP)
    assert fit.choice.bend > 20
    assert f"by kernel and trees, {fit.choice.bend:+.0f} nats on held-out labels" in repr(fit)
    straight = lepu.fit(table, l, class_learner=None, **MAP)
    assert straight.choice.bend is None
    assert straight.data.learned is None


def test_an_annotator_who_reacts_to_a_column(table):
    l = marked(4 * table[:, 0], expit(3 * table[:, 3]), 3)
    assert lepu.fit(table, l, **MAP).spec.name in ("spm", "psychm")
    named = lepu.fit(table, l, selection_features=[3], **MAP)
    assert {c.model for c in named.choice.candidates} == {"spm", "psychm"}


def test_held_out_labels_are_predicted_by_the_other_rows(table):
    """Against fits of three quarters of the rows by name, their likelihood written out."""
    l = marked(3 * table[:, 0], 0.5, 4)
    fit = lepu.fit(table, l, class_learner=None, standardize=False, **MAP)
    (scar,) = (c for c in fit.choice.candidates if c.model == "scar")
    whole = lepu.fit(table, l, model="scar", standardize=False, **MAP)
    fold, total = _folds(whole.data, 1), 0.0
    for k in range(FOLDS):
        rest = fold != k
        part = lepu.fit(
            table[rest], l[rest], model="scar", standardize=False, priors=whole.priors, **MAP
        )
        h = np.clip(part.label_probability(table[~rest])["mean"].to_numpy(), 1e-12, 1 - 1e-12)
        total += np.sum(np.where(l[~rest] == 1, np.log(h), np.log1p(-h)))
    assert scar.held_out == pytest.approx(total, abs=1e-3)
    assert np.bincount(fold, weights=l).max() - np.bincount(fold, weights=l).min() <= 1


def test_the_rule():
    def chosen(**scores):
        found = [
            (Candidate(name.split("_")[1], name.startswith("learned"), score, 0.3), name)
            for name, score in scores.items()
        ]
        choice, kept = choose(found)
        assert choice.chosen == next(c for c, name in found if name == kept)
        return kept, {f"{c.model} {c.learned}" for c in choice.as_good}

    assert chosen(straight_scar=-9, straight_spm=-8, learned_scar=-5.5, learned_spm=-5.2) == (
        "straight_scar",
        {"spm False", "scar True", "spm True"},
    )
    assert chosen(straight_scar=-10, straight_spm=-8, learned_scar=-30, learned_spm=-4)[0] == (
        "learned_spm"
    )
    assert chosen(straight_scar=-8, learned_scar=-4, learned_spm=-6)[0] == "learned_spm"
    assert chosen(straight_scar=-9, learned_scar=-2, learned_spm=-6)[0] == "learned_scar"
    assert chosen(straight_scar=-10, straight_spm=-6)[0] == "straight_spm"


def test_the_choice_is_kept(table, tmp_path):
    l = marked(4 * (np.abs(table[:, 0]) - 1), 0.5, 5)
    fit = lepu.fit(table, l, **MAP)
    loaded = lepu.load(fit.save(tmp_path / "fit.nc"))
    assert loaded.choice == fit.choice
    assert list(fit.choice.to_frame().columns) == ["class", "model", "behind", "pi"]
    names = {"X": table, "l": l}
    exec(fit.call, names)
    np.testing.assert_allclose(names["fit"].predict_proba(table), fit.predict_proba(table))


@pytest.mark.filterwarnings("ignore::bayes_lepu.LepuWarning")
def test_rows_that_repeat_have_a_constant_annotator(table):
    """Eight kinds of rows cannot tell a curve from an annotator whose care varies."""
    X = (table[:, :3] > 0).astype(float)
    l = marked(2 * X[:, 0] - 1.5 * X[:, 1], expit(2 * X[:, 2] - 1), 7)
    fit = lepu.fit(X, l, **MAP)
    assert [c.model for c in fit.choice.candidates] == ["scar", "scar"]  # straight and learned
    assert fit.identifiability.level == 4  # the labels contradict a constant s, and say so
    assert lepu.fit(X, l, model="spm", **MAP).identifiability.level > 2
    named = lepu.fit(X, l, selection_features=[2], **MAP)
    assert {c.model for c in named.choice.candidates} == {"spm", "psychm"}


def test_several_annotators_and_priors_of_one_model(table):
    score = 3 * table[:, 0]
    L = np.column_stack([marked(score, 0.5, 7), marked(score, 0.4, 7)])
    fit = lepu.fit(pd.DataFrame(table, columns=list("abcd")), L, **MAP)
    assert fit.data.n_annotators == 2
    given = {"c": lepu.Prior("beta", concentration=(2, 2))}
    l = marked(score, 0.5, 8)
    fit = lepu.fit(table, l, priors=given, class_learner=None, **MAP)
    assert fit.spec.name == "scar"
    assert fit.priors["c"] == given["c"]
