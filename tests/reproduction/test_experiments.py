"""The paper's experiments: trials kept and resumed, scores, tables, significance."""

import ast
import json
import re
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import accuracy_score, brier_score_loss, f1_score, roc_auc_score

import reproduction
from bayes_lepu.cli import main
from bayes_lepu.errors import FileFormatError, ModelError
from bayes_lepu.models.parameters import Parameters
from bayes_lepu.runtime.sources import source_digest
from reproduction.datasets import simulate_paper
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
    trial_seed,
)
from reproduction.experiments.document import Document
from reproduction.experiments.scores import MODELS, SCORES, class_scores
from reproduction.experiments.store import TrialStore, settings_hash
from reproduction.experiments.synthetic import named_right, synthetic_trial
from reproduction.experiments.tables import score_table, summarise

PAPER = Path(__file__).resolve().parents[3] / "shared" / "paper" / "lepu_paper.tex"
TINY = SyntheticSettings(n=200, p=2, Cs=(0.1, 1.0))


@dataclass(frozen=True)
class Toy:
    scale: float = 1.0


def toy_trial(settings: Toy, rng: np.random.Generator) -> dict[str, Any]:
    CALLS.append(settings.scale)
    return {"value": settings.scale * rng.normal()}


def failing_trial(settings: Toy, rng: np.random.Generator) -> dict[str, Any]:
    if rng.random() < 0.5:
        raise RuntimeError("a fault of the trial")
    return {"value": 1.0}


CALLS: list[float] = []
TOY = Experiment("toy", toy_trial)


def run_toy(file: Path, *, trials: int = 5, settings: tuple[Toy, ...] = (Toy(),)) -> list[Any]:
    CALLS.clear()
    return run_trials(TOY, settings, trials=trials, seed=3, jobs=1, file=file, progressbar=False)


# --- trials ---------------------------------------------------------------------------------------


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


def test_seeds_depend_on_the_run_and_the_trial() -> None:
    seeds = {trial_seed(run, k) for run in range(3) for k in range(200)}
    assert len(seeds) == 600
    assert max(seeds) < 2**53


def test_a_torn_last_line_is_dropped_and_its_trial_run_again(tmp_path: Path) -> None:
    file = tmp_path / "t.jsonl"
    whole = run_toy(file)
    content = file.read_bytes()
    lines = content.splitlines(keepends=True)
    for cut in (1, 20, len(lines[-1]) - 1):
        file.write_bytes(content[: len(content) - len(lines[-1]) + cut])
        assert run_toy(file) == _with_new_times(whole, file)
        assert len(CALLS) == 1
        assert len(file.read_bytes().splitlines()) == 5


def _with_new_times(records: list[Any], file: Path) -> list[Any]:
    """The records with the CPU seconds of the file, the one thing that may change."""
    times = {r["seed"]: r["cpu_seconds"] for r in TrialStore(file).read().values()}
    return [r | {"cpu_seconds": times[r["seed"]]} for r in records]


def test_a_damaged_line_inside_is_an_error_that_names_it(tmp_path: Path) -> None:
    file = tmp_path / "t.jsonl"
    run_toy(file)
    lines = file.read_bytes().splitlines(keepends=True)
    for damaged in (b"not json\n", b'{"experiment": "toy"}\n', b"[]\n"):
        file.write_bytes(b"".join([lines[0], damaged, *lines[2:]]))
        with pytest.raises(FileFormatError, match=r"Line 2 of .*t\.jsonl"):
            run_toy(file)


def test_finished_trials_survive_the_fault_of_a_later_one(tmp_path: Path) -> None:
    file = tmp_path / "t.jsonl"
    experiment = Experiment("toy", failing_trial)
    first_failure = next(
        k for k in range(100) if np.random.default_rng(trial_seed(0, k)).random() < 0.5
    )
    assert first_failure > 0
    with pytest.raises(RuntimeError, match="a fault of the trial"):
        run_trials(experiment, [Toy()], trials=50, jobs=1, file=file, progressbar=False)
    assert len(TrialStore(file).read()) == first_failure


@pytest.mark.parametrize("generator", [True, False])
def test_other_backends_of_joblib_give_the_same_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, generator: bool
) -> None:
    expected = run_toy(tmp_path / "one.jsonl")
    with joblib.parallel_config(backend="threading", n_jobs=2):
        if not generator:  # such as multiprocessing, and Ray's
            backend = joblib.parallel.get_active_backend()[0]
            monkeypatch.setattr(type(backend), "supports_return_generator", False)
        found = run_trials(
            TOY, [Toy()], trials=5, seed=3, file=tmp_path / "two.jsonl", progressbar=False
        )
    assert _with_new_times(expected, tmp_path / "two.jsonl") == found


@pytest.mark.parametrize("options", [{"trials": 0}, {"trials": 2.5}, {"seed": -1}])
def test_impossible_numbers_are_refused(tmp_path: Path, options: dict[str, Any]) -> None:
    given = {"trials": 2, "seed": 0} | options
    with pytest.raises(ModelError, match="whole number"):
        run_trials(TOY, [Toy()], file=tmp_path / "t.jsonl", progressbar=False, **given)


def test_the_hash_changes_with_every_setting_and_the_experiment() -> None:
    names = {settings_hash("toy", Toy()), settings_hash("toy", Toy(2.0)), settings_hash("t", Toy())}
    assert len(names) == 3


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


@pytest.mark.parametrize("trial", [name for name in store.OWN if "/" in name])
def test_what_a_trial_imports_is_among_its_sources(trial: str) -> None:
    """Neither the library's doors and pictures, nor a file here that the digest leaves out."""
    later = {f"experiments/{n}.py" for n in ("animal", "document", "runner", "store", "tables")}
    folder = Path(reproduction.__file__).parent
    for node in ast.walk(ast.parse((folder / trial).read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom):
            package, *rest = str(node.module).split(".")
            if package == "bayes_lepu":
                assert rest[0] not in store.AROUND
            if package == "reproduction":
                assert {rest[0], "/".join(rest) + ".py"} & {*store.OWN, *later}


def test_the_digest_covers_library_and_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = {}

    def remember(*parts: str, package: str = "bayes_lepu") -> str:
        seen[package] = set(parts)
        return source_digest(*parts, package=package)

    monkeypatch.setattr(store, "source_digest", remember)
    assert store.code_digest.__wrapped__() == store.code_digest()
    assert {"_fit.py", "data", "estimators", "inference", "models"} <= seen["bayes_lepu"]
    assert not seen["bayes_lepu"] & store.AROUND
    assert seen["reproduction"] == set(store.OWN)


# --- scores ---------------------------------------------------------------------------------------


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


def test_the_decision_ranks_where_probabilities_were_clipped() -> None:
    y = np.array([0, 1, 1])
    clipped = np.array([1.0, 1.0, 1.0])
    assert class_scores(y, clipped)["AUC"] == 0.5
    assert class_scores(y, clipped, np.array([1.0, 2.0, 3.0]))["AUC"] == 1.0
    assert np.isnan(class_scores(np.ones(3, dtype=int), clipped)["AUC"])
    assert class_scores(np.zeros(3, dtype=int), np.zeros(3))["f1"] == 0.0


# --- the simulated experiment ---------------------------------------------------------------------


def test_a_trial_scores_five_models_on_rows_they_were_not_trained_on() -> None:
    outcome = synthetic_trial(TINY, np.random.default_rng(1))
    assert tuple(outcome["scores"]) == MODELS
    assert outcome["errors"] == {}
    again = synthetic_trial(TINY, np.random.default_rng(1))
    assert outcome == again
    assert json.loads(json.dumps(outcome)) == outcome


def test_a_model_that_cannot_be_fitted_is_reported_and_the_others_go_on() -> None:
    rare = replace(TINY, gamma=0.0, lam=0.99, n=80)
    outcome = synthetic_trial(rare, np.random.default_rng(0))
    assert "Real" in outcome["scores"]
    assert set(outcome["errors"]) == {"SPM", "PsychM", "Naive", "Elkan"}


def test_naming_compares_the_fitted_factors_with_the_true_ones() -> None:
    data = simulate_paper(300, random_seed=0)
    point = Parameters.of(
        a=data.truth["a"], b=0.0, alpha=data.truth["alpha"], beta=0.0, gamma=0.05, lam=0.05
    )

    class Fitted:
        def __init__(self, parameters: Parameters) -> None:
            self.parameters_ = parameters

    assert named_right(Fitted(point), data)
    assert not named_right(Fitted(point.swap()), data)
    constant = Parameters.of(a=data.truth["a"], b=0.0)
    assert named_right(Fitted(constant), data)


def test_table1_writes_every_form_of_the_table(tmp_path: Path) -> None:
    result = run_table1(trials=3, seed=5, out=tmp_path, settings=TINY, progressbar=False)
    assert all(file.stat().st_size > 0 for file in result.files)
    assert {f.name for f in result.files} >= {
        "table1.csv",
        "table1-scores.csv",
        "table1-scores.parquet",
        "table1.md",
        "table1.html",
        "table1.png",
    }
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
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "table1-scores.csv"), scores)


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
def test_the_command_runs_resumes_and_prints_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["reproduce", "table1", "--trials", "2", "--rows", "200", "--rho1", "2"]
    command += ["--out", str(tmp_path), "--json"]
    assert main(command) == 0
    first = json.loads(capsys.readouterr().out)
    table = (tmp_path / "table1.md").read_bytes()
    assert b"Different from the default: n = 200, rho1 = 2.0." in table
    assert main(command) == 0
    assert json.loads(capsys.readouterr().out) == first
    assert (tmp_path / "table1.md").read_bytes() == table
    assert len((tmp_path / "trials-synthetic.jsonl").read_bytes().splitlines()) == 2


def test_the_command_refuses_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "table1", "--trials", "0"]) == 2
    assert "trials = 0" in capsys.readouterr().err


@pytest.mark.slow
def test_ordering_under_the_stated_generator(tmp_path: Path) -> None:
    result = run_table1(trials=20, jobs=2, out=tmp_path, progressbar=False)
    accuracy = result.summary[result.summary["score"] == "accuracy"].set_index("model")["mean"]
    assert accuracy["SPM"] > 0.94
    assert accuracy["PsychM"] > 0.94
    assert accuracy["Naive"] < accuracy["Elkan"] < accuracy["SPM"] - 0.1
    pairs = compare_pairs(result.scores, score="accuracy").set_index(["better", "worse"])
    assert pairs.loc[("SPM", "PsychM"), "lower"] < 0  # SPM is not better
    assert pairs.loc[("PsychM", "Real"), "lower"] < 0
    assert pairs.loc[("Naive", "Elkan"), "upper"] < 0


# --- tables ---------------------------------------------------------------------------------------


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


@pytest.mark.slow
def test_the_interval_narrows_with_trials_and_the_quantile_does_not() -> None:
    rng = np.random.default_rng(0)
    width, quantile = [], []
    for n in (50, 5000):
        pair = compare_pairs(
            _scores(A=list(rng.normal(0.2, 1.0, n)), B=[0.0] * n), models=("A", "B")
        ).iloc[0]
        width.append(pair["upper"] - pair["lower"])
        quantile.append(pair["quantile_05"])
    assert width[1] == pytest.approx(2 * 1.645 / np.sqrt(5000), rel=0.1)
    assert width[1] < width[0] / 5
    assert max(quantile) < -1.0


def test_smaller_is_better_for_brier() -> None:
    scores = _scores(A=[0.1, 0.1, 0.2], B=[0.3, 0.2, 0.3]).assign(score="Brier")
    assert compare_pairs(scores, score="Brier", models=("A", "B")).iloc[0]["mean"] > 0


def test_best_is_bold_second_in_italics_real_aside() -> None:
    rows = [
        ("f1", "SPM", 0.8),
        ("f1", "Naive", 0.9),
        ("f1", "Elkan", 0.7),
        ("f1", "Real", 0.95),
        ("Brier", "SPM", 0.1),
        ("Brier", "Naive", 0.3),
        ("Brier", "Elkan", 0.2),
        ("Brier", "Real", 0.05),
    ]
    summary = pd.DataFrame(rows, columns=["score", "model", "mean"]).assign(se=0.01, printed=0.5)
    models = ("SPM", "Naive", "Elkan", "Real")
    table = score_table(summary, rows="score", columns="model", order=(("f1", "Brier"), models))
    assert table.loc["f1", "Naive"] == "**0.9000 ± 0.0100 (0.5000)**"
    assert table.loc["f1", "SPM"] == "*0.8000 ± 0.0100 (0.5000)*"
    assert table.loc["Brier", "SPM"].startswith("**0.1")
    assert table.loc["Brier", "Elkan"].startswith("*0.2")
    assert "*" not in "".join(table["Real"])


def test_one_trial_has_no_standard_error() -> None:
    summary = summarise(_scores(A=[0.5]), ("score", "model"))
    assert np.isnan(summary["se"]).all()
    table = score_table(summary, rows="score", columns="model", order=(("f1",), ("A",)))
    assert table.loc["f1", "A"] == "**0.5000**"


def test_a_document_escapes_html_and_keeps_emphasis() -> None:
    table = pd.DataFrame({"a<b": ["**1**"]}, index=pd.Index(["*x*"], name="row"))
    page = Document("T & U", ("a < b", table)).html()
    assert "<h1>T &amp; U</h1>" in page
    assert "<p>a &lt; b</p>" in page
    assert "<td><i>x</i></td><td><b>1</b></td>" in page
    markdown = Document("T", (table,)).markdown()
    assert "| row | a<b |\n| :-- | --: |\n| *x* | **1** |" in markdown


# --- what the paper prints ------------------------------------------------------------------------


def test_printed_ticks_name_every_pair_once() -> None:
    assert set(printed.TABLE2) == set(combinations(MODELS, 2))


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
