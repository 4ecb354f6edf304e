"""The go/no-go experiment from its prepared tables (``trials.csv``, ``images.csv``, features)."""

from pathlib import Path
from typing import Literal, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayes_lepu.datasets import PUDataset
from bayes_lepu.errors import DataError
from reproduction.datasets.gonogo import (
    SUBJECTS,
    TRIAL_COLUMNS,
    find_folder,
    usable_trials,
)

Features = Literal["pca10", "pca50", "full", "statistics"]

_FOLDER = "animal_gonogo"
_STATISTICS = (
    "lum_mean",
    "lum_sd",
    "lum_center_diff",
    "contrast_center_ratio",
    "saturation",
    "red_green",
    "blue_yellow",
    "edge_mean",
    "edge_center_ratio",
    "spectral_slope",
)
_SOURCE = (
    "Go/no-go animal categorisation (Delorme et al. 2004; OpenNeuro ds002680, CC0), day 1, real "
    "human answers"
)


def load_animal_trials(path: str | Path | None = None) -> pd.DataFrame:
    """Every trial of every subject, faulty ones included and flagged (see `usable_trials`).

    Parameters
    ----------
    path : path or None
        Folder with ``trials.csv``, or the folder that holds ``animal_gonogo/``; None takes the
        environment variable ``BAYES_LEPU_DATA``.

    Returns
    -------
    DataFrame
        Columns ``TRIAL_COLUMNS``; ``rt_ms`` is NaN without a response, ``flag`` "" without one.
    """
    trials = _read_csv(find_folder(path, _FOLDER, "trials.csv") / "trials.csv", TRIAL_COLUMNS)
    trials["flag"] = trials["flag"].fillna("")
    return trials[list(TRIAL_COLUMNS)]


def load_animal_gonogo(
    path: str | Path | None = None,
    *,
    subject: str | None = None,
    features: Features | None = "pca10",
    speeded: bool = False,
) -> PUDataset:
    """Photographs judged by one subject (or by all 14, stacked): real biased labels, known truth.

    Half of the photographs show an animal by design, a free check of any estimate of the class
    prior. Runs with a faulty button and repeated images are left out.

    Parameters
    ----------
    path : path or None
        Folder with ``trials.csv``, or the folder that holds ``animal_gonogo/``; None takes the
        environment variable ``BAYES_LEPU_DATA``.
    subject : str or None
        Code ("fsa") or BIDS identifier ("sub-005"); None stacks all subjects, with one row per
        subject and image (see ``rows``).
    features : {"pca10", "pca50", "full", "statistics"} or None
        Ten or fifty principal components of 1280 network features (fitted without labels), all
        1280, ten low-level image statistics, or no columns at all, for features of your own
        (``rows["image"]`` names the photograph of each row).
    speeded : bool
        Label only hits faster than the subject's own median hit: a stronger bias, towards
        photographs that are quickly recognised, at half the label rate.

    Returns
    -------
    PUDataset
        ``rows`` holds subject, code, image, y_sub and rt_ms.
    """
    folder = find_folder(path, _FOLDER, "trials.csv")
    trials = usable_trials(load_animal_trials(folder))
    if subject is not None:
        trials = _of_subject(trials, subject)
    l = (trials["y_real"] == 1) & (trials["y_sub"] == 1)
    if speeded:
        rt = trials["rt_ms"].where(l)
        l = l & (rt < rt.groupby(trials["subject"]).transform("median"))
    who = "all subjects" if subject is None else f"subject {subject}"
    return PUDataset(
        name="animal_gonogo" if subject is None else f"animal_gonogo_{subject}",
        description=(
            f"{_SOURCE}, {who}. y: the photograph shows an animal; l: it does and the subject "
            f"released the button within {'its own median time' if speeded else 'one second'}. "
            f"Features: {features}."
        ),
        X=_features(folder, trials["image"].to_numpy(), features, "categorised"),
        l=l.to_numpy().astype(np.int64),
        y=trials["y_real"].to_numpy(dtype=np.int64),
        rows=trials[["subject", "code", "image", "y_sub", "rt_ms"]],
    )


def load_animal_heldout(
    path: str | Path | None = None, *, features: Features | None = "pca10"
) -> PUDataset:
    """The 518 photographs no subject categorised, with known truth: a clean test set.

    84 show an animal, so the class prior differs from that of the judged photographs (one half).

    Parameters
    ----------
    path, features
        As in `load_animal_gonogo`; columns agree with those of the judged photographs.

    Returns
    -------
    PUDataset
        With ``l`` None; ``rows`` holds image and role.
    """
    folder = find_folder(path, _FOLDER, "images.csv")
    images = _read_csv(folder / "images.csv", ("image", "split", "role", "y_real"))
    images = images[images["split"] == "heldout"].reset_index(drop=True)
    return PUDataset(
        name="animal_heldout",
        description=f"{_SOURCE}: photographs never judged. Features: {features}.",
        X=_features(folder, images["image"].to_numpy(), features, "heldout"),
        l=None,
        y=images["y_real"].to_numpy(dtype=np.int64),
        rows=images[["image", "role"]],
    )


def _of_subject(trials: pd.DataFrame, subject: str) -> pd.DataFrame:
    chosen = trials[(trials["code"] == subject) | (trials["subject"] == subject)]
    if chosen.empty:
        known = ", ".join(f"{code} = {bids}" for code, bids in SUBJECTS.items())
        raise DataError(f"subject is {subject!r}; choose one of {known}, or None for all.")
    return chosen.reset_index(drop=True)


def _features(
    folder: Path, images: NDArray[np.int64], features: Features | None, split: str
) -> pd.DataFrame:
    """One row of features per entry of ``images``."""
    if features is None:
        return pd.DataFrame(index=pd.RangeIndex(len(images)))
    if features in ("pca10", "pca50"):
        table = _read_npz(folder / "pca50_all.npz", "Z", "pc", int(features.removeprefix("pca")))
    elif features == "full":
        table = _read_npz(folder / f"features_{split}.npz", "X", "f", None)
    elif features == "statistics":
        frame = _read_csv(folder / "images.csv", ("image", *_STATISTICS))
        table = frame.set_index("image")[list(_STATISTICS)].astype(float)
    else:
        raise DataError(f"features is {features!r}; choose None or one of {get_args(Features)}.")
    missing = sorted(set(images.tolist()) - set(table.index))
    if missing:
        raise DataError(
            f"{len(missing)} images have no {features} features (first: {missing[:3]}); trials "
            f"and features in {folder} do not belong together. Fetch both again."
        )
    return table.loc[images].reset_index(drop=True)


def _read_npz(file: Path, key: str, prefix: str, width: int | None) -> pd.DataFrame:
    _require(file)
    with np.load(file) as archive:
        values = archive[key][:, :width].astype(float)
        index = archive["image"]
    columns = [f"{prefix}{j + 1}" for j in range(values.shape[1])]
    return pd.DataFrame(values, index=index, columns=columns)


def _read_csv(file: Path, columns: tuple[str, ...]) -> pd.DataFrame:
    _require(file)
    table = pd.read_csv(file, dtype={"flag": str})  # an all-empty column would be read as numbers
    missing = [c for c in columns if c not in table.columns]
    if missing:
        raise DataError(
            f"{file} has columns {list(table.columns)}; missing are {missing}. "
            "Is it the prepared table of this experiment?"
        )
    return table


def _require(file: Path) -> None:
    if not file.is_file():
        raise DataError(
            f"Found no {file.name} in {file.parent}. Copy the file there, or choose features "
            "whose file is present."
        )
