"""Faults of the machine: what is left of the user's files, and what the user sees."""

import errno
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from bayes_lepu.cli import main
from bayes_lepu.runtime.files import replace_file

WITHOUT_TEMPORARY_FOLDER = """
import sys, tempfile
from pathlib import Path
tempfile._candidate_tempdir_list = lambda: []
import numpy as np
import bayes_lepu as lepu
rng = np.random.default_rng(0)
X, l = rng.normal(size=(60, 2)), np.arange(60) % 3 == 0
fit = lepu.fit(X, l, model="scar", method="map")
folder = Path(sys.argv[1])
fit.report(fit.save(folder / "fit.nc").with_name("report.html"))
try:
    tempfile.gettempdir()
except FileNotFoundError:
    print(lepu.load(folder / "fit.nc").method)
"""


@pytest.mark.slow
def test_no_temporary_folder_is_needed(tmp_path):
    command = [sys.executable, "-W", "ignore", "-c", WITHOUT_TEMPORARY_FOLDER, str(tmp_path)]
    environment = os.environ | {"MPLCONFIGDIR": str(tmp_path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "map\n"), done.stderr


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 2)), columns=["heat", "wind"])
    frame["marked"] = (np.arange(60) % 3 == 0).astype(int)
    frame.to_csv(tmp_path / "photos.csv", index=False)
    return tmp_path / "photos.csv"


def fitted(table, *options):
    command = ["fit", str(table), "--label", "marked", "--model", "scar", "--method", "map"]
    return main([*command, "--out", str(table.parent / "out"), *options])


def test_too_little_memory_is_said_in_one_line(table, capsys, monkeypatch):
    def greedy(*args, **kwargs):
        return np.ones(2**62, dtype=np.int8)

    monkeypatch.setattr("bayes_lepu.cli.commands.fit_model", greedy)
    assert fitted(table) == 2
    assert "not enough memory (Unable to allocate" in capsys.readouterr().err
    assert not (table.parent / "out" / "fit.nc").exists()


def test_a_full_disk_is_said_in_one_line_and_changes_nothing(table, capsys, monkeypatch):
    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    path = table.with_name("kept")
    path.write_text("earlier")
    monkeypatch.setattr("bayes_lepu.runtime.files.os.fsync", full)
    with pytest.raises(OSError, match=r"No space left.*nothing there was changed"):
        replace_file(path, b"later")
    assert path.read_text() == "earlier"
    assert fitted(table) == 2
    assert "No space left on device" in capsys.readouterr().err
    assert sorted(f.name for f in table.parent.glob("*")) == ["kept", "out", "photos.csv"]
    assert not list((table.parent / "out").iterdir())


def test_an_unwritable_folder_is_named(table, capsys, monkeypatch):
    def denied(*args, **kwargs):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(table.parent / "out"))

    monkeypatch.setattr("pathlib.Path.mkdir", denied)
    assert fitted(table) == 2
    error = capsys.readouterr().err
    assert "Permission denied" in error
    assert str(table.parent / "out") in error
