"""The benchmark on real tables: what it reads, how it marks, that it goes on where it stopped."""

import numpy as np
import pandas as pd
import pytest

from benchmarks.real.labelling import MECHANISMS, draw_trial
from benchmarks.real.measures import auc, class_scores, prior_scores
from benchmarks.real.page import overall, summarise
from benchmarks.real.peers import PEERS
from benchmarks.real.public_tables import Table, load_tables, read_csv
from benchmarks.real.trials import Key, finished, run_missing


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 6))
    y = (rng.random(2000) < 1 / (1 + np.exp(-4 * X[:, 0] - 2 * X[:, 1]))).astype(int)
    return Table("simulated", X, y)


def test_text_and_missing_cells_become_numbers(tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text("vote,age,y\ny,1,1\nn,,0\n,3,1\n")
    read = read_csv(path)
    np.testing.assert_array_equal(
        read.X, [[0, 1, 1, 0], [1, 0, 2, 1], [0, 0, 3, 0]]
    )  # vote = n, vote = y, age, age missing
    np.testing.assert_array_equal(read.y, [1, 0, 1])
    assert "votes" in {t.name for t in load_tables(tmp_path, wanted=("votes", "wine"))}
    with pytest.raises(SystemExit, match="No table named nowhere"):
        load_tables(tmp_path, wanted=("nowhere",))


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_only_positives_are_marked_and_as_often_as_stated(table, mechanism):
    trial = draw_trial(table, mechanism, np.random.default_rng(1))
    assert np.all(trial.y[trial.l == 1] == 1)
    assert len(trial.X) == 1500
    assert trial.X.shape[1] == 6 + (mechanism == "outside")
    np.testing.assert_allclose(trial.X.mean(axis=0), 0, atol=1e-9)
    rate = trial.l[trial.y == 1].mean()
    stated = {"scar-.2": 0.2, "scar-.5": 0.5, "scar-.8": 0.8, "S1": 0.1}
    if mechanism in stated:  # 750 positives: a standard error of .018 at most
        assert abs(rate - stated[mechanism]) < 0.06
    assert 0.005 < rate < 0.9


def test_scores_of_a_perfect_and_of_a_reversed_answer(table):
    trial = draw_trial(table, "S1", np.random.default_rng(2))
    perfect = trial.y_test.astype(float)
    assert class_scores(trial, perfect)["accuracy"] == 1
    assert class_scores(trial, 1 - perfect)["AUC"] == 0
    assert auc(np.array([True, False]), np.array([0.3, 0.3])) == 0.5
    assert prior_scores(trial, 0.9, (0.0, 0.1))["covered"] == 0


def test_peers_beat_naive_where_marks_fall_at_random(table):
    trial = draw_trial(table, "scar-.5", np.random.default_rng(3))
    accuracy = {
        name: class_scores(
            trial, fit(trial.X, trial.l, np.random.default_rng(4)).class_probability(trial.X_test)
        )["accuracy"]
        for name, fit in PEERS.items()
    }
    # The best possible is about .91; TM has no guarantee from any start and is left out.
    for name in ("Elkan-Noto", "SAR-EM", "LBE"):
        assert accuracy[name] > accuracy["naive"] + 0.02, accuracy


def test_a_stopped_run_goes_on(table, tmp_path):
    path = tmp_path / "trials.jsonl"
    keys = [Key("simulated", "scar-.5", k, m) for k in (0, 1) for m in ("naive", "Elkan-Noto")]
    first = list(run_missing([table], keys[:3], path))
    with path.open("a") as file:
        file.write('{"table": "simul')  # torn by a power cut
    assert len(first) == 3
    rest = list(run_missing([table], keys, path))
    assert [(r["repetition"], r["method"]) for r in rest] == [(1, "Elkan-Noto")]
    records = finished(path)
    assert len(records) == 4
    summary = overall(summarise(records))
    assert summary.loc["naive", "loses to naive"] == 0
    assert summary.loc["Elkan-Noto", "accuracy"] == pytest.approx(
        pd.DataFrame(records).query("method == 'Elkan-Noto'")["accuracy"].mean()
    )
