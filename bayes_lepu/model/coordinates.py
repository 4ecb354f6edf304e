r"""Between the parameters of a model and its unconstrained coordinates, by the table of blocks.

Conventions
-----------
The *full* vector is what the row formula is written in: ``a (p), b``, then for each annotator
``alpha_j (p), beta_j, u_j, v_j`` and ``logit epsilon_j``, where (u, v) are the coordinates of the
rates (`likelihood.arguments.FlatOrder`). It holds zeros where nothing is free. Coordinates z are
the free entries. Points of a simplex have the coordinates log(w_k / w_last): a probability is a
simplex of two, its coordinate a logit.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
from numpy.typing import NDArray

from bayes_lepu.data.pu_data import PUData
from bayes_lepu.errors import ModelError
from bayes_lepu.links import Array
from bayes_lepu.model.blocks import LARGEST, Block, SlopeScales, Slot, table
from bayes_lepu.priors.prior import Priors
from bayes_lepu.rows.arguments import FlatOrder

if TYPE_CHECKING:
    from bayes_lepu.model.spec import ModelSpec

SMALLEST_SPREAD = 0.1  # of annotators who start alike: at 0 the search could not leave the point


@dataclass(frozen=True, eq=False)
class Layout:
    """Where every block stands among the coordinates, and how these make the full vector.

    The entry ``place[i]`` of the full vector is z[base[i]], or shift[i] + e^z[stretch[i]]
    z[base[i]] for slopes with an unknown scale, plus σ z[deviation[i]] where annotators are pooled,
    with σ = e^z[scale[i]], or ``spread[i]`` where σ is known.
    """

    blocks: tuple[Block, ...]
    order: FlatOrder  # of the full vector
    rate_places: tuple[int, ...]  # which of (u, v) each coordinate of the rates is
    columns: Mapping[str, NDArray[np.intp]]  # unmasked columns of a and of alpha; visits (q, J)
    coords: dict[str, tuple[str, ...]]  # names along the dimensions of the blocks

    @classmethod
    def of(cls, spec: "ModelSpec", data: PUData, priors: Priors) -> "Layout":
        """The layout of a model on these data under these priors."""
        columns = {
            "a": np.flatnonzero(data.class_mask),
            "alpha": np.flatnonzero(data.selection_mask),
            "delta": data.visit_places,
        }
        blocks = table(spec, data, priors)
        places = spec.propensity.coordinate_rates
        order = FlatOrder(data.p, data.n_annotators)
        return cls(blocks, order, places, columns, _coords(spec, data, blocks))

    @cached_property
    def slices(self) -> dict[str, slice]:
        """Coordinates of every block."""
        ends = np.cumsum([b.size for b in self.blocks]).tolist()
        return {b.name: slice(end - b.size, end) for b, end in zip(self.blocks, ends, strict=True)}

    @property
    def dim(self) -> int:
        """Number of coordinates."""
        return sum(b.size for b in self.blocks)

    @property
    def names(self) -> list[str]:
        """Readable names of the coordinates."""
        return [label for b in self.blocks for label in b.labels]

    @cached_property
    def by_slot(self) -> SimpleNamespace:
        """Coordinates of the values (or of what annotators share), by slot; empty where absent."""
        out = {}
        for slot in get_args(Slot):
            mine = [self.slices[b.name] for b in self.values if b.slot == slot]
            out[slot] = slice(mine[0].start, mine[-1].stop) if mine else slice(0, 0)
        return SimpleNamespace(**out)

    @property
    def values(self) -> list[Block]:
        """The blocks of slopes, intercepts and rates, or of what annotators share of them."""
        return [b for b in self.blocks if b.role in ("value", "mean")]

    @property
    def hyper(self) -> list[tuple[Block, Block, SlopeScales]]:
        """Blocks of slopes whose prior scales are unknown, and the block of these scales."""
        by_name = {b.name: b for b in self.blocks}
        return [
            (by_name[f"z_{b.stem}"], b, b.scales)
            for b in self.blocks
            if b.role == "hyper" and b.scales is not None
        ]

    @cached_property
    def stretch(self) -> tuple[NDArray[np.intp], Array]:
        """Coordinate of the log scale of every free entry, -1 for none, and the centre then."""
        log_scale, center = np.full(self.dim, -1, dtype=np.intp), np.zeros(self.dim)
        for slopes, block, scales in self.hyper:
            at, first = self.slices[slopes.name], self.slices[block.name].start
            log_scale[at] = np.where(scales.group >= 0, first + scales.group, -1)
            center[at] = scales.shift
        return log_scale[self.arrays[1]], center[self.arrays[1]]

    @property
    def has_scales(self) -> bool:
        """Whether scales are unknown: of the annotators' differences, or of slopes."""
        return any(b.size for b in self.blocks if b.role in ("scale", "hyper"))

    @cached_property
    def arrays(self) -> tuple[NDArray[np.intp], ...]:
        """``place``, ``base``, ``scale``, ``deviation``; -1 where there is no such coordinate."""
        parts = []
        for block in self.values:
            first, pooled = self.slices[block.name].start, block.role == "mean"
            sigma = self.slices.get(f"sigma_{block.stem}", slice(0, 0))
            free = pooled and sigma.stop > sigma.start
            for j in range(self.order.J) if block.slot not in ("a", "b") else (0,):
                place = self._places(block, j)
                k = np.arange(place.size)
                base = first + (np.full_like(k, j) if block.slot == "epsilon" else k)
                scale = np.full_like(k, sigma.start if free else -1)
                deviation = np.full_like(k, -1)
                if pooled:
                    deviation = self.slices[f"z_{block.stem}"].start + j * block.size + k
                parts.append((place, base, scale, deviation))
        return tuple(np.concatenate(v).astype(np.intp) for v in zip(*parts, strict=True))

    @cached_property
    def spread(self) -> Array:
        """Known σ of every free entry of the full vector, 0 where it is not known."""
        out = np.zeros(self.arrays[0].size)
        for block in self.blocks:
            if block.role == "scale" and block.prior.is_known:
                out[self._of_deviation(block.stem)] = block.prior.loc
        return out

    def sigma(self, z: Array) -> Array:
        """σ of every free entry of the full vector, 0 where nothing is pooled."""
        scale = self.arrays[2]
        return np.where(scale >= 0, np.exp(z[..., np.maximum(scale, 0)]), self.spread)

    def _places(self, block: Block, j: int) -> NDArray[np.intp]:
        """Places in the full vector of a block's entries, of those that annotator j has."""
        every = self.order.entries(np.arange(self.order.size)).of_annotator(j)
        if block.slot == "delta":
            return every.alpha[self.columns["delta"][:, j]]
        if block.slot == "rates":
            return every.uv[list(self.rate_places)]
        if block.slot == "epsilon":
            return every.e[None]
        places = getattr(every, block.slot)
        return places[self.columns[block.slot]] if block.slot in self.columns else places[None]

    def full(self, z: Array) -> Array:
        """The full vector, for any leading dimensions of z."""
        place, _, _, deviation = self.arrays
        values = self._bases(z)
        if (pooled := deviation >= 0).any():
            values[..., pooled] += (self.sigma(z) * z[..., deviation])[..., pooled]
        out = np.zeros((*z.shape[:-1], self.order.size))
        out[..., place] = values
        return out

    def _bases(self, z: Array) -> Array:
        """The free entries of the full vector without the annotators' deviations."""
        values, (stretch, shift) = z[..., self.arrays[1]], self.stretch
        if (on := stretch >= 0).any():
            values[..., on] = shift[on] + np.exp(z[..., stretch[on]]) * values[..., on]
        return values

    def natural(self, block: Block, z: Array) -> Array:
        """Natural values of a block; of slopes with unknown scales the slopes themselves."""
        values = block.natural(z[..., self.slices[block.name]])
        if block.role == "hyper" or block.scales is None:
            return values
        sigma = next(b for slopes, b, _ in self.hyper if slopes.name == block.name)
        return block.scales.stretched(values, self.natural(sigma, z))

    def variables(self, z: Array) -> dict[str, Array]:
        """Values of the variables of the PyMC model, by the names of the blocks."""
        out = {}
        for block in self.blocks:
            x = block.natural(z[..., self.slices[block.name]]) if block.size else None
            if block.role == "deviation" and x is not None:  # annotators first
                x = x.reshape((*z.shape[:-1], self.order.J, -1)[: z.ndim - 1 + len(block.dims)])
            out[block.name] = np.full(z.shape[:-1], block.prior.loc) if x is None else x
        return out

    def of_variables(self, values: Any) -> Array:
        """Inverse of `variables`, for draws ``(chain, draw, ...)``."""
        parts = [b.coordinates(np.asarray(values[b.name])) for b in self.blocks if b.size]
        return np.concatenate([part.reshape(*part.shape[:2], -1) for part in parts], axis=-1)

    def coordinates(self, full: Array, pooling: Mapping[str, Array]) -> Array:
        """Coordinates ``(..., dim)`` of full vectors ``(..., size)``.

        What annotators share and how much they differ is taken from ``pooling`` where it stands
        there, else from their mean and spread. Unknown scales are the size of what they scale.
        """
        z, rest = np.zeros((2, *full.shape[:-1], self.dim))
        place, base, _, _ = self.arrays
        values = np.nan_to_num(full[..., place], nan=0.0, posinf=LARGEST, neginf=-LARGEST)
        z[..., base] = values  # one of the places, then their mean: exact if equal
        np.add.at(rest, (..., base), values - z[..., base])  # type: ignore[arg-type]
        z += rest / np.maximum(np.bincount(base, minlength=self.dim), 1)
        for block in self.blocks:
            if block.role == "mean" and block.parameter in pooling:
                z[..., self.slices[block.name]] = block.coordinates(pooling[block.parameter])
        for block in self.blocks:
            if block.role == "scale":
                apart = self._of_deviation(block.stem)
                gap = values[..., apart] - z[..., base[apart]]
                spread = np.sqrt(np.mean(gap**2, axis=-1))
                sigma: Any = np.maximum(spread, SMALLEST_SPREAD)
                if block.prior.is_known:
                    sigma = np.full_like(spread, block.prior.loc)
                elif block.name in pooling:
                    sigma = np.asarray(pooling[block.name])
                z[..., self.slices[block.name]] = np.log(sigma)[..., None]
                z[..., self.arrays[3][apart]] = gap / sigma[..., None]
        for slopes, block, scales in self.hyper:
            at = self.slices[slopes.name]
            size = np.asarray(pooling.get(block.name, scales.sizes(z[..., at])))
            z[..., self.slices[block.name]] = np.log(size if scales.names else size[..., None])
            z[..., at] = scales.units(z[..., at], size)
        return z

    def _of_deviation(self, stem: str) -> NDArray[np.bool_]:
        block = self.slices[f"z_{stem}"]
        deviation = self.arrays[3]
        return (deviation >= block.start) & (deviation < block.stop)

    def jacobian(self, z: Array) -> Array:
        """Derivative of the free entries of the full vector by the coordinates."""
        rows = np.arange(self.arrays[0].size)
        out = np.zeros((rows.size, self.dim))
        for log_sigma, at, size in self.products(z):
            out[rows[at >= 0], at[at >= 0]] = size[at >= 0]
            free = log_sigma >= 0
            out[rows[free], log_sigma[free]] = (size * z[at])[free]
        return out

    def products(self, z: Array) -> list[tuple[NDArray[np.intp], NDArray[np.intp], Array]]:
        """The products σ z in every free entry: coordinates of log σ and of z, and σ itself."""
        _, base, scale, deviation = self.arrays
        stretch = self.stretch[0]
        own = np.exp(np.where(stretch >= 0, z[stretch], 0.0))
        return [(stretch, base, own), (scale, deviation, self.sigma(z))]

    @property
    def mirrored(self) -> bool:
        """Whether exchanging one annotator's factors maps the coordinates onto themselves."""
        scales = {b.slot: b.scales for b in self.values}
        one, other = scales["a"], scales.get("alpha")
        alike = one is other if one is None or other is None else one.same_form(other)
        return alike and np.array_equal(self.columns["a"], self.columns["alpha"])

    def exchange(self) -> NDArray[np.intp]:
        """Order of the coordinates after exchanging the two factors of one annotator."""
        if not self.mirrored:
            raise ModelError(
                "The factors cannot be exchanged: their columns differ, or the scales of these."
            )
        order, slots, at = np.arange(self.dim), self.by_slot, self.slices
        pairs = [(slots.a, slots.alpha), (slots.b, slots.beta)]
        pairs += [(at["sigma_a"], at["sigma_alpha"])] if "sigma_a" in at else []
        for here, there in pairs:
            order[here], order[there] = np.r_[there], np.r_[here]
        return order


def _coords(
    spec: "ModelSpec", data: PUData, blocks: tuple[Block, ...]
) -> dict[str, tuple[str, ...]]:
    """Names along the dimensions of the blocks, and of several annotators."""
    every = {
        data.class_dim: tuple(compress(data.feature_names, data.class_mask)),
        data.selection_dim: tuple(compress(data.feature_names, data.selection_mask)),
        "visit": tuple(data.visit_names),
        "rate": spec.propensity.components,
        "log_ratio": spec.propensity.coordinate_names,
        "annotator": tuple(data.annotators),
    }
    of_scales = [b for b in blocks if b.role == "hyper" and b.dims]
    every |= {b.dims[0]: b.scales.names for b in of_scales if b.scales is not None}
    used = {dim for block in blocks for dim in block.dims}
    used |= {"annotator"} if data.n_annotators > 1 else set()
    return {dim: names for dim, names in every.items() if dim in used}
