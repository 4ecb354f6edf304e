"""Ctrl-C: a `KeyboardInterrupt` within two seconds, whatever is going on, and nothing broken."""

import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import bayes_lepu as lepu
from bayes_lepu.inference import stopping
from bayes_lepu.inference.stopping import complete
from bayes_lepu.interruption import interruptible, was_interrupted
from tests.patience import patience

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
lepu.fit(demo.X[:99], demo.l[:99], draws=4, tune=9, chains=1, progressbar=False)  # compiled
begin()
lepu.fit(demo.X, demo.l, draws=400_000, random_seed=1, progressbar=False)
""",
    "laplace": """
begin()
while True:
    lepu.fit(demo.X, demo.l, method="laplace", draws=20_000, random_seed=1)
""",
    "verdict": """
fit = lepu.fit(demo.X, demo.l, method="map", random_seed=1)
begin()
while True:
    lepu.diagnose(fit)
""",
    "report": """
fit = lepu.fit(demo.X, demo.l, method="map", random_seed=1)
import tempfile, pathlib
begin()
with tempfile.TemporaryDirectory() as folder:
    while True:
        fit.report(pathlib.Path(folder) / "report.html")
""",
    "cv": """
from bayes_lepu.estimators import PUClassifierCV
begin()
while True:
    PUClassifierCV(model="psychm", random_state=1).fit(demo.X, demo.l)
""",
}
HEAD = """
import sys, time, warnings
import numpy as np
import bayes_lepu as lepu
warnings.simplefilter("ignore")
demo = lepu.load_demo()
def begin():
    print("begun", flush=True)
try:
"""
TAIL = """
except KeyboardInterrupt:
    print("interrupted", flush=True)
    sys.exit(130)
"""


def run_and_interrupt(work: str, wait: float) -> tuple[int, float, str]:
    """Return code, seconds from the signal to the end, and stderr."""
    code = HEAD + "".join(f"    {line}\n" for line in LONG[work].strip().splitlines()) + TAIL
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n", process.communicate()
        time.sleep(wait)
        process.send_signal(signal.SIGINT)
        sent = time.monotonic()
        _, stderr = process.communicate(timeout=60)
        return process.returncode, time.monotonic() - sent, stderr
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(("work", "wait"), [("nuts", 6.0), ("map", 2.0), ("verdict", 1.5)])
def test_an_interrupt_ends_the_work_at_once(work, wait):
    code, seconds, stderr = run_and_interrupt(work, wait)
    assert code == 130, stderr
    assert seconds < patience(PROMPT)


@pytest.mark.slow
@pytest.mark.parametrize("trial", range(30))
def test_interrupts_at_random_moments(trial):
    work = sorted(LONG)[trial % len(LONG)]
    code, seconds, stderr = run_and_interrupt(work, random.Random(trial).uniform(0.05, 12.0))
    assert code == 130, f"{work}: {stderr}"
    assert seconds < patience(PROMPT), work


def interrupt_after(seconds: float) -> None:
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
    timer.daemon = True
    timer.start()


def test_draws_made_before_an_interrupt_can_be_kept(tmp_path):
    demo = lepu.load_demo()
    X, l = demo.X[:200], demo.l[:200]
    lepu.fit(X, l, model="scar", draws=4, tune=50, random_seed=1, progressbar=False)  # compiled
    interrupt_after(2.0)
    with pytest.warns(lepu.ConvergenceWarning, match="Interrupted"):
        fit = lepu.fit(
            X,
            l,
            model="scar",
            draws=10_000_000,
            tune=100,
            cores=1,
            random_seed=1,
            progressbar=False,
            keep_partial=True,
        )
    chains, draws = fit.parameters.b.shape
    assert fit.partial
    assert 1 <= chains <= 4
    assert 4 <= draws < 10_000_000
    assert np.isfinite(fit.parameters.b).all()
    assert "of 4 chains of 10000000 asked for" in repr(fit)
    assert lepu.load(fit.save(tmp_path / "fit.nc")).partial


def test_an_interrupt_that_was_swallowed_stops_the_sampler():
    """As a callback of the garbage collector would: the exception is gone, the work goes on."""
    sampler = Unfinished()
    with interruptible():
        with contextlib.suppress(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(1.0)
        with pytest.raises(KeyboardInterrupt):
            stopping.wait(sampler, None, {}, keep=False)
    assert sampler.cancelled
    assert not was_interrupted()


class Unfinished:
    cancelled = False

    def wait(self, timeout):
        raise TimeoutError

    def cancel(self):
        self.cancelled = True


def test_the_largest_rectangle_of_draws_is_kept():
    z = np.full((3, 10, 2), np.nan)
    for chain, draws in enumerate((9, 1, 7)):
        z[chain, :draws] = chain
    kept, stats = complete(z, {"energy": z[..., 0]})
    assert kept.shape == (2, 7, 2)
    assert kept[:, 0, 0].tolist() == [0, 2]
    assert stats["energy"].shape == (2, 7)


def test_an_interrupt_that_compiled_code_wrapped_is_one_again():
    with pytest.raises(KeyboardInterrupt), interruptible():
        raise SystemError("returned a result with an exception set") from KeyboardInterrupt()
    with pytest.raises(SystemError), interruptible():
        raise SystemError("something else")
