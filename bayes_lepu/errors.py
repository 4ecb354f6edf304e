"""Errors, warnings, and log lines about work that takes long.

Lines go to the logger where it has a handler or a level, to stderr otherwise.
``logging.getLogger("bayes_lepu").setLevel("WARNING")`` makes the library silent.
"""

import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer

import numpy as np

LOGGER = logging.getLogger("bayes_lepu")

# Warnings point at the first line outside of these: NumPy's, because its error state wraps `fit`.
OWN_CODE = (str(Path(__file__).parent), str(Path(np.__file__).parent))


class LepuError(Exception):
    """Base class of every error raised on purpose by this library."""


class DataError(LepuError, ValueError):
    """The data cannot be used as they are."""


class ModelError(LepuError, ValueError):
    """A model, prior, penalty or option does not exist, or cannot be combined with the others."""


class FileFormatError(LepuError, ValueError):
    """A file was not written by `Fit.save`, is damaged, or has another version of the format."""


class ConvergenceError(LepuError, RuntimeError):
    """An optimiser or sampler ended without a usable answer."""


class LepuWarning(UserWarning):
    """Base class of every warning issued on purpose by this library."""


class DataWarning(LepuWarning):
    """The data can be used, but something about them should be checked."""


class IdentifiabilityWarning(LepuWarning):
    """The data do not identify a quantity that is printed."""


class ConvergenceWarning(LepuWarning):
    """An optimiser or sampler stopped before meeting its own criterion."""


def tell(text: str) -> None:
    """Log one line about what is being done."""
    if LOGGER.level or LOGGER.handlers or logging.root.handlers:
        LOGGER.info(text)
    else:
        print(text, file=sys.stderr, flush=True)


@contextmanager
def announced(what: str, *, aloud: bool = True, seconds: float = 3.0) -> Iterator[None]:
    """Log the start of a longer computation, and at its end the duration."""
    say = tell if aloud and "ipykernel" not in sys.modules else LOGGER.info
    begun, timer = time.monotonic(), Timer(seconds, say, [f"{what} ..."])
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        if (took := time.monotonic() - begun) > seconds:
            say(f"{what}: {took:.0f} seconds")
