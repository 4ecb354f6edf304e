"""The human annotators: protocols, starts, tables, posteriors; on a made-up folder of data."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bayes_lepu.links import sigmoid
from reproduction.datasets.gonogo import TRIAL_COLUMNS
from reproduction.experiments import (
    AnimalSettings,
    compare_rivals,
    run_animal,
)
from reproduction.experiments.animal import RIVALS
from reproduction.experiments.resample import draw_rows

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


def test_the_safe_protocol_never_tests_on_a_photograph_it_trained_on() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        train, test = draw_rows(101, "safe", rng)
        assert len(train) == 50
        assert len(test) == 51
        assert not set(train) & set(test)


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
