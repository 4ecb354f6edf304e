r"""Slopes with unknown scales of their own: smooth terms, group intercepts, or all of a factor.

.. math:: a_k = m_k + \sigma_{g(k)} z_k, \qquad z_k \sim N(0, 1), \quad \sigma_g \sim N^+(0, s_g^2)

Columns with the same scale g are a block, such as the columns of one spline. Columns without one
keep the prior they have, and z is the slope itself.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bayes_lepu.links import Array
from bayes_lepu.priors.prior import Prior


@dataclass(frozen=True, eq=False)
class SlopeScales:
    """How the slopes of one factor follow from their coordinates and scales.

    Attributes
    ----------
    unit : Prior
        Of the coordinates z.
    prior : Prior
        Of the scales σ.
    names : tuple of str
        Blocks of columns, one for each scale; empty where one scale serves the whole factor.
    group : (columns,) array
        Which scale each column has, -1 for none.
    shift : (columns,) array
        The centre m of every column's prior; 0 where it has no scale.
    """

    unit: Prior
    prior: Prior
    names: tuple[str, ...]
    group: NDArray[np.intp]
    shift: Array

    @property
    def count(self) -> int:
        """Number of scales."""
        return max(len(self.names), 1)

    def same_form(self, other: "SlopeScales") -> bool:
        """Whether the same columns have scales, around the same centres."""
        same = np.array_equal(self.group, other.group) and self.names == other.names
        return same and np.array_equal(self.shift, other.shift)

    def stretched(self, z: Array, sigma: Array) -> Array:
        """Slopes from their coordinates ``(..., columns)``."""
        return self.shift + self._by_column(sigma) * z

    def units(self, slopes: Array, sigma: Array) -> Array:
        """Inverse of `stretched`."""
        return (slopes - self.shift) / self._by_column(sigma)

    def sizes(self, slopes: Array) -> Array:
        """Root mean square of the slopes of every block, around their centres."""
        squares = (slopes - self.shift) ** 2
        each = (squares[..., self.group == g].mean(axis=-1) for g in range(self.count))
        found = np.sqrt(np.stack(list(each), axis=-1) + 1e-6)
        return found if self.names else found[..., 0]

    def _by_column(self, sigma: Array) -> Array:
        """σ of every column, 1 where it has none."""
        sigma = np.asarray(sigma, dtype=float)
        sigma = sigma if self.names else sigma[..., None]
        with_one = np.concatenate([sigma, np.ones((*sigma.shape[:-1], 1))], axis=-1)
        return with_one[..., self.group]


def slope_scales(prior: Prior, size: int) -> SlopeScales | None:
    """The unknown scales in the prior of ``size`` slopes, or None."""
    if not prior.hierarchical:
        return None
    parts = prior.parts or (prior,) * size
    blocks: dict[str, Prior] = {}
    for part in parts:
        if isinstance(part.scale, Prior):
            blocks.setdefault(part.block, part.scale)
    order = list(blocks)
    group = [order.index(part.block) if part.hierarchical else -1 for part in parts]
    shift = [part.loc if part.hierarchical else 0.0 for part in parts]
    unit = tuple(replace(part, scale=1.0, loc=0.0) if part.hierarchical else part for part in parts)
    places = np.array(group, dtype=np.intp), np.array(shift)
    if not prior.parts:
        return SlopeScales(unit[0], blocks[prior.block], (), *places)
    of_scales = Prior("columns", parts=tuple(blocks.values()))
    return SlopeScales(Prior("columns", parts=unit), of_scales, tuple(order), *places)
