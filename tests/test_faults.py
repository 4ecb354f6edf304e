"""Faults of the machine: what is left of the user's files, and what the user sees."""

import errno
import os

import numpy as np
import pandas as pd
import pytest

from bayes_lepu.cli import main
from bayes_lepu.runtime.files import replace_file


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
