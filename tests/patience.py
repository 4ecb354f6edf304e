"""How long a test may wait on a busy machine, for whom, and what waits for the long suite."""

import os
import subprocess

import pytest
from _pytest.mark.structures import ParameterSet


def patience(seconds: float) -> float:
    """Seconds an idle machine may take, times the processes that wait for each core."""
    return seconds * max(1.0, 2.0 * os.getloadavg()[0] / (os.cpu_count() or 1))


def slow(*values: object) -> ParameterSet:
    """A case of a parametrised test that is left to the long suite."""
    return pytest.param(*values, marks=pytest.mark.slow)


def members(session: int) -> list[str]:
    """Command lines of the processes of a session that are still at work."""
    found = subprocess.run(
        ["ps", "-o", "stat=,args=", "-s", str(session)], capture_output=True, text=True, check=False
    )
    return [line for line in found.stdout.splitlines() if not line.startswith("Z")]
