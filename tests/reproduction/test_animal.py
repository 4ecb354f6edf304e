"""The human annotators: protocols, starts, tables, posteriors; on a made-up folder of data."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bayes_lepu.cli import main
from bayes_lepu.errors import DataError, ModelError
from bayes_lepu.inference.paths import PenaltyGrid
from bayes_lepu.links import sigmoid
from bayes_lepu.models.parameters import Parameters
from reproduction.datasets import load_animal_gonogo
from reproduction.datasets.gonogo import TRIAL_COLUMNS
from reproduction.experiments import (
    AnimalSettings,
    BayesSettings,
    compare_rivals,
    run_animal,
    run_animal_bayes,
)
from reproduction.experiments.animal import RIVALS
from reproduction.experiments.resample import Relabelled, Source, _folds, animal_trial, draw_rows
from reproduction.experiments.scores import MODELS
from reproduction.experiments.started import StartedPsychM

JUDGED, REST = 120, 30
SMALL = AnimalSettings("fsa", "safe", Cs=(1.0, 3.0), C_alphas=(1.0, 10.0), C_single=(1.0, 3.0))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables of one made-up annotator, in the layout of the prepared ones."""
    path = tmp_path_factory.mktemp("animal_gonogo")
    rng = np.random.default_rng(0)
    n = JUDGED + REST
    Z = rng.normal(size=(n, 50)).astype(np.float32)
    y = (rng.random(n) < sigmoid(2.5 * Z[:, 0].astype(float) + Z[:, 1])).astype(int)
    seen = (y == 1) & (rng.random(n) < sigmoid(1.5 * Z[:, 2].astype(float) + 1.5))
    image = np.arange(1, n + 1)
    np.savez(path / "pca50_all.npz", image=image, Z=Z)
    split = np.where(np.arange(n) < JUDGED, "categorised", "heldout")
    pd.DataFrame({"image": image, "split": split, "role": "x", "y_real": y}).to_csv(
        path / "images.csv", index=False
    )
    trials = pd.DataFrame(
        {
            "subject": "sub-005",
            "code": "fsa",
            "gender": "f",
            "run": 1,
            "trial": image,
            "onset_s": 2.0 * image,
            "image": image,
            "y_real": y,
            "y_sub": seen.astype(int),
            "l": seen.astype(int),
            "rt_ms": np.where(seen, 300 + rng.integers(200, size=n), np.nan),
            "flag": "",
        }
    )[list(TRIAL_COLUMNS)]
    trials[:JUDGED].to_csv(path / "trials.csv", index=False)
    return path


def run(folder: Path, out: Path, **changes: Any) -> Any:
    options: dict[str, Any] = {
        "path": folder,
        "subjects": ("fsa",),
        "features": "pca10",
        "trials": 2,
        "out": out,
        "settings": SMALL,
        "progressbar": False,
    }
    return run_animal(**(options | changes))


# --- protocols ------------------------------------------------------------------------------------


def test_the_safe_protocol_never_tests_on_a_photograph_it_trained_on() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        train, test = draw_rows(101, "safe", rng)
        assert len(train) == 50
        assert len(test) == 51
        assert not set(train) & set(test)


def test_the_paper_s_protocol_does_so_with_probability_two_fifths() -> None:
    rng = np.random.default_rng(0)
    n, shares = 500, []
    for _ in range(200):
        train, test = draw_rows(n, "paper", rng)
        assert len(train) == len(test) == n // 2
        shares.append(np.isin(test, train).mean())
    expected = 1 - (1 - 1 / n) ** (n // 2)
    error = np.std(shares, ddof=1) / np.sqrt(len(shares))
    assert abs(np.mean(shares) - expected) < 4 * error
    assert expected == pytest.approx(0.394, abs=0.001)


def test_safe_folds_keep_the_copies_of_a_photograph_together() -> None:
    rng = np.random.default_rng(0)
    rows = rng.integers(60, size=90)
    target = (rows % 2).astype(np.int64)
    for train, test in _folds(target, rows, SMALL):
        assert not set(rows[train]) & set(rows[test])
    plain = AnimalSettings("fsa", "paper")
    assert any(set(rows[a]) & set(rows[b]) for a, b in _folds(target, rows, plain))


# --- SPM and PsychM as the paper has them ---------------------------------------------------------


def test_relabelling_takes_the_steeper_factor_over_the_data() -> None:
    X = np.random.default_rng(0).normal(size=(50, 2)) * [1.0, 0.01]
    point = Parameters.of(a=[0.0, 10.0], b=1.0, alpha=[1.0, 0.0], beta=-1.0)
    taken = Relabelled.of(point, X)  # α varies more over X although |a| is larger
    np.testing.assert_allclose(taken.decision_function(X), X[:, 0] - 1.0)
    kept = Relabelled.of(point.swap(), X)
    np.testing.assert_allclose(kept.decision_function(X), taken.decision_function(X))
    np.testing.assert_allclose(taken.predict_proba(X).sum(axis=1), 1.0)


def test_the_start_selects_the_mode_in_which_t_classifies(folder: Path) -> None:
    data = load_animal_gonogo(folder, subject="fsa", features="pca10")
    X, l = data.X.to_numpy(), data.l
    halves = [
        (np.arange(0, 120, 2), np.arange(1, 120, 2)),
        (np.arange(1, 120, 2), np.arange(0, 120, 2)),
    ]
    grid = PenaltyGrid(np.array([3.0]), np.array([1.0, 30.0]), penalty_alpha="l1")
    found = StartedPsychM.fit(X, l, folds=halves, grid=grid)
    again = StartedPsychM.fit(X, l, folds=halves, grid=grid)
    np.testing.assert_array_equal(found.parameters.a, again.parameters.a)
    assert found.C_alpha == 3.0
    assert found.C_a == 1.0  # the other one flattens everything
    assert np.corrcoef(found.decision_function(X), X[:, 0])[0, 1] > 0.7
    np.testing.assert_allclose(found.predict_proba(X)[:, 1], sigmoid(found.decision_function(X)))


# --- the run --------------------------------------------------------------------------------------


def test_a_resample_scores_all_models_on_both_tests(folder: Path) -> None:
    source = Source.at(folder)
    settings = AnimalSettings("fsa", "paper", features="pca10", Cs=(1.0,), C_alphas=(1.0, 10.0))
    outcome = animal_trial(settings, np.random.default_rng(0), source=source)
    assert tuple(outcome["scores"]) == MODELS
    assert set(outcome["held_out"]) == set(outcome["scores"]) | set(outcome["variants"])
    assert outcome == animal_trial(settings, np.random.default_rng(0), source=source)
    assert json.loads(json.dumps(outcome)) == outcome


def test_tables_for_both_protocols_with_the_printed_numbers(folder: Path, tmp_path: Path) -> None:
    result = run(folder, tmp_path)
    text = (tmp_path / "animal-pca10.md").read_text()
    for heading in ("accuracy, paper protocol", "Brier, safe protocol", "nobody judged"):
        assert heading in text
    assert "(0.9039)" in text  # SPM, fsa, accuracy as printed
    assert {f.name for f in result.files} >= {"animal-pca10.png", "animal-pca10-scores.parquet"}
    scores = result.scores
    assert set(scores["test"]) == {"half", "held out"}
    contrasts = compare_rivals(scores)
    assert len(contrasts) == 2 * len(RIVALS)
    row = contrasts.iloc[0]
    wide = scores[
        (scores["test"] == "half")
        & (scores["score"] == "accuracy")
        & (scores["protocol"] == "paper")
    ].pivot_table(index="trial", columns="model", values="value")
    assert row["mean"] == pytest.approx((wide["SPM"] - wide["Naive"]).mean())


@pytest.mark.slow
def test_features_of_one_s_own_give_what_the_same_features_by_name_give(
    folder: Path, tmp_path: Path
) -> None:
    with np.load(folder / "pca50_all.npz") as archive:
        own = pd.DataFrame(archive["Z"][:, :10].astype(float), index=archive["image"])
    named = run(folder, tmp_path / "named", protocols=("safe",))
    brought = run(folder, tmp_path / "own", protocols=("safe",), features=own[::-1])
    pd.testing.assert_frame_equal(named.scores, brought.scores)
    assert (tmp_path / "own" / "animal-own.md").is_file()
    judged_only = run(folder, tmp_path / "less", protocols=("safe",), features=own[:JUDGED])
    assert set(judged_only.scores["test"]) == {"half"}
    with pytest.raises(DataError, match="no row for 1 judged images"):
        run(folder, tmp_path / "none", features=own[1:])
    with pytest.raises(DataError, match="repeated image numbers"):
        run(folder, tmp_path / "none", features=pd.concat([own, own]))


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"subjects": ("nobody",)}, "subjects ="),
        ({"subjects": ()}, "subjects ="),
        ({"protocols": ("unsafe",)}, "protocols ="),
        ({"features": "vgg"}, "features = 'vgg'"),
    ],
)
def test_what_does_not_exist_is_refused(
    folder: Path, tmp_path: Path, changes: dict[str, Any], match: str
) -> None:
    with pytest.raises(ModelError, match=match):
        run(folder, tmp_path, **changes)


@pytest.mark.slow
def test_other_data_are_other_trials(folder: Path, tmp_path: Path) -> None:
    run(folder, tmp_path, protocols=("safe",), trials=1)
    file = tmp_path / "trials-animal.jsonl"
    run(folder, tmp_path, protocols=("safe",), trials=1)
    assert len(file.read_bytes().splitlines()) == 1
    other = tmp_path / "other"
    shutil.copytree(folder, other)
    trials = pd.read_csv(other / "trials.csv")
    hit = trials.index[trials["l"] == 1][0]
    trials.loc[hit, ["y_sub", "l"]] = 0
    trials.to_csv(other / "trials.csv", index=False)
    run(other, tmp_path, protocols=("safe",), trials=1)
    assert len(file.read_bytes().splitlines()) == 2


def test_missing_data_are_an_error_before_any_trial(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"Found no trials\.csv"):
        run(tmp_path, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_posteriors_with_loo_verdict_and_the_known_class_prior(
    folder: Path, tmp_path: Path
) -> None:
    settings = BayesSettings("fsa", draws=150, tune=200, chains=2)
    result = run_animal_bayes(
        path=folder, subjects=("fsa",), settings=settings, out=tmp_path, progressbar=False
    )
    table = result.summary.set_index("model")
    assert list(table.index) == ["naive", "scar", "spm", "psychm"]
    data = load_animal_gonogo(folder, subject="fsa")
    assert table["pi_true"].unique() == [data.y.mean()]
    assert table["c_true"].unique() == [data.l.sum() / data.y.sum()]
    assert table["elpd_diff"].max() == 0
    assert table["weight"].sum() == pytest.approx(1.0, abs=1e-6)
    assert table.loc["naive", "c"] == 1.0
    for name in ("pi", "c"):
        assert (table[f"{name}_lower"] <= table[name]).all()
        inside = (table[f"{name}_lower"] <= table[f"{name}_true"]) & (
            table[f"{name}_true"] <= table[f"{name}_upper"]
        )
        assert (inside == table[f"{name}_covered"]).all()
    assert table["level"].isin([1, 2, 3, 4]).all()
    text = (tmp_path / "animal-bayes.md").read_text()
    assert table.loc["spm", "verdict"] in text


def test_the_command_runs_the_annotators(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["reproduce", "animal", "--data", str(folder), "--subjects", "fsa"]
    command += ["--protocol", "safe", "--features", "pca10", "--speeded", "--trials", "1"]
    assert main([*command, "--out", str(tmp_path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["animal"]
    assert {row["protocol"] for row in found["summary"]} == {"safe"}
    assert (tmp_path / "animal-pca10-speeded.md").is_file()
    assert main(["reproduce", "animal", "--subjects", "fsa", "--data", str(tmp_path)]) == 2
    assert "Found no trials.csv" in capsys.readouterr().err
