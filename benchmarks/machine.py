"""The machine of a run, and timing on a machine that others may be using."""

import os
import platform
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median

PACKAGES = ("bayes-lepu", "numpy", "scipy", "numba", "llvmlite", "pymc", "pytensor", "nutpie")


def facts() -> dict[str, object]:
    """Processor, cores, memory, versions, date and how busy the machine is."""
    return {
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "memory_gb": _memory_gb(),
        "load_average": [round(load, 2) for load in os.getloadavg()],
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in PACKAGES},
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def interleaved(
    calls: Mapping[str, Callable[[], object]], *, repeats: int = 15, seconds: float = 0.02
) -> dict[str, list[float]]:
    """Seconds per call, one measurement of every call in turn per repeat.

    Calls are repeated within a measurement until it lasts about ``seconds``. Because whatever
    disturbs the machine disturbs neighbours alike, ratios should be taken repeat by repeat
    (`ratio`).
    """
    numbers = {}
    for name, call in calls.items():
        call()  # compiles
        numbers[name] = max(1, round(seconds / _elapsed(call, 1)))
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(repeats):
        for name, call in calls.items():
            times[name].append(_elapsed(call, numbers[name]))
    return times


def ratio(times: Mapping[str, list[float]], over: str, under: str) -> float:
    """Median over the repeats of the time of ``over`` divided by the time of ``under``."""
    return median(x / y for x, y in zip(times[over], times[under], strict=True))


def _elapsed(call: Callable[[], object], number: int) -> float:
    start = time.perf_counter()
    for _ in range(number):
        call()
    return (time.perf_counter() - start) / number


def _cpu_model() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor()


def _memory_gb() -> float:
    return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
