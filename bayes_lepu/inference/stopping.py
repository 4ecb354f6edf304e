"""Draws of a sampler that runs in the background, and what is left of them after Ctrl-C.

nutpie's own waiting swallows the interrupt and returns chains of unequal length, filled up with
NaN. Here an interrupt stops the sampler and goes on as `KeyboardInterrupt`; where the draws made so
far are to be kept, it carries them.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bayes_lepu.links import Array
from bayes_lepu.runtime.interruption import was_interrupted

if TYPE_CHECKING:
    from bayes_lepu.inference.laplace import Gaussian

LOOK = 0.5  # seconds
LEAST_DRAWS = 4  # per chain, from which R-hat and effective sizes can be computed


class SamplingStopped(KeyboardInterrupt):
    """Ctrl-C during sampling, with the draws made until then.

    Attributes
    ----------
    start : Gaussian
        The basin in which the chains were started.
    z : (chain, draw, dim) array
    stats : mapping of str to (chain, draw) array
    """

    def __init__(self, start: "Gaussian", z: Array, stats: Mapping[str, Array]) -> None:
        super().__init__("sampling was interrupted")
        self.start, self.z, self.stats = start, z, stats


def wait(
    sampler: Any, start: "Gaussian", names: Mapping[str, str], *, keep: bool
) -> tuple[Array, dict[str, Array]]:
    """Draws and statistics of nutpie's background sampler.

    Parameters
    ----------
    sampler : nutpie's handle
    start : Gaussian
        Handed on to `SamplingStopped`.
    names : mapping of str to str
        Our names of the statistics, and nutpie's.
    keep : bool
        Whether an interrupt keeps the draws, if every kept chain has `LEAST_DRAWS` of them.
    """
    try:
        return _read(_finished(sampler), names)
    except KeyboardInterrupt:
        if not keep:
            sampler.cancel()
            raise
        z, stats = complete(*_read(sampler.abort(), names))
        if z.shape[1] < LEAST_DRAWS:
            raise
        raise SamplingStopped(start, z, stats) from None
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


def complete(z: Array, stats: Mapping[str, Array]) -> tuple[Array, dict[str, Array]]:
    """The largest rectangle (chains x draws) of draws that were made."""
    lengths = np.isfinite(z).all(axis=-1).sum(axis=1)
    order = np.argsort(-lengths, kind="stable")
    count = int(np.argmax(lengths[order] * np.arange(1, lengths.size + 1))) + 1
    kept = np.sort(order[:count])
    draws = int(lengths[kept].min())
    return z[kept, :draws], {name: values[kept, :draws] for name, values in stats.items()}


def _read(trace: Any, names: Mapping[str, str]) -> tuple[Array, dict[str, Array]]:
    stats = {name: trace["sample_stats"][key].to_numpy() for name, key in names.items()}
    return trace["posterior"]["z"].to_numpy(), stats
