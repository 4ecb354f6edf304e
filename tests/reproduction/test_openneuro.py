"""The loader of the public export, on BIDS trees written here, each known fault included."""

from pathlib import Path

import numpy as np
import pandas as pd

from reproduction.datasets import load_openneuro_gonogo, usable_trials

COLUMNS = ["onset", "duration", "sample", "trial_type", "response_time", "stim_file", "value"]
NA = "n/a"

Trial = tuple[float, int, int, float | None]  # onset in s, image, truth, response time in ms


def write_run(
    root: Path, subject: str, session: int, run: int | str, trials: list[Trial], *, digits: int = 10
) -> Path:
    """Write the events of one run as the export does, responses as events of their own."""
    lines = []
    for onset, image, truth, rt in trials:
        kind = "animal_target" if truth else "animal_distractor"
        shown = NA if rt is None else f"{rt:g}"
        lines.append((onset, "stimulus", shown, f"{image}.jpg", kind))
        if rt is not None:
            correct = "correct" if truth else "incorrect"
            lines.append((onset + rt / 1000, "response", NA, NA, correct))
    lines.sort()
    folder = root / subject / f"ses-{session:02d}" / "eeg"
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{subject}_ses-{session:02d}_task-gonogo_run-{run}_events.tsv"
    rows = [
        "\t".join([f"{onset:.{digits}f}", NA, NA, kind, rt, stim, value])
        for onset, kind, rt, stim, value in lines
    ]
    file.write_text("\n".join(["\t".join(COLUMNS), *rows]) + "\n")
    return file


def make_run(first_image: int, *, n: int = 8, start: float = 5.0) -> list[Trial]:
    """Alternate animals (all found but the first) and distractors (none answered)."""
    return [
        (start + 2.0 * i, first_image + i, (i + 1) % 2, None if i % 2 or i == 0 else 300.0 + i)
        for i in range(n)
    ]


def test_trials_table(tmp_path: Path) -> None:
    run = make_run(100)
    write_run(tmp_path, "sub-005", 1, 4, run)
    # Runs of the recognition task lie in the same folder; their stimuli are not ours.
    other = write_run(tmp_path, "sub-005", 1, 5, make_run(900))
    other.write_text(other.read_text().replace("animal_", "easy_"))
    (tmp_path / "participants.tsv").write_text("participant_id\tgender\nsub-005\tM\n")
    trials = load_openneuro_gonogo(tmp_path)
    expected = pd.DataFrame(
        {
            "subject": "sub-005",
            "code": "fsa",
            "gender": "M",
            "run": 4,
            "trial": range(1, 9),
            "onset_s": [5.0, 7.0, 9.0, 11.0, 13.0, 15.0, 17.0, 19.0],
            "image": range(100, 108),
            "y_real": [1, 0] * 4,
            "y_sub": [0, 0, 1, 0, 1, 0, 1, 0],
            "l": [0, 0, 1, 0, 1, 0, 1, 0],
            "rt_ms": [np.nan, np.nan, 302.0, np.nan, 304.0, np.nan, 306.0, np.nan],
            "flag": "",
        }
    )
    pd.testing.assert_frame_equal(trials, expected, check_dtype=False)
    assert trials.attrs["duplicated_files"] == []


def test_copied_second_session_is_dropped(tmp_path: Path) -> None:
    for run, first in ((1, 100), (4, 200)):
        write_run(tmp_path, "sub-002", 1, run, make_run(first))
    write_run(tmp_path, "sub-002", 2, 1, make_run(100), digits=4)  # printed otherwise
    write_run(tmp_path, "sub-002", 2, "04", make_run(200))  # named otherwise
    trials = load_openneuro_gonogo(tmp_path)
    assert len(trials) == 16
    assert list(trials["run"].unique()) == [1, 4]
    assert (trials["flag"] == "").all()
    assert trials.attrs["duplicated_files"] == [
        "sub-002/ses-02/eeg/sub-002_ses-02_task-gonogo_run-1_events.tsv",
        "sub-002/ses-02/eeg/sub-002_ses-02_task-gonogo_run-04_events.tsv",
    ]


def test_faulty_button_run_is_flagged(tmp_path: Path) -> None:
    faulty = [(onset, image, truth, 1000.0) for onset, image, truth, _ in make_run(100)]
    write_run(tmp_path, "sub-003", 1, 1, faulty)
    eager = make_run(200)
    eager[1] = (*eager[1][:3], 420.0)  # one false alarm of four is bad luck, not a bad button
    write_run(tmp_path, "sub-003", 1, 4, eager)
    trials = load_openneuro_gonogo(tmp_path)
    flags = trials.groupby("run")["flag"].unique().map(list).to_dict()
    assert flags == {1: ["bad_button_run"], 4: [""]}
    assert list(usable_trials(trials)["run"].unique()) == [4]
