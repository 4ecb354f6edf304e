"""Draws of a sampler that runs in the background.

nutpie's own waiting swallows Ctrl-C and returns chains of unequal length, filled up with NaN. Here
an interrupt stops the sampler and goes on as `KeyboardInterrupt`.
"""

from collections.abc import Mapping
from typing import Any

from bayes_lepu.links import Array
from bayes_lepu.runtime.interruption import was_interrupted

LOOK = 0.5  # seconds
LEAST_DRAWS = 4  # per chain, from which R-hat and effective sizes can be computed


def wait(sampler: Any, names: Mapping[str, str]) -> tuple[Array, dict[str, Array]]:
    """Draws and statistics of nutpie's background sampler.

    Parameters
    ----------
    sampler : nutpie's handle
    names : mapping of str to str
        Our names of the statistics, and nutpie's.
    """
    try:
        return _read(_finished(sampler), names)
    except BaseException:
        sampler.cancel()
        raise


def _finished(sampler: Any) -> Any:
    """What the sampler returns; looks now and then for an interrupt that was swallowed."""
    while True:
        try:
            return sampler.wait(timeout=LOOK)
        except TimeoutError:
            if was_interrupted():
                raise KeyboardInterrupt from None


def _read(trace: Any, names: Mapping[str, str]) -> tuple[Array, dict[str, Array]]:
    stats = {name: trace["sample_stats"][key].to_numpy() for name, key in names.items()}
    return trace["posterior"]["u"].to_numpy(), stats
