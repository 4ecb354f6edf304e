"""The command line loses nothing, runs nothing and says what it does."""

import gzip
import io
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import bayes_lepu as lepu
from bayes_lepu.actions.plain_answer import Answer
from bayes_lepu.cli import main
from bayes_lepu.cli.commands import in_the_shell
from bayes_lepu.cli.files import write_table
from bayes_lepu.cli.terminal import Terminal
from tests.patience import patience


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(80, 2)), columns=["heat", "wind"])
    frame["marked"] = (rng.random(80) < 0.3).astype(int)
    folder = tmp_path_factory.mktemp("saved")
    X, l = frame[["heat", "wind"]], frame["marked"]
    lepu.fit(X, l, model="scar", method="map", random_seed=1).save(folder / "fit.nc")
    frame.to_csv(folder / "photos.csv", index=False)
    return folder


@pytest.fixture
def here(saved, tmp_path, monkeypatch):
    for file in saved.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(capsys, *args):
    code = main(list(args))
    return code, *capsys.readouterr()


@pytest.mark.parametrize(
    "args",
    [
        ["predict", "fit.nc", "photos.csv", "--out", "photos.csv"],
        ["predict", "fit.nc", "photos.csv", "--out", "fit.nc"],
        ["predict", "fit.nc", "photos.csv", "--out", "link.csv"],
        ["report", "fit.nc", "--out", "fit.nc"],
        ["report", "fit.nc", "--out", "./link.nc"],
    ],
)
def test_no_output_replaces_an_input(here, capsys, args):
    (here / "link.csv").symlink_to("photos.csv")
    (here / "link.nc").symlink_to("fit.nc")
    before = {file.name: file.read_bytes() for file in here.iterdir()}
    code, _, err = run(capsys, *args)
    assert code == 2
    assert "is an input of this command" in err
    assert {file.name: file.read_bytes() for file in here.iterdir()} == before


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("fit photos.csv --label marked --model scar --method map", "lepu-photos/fit.nc"),
        ("predict fit.nc photos.csv --out p.csv", "p.csv"),
        ("report fit.nc --out r.html", "r.html"),
    ],
)
def test_earlier_results_are_replaced_on_request_only(here, capsys, command, name):
    (here / "lepu-photos").mkdir()
    (here / name).write_text("earlier")
    args = command.split()
    code, _, err = run(capsys, *args)
    assert code == 2
    assert f"These files exist already: {name}" in err
    assert "--overwrite" in err
    assert (here / name).read_text() == "earlier"
    assert run(capsys, *args, "--overwrite")[0] == 0
    assert (here / name).read_bytes() != b"earlier"


def test_what_would_help_is_said_as_a_command_where_there_is_one():
    def said(flags):
        found = Answer("", "", "", "Help.", "fit.update(...)", flags, None, None)
        return in_the_shell(found, Path("a/fit.nc"))["do it"]

    assert said("--method nuts") == "the same command with --method nuts --overwrite"
    audit = in_the_shell(
        Answer("", "", "", "Help.", "plan = fit.suggest_audit(50)", "", None, None), Path("fit.nc")
    )["do it"]
    assert audit.startswith("bayes-lepu audit fit.nc --rows 50 --out audit.csv")
    assert said("") == "in Python: fit = lepu.load('a/fit.nc'); fit.update(...)"


def truncated() -> bytes:
    return gzip.compress(b"a,marked\n" + b"1,0\n2,1\n" * 5000, mtime=0)[:60]


@pytest.mark.parametrize(
    ("name", "content", "options", "message"),
    [
        ("cut.csv.gz", truncated(), [], "cannot be read as a table"),
        ("no.csv.gz", b"no gzip", [], "cannot be read as a table"),
        ("no.csv.zst", b"no zstandard", [], ""),
        ("latin.csv", "größe,l\n1,1\n".encode("latin-1"), [], "is not UTF-8"),
        ("table.xlsx", b"PK", [], "files ending in .xlsx are not read"),
        ("broken.parquet", b"PAR1 nonsense", [], "cannot be read as a table"),
        ("nul.csv", b"a,marked\n\x00\x00,1\n\x00\x00,0\n", [], ""),
        ("headings.csv", b"a,marked\n", [], "X is empty"),
        ("x.csv", b"a,marked\n1,0\n2,1\n", ["--cores", "-1"], "--cores -1"),
        ("x.csv", b"a,marked\n1,0\n2,1\n", ["--cores", "0"], "--cores 0"),
        ("x.csv", b"a,marked\n1,0\n2,1\n", ["--tune", "0"], "--tune 0"),
        ("x.csv", b"a,marked\n1,0\n2,1\n", ["--y", "marked"], "y names 'marked', which is l"),
    ],
)
def test_plain_mistakes_are_no_faults_of_the_program(here, capsys, name, content, options, message):
    (here / name).write_bytes(content)
    code, _, err = run(capsys, "fit", name, "--label", "marked", *options)
    assert code == 2
    assert "unexpected" not in err
    assert message in err


def test_tables_start_no_formula(tmp_path):
    names = ["=1+1", "+2", "-x", "@sum", "plain", "-5", "\tx"]
    table = pd.DataFrame({"=cmd": names}, index=pd.Index(names, name="@id"))
    read = pd.read_csv(write_table(table, tmp_path / "t.csv", index_label="@id"), dtype=str)
    assert list(read.columns) == ["'@id", "'=cmd"]
    expected = ["'=1+1", "+2", "'-x", "'@sum", "plain", "-5", "'\tx"]
    assert list(read["'@id"]) == expected
    assert list(read["'=cmd"]) == expected


def test_greek_goes_out_as_utf8_whatever_the_stream(monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stream)
    terminal = Terminal()
    terminal.say("γ = 0.1 → λ")
    terminal.done({"0.3 ± 0.1": Path("π")})
    stream.flush()
    assert "γ = 0.1 → λ\nwrote π  (0.3 ± 0.1)" in stream.buffer.getvalue().decode()


def test_stages_are_told_where_output_is_piped(here, capsys):
    code, _, err = run(capsys, "predict", "fit.nc", "photos.csv")
    assert code == 0
    assert "Predicting the rows of photos.csv ..." in err
    again = ("predict", "fit.nc", "photos.csv", "--quiet", "--overwrite")
    assert run(capsys, *again) == (0, "", "")


def test_an_interrupted_command_ends_with_130(here):
    command = [sys.executable, "-m", "bayes_lepu", "fit", "photos.csv", "--label", "marked"]
    process = subprocess.Popen(
        [*command, "--model", "scar", "--draws", "1000000"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("Sampling"):
                break
        time.sleep(1.0)
        process.send_signal(signal.SIGINT)
        sent = time.monotonic()
        out, err = process.communicate(timeout=60)
        assert (process.returncode, out) == (130, ""), err
        assert err.splitlines()[-1] == "bayes-lepu: error: interrupted"  # after lines of progress
        assert time.monotonic() - sent < patience(2.0)
        assert not (here / "lepu-photos").exists()
    finally:
        process.kill()
        process.communicate()
