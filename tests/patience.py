"""How long a test may wait on a machine that is busy with other things."""

import os


def patience(seconds: float) -> float:
    """Seconds an idle machine may take, times the processes that wait for each core."""
    return seconds * max(1.0, 2.0 * os.getloadavg()[0] / (os.cpu_count() or 1))
