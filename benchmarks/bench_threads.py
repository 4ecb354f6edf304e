"""Two threads against one: sums over many rows, and whole fits, on idle and on busy cores.

All times are wall times, taken in turn; ratios are medians over the repeats, with the smallest and
the largest. "Idle": of real-time priority where that is allowed, so that other work on the machine
does not count. "Busy": beside as many processes that do nothing but count as there are cores, of
the same priority; where others use the machine, give all of it a high one (nice -n -19).
"""

import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from multiprocessing import get_context
from statistics import median
from typing import Any

import bayes_lepu as lepu
from bayes_lepu.data.threads import count_cores
from bayes_lepu.links import Array
from bayes_lepu.models.density import LogDensity
from benchmarks.bench_scale import simulated
from benchmarks.machine import interleaved

SIZES = (200_000, 1_000_000)
SUMS = {
    "density and gradient": "logp_grad",
    "density of both namings": "fold",
    "density and information": "logp_grad_info",
}
# Method, rows, options and repeats; NUTS takes one chain, since as many as cores leave none idle.
FITS: tuple[tuple[str, int, dict[str, Any], int], ...] = (
    ("map", 1_000_000, {}, 5),
    ("laplace", 1_000_000, {}, 3),
    ("nuts", 200_000, {"chains": 1, "draws": 30, "tune": 30}, 5),
)


def run() -> dict[str, float]:
    """Ratios of wall times by table, task and state of the cores; a new process for each state."""
    figures: dict[str, float] = {}
    for state in ("idle", "busy"):
        with ProcessPoolExecutor(1, get_context("spawn")) as process:
            figures |= process.submit(measure, state).result()
    return figures


def measure(state: str) -> dict[str, float]:
    """All ratios in one state of the cores."""
    warnings.simplefilter("ignore", lepu.LepuWarning)
    if state == "idle":
        with suppress(AttributeError, PermissionError):
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    figures: dict[str, float] = {}
    tables = {n: simulated(n, 20) for n in SIZES}
    with busy() if state == "busy" else nullcontext():
        for n, (X, l) in tables.items():
            for what, times in _sums(X, l).items():
                figures |= _ratios(f"{n} x 20 {state}: {what}", times)
        for method, n, options, repeats in FITS:
            times = _fits(*tables[n], method, options, repeats)
            figures |= _ratios(f"{n} x 20 {state}: {method}", times)
    return figures


@contextmanager
def busy() -> Iterator[None]:
    """A competing process for every core."""
    command = [sys.executable, "-c", "while True: pass"]
    others = [subprocess.Popen(command) for _ in range(count_cores())]
    try:
        yield
    finally:
        for process in others:
            process.kill()
            process.wait()


def _sums(X: Array, l: Array) -> dict[str, dict[str, list[float]]]:
    """Seconds of the sums that fits are made of, at the mode, by one and by two threads."""
    fit = lepu.fit(X, l, model="spm", method="map", random_seed=0)
    densities = {
        str(k): LogDensity(fit.spec, replace(fit.data, threads=k), fit.priors) for k in (1, 2)
    }
    z = fit.modes[0].z
    return {
        what: interleaved(
            {k: lambda d=d, f=f: getattr(d, f)(z) for k, d in densities.items()},
            repeats=15,
            seconds=0.2,
        )
        for what, f in SUMS.items()
    }


def _fits(
    X: Array, l: Array, method: str, options: dict[str, Any], repeats: int
) -> dict[str, list[float]]:
    """Seconds of whole fits of the SPM by one and by two threads, a new seed for every repeat."""
    times: dict[str, list[float]] = {"1": [], "2": []}
    for seed in range(repeats):
        for threads, taken in times.items():
            taken.append(
                _seconds(
                    lambda seed=seed, threads=threads: lepu.fit(
                        X,
                        l,
                        model="spm",
                        method=method,
                        threads=int(threads),
                        random_seed=seed,
                        progressbar=False,
                        **options,
                    )
                )
            )
    return times


def _seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _ratios(name: str, times: dict[str, list[float]]) -> dict[str, float]:
    ratios = [two / one for one, two in zip(times["1"], times["2"], strict=True)]
    return {
        f"{name}, 2 threads / 1": median(ratios),
        f"{name}, smallest": min(ratios),
        f"{name}, largest": max(ratios),
        f"{name}, seconds by 1": median(times["1"]),
    }
