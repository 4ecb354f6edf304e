"""How far a sampler has come, in lines: a bar needs a terminal or a notebook."""

import sys
import time
from collections.abc import Sequence
from typing import Any

from bayes_lepu.runtime.telling import LOGGER, tell

FIRST = 10.0  # seconds until the first line; each later one waits twice as long
LONGEST = 300.0


class Progress:
    """Told of the chains now and then, it says a line ever more seldom.

    Parameters
    ----------
    aloud : bool
        Whether to say it where nobody listens to the logger, too.
    """

    def __init__(self, *, aloud: bool) -> None:
        self._say = tell if aloud else LOGGER.info
        self._began = self._last = time.monotonic()
        self._pause = FIRST

    def __call__(self, chains: Sequence[Any]) -> None:
        """Look at the chains, each with ``finished_draws`` and ``total_draws``."""
        now = time.monotonic()
        done = sum(chain.finished_draws for chain in chains)
        if now - self._last < self._pause or not done:
            return
        self._last, self._pause = now, min(2 * self._pause, LONGEST)
        wanted = sum(chain.total_draws for chain in chains)
        left = (now - self._began) * (wanted - done) / done
        self._say(f"Sampled {done} of {wanted} draws, warm-up included; about {_span(left)} left")


def has_screen() -> bool:
    """Whether the sampler's own bar can be seen: in a terminal or a notebook."""
    return sys.stderr.isatty() or bool({"ipykernel", "marimo"} & set(sys.modules))


def _span(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"
