r"""The map between the parameters of a model and its unconstrained coordinates.

The *full* vector has all arguments of the row formula (`rows.arguments.FlatOrder`), with zeros for
entries that are not free. Coordinates z are the free entries. A simplex has the coordinates
log(w_k / w_last); a probability is a simplex of two components, its coordinate is the logit.
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
from bayes_lepu.factors.factor import LARGEST
from bayes_lepu.links import Array
from bayes_lepu.model.blocks import Block, SlopeScales, Slot, table
from bayes_lepu.model.compiled import LinearTerms
from bayes_lepu.priors.prior import Priors
from bayes_lepu.rows.arguments import FlatOrder

if TYPE_CHECKING:
    from bayes_lepu.model.spec import ModelSpec


@dataclass(frozen=True, eq=False)
class Layout:
    r"""The positions of the blocks among the coordinates, and the full vector they give.

    .. math:: \text{full} = \text{shift} + \sum_k e_{\text{place}_k} \sigma_k z_{\text{at}_k},
        \qquad \sigma_k = \text{size}_k \, e^{z_{\text{scale}_k}}
    """

    blocks: tuple[Block, ...]
    order: FlatOrder  # of the full vector
    rate_places: tuple[int, ...]  # which of (u, v) each coordinate of the rates is
    columns: Mapping[str, NDArray[np.intp]]  # unmasked columns of a and of alpha; visits (q, J)
    coords: dict[str, tuple[str, ...]]  # names along the dimensions of the blocks

    @classmethod
    def of(cls, spec: "ModelSpec", data: PUData, priors: Priors) -> "Layout":
        """The layout of a model on these data under these priors."""
        of_t, of_s = np.flatnonzero(data.class_mask), np.flatnonzero(data.selection_mask)
        columns = {"a": of_t, "alpha": of_s, "delta": data.visit_places}
        blocks, places = table(spec, data, priors), spec.propensity.coordinate_rates
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
        """Coordinates of the values (or annotators' means), by slot; empty where absent."""
        out = {}
        for slot in get_args(Slot):
            mine = [self.slices[b.name] for b in self.values if b.slot == slot]
            out[slot] = slice(mine[0].start, mine[-1].stop) if mine else slice(0, 0)
        return SimpleNamespace(**out)

    @property
    def values(self) -> list[Block]:
        """The blocks of slopes, intercepts and rates, or of their means over annotators."""
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

    @property
    def has_scales(self) -> bool:
        """Whether scales are unknown: of the annotators' differences, or of slopes."""
        return any(b.size for b in self.blocks if b.role in ("scale", "hyper"))

    @cached_property
    def pooled(self) -> list[tuple[Block, Block, slice]]:
        """Blocks of means and scales over annotators, and the places of their deviations."""
        sigma = {b.stem: b for b in self.blocks if b.role == "scale"}
        means = [b for b in self.values if b.role == "mean"]
        return [(b, sigma[b.stem], self.slices[f"z_{b.stem}"]) for b in means]

    @cached_property
    def terms(self) -> LinearTerms:
        """The terms that give the full vector from the coordinates."""
        shift, parts = np.zeros(self.order.size), []
        for block in self.values:
            own = np.r_[self.slices[block.name]]
            log_scale, center = np.full(own.size, -1), np.zeros(own.size)
            if block.scales is not None:
                group, first = block.scales.group, self.slices[f"sigma_{block.parameter}"].start
                log_scale, center = np.where(group >= 0, first + group, -1), block.scales.shift
            for j in range(self.order.J) if block.slot not in ("a", "b") else (0,):
                place = self._places(block, j)
                at = own[[j]] if block.slot == "epsilon" else own
                shift[place] = center[at - own[0]]
                parts.append((place, at, log_scale[at - own[0]], np.ones(at.size)))
        for mean, sigma, apart in self.pooled:
            place, at = self._every_place(mean), np.r_[apart]
            log_scale = np.full(at.size, self.slices[sigma.name].start if sigma.size else -1)
            parts.append(
                (place, at, log_scale, np.full(at.size, 1.0 if sigma.size else sigma.prior.loc))
            )
        place, at, scale, size = (np.concatenate(v) for v in zip(*parts, strict=True))
        return LinearTerms(shift, place, at, scale, size)

    @cached_property
    def free(self) -> NDArray[np.intp]:
        """Places of the free entries of the full vector."""
        return np.array(list(dict.fromkeys(self.terms.place.tolist())), dtype=np.intp)

    def _every_place(self, block: Block) -> NDArray[np.intp]:
        """Positions in the full vector of all entries of a block, one annotator after another."""
        return np.concatenate([self._places(block, j) for j in range(self.order.J)])

    def _places(self, block: Block, j: int) -> NDArray[np.intp]:
        """Positions in the full vector of the entries of a block that belong to annotator j."""
        every = self.order.entries(np.arange(self.order.size)).of_annotator(j)
        if block.slot == "delta":
            return every.alpha[self.columns["delta"][:, j]]
        if block.slot == "rates":
            return every.uv[list(self.rate_places)]
        places = every.e if block.slot == "epsilon" else getattr(every, block.slot)
        return places[self.columns[block.slot]] if block.slot in self.columns else places[None]

    def full(self, z: Array) -> Array:
        """The full vector, for any leading dimensions of z."""
        k, out = self.terms, np.zeros((*z.shape[:-1], self.order.size))
        out += k.shift
        np.add.at(out, (..., k.place), self.sigma(z) * z[..., k.at])  # type: ignore[arg-type]
        return out

    def sigma(self, z: Array) -> Array:
        """σ of every term of the full vector."""
        k = self.terms
        return k.size * np.exp(np.where(k.scale >= 0, z[..., np.maximum(k.scale, 0)], 0.0))

    @cached_property
    def centred(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """For every coordinate the positions of its log σ and of its mean; -1 for none."""
        log_sigma, mean = np.full((2, self.dim), -1, dtype=np.intp)
        log_sigma[self.terms.at] = self.terms.scale
        for block, sigma, apart in self.pooled:
            if sigma.size:
                mean[apart] = np.tile(np.r_[self.slices[block.name]], self.order.J)
        return log_sigma, mean

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
            x = block.natural(z[..., self.slices[block.name]])
            if block.role == "deviation":  # annotators first
                x = x.reshape((*z.shape[:-1], self.order.J, -1)[: z.ndim - 1 + len(block.dims)])
            out[block.name] = x
        return out

    def of_variables(self, values: Any) -> Array:
        """Inverse of `variables`, for draws ``(chain, draw, ...)``."""
        parts = [b.coordinates(np.asarray(values[b.name])) for b in self.blocks if b.size]
        return np.concatenate([part.reshape(*part.shape[:2], -1) for part in parts], axis=-1)

    def coordinates(self, full: Array, pooling: Mapping[str, Array]) -> Array:
        """Coordinates ``(..., dim)`` of full vectors ``(..., size)``.

        Means and scales over annotators come from ``pooling`` if given there, otherwise from the
        annotators' mean and sd. Unknown scales are the root mean square of their slopes.
        """
        z, rest = np.zeros((2, *full.shape[:-1], self.dim))
        values = np.nan_to_num(full, nan=0.0, posinf=LARGEST, neginf=-LARGEST)
        own = self.terms.at < sum(block.size for block in self.values)  # they come first
        place, base = self.terms.place[own], self.terms.at[own]
        z[..., base] = values[..., place]  # one of the places, then their mean: exact if equal
        np.add.at(rest, (..., base), values[..., place] - z[..., base])  # type: ignore[arg-type]
        z += rest / np.maximum(np.bincount(base, minlength=self.dim), 1)
        for mean, sigma, apart in self.pooled:
            at = self.slices[mean.name]
            if mean.parameter in pooling:
                z[..., at] = mean.coordinates(pooling[mean.parameter])
            gap = values[..., self._every_place(mean)] - np.tile(z[..., at], self.order.J)
            spread = np.sqrt(np.mean(gap**2, axis=-1))
            size: Any = np.maximum(spread, 0.1)  # a search could not leave 0, where all are alike
            if sigma.prior.is_known:
                size = np.full_like(spread, sigma.prior.loc)
            elif sigma.name in pooling:
                size = np.asarray(pooling[sigma.name])
            z[..., self.slices[sigma.name]] = np.log(size)[..., None]
            z[..., apart] = gap / size[..., None]
        for slopes, block, scales in self.hyper:
            at = self.slices[slopes.name]
            size = np.asarray(pooling.get(block.name, scales.sizes(z[..., at])))
            z[..., self.slices[block.name]] = np.log(size if scales.names else size[..., None])
            z[..., at] = scales.units(z[..., at], size)
        return z

    def jacobian(self, z: Array) -> Array:
        """Derivative of the full vector by the coordinates."""
        k, sigma = self.terms, self.sigma(z)
        out, free = np.zeros((self.order.size, self.dim)), k.scale >= 0
        np.add.at(out, (k.place, k.at), sigma)
        np.add.at(out, (k.place[free], k.scale[free]), (sigma * z[k.at])[free])
        return out

    def bend(self, full_grad: Array, z: Array) -> Array:
        """Second derivatives of the full vector, weighted by a gradient of its entries."""
        k, out = self.terms, np.zeros((self.dim, self.dim))
        free = k.scale >= 0
        d = (full_grad[k.place] * self.sigma(z))[free]
        s, v = k.scale[free], k.at[free]
        np.add.at(out, (s, v), d)
        np.add.at(out, (v, s), d)
        np.add.at(out, (s, s), d * z[v])
        return out

    @property
    def mirrored(self) -> bool:
        """Whether swapping one annotator's factors maps the coordinates onto themselves."""
        scales = {b.slot: b.scales for b in self.values}
        one, other = scales["a"], scales.get("alpha")
        alike = one is other if one is None or other is None else one.same_form(other)
        return alike and np.array_equal(self.columns["a"], self.columns["alpha"])

    def exchange(self) -> NDArray[np.intp]:
        """Permutation of the coordinates that swaps the two factors, if they are `mirrored`."""
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
