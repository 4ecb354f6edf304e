"""A run killed at random moments and resumed ends in the same bytes as one left alone."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

TRIALS = 20
CODE = """
import sys
from reproduction.experiments import SyntheticSettings, run_table1
settings = SyntheticSettings(n=200, p=2, Cs=(0.1, 1.0), models=("SPM", "Naive", "Real"))
run_table1(trials={trials}, seed=7, jobs=int(sys.argv[1]), out=sys.argv[2], settings=settings,
           progressbar=False)
"""


def start(out: Path, jobs: int, trials: int = TRIALS) -> subprocess.Popen[bytes]:
    """A run in a process group of its own, so that its workers can be killed with it."""
    code = CODE.format(trials=trials)
    return subprocess.Popen(
        [sys.executable, "-c", code, str(jobs), str(out)], start_new_session=True
    )


def finished(out: Path) -> int:
    file = out / "trials-synthetic.jsonl"
    return file.read_bytes().count(b"\n") if file.exists() else 0


def wait_for(run: subprocess.Popen[bytes], out: Path, trials: int) -> None:
    deadline = time.monotonic() + 300
    while finished(out) < trials:
        assert run.poll() is None, "the run ended before it was killed"
        assert time.monotonic() < deadline, "the run makes no progress"
        time.sleep(0.01)


@pytest.mark.slow
def test_killed_three_times_and_resumed_the_table_is_byte_identical(tmp_path: Path) -> None:
    moments = random.Random(11)
    broken, whole = tmp_path / "broken", tmp_path / "whole"
    for jobs in (1, 2, 1):
        wanted, run = finished(broken) + moments.randint(1, 3), start(broken, jobs)
        try:
            wait_for(run, broken, wanted)
            time.sleep(moments.uniform(0.0, 0.2))
        finally:
            os.killpg(run.pid, signal.SIGKILL)
            run.wait()
    assert 3 <= finished(broken) < TRIALS
    assert start(broken, 1).wait(timeout=600) == 0
    assert start(whole, 1).wait(timeout=600) == 0
    assert finished(broken) == TRIALS
    for name in ("table1.md", "table1.html", "table1.csv", "table1-scores.csv"):
        assert (broken / name).read_bytes() == (whole / name).read_bytes()
