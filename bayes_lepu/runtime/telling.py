"""Words about work that takes long: to the logger where anybody listens, to stderr otherwise.

``logging.getLogger("bayes_lepu").setLevel("WARNING")`` makes the library silent.
"""

import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer

LOGGER = logging.getLogger("bayes_lepu")


def tell(text: str) -> None:
    """Say what is being done, in a line."""
    if LOGGER.level or LOGGER.handlers or logging.root.handlers:
        LOGGER.info(text)
    else:
        print(text, file=sys.stderr, flush=True)


@contextmanager
def announced(what: str, *, aloud: bool = True, seconds: float = 3.0) -> Iterator[None]:
    """Say what takes longer, and at its end how long it took; notebooks show that a cell runs."""
    say = tell if aloud and "ipykernel" not in sys.modules else LOGGER.info
    begun, timer = time.monotonic(), Timer(seconds, say, [f"{what} ..."])
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        if (took := time.monotonic() - begun) > seconds:
            say(f"{what}: {took:.0f} seconds")
