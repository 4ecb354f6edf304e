"""The stored results of the paper's experiments: complete, and what the documents say of them."""

import pandas as pd
import pytest

from tests.documents import ROOT

PAGES = ROOT / "docs" / "reproduction"
SUBJECTS = {"fsa", "mta", "sph", "hth", "mba"}


@pytest.fixture(scope="module")
def animal():
    return pd.read_csv(PAGES / "animal.csv")


def accuracy(animal, protocol):
    rows = animal.query("test == 'half' and score == 'accuracy' and protocol == @protocol")
    return rows.pivot_table(index="subject", columns="model", values="mean")


def test_table_1_has_500_trials_in_the_stated_order():
    table = pd.read_csv(PAGES / "table1.csv")
    assert (table["trials"] == 500).all()
    mean = table[table["score"] == "accuracy"].set_index("model")["mean"]
    order = list(mean.sort_values(ascending=False).index)
    assert order == ["Real", "PsychM", "SPM", "Elkan", "Naive"]
    assert mean[["SPM", "PsychM"]].min() > 0.94


def test_the_norm_rule_works_with_guesses_only():
    table = pd.read_csv(PAGES / "ablation.csv").set_index(["gamma", "lam"])
    for (gamma, _), row in table.iterrows():
        if gamma:
            assert row["SPM_right"] > 0.9
        else:
            assert abs(row["SPM_right"] - 0.5) < 3 * row["SPM_right_se"]


def test_human_annotators_are_all_there(animal):
    half = animal[animal["test"] == "half"]
    for protocol in ("paper", "safe"):
        for score in ("accuracy", "f1", "AUC", "Brier"):
            part = half[(half["protocol"] == protocol) & (half["score"] == score)]
            assert set(part["subject"]) == SUBJECTS
            assert {"SPM", "PsychM", "Naive", "Elkan", "Real"} <= set(part["model"])
    assert (half["trials"] == 200).all()
    assert set(animal["test"]) == {"half", "held out"}


def test_what_the_documents_say_of_the_human_annotators(animal):
    safe, paper = accuracy(animal, "safe"), accuracy(animal, "paper")
    assert (safe["SPM"] > safe[["Naive", "Elkan"]].max(axis=1)).all()
    assert (safe["SPM"] - safe["Naive"]).between(0.0095, 0.0155).all()
    assert (safe["SPM"] - safe["Naive, L1 penalty"]).mean() < 0.003
    loss = pd.concat([t["Naive"] - t["PsychM"] for t in (safe, paper)])
    assert loss.between(0.125, 0.235).all()
    assert (paper["Real"] - safe["Real"]).between(0.025, 0.045).all()
    printed = animal.query("test == 'half' and score == 'accuracy' and protocol == 'paper'")
    printed = printed.pivot_table(index="subject", columns="model", values="printed")
    for model in ("SPM", "Naive", "Elkan"):
        assert (paper[model] - printed[model]).abs().max() < 0.02
    assert (paper["PsychM, steeper factor"] - printed["PsychM"]).abs().max() < 0.04


def test_the_posteriors_do_not_separate_the_factors():
    table = pd.read_csv(PAGES / "animal-bayes.csv")
    assert set(table["subject"]) == SUBJECTS
    assert (table[table["model"].isin(["spm", "psychm"])]["level"] == 3).all()
