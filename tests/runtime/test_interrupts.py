"""Ctrl-C: a `KeyboardInterrupt` within two seconds, whatever is going on, and nothing broken."""

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from numba.core import serialize

import bayes_lepu as lepu
from bayes_lepu.engines import nuts
from bayes_lepu.runtime.interruption import (
    HANDING_OVER,
    interruptible,
    stops_at_once,
    was_interrupted,
)
from tests.patience import members, patience

PROMPT = 2.0  # seconds from the signal to the end

LONG = {
    "map": """
rng = np.random.default_rng(0)
X = rng.normal(size=(3000, 12)); l = (rng.random(3000) < 0.2).astype(int)
begin()
while True:
    lepu.fit(X, l, model="psychm", method="map", random_seed=1)
""",
    "nuts": """
begin()
lepu.fit(demo.X, demo.l, model="psychm", draws=400_000, random_seed=1, progressbar=False)
""",
    "verdict": """
fit = lepu.fit(demo.X, demo.l, model="psychm", method="map", random_seed=1)
begin()
while True:
    lepu.diagnose(fit)
""",
    "saving": """
fit = lepu.fit(demo.X, demo.l, model="psychm", method="map", random_seed=1)
begin()
while True:
    fit.save(folder / "fit.nc")
""",
    "command": """
from bayes_lepu.cli import main
demo.X.assign(marked=demo.l).to_csv(folder / "photos.csv", index=False)
begin()
sys.exit(main(["fit", str(folder / "photos.csv"), "--label", "marked", "--out", str(folder / "out"),
               "--draws", "400000", "--quiet"]))
""",
}
HEAD = """
import sys, time, warnings
from pathlib import Path
import numpy as np
import bayes_lepu as lepu
warnings.simplefilter("ignore")
folder = Path(sys.argv[1])
demo = lepu.load_demo()
# A compiler that is at work ends its work first.
lepu.fit(demo.X[:99], demo.l[:99], model="psychm", draws=4, tune=9, chains=1, progressbar=False)
def begin():
    print("begun", flush=True)
try:
"""
TAIL = """
except KeyboardInterrupt:
    print("interrupted", flush=True)
    sys.exit(130)
"""


def run_and_interrupt(work: str, wait: float, folder: Path) -> tuple[int, float, str]:
    """Return code, seconds from the signal to the end, and stderr; nothing is left behind.

    The signal goes to the whole group, as a terminal sends it.
    """
    code = HEAD + "".join(f"    {line}\n" for line in LONG[work].strip().splitlines()) + TAIL
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        cwd=Path(__file__).parents[2],
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n", process.communicate()
        time.sleep(wait)
        os.killpg(process.pid, signal.SIGINT)
        sent = time.monotonic()
        process.wait(timeout=patience(60))
        seconds = time.monotonic() - sent
        deadline = time.monotonic() + patience(PROMPT)
        while (left := members(process.pid)) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not left, f"still at work: {left}"
        return process.returncode, seconds, process.communicate(timeout=60)[1]
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def assert_whole(folder: Path) -> None:
    """Every file that is there is a whole one."""
    for file in folder.rglob("*"):
        assert not file.name.endswith(".part"), file
        if file.suffix == ".html":
            assert file.read_text("utf-8").rstrip().endswith("</html>")
        elif file.suffix == ".nc":
            assert lepu.load(file).method == "map"


@pytest.mark.parametrize(("work", "wait"), [("nuts", 2.0), ("verdict", 1.0)])
def test_an_interrupt_ends_the_work_at_once(work, wait, tmp_path):
    code, seconds, stderr = run_and_interrupt(work, wait, tmp_path)
    assert code == 130, stderr
    assert seconds < patience(PROMPT)


@pytest.mark.slow
@pytest.mark.parametrize("trial", range(30))
def test_interrupts_at_random_moments(trial, tmp_path):
    work = sorted(LONG)[trial % len(LONG)]
    earlier = tmp_path / "earlier.txt"
    earlier.write_text("earlier")
    wait = random.Random(trial).uniform(0.05, 12.0)
    code, seconds, stderr = run_and_interrupt(work, wait, tmp_path)
    print(f"{work}: return code {code} after {seconds:.2f} s, load {os.getloadavg()[0]:.0f}")
    assert code == 130, f"{work}: {stderr}"
    assert seconds < patience(PROMPT), work
    assert earlier.read_text() == "earlier"
    assert_whole(tmp_path)


def test_an_interrupt_waits_until_numba_has_handed_its_result_over():
    """Numba would go on with a null pointer where its own function in Python raised."""
    steps = []

    def _numba_unpickle():
        os.kill(os.getpid(), signal.SIGINT)
        steps.append("handed over")

    @stops_at_once
    def work():
        _numba_unpickle()
        steps.append("gone on")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert steps == ["handed over"]
    assert sys.getprofile() is None
    assert hasattr(serialize, HANDING_OVER)  # numba still calls it so


def swallow_an_interrupt():
    with contextlib.suppress(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(1.0)


def test_an_interrupt_that_was_swallowed_stops_the_sampler():
    """As a callback of the garbage collector would: the exception is gone, the work goes on."""
    sampler = Unfinished()
    with pytest.raises(KeyboardInterrupt), interruptible():
        nuts.wait(sampler)
    assert sampler.cancelled
    assert not was_interrupted()


class Unfinished:
    cancelled = False

    def wait(self, timeout):
        swallow_an_interrupt()
        raise TimeoutError

    def cancel(self):
        self.cancelled = True


def test_an_interrupt_that_compiled_code_wrapped_is_one_again():
    with pytest.raises(KeyboardInterrupt), interruptible():
        raise SystemError("returned a result with an exception set") from KeyboardInterrupt()
    with pytest.raises(SystemError), interruptible():
        raise SystemError("something else")
