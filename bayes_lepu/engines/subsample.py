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

from bayes_lepu.data.pu_data import PUData

_drawn: WeakKeyDictionary[PUData, dict[int, PUData]] = WeakKeyDictionary()


def subsample(data: PUData, size: int) -> PUData:
    """About ``size`` rows at random, the same ones every time, with weights."""
    known = _drawn.setdefault(data, {})
    if size not in known:
        known[size] = _draw(data, size)
    return known[size]


def _draw(data: PUData, size: int) -> PUData:
    pool, keys = data.pool
    present = np.flatnonzero(data.kind_counts)
    counts = [int(data.kind_counts[k]) for k in present]
    taken, weight = [], np.zeros(pool.n)
    for kind, count, share in zip(present, counts, _shares(counts, size), strict=True):
        places = np.flatnonzero(pool.kind == kind)
        if share < places.size:
            places = places[np.argpartition(keys[places], share)[:share]]
        weight[places] = count / places.size
        taken.append(places)
    rows: NDArray[np.intp] = np.sort(np.concatenate(taken))
    if pool.weight.size:
        weight *= pool.weight
    return replace(pool.rows(rows), weight=weight[rows])


def _shares(counts: list[int], size: int) -> list[int]:
    """How many of each kind to take: the same number of all, or all where there are fewer."""
    shares, left = [0] * len(counts), size
    for done, i in enumerate(np.argsort(counts, kind="stable")):
        shares[i] = min(counts[i], left // (len(counts) - done))
        left -= shares[i]
    return shares
