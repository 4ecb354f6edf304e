"""A run killed at random moments and resumed ends in the same bytes as one left alone."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from tests.patience import members, patience

TRIALS = 20
CODE = """
import sys
from reproduction.experiments import SyntheticSettings, run_table1
settings = SyntheticSettings(n=200, p=2, Cs=(0.1, 1.0), models=("SPM", "Naive", "Real"))
run_table1(trials={trials}, seed=7, jobs=int(sys.argv[1]), out=sys.argv[2], settings=settings,
           progressbar=False)
"""


def start(out: Path, jobs: int) -> subprocess.Popen[bytes]:
    """A run in a process group of its own, so that its workers can be killed with it."""
    code = CODE.format(trials=TRIALS)
    return subprocess.Popen(
        [sys.executable, "-c", code, str(jobs), str(out)], start_new_session=True
    )


def finished(out: Path) -> int:
    file = out / "trials-synthetic.jsonl"
    return file.read_bytes().count(b"\n") if file.exists() else 0


def kill_after(out: Path, jobs: int, new_trials: int, delay: float) -> None:
    """Start a run and kill it with SIGKILL some time after it has finished a few trials."""
    before = finished(out)
    run = start(out, jobs)
    try:
        deadline = time.monotonic() + 300
        while finished(out) < before + new_trials:
            assert run.poll() is None, "the run ended before it was killed"
            assert time.monotonic() < deadline, "the run makes no progress"
            time.sleep(0.01)
        time.sleep(delay)
    finally:
        os.killpg(run.pid, signal.SIGKILL)
        run.wait()
    assert run.returncode == -signal.SIGKILL


CHEAP = """
import sys, time
from pathlib import Path
from tests.reproduction.test_kill import Setting, cheap
from reproduction.experiments.runner import Experiment, run_trials
run_trials(Experiment("cheap", cheap), [Setting(n) for n in {numbers}], trials={trials}, seed=3,
           jobs=int(sys.argv[1]), file=Path(sys.argv[2]) / "trials.jsonl", progressbar=False)
"""
CYCLES, CHEAP_TRIALS = 50, 400
SHORT, LONG = (1, 2), 3


@dataclass(frozen=True)
class Setting:
    """One of the settings of the cheap experiment."""

    number: int


def cheap(setting: Setting, rng: np.random.Generator) -> dict[str, float]:
    """A trial that costs next to nothing, with a result of its own."""
    if setting.number == LONG:
        time.sleep(0.3)
        return {"process": os.getpid()}
    time.sleep(0.004)
    return {"value": setting.number + float(rng.random()), "text": "x" * int(rng.integers(2000))}


def cheap_run(out: Path, jobs: int, numbers: tuple[int, ...] = SHORT) -> subprocess.Popen[bytes]:
    code = CHEAP.format(trials=CHEAP_TRIALS, numbers=numbers)
    return subprocess.Popen(
        [sys.executable, "-c", code, str(jobs), str(out)],
        start_new_session=True,
        cwd=Path(__file__).parents[2],
    )


def outcomes(file: Path) -> list[tuple[str, int, str]]:
    """Settings, seed and outcome of every whole line, in order."""
    records = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    return sorted((r["hash"], r["seed"], json.dumps(r["outcome"])) for r in records)


@pytest.mark.slow
def test_fifty_kills_lose_and_double_nothing(tmp_path: Path) -> None:
    broken, whole = tmp_path / "broken", tmp_path / "whole"
    broken.mkdir(), whole.mkdir()
    moments, file = random.Random(5), broken / "trials.jsonl"
    kept: list[tuple[str, int, str]] = []
    for cycle in range(CYCLES):
        before = file.stat().st_size if file.exists() else 0
        run = cheap_run(broken, 1 + cycle % 2 * (cycle % 10 == 1))
        try:
            deadline = time.monotonic() + 300
            while not file.exists() or file.stat().st_size <= before:
                assert run.poll() is None or cycle > CYCLES // 2, "the run ended of itself"
                if run.poll() is not None:
                    break
                assert time.monotonic() < deadline, "the run makes no progress"
                time.sleep(0.001)
            time.sleep(moments.uniform(0.0, 0.03))
        finally:
            if run.poll() is None:
                os.killpg(run.pid, signal.SIGKILL)
            run.wait()
        text = file.read_text("utf-8")
        found = [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]
        now = sorted((r["hash"], r["seed"], json.dumps(r["outcome"])) for r in found)
        assert set(kept) <= set(now), f"cycle {cycle} lost finished trials"
        kept = now
    assert cheap_run(broken, 1).wait(timeout=600) == 0
    assert cheap_run(whole, 1).wait(timeout=600) == 0
    assert outcomes(file) == outcomes(whole / "trials.jsonl")
    assert len({(h, s) for h, s, _ in outcomes(file)}) == 2 * CHEAP_TRIALS == len(outcomes(file))


@pytest.mark.slow
def test_workers_end_with_the_process_that_started_them(tmp_path: Path) -> None:
    """As where a run is killed outright, and alone: no group, no signal to its workers."""
    run, file = cheap_run(tmp_path, 2, (LONG,)), tmp_path / "trials.jsonl"
    deadline = time.monotonic() + 300
    while not file.exists() or len({text for _, _, text in outcomes(file)}) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    run.kill()
    run.wait()
    begun = time.monotonic()
    while members(run.pid) and time.monotonic() - begun < patience(10.0):
        time.sleep(0.1)
    assert not members(run.pid)


@pytest.mark.slow
def test_killed_three_times_and_resumed_the_table_is_byte_identical(tmp_path: Path) -> None:
    moments = random.Random(11)
    broken, whole = tmp_path / "broken", tmp_path / "whole"
    for jobs in (1, 2, 1):
        kill_after(broken, jobs, moments.randint(1, 3), moments.uniform(0.0, 0.2))
    done = finished(broken)
    assert 3 <= done < TRIALS
    assert start(broken, 1).wait(timeout=600) == 0
    assert start(whole, 1).wait(timeout=600) == 0
    assert finished(broken) == TRIALS
    for name in ("table1.md", "table1.html", "table1.csv", "table1-scores.csv"):
        assert (broken / name).read_bytes() == (whole / name).read_bytes()
