r"""Priors of smooth terms and of group intercepts, whose columns share a scale that is estimated.

.. math:: a_k \sim N(0, \sigma_g^2), \qquad \sigma_g \sim N^+(0, s^2)

for the columns k of a term g such as ``bs(amount, df=5)`` or ``(1 | merchant)``. These columns are
centred and not divided by their standard deviations: σ is the spread of the group intercepts, or of
the spline's coefficients, in log-odds, and a rare group is pooled more than a frequent one.

Learned columns (`data.learned`) have normal priors of their own: were their scores exact and s
constant, their weights would add up to one. So each expects its share of one, give or take r/10
(`scale_by_count`: a quarter where labels are few, one where they are many), in units of its
log-odds. A prior around 0 would let the fit subtract a score, made without a row, from what the
other columns say with it, which tells the row's own label.
"""

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from bayes_lepu.data.formulas import is_group
from bayes_lepu.data.pu_data import PUData
from bayes_lepu.links import RowKind
from bayes_lepu.priors.prior import CLASS_SCALE, SELECTION_SCALE, SLOPES, Prior, slope_masks

# Scales s of the half-normal priors. Splines may take what a column may; groups differ by less.
# Those of the propensity are smaller in the proportion of the slopes' (Assumption 3, softly).
SMOOTH = dict(zip(SLOPES, (CLASS_SCALE, SELECTION_SCALE), strict=True))
WIDEST_BY_COUNT = 10.0  # the likelihood outweighs the prior of so many labels
GROUPS = dict(zip(SLOPES, (1.0, SELECTION_SCALE / CLASS_SCALE), strict=True))


def count_terms(data: PUData, mask: NDArray[np.bool_]) -> int:
    """Columns of a factor, those of one smooth or group term counted as one, learned ones not."""
    mask = mask & ~data.is_learned
    inside = [places for places in data.blocks.values() if mask[list(places)].any()]
    extra = sum(int(mask[list(places)].sum()) - 1 for places in inside)
    return max(int(mask.sum()) - extra, 1)


def labelled(data: PUData) -> float:
    """Weight of the labelled rows: one of weight 2 counts as two."""
    return float(data.kind_weights[RowKind.LABELLED] + data.kind_weights[RowKind.FALSE_MARK])


def root_labels(data: PUData) -> float:
    """The root of the number of labelled rows for a column."""
    return math.sqrt(labelled(data) / count_terms(data, data.class_mask))


def scale_by_count(data: PUData) -> float:
    """A scale A from the number of labels alone: `root_labels`, held within [2.5, 10]."""
    return min(max(CLASS_SCALE, root_labels(data)), WIDEST_BY_COUNT)


def terms_of_factors(data: PUData) -> tuple[int, int]:
    """`count_terms` of the class and of the propensity."""
    return count_terms(data, data.class_mask), count_terms(data, data.selection_mask)


def with_blocks(base: Mapping[str, Prior], data: PUData) -> dict[str, Prior]:
    """The same priors with scales of their own for smooth terms and groups."""
    out = dict(base)
    if not data.blocks and data.learned is None:
        return out
    for name, mask in slope_masks(data).items():
        parts = [base[name]] * data.p
        for score in np.flatnonzero(data.is_learned):
            unit = float(data.scale[score])
            share = unit / int(data.is_learned.sum())
            parts[score] = Prior("normal", loc=share, scale=unit * scale_by_count(data) / 10)
        for term, places in data.blocks.items():
            scale = (GROUPS if is_group(term) else SMOOTH)[name]
            own = Prior("normal", scale=Prior("halfnormal", scale=scale), block=term)
            for place in places:
                parts[place] = own
        mine = [part for part, used in zip(parts, mask, strict=True) if used]
        if any(part is not base[name] for part in mine):
            out[name] = Prior("columns", parts=tuple(mine))
    return out
