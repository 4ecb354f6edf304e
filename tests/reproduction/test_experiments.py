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

from reproduction.experiments import (
    Experiment,
    SyntheticSettings,
    compare_pairs,
    printed,
    run_table1,
    run_trials,
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
