"""What the two loaders of the go/no-go experiment share: columns, subjects, flags, places.

Animal categorisation, Delorme, Rousselet, Macé and Fabre-Thorpe (2004), public as OpenNeuro
ds002680 (doi 10.18112/openneuro.ds002680.v1.2.0). A subject releases a button within one second
where the photograph shows an animal; ``l = y_real AND y_sub`` (the paper's construction), so
false alarms are never labels and the propensity is the subject's hit rate.
"""

import os
from pathlib import Path
from types import MappingProxyType

import pandas as pd

from bayes_lepu.errors import DataError

TRIAL_COLUMNS = (
    "subject",
    "code",
    "gender",
    "run",
    "trial",
    "onset_s",
    "image",
    "y_real",
    "y_sub",
    "l",
    "rt_ms",
    "flag",
)

SUBJECTS = MappingProxyType(
    {
        "cba": "sub-002",
        "clm": "sub-003",
        "ega": "sub-004",
        "fsa": "sub-005",
        "gro": "sub-006",
        "hth": "sub-007",
        "lmi": "sub-008",
        "mba": "sub-009",
        "mma": "sub-010",
        "mta": "sub-011",
        "pla": "sub-012",
        "sce": "sub-013",
        "sph": "sub-014",
        "wpa": "sub-015",
    }
)
"""BIDS identifier of each of the 14 subjects by its three-letter code."""

PAPER_SUBJECTS = ("fsa", "hth", "mba", "mta", "sph")
"""Codes of the five subjects of the paper's tables."""

UNUSABLE_FLAGS = ("bad_button_run", "repeat_image")
"""Flags of trials that no analysis should use; ``anticipation`` trials may stay."""

DATA_VARIABLE = "BAYES_LEPU_DATA"
"""Environment variable naming the folder of data sets, used where no path is given."""


def usable_trials(trials: pd.DataFrame) -> pd.DataFrame:
    """Trials without a disqualifying flag: one per subject and image."""
    return trials[~trials["flag"].isin(UNUSABLE_FLAGS)].reset_index(drop=True)


def find_folder(path: str | Path | None, name: str, marker: str) -> Path:
    """Folder that holds ``marker``: the path given, or ``name`` inside it.

    Parameters
    ----------
    path : path or None
        None looks in the folder named by the environment variable ``BAYES_LEPU_DATA``.
    name : str
        Usual name of the folder inside a folder of data sets.
    marker : str
        Glob pattern of a file or folder that shows it is the right one.
    """
    if path is None:
        path = os.environ.get(DATA_VARIABLE)
        if path is None:
            raise DataError(
                f"No path was given and the environment variable {DATA_VARIABLE} is not set. "
                f"Pass the folder that holds {name}/, or set the variable to it."
            )
    tried = [Path(path).expanduser(), Path(path).expanduser() / name]
    for folder in tried:
        if any(folder.glob(marker)):
            return folder
    raise DataError(
        f"Found no {marker} in {tried[0]} or {tried[1]}. Pass the folder that holds it, "
        f"or set the environment variable {DATA_VARIABLE} to the folder above."
    )
