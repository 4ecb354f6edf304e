"""The go/no-go experiment from its public export, OpenNeuro ds002680 (BIDS, EEG).

Layout: ``sub-XXX/ses-YY/eeg/sub-XXX_ses-YY_task-gonogo_run-R_events.tsv`` with one line per event
and, among others, the columns

=============  ==================================================================
onset          seconds from the start of the recording
trial_type     "stimulus" or "response"
value          "animal_target", "animal_distractor" (categorisation task); other
               stimuli belong to the recognition task and are left out
stim_file      "<image>.jpg"
response_time  of a stimulus: milliseconds (BIDS asks for seconds), or "n/a"
=============  ==================================================================

Known faults of the export (version 1.2.0), all handled here: its second session holds copies of
the first session's event files; one run has a faulty button (every trial "answered"); one
subject was shown the same images in two runs.
"""

import re
from pathlib import Path

import numpy as np
import pandas as pd

from bayes_lepu.errors import DataError
from reproduction.datasets.gonogo import SUBJECTS, TRIAL_COLUMNS, find_folder

_EVENT_COLUMNS = ("onset", "trial_type", "value", "stim_file", "response_time")
_TRUTH = {"animal_target": 1, "animal_distractor": 0}
_NAME = re.compile(r"(?P<subject>sub-[^_]+)_(?P<session>ses-[^_]+)_.*run-(?P<run>\d+)_events\.tsv")
_EVENTS = "sub-*/ses-*/eeg/*_events.tsv"

_SLOWEST_S = 10  # nobody's median is below 10 ms, and answers after 1 s do not count

MAX_FALSE_ALARMS = 0.5
"""A run whose subject answered more than this share of the distractors has a faulty button."""

ANTICIPATION_MS = 150
"""Responses faster than this cannot follow from the photograph."""


def load_openneuro_gonogo(path: str | Path | None = None) -> pd.DataFrame:
    """Trials of the animal categorisation task, read from the event files of ds002680.

    Parameters
    ----------
    path : path or None
        Root of the data set (the folder with ``sub-002/``), or the folder that holds
        ``ds002680/``; None takes the environment variable ``BAYES_LEPU_DATA``.

    Returns
    -------
    DataFrame
        Columns ``TRIAL_COLUMNS``, sorted by subject, run and trial. ``y_sub`` is 1 where a
        response is recorded. ``flag`` is "bad_button_run" (more than half of the distractors
        answered), "repeat_image" (the subject judges the image again later; the last judgement
        counts), "anticipation" (faster than 150 ms) or "". Event files that repeat another one
        of the same subject are left out and listed in ``.attrs["duplicated_files"]``. A second
        session that is not a copy is numbered on: its run 1 follows the last run of the first.
    """
    root = find_folder(path, "ds002680", _EVENTS)
    gender = _genders(root / "participants.tsv")
    code = {bids: short for short, bids in SUBJECTS.items()}
    runs: list[pd.DataFrame] = []
    duplicated: list[str] = []
    for subject, files in _event_files(root).items():
        seen: set[bytes] = set()
        for run, file in files:
            trials = _read_events(file)
            if trials.empty:  # a run of the recognition task
                continue
            # Values, not bytes: a copy may differ in the number of printed digits.
            content = trials[["onset_s", "image", "rt_ms"]].to_numpy().tobytes()
            if content in seen:
                duplicated.append(str(file.relative_to(root)))
                continue
            seen.add(content)
            names = {"subject": subject, "code": code.get(subject, "")}
            runs.append(trials.assign(**names, gender=gender.get(subject, ""), run=run))
    if not runs:
        raise DataError(
            f"The event files in {root} hold no stimulus of the categorisation task "
            f"({' or '.join(_TRUTH)} in column value). Is it ds002680?"
        )
    table = pd.concat(runs, ignore_index=True)
    table["flag"] = _flags(table)
    table = table[list(TRIAL_COLUMNS)].sort_values(["subject", "run", "trial"], ignore_index=True)
    table.attrs["duplicated_files"] = duplicated
    return table


def _event_files(root: Path) -> dict[str, list[tuple[int, Path]]]:
    """Event files of each subject by run, sessions in order and numbered on."""
    found: dict[str, dict[str, list[tuple[int, Path]]]] = {}
    for file in sorted(root.glob(_EVENTS)):
        match = _NAME.fullmatch(file.name)
        if match is None:
            raise DataError(
                f"Cannot read subject, session and run from {file.name}; expected a name like "
                "sub-002_ses-01_task-gonogo_run-1_events.tsv."
            )
        sessions = found.setdefault(match["subject"], {})
        sessions.setdefault(match["session"], []).append((int(match["run"]), file))
    files: dict[str, list[tuple[int, Path]]] = {}
    for subject, sessions in found.items():
        files[subject] = []
        offset = 0
        for session in sorted(sessions):
            runs = sorted(sessions[session])
            files[subject] += [(offset + run, file) for run, file in runs]
            offset += runs[-1][0]
    return files


def _read_events(file: Path) -> pd.DataFrame:
    """Categorisation trials of one run, in order of presentation."""
    events = pd.read_csv(file, sep="\t", na_values=["n/a"])
    missing = [c for c in _EVENT_COLUMNS if c not in events.columns]
    if missing:
        raise DataError(
            f"{file} has columns {list(events.columns)}; missing are {missing}. "
            "Expected the event files of OpenNeuro ds002680, version 1.2.0."
        )
    stimulus = events[(events["trial_type"] == "stimulus") & events["value"].isin(_TRUTH)]
    stimulus = stimulus.sort_values("onset", ignore_index=True)
    image = stimulus["stim_file"].astype(str).str.extract(r"(\d+)\.jpg$")[0]
    if image.isna().any():
        wrong = stimulus.loc[image.isna(), "stim_file"].iloc[0]
        raise DataError(f"{file} names a stimulus {wrong!r}; expected <image number>.jpg.")
    y_real = stimulus["value"].map(_TRUTH).astype(np.int64)
    rt = _response_times(stimulus["response_time"], file)
    y_sub = rt.notna().astype(np.int64)
    return pd.DataFrame(
        {
            "trial": np.arange(1, len(stimulus) + 1),
            "onset_s": stimulus["onset"].astype(float).round(3),
            "image": image.astype(np.int64),
            "y_real": y_real,
            "y_sub": y_sub,
            "l": y_real * y_sub,
            "rt_ms": rt,
        }
    )


def _response_times(column: pd.Series, file: Path) -> pd.Series:
    """Response times in milliseconds, NaN without a response."""
    rt = pd.to_numeric(column, errors="coerce").astype(float)
    wrong = column[rt.isna() & column.notna()]
    if not wrong.empty:
        raise DataError(
            f"{file} has response_time {wrong.iloc[0]!r}; expected milliseconds or n/a."
        )
    if rt.median() < _SLOWEST_S:
        raise DataError(
            f"{file} has a median response_time of {rt.median():g}, which must be seconds; "
            "expected milliseconds, as in version 1.2.0. Multiply the column by 1000."
        )
    return rt


def _flags(trials: pd.DataFrame) -> pd.Series:
    """Most serious fault of each trial, or ""."""
    false_alarm = trials["y_sub"].where(trials["y_real"] == 0)
    rate = false_alarm.groupby([trials["subject"], trials["run"]]).transform("mean")
    bad = rate > MAX_FALSE_ALARMS
    # Judged on good runs only: an image whose other judgement is void is not a repeat.
    good = trials[~bad].sort_values("run")
    again = good.duplicated(["subject", "image"], keep="last")
    repeat = again.reindex(trials.index, fill_value=False)
    flag = pd.Series("", index=trials.index, dtype=object)
    flag[trials["rt_ms"] < ANTICIPATION_MS] = "anticipation"
    flag[repeat] = "repeat_image"
    flag[bad] = "bad_button_run"
    return flag


def _genders(file: Path) -> dict[str, str]:
    """Gender of each subject from participants.tsv, where the file is there."""
    if not file.is_file():
        return {}
    table = pd.read_csv(file, sep="\t", dtype=str)
    if not {"participant_id", "gender"} <= set(table.columns):
        return {}
    return dict(zip(table["participant_id"], table["gender"].fillna(""), strict=True))
