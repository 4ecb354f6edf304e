"""The benchmark on real tables: what it reads, how it marks, that it goes on where it stopped."""

import numpy as np
import pytest

from benchmarks.real import page
from benchmarks.real.contestants import CONTESTANTS
from benchmarks.real.labelling import LETTERS, MECHANISMS, Trial, draw_letters, draw_trial
from benchmarks.real.measures import class_scores
from benchmarks.real.peers import PEERS
from benchmarks.real.public_tables import Table, load_tables, read_csv
from benchmarks.real.trials import finished, plan, run_missing

SLOW = {"auto", "default"}  # they draw


def simulated(name, n):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 6))
    eta = 4 * X[:, 0] + 2 * X[:, 1]
    y = (rng.random(n) < 1 / (1 + np.exp(-eta))).astype(int)
    return Table(name, X, X, y)


@pytest.fixture(scope="module")
def table():
    return simulated("simulated", 2000)


@pytest.fixture(scope="module")
def small():
    return simulated("small", 240)


def test_text_and_missing_cells_become_numbers(tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text("vote,age,y\ny,1,1\nn,,0\n,3,1\n")
    read = read_csv(path)
    np.testing.assert_array_equal(
        read.linear, [[0, 1, 1, 0], [1, 0, 2, 1], [0, 0, 3, 0]]
    )  # vote = n, vote = y, age, age missing
    np.testing.assert_array_equal(read.trees, [[1, 1], [0, np.nan], [np.nan, 3]])
    np.testing.assert_array_equal(read.y, [1, 0, 1])
    assert "votes" in {t.name for t in load_tables(tmp_path, wanted=("votes", "wine"))}
    with pytest.raises(SystemExit, match="No table named nowhere"):
        load_tables(tmp_path, wanted=("nowhere",))
    with pytest.raises(SystemExit, match="--tables"):
        load_tables(tmp_path / "empty")


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_only_positives_are_marked_and_as_often_as_stated(table, mechanism):
    trial = draw_trial(table, mechanism, 1400, np.random.default_rng(1))
    assert np.all(trial.y[trial.l == 1] == 1)
    assert len(trial.X) == 1400
    assert len(trial.X_test) == 500
    assert trial.X.shape[1] == trial.trees.shape[1] == 6 + (mechanism == "outside")
    np.testing.assert_allclose(trial.X.mean(axis=0), 0, atol=1e-9)
    fewer = draw_trial(table, mechanism, 700, np.random.default_rng(1))
    np.testing.assert_array_equal(fewer.y_test, trial.y_test)
    rate = trial.l[trial.y == 1].mean()
    stated = {"random": 0.4, "probability": 0.7, "few": 0.13}
    if mechanism in stated:  # 700 positives: a standard error of .018 at most
        assert abs(rate - stated[mechanism]) < 0.06
    assert 0.1 < rate < 0.8


def test_letters_have_the_share_and_the_ratios_of_the_protocol():
    letters = np.repeat(list("ABCDEF"), (700, 710, 720, 800, 730, 740))
    X = np.random.default_rng(0).normal(size=(letters.size, 2))
    table = Table("letter-classes", X, X, (letters != "D").astype(int), letters)
    trial = draw_letters(table, 0.3, np.random.default_rng(1))
    assert trial.y[trial.l == 0].mean() == pytest.approx(0.3, abs=0.002)
    assert trial.y[trial.l == 1].all()
    assert len(trial.y_test) == np.sum(trial.l == 0)
    keys = plan([table], ["naive", "lbe"], sizes=(1500, 10000))
    assert {key.mechanism for key in keys} == set(LETTERS)
    assert {key.method for key in keys} == {"naive"}  # the slow linear peers stay out


def test_peers_beat_naive_where_marks_fall_at_random(table):
    trial = draw_trial(table, "random", 1000, np.random.default_rng(3))
    accuracy = {
        name: class_scores(trial, fit(trial, np.random.default_rng(4)).score)["accuracy"]
        for name, fit in PEERS.items()
        if name not in ("tm", "ntc-tmi", "naive-boosting")  # no guarantee
    }
    naive = accuracy.pop("naive")
    assert min(accuracy.values()) > naive + 0.02, accuracy  # the best possible is about .91


@pytest.mark.parametrize(
    "method",
    [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in CONTESTANTS],
)
def test_every_method_sees_rows_and_marks_alone_and_repeats_its_answer(small, method):
    trial = draw_trial(small, "random", 1500, np.random.default_rng(5))
    blind = Trial(**{**vars(trial), "y": None, "y_test": np.zeros_like(trial.y_test)})
    one, other = (CONTESTANTS[method](t, np.random.default_rng(6)) for t in (trial, blind))
    np.testing.assert_array_equal(one.score, other.score)
    assert one.pi == other.pi
    assert 0.5 < class_scores(trial, one.score)["AUC"] <= 1


def test_a_stopped_run_goes_on(small, tmp_path):
    path = tmp_path / "trials.csv"
    keys = plan(
        [small], ["naive", "elkan-noto"], mechanisms=["random"], sizes=(1500, 10000), repetitions=2
    )
    assert len(keys) == 4  # too few rows for the second size
    assert len(list(run_missing([small], keys[:3], path))) == 3
    with path.open("a") as file:
        file.write("small,ran")  # torn by a power cut
    rest = list(run_missing([small], keys, path))
    assert [(r["repetition"], r["method"]) for r in rest] == [(1, "elkan-noto")]
    trials = finished(path)
    assert len(trials) == 4
    cells = page.summarise(trials)
    [(name, part)] = page.groups(cells)
    assert name == "other tables, straight, 1,500 rows"
    table = page.overall(part)
    assert table.loc["naive", "naive ahead in AUC"] == 0
    expected = trials.query("method == 'elkan-noto'")["accuracy"].mean()
    assert table.loc["elkan-noto", "accuracy"] == pytest.approx(expected, abs=1e-4)
    assert "other tables" in page.summary(cells)
    path.write_text("table,method\n")
    with pytest.raises(SystemExit, match="--out"):
        finished(path)
