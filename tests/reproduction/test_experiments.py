"""The paper's experiments: trials kept and resumed, scores, tables, significance."""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import accuracy_score, brier_score_loss, f1_score, roc_auc_score

from bayes_lepu.errors import FileFormatError, ModelError
from reproduction.command import main
from reproduction.experiments import (
    Experiment,
    SyntheticSettings,
    compare_pairs,
    printed,
    run_ablation,
    run_table1,
    run_table2,
    run_trials,
    store,
)
from reproduction.experiments.scores import MODELS, SCORES, class_scores
from reproduction.experiments.synthetic import synthetic_trial

PAPER = Path(__file__).resolve().parents[3] / "shared" / "paper" / "lepu_paper.tex"
TINY = SyntheticSettings(n=200, p=2, Cs=(0.1, 1.0))


@dataclass(frozen=True)
class Toy:
    scale: float = 1.0


def toy_trial(settings: Toy, rng: np.random.Generator) -> dict[str, Any]:
    CALLS.append(settings.scale)
    return {"value": settings.scale * rng.normal()}


CALLS: list[float] = []
TOY = Experiment("toy", toy_trial)


def run_toy(file: Path, *, trials: int = 5, settings: tuple[Toy, ...] = (Toy(),)) -> list[Any]:
    CALLS.clear()
    return run_trials(TOY, settings, trials=trials, seed=3, jobs=1, file=file, progressbar=False)


def test_a_second_run_computes_nothing_and_returns_the_same(tmp_path: Path) -> None:
    first = run_toy(tmp_path / "t.jsonl")
    assert len(CALLS) == 5
    second = run_toy(tmp_path / "t.jsonl")
    assert CALLS == []
    assert first == second


def test_more_trials_and_other_settings_are_added_to_what_is_there(tmp_path: Path) -> None:
    file = tmp_path / "t.jsonl"
    few = run_toy(file, trials=3)
    many = run_toy(file, trials=5)
    assert len(CALLS) == 2
    assert many[:3] == few
    both = run_toy(file, trials=5, settings=(Toy(2.0), Toy()))
    assert CALLS == [2.0] * 5
    assert [r["settings"]["scale"] for r in both] == [2.0] * 5 + [1.0] * 5
    assert both[5:] == many
    # The same seeds under both settings: a paired comparison.
    for twice, once in zip(both[:5], both[5:], strict=True):
        assert twice["seed"] == once["seed"]
        assert twice["outcome"]["value"] == 2 * once["outcome"]["value"]


def test_a_torn_last_line_is_dropped_and_its_trial_run_again(tmp_path: Path) -> None:
    file = tmp_path / "t.jsonl"
    whole = run_toy(file)
    content = file.read_bytes()
    lines = content.splitlines(keepends=True)
    for cut in (1, 20, len(lines[-1]) - 1):
        file.write_bytes(content[: len(content) - len(lines[-1]) + cut])
        again = run_toy(file)
        assert [r["outcome"] for r in again] == [r["outcome"] for r in whole]
        assert len(CALLS) == 1
        assert len(file.read_bytes().splitlines()) == 5


def test_a_damaged_line_inside_is_an_error_that_names_it(tmp_path: Path) -> None:
    file = tmp_path / "t.jsonl"
    run_toy(file)
    lines = file.read_bytes().splitlines(keepends=True)
    for damaged in (b"not json\n", b'{"experiment": "toy"}\n', b"[]\n"):
        file.write_bytes(b"".join([lines[0], damaged, *lines[2:]]))
        with pytest.raises(FileFormatError, match=r"Line 2 of .*t\.jsonl"):
            run_toy(file)


@pytest.mark.parametrize("options", [{"trials": 0}, {"trials": 2.5}, {"seed": -1}])
def test_impossible_numbers_are_refused(tmp_path: Path, options: dict[str, Any]) -> None:
    given = {"trials": 2, "seed": 0} | options
    with pytest.raises(ModelError, match="whole number"):
        run_trials(TOY, [Toy()], file=tmp_path / "t.jsonl", progressbar=False, **given)


def test_trials_of_other_code_are_left_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "t.jsonl"
    first = run_toy(file)
    monkeypatch.setattr(store, "code_digest", lambda: "of other code")
    again = run_trials(TOY, [Toy()], trials=5, seed=3, jobs=1, file=file)
    assert len(CALLS) == 10
    assert [r["outcome"] for r in again] == [r["outcome"] for r in first]
    assert {r["hash"] for r in again}.isdisjoint(r["hash"] for r in first)
    assert "toy: 5 trials made by other code left aside" in capsys.readouterr().err


def test_scores_agree_with_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=400)
    probability = np.round(np.clip(0.4 * y + rng.normal(0.3, 0.3, 400), 0, 1), 2)  # with ties
    found = class_scores(y, probability)
    assert set(found) == set(SCORES)
    guess = probability > 0.5
    assert found["f1"] == pytest.approx(f1_score(y, guess))
    assert found["AUC"] == pytest.approx(roc_auc_score(y, probability))
    assert found["accuracy"] == pytest.approx(accuracy_score(y, guess))
    assert found["Brier"] == pytest.approx(brier_score_loss(y, probability))


def test_a_trial_scores_five_models_on_rows_they_were_not_trained_on() -> None:
    outcome = synthetic_trial(TINY, np.random.default_rng(1))
    assert tuple(outcome["scores"]) == MODELS
    assert outcome["errors"] == {}
    again = synthetic_trial(TINY, np.random.default_rng(1))
    assert outcome == again
    assert json.loads(json.dumps(outcome)) == outcome


def test_table1_writes_every_form_of_the_table(tmp_path: Path) -> None:
    result = run_table1(trials=3, seed=5, out=tmp_path, settings=TINY, progressbar=False)
    assert all(file.stat().st_size > 0 for file in result.files)
    assert {f.suffix for f in result.files} >= {".csv", ".parquet", ".md", ".html", ".png"}
    scores = result.scores
    assert len(scores) == 3 * len(MODELS) * len(SCORES)
    one = scores[(scores["model"] == "Elkan") & (scores["score"] == "f1")]["value"]
    row = result.summary.set_index(["score", "model"]).loc[("f1", "Elkan")]
    assert row["mean"] == pytest.approx(one.mean())
    assert row["se"] == pytest.approx(one.std(ddof=1) / np.sqrt(3))
    assert row["printed"] == 0.8826
    text = (tmp_path / "table1.md").read_text()
    assert f"{row['mean']:.4f} ± {row['se']:.4f} (0.8826)" in text
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "table1-scores.parquet"), scores)


@pytest.mark.slow
def test_table2_and_the_ablation_use_the_trials_of_table1(tmp_path: Path) -> None:
    options: dict[str, Any] = {"trials": 3, "out": tmp_path, "progressbar": False}
    run_table1(settings=TINY, **options)
    file = tmp_path / "trials-synthetic.jsonl"
    assert len(file.read_bytes().splitlines()) == 3
    run_table2(settings=TINY, **options)
    assert len(file.read_bytes().splitlines()) == 3
    cells = ((0.0, 0.0), (0.05, 0.05))
    found = run_ablation(settings=TINY, cells=cells, **options)
    assert len(file.read_bytes().splitlines()) == 6
    assert list(zip(found.summary["gamma"], found.summary["lam"], strict=True)) == list(cells)
    assert (found.summary["SPM_oracle_accuracy"] >= 0.5).all()
    run_ablation(settings=TINY, cells=cells, **(options | {"trials": 1}))


@pytest.mark.slow
def test_the_command_runs_and_resumes(tmp_path: Path) -> None:
    options = ["table1", "--trials", "2", "--rows", "200", "--rho1", "2", "--out", str(tmp_path)]
    assert main(options) == 0
    table = (tmp_path / "table1.md").read_bytes()
    assert b"Different from the default: n = 200, rho1 = 2.0." in table
    assert main(options) == 0
    assert (tmp_path / "table1.md").read_bytes() == table
    assert len((tmp_path / "trials-synthetic.jsonl").read_bytes().splitlines()) == 2


@pytest.mark.slow
def test_ordering_under_the_stated_generator(tmp_path: Path) -> None:
    result = run_table1(trials=20, jobs=2, out=tmp_path, progressbar=False)
    accuracy = result.summary[result.summary["score"] == "accuracy"].set_index("model")["mean"]
    assert accuracy["SPM"] > 0.94
    assert accuracy["PsychM"] > 0.94
    assert accuracy["Naive"] < accuracy["Elkan"] < accuracy["SPM"] - 0.1


def _scores(**values: list[float]) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {"trial": k, "model": model, "score": "f1", "value": v}
            for model, column in values.items()
            for k, v in enumerate(column)
        ]
    )


def test_the_rule_as_written_ticks_what_is_better_in_55_per_cent_of_trials() -> None:
    n = 100
    worse_on_average = np.where(np.arange(n) < 56, 0.01, -0.5)
    scores = _scores(A=list(worse_on_average), B=[0.0] * n)
    pair = compare_pairs(scores, models=("A", "B")).iloc[0]
    assert pair["as_written"]
    assert not pair["as_meant"]
    assert pair["upper"] < 0  # while the interval says that A is worse on average
    assert pair["share_better"] == 0.56
    turned = compare_pairs(scores, models=("B", "A")).iloc[0]
    assert not turned["as_written"]
    assert turned["lower"] > 0


@pytest.mark.skipif(not PAPER.is_file(), reason=f"the paper is not at {PAPER}")
def test_printed_numbers_are_those_of_the_paper() -> None:
    text = PAPER.read_text()
    tables = re.findall(
        r"fsa'? & `?mta'? & `?sph'? & `?hth'? & `?mba'?\\\\(.*?)\\bottomrule", text, re.S
    )
    assert len(tables) == 4
    for table, score in zip(tables, ("accuracy", "f1", "AUC", "Brier"), strict=True):
        rows = [re.findall(r"0\.\d{5}", row) for row in table.split("\\midrule")]
        values = [list(map(float, row)) for row in rows if row]
        assert values == [list(printed.ANIMAL[score][m].values()) for m in MODELS]
    table = re.search(r"& SPM & PsychM & Na.*?\\bottomrule", text, re.S)
    assert table is not None
    rows = [re.findall(r"0\.\d{4}", row) for row in table.group(0).split("\\midrule")]
    values = [list(map(float, row)) for row in rows if row]
    assert values == [list(printed.TABLE1[score].values()) for score in SCORES]
