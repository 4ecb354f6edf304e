"""A part of the rows that stands for all of them.

Marked rows, unmarked ones and each kind of audited row are drawn separately, in equal numbers as
far as there are enough, and weighted by how many rows each stands for. A rare label is thus not
lost, and sums over the part estimate sums over all rows: likelihood and priors keep their
proportion, and penalties need no change.
"""

from dataclasses import replace
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from bayes_lepu.data import PUData

_drawn: WeakKeyDictionary[PUData, dict[int, PUData]] = WeakKeyDictionary()


def subsample(data: PUData, size: int) -> PUData:
    """About ``size`` rows at random, the same ones every time, with weights."""
    known = _drawn.setdefault(data, {})
    if size not in known:
        known[size] = _draw(data, size)
    return known[size]


def _draw(data: PUData, size: int) -> PUData:
    rng = np.random.default_rng(0)
    present = np.flatnonzero(np.bincount(data.kind))
    kinds = [np.flatnonzero(data.kind == k) for k in present]
    taken, weight = [], np.zeros(data.n)
    for places, count in zip(kinds, _shares([k.size for k in kinds], size), strict=True):
        chosen = places if count == places.size else rng.choice(places, count, replace=False)
        weight[chosen] = places.size / count
        taken.append(chosen)
    rows: NDArray[np.intp] = np.sort(np.concatenate(taken))
    if data.weight.size:
        weight *= data.weight
    return replace(data.rows(rows), weight=weight[rows])


def _shares(counts: list[int], size: int) -> list[int]:
    """How many of each kind to take: the same number of all, or all where there are fewer."""
    shares, left = [0] * len(counts), size
    for done, i in enumerate(np.argsort(counts, kind="stable")):
        shares[i] = min(counts[i], left // (len(counts) - done))
        left -= shares[i]
    return shares
