r"""The parameter table of a model: one block for every parameter.

The table determines how parameters are packed into coordinates z (`coordinates`), the density of
the prior, the variables of the PyMC graph, the tree and the file.

Several annotators are partially pooled: each block of the propensity becomes three,

.. math:: \alpha_j = \bar\alpha + \sigma_\alpha z_j, \qquad z_j \sim N(0, 1),

``alpha_mean`` with the prior of the block for one annotator, ``sigma_alpha``, and the deviations
``z_alpha``. Rates are pooled on the scale of their coordinates. Slopes ``delta`` of columns of
visits are the same for all annotators.

Slopes with unknown scales, of smooth terms, group intercepts, or all of a factor, are

.. math:: a_k = m_k + \sigma_{g(k)} z_k, \qquad z_k \sim N(0, 1), \quad \sigma_g \sim N^+(0, s_g^2)

with the blocks ``z_a`` and ``sigma_a``. The columns of one term share one scale. Columns without an
unknown scale keep their prior, and z is the slope itself.
"""

from dataclasses import dataclass, replace
from functools import partial
from itertools import compress
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from bayes_lepu.data.pu_data import PUData
from bayes_lepu.factors.factor import LARGEST, logs_to_ratios, ratios_to_logs
from bayes_lepu.links import Array
from bayes_lepu.priors.prior import Prior, Priors

if TYPE_CHECKING:
    from bayes_lepu.model.spec import ModelSpec

Slot = Literal["a", "b", "alpha", "beta", "delta", "rates", "epsilon"]
Role = Literal["value", "mean", "scale", "deviation", "hyper"]
Transform = Literal["identity", "log", "ratios"]

STANDARD = Prior("normal", scale=1.0)  # of the annotators' deviations


@dataclass(frozen=True, eq=False)
class SlopeScales:
    """The map from coordinates and scales to the slopes of one factor."""

    unit: Prior  # of the coordinates z
    prior: Prior  # of the scales σ
    names: tuple[str, ...]  # terms, one for each scale; empty where one scale serves all columns
    group: NDArray[np.intp]  # which scale each column has, -1 for none
    shift: Array  # the centre m of every column's prior; 0 where it has no scale

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
        each = (squares[..., self.group == g].mean(axis=-1) for g in range(max(len(self.names), 1)))
        found = np.sqrt(np.stack(list(each), axis=-1) + 1e-6)
        return found if self.names else found[..., 0]

    def _by_column(self, sigma: Array) -> Array:
        """σ of every column, 1 where it has none."""
        sigma = np.asarray(sigma, dtype=float)
        sigma = sigma if self.names else sigma[..., None]
        with_one = np.concatenate([sigma, np.ones((*sigma.shape[:-1], 1))], axis=-1)
        return with_one[..., self.group]


@dataclass(frozen=True)
class Block:
    """One row of the parameter table.

    ``transform`` maps the natural value to the coordinates; ``labels`` are names of coordinates.
    """

    name: str  # of the PyMC variable
    role: Role  # value; mean, scale or deviations over annotators; unknown scales of slopes
    transform: Transform
    dims: tuple[str, ...]
    labels: tuple[str, ...]
    prior: Prior
    slot: Slot  # the part of the row formula it feeds
    stem: str  # the parameter it belongs to
    scales: SlopeScales | None = None  # of slopes in units of unknown scales, and of these scales

    @property
    def parameter(self) -> str:
        """Name of the natural values in priors and results: ``alpha`` of the slopes ``z_alpha``."""
        return self.name.removeprefix("z_") if self.role in ("value", "mean") else self.name

    @property
    def size(self) -> int:
        """Number of coordinates."""
        return len(self.labels)

    @property
    def is_simplex(self) -> bool:
        """Whether its natural values form a simplex, with one component more than coordinates."""
        return self.prior.form.support == "simplex"

    def natural(self, z: Array) -> Array:
        """Natural values from coordinates ``(..., size)``; a single value has no axis."""
        if not self.size:
            return np.full(z.shape[:-1], self.prior.loc)  # a known scale
        if self.transform == "log":
            z = np.exp(z)
        elif self.is_simplex:
            return np.exp(ratios_to_logs(z))
        elif self.transform == "ratios":
            z = 1.0 / (1.0 + np.exp(-z))
        return z if self.dims else z[..., 0]

    def coordinates(self, natural: Array) -> Array:
        """Inverse of `natural`."""
        with np.errstate(divide="ignore"):
            if self.is_simplex:
                return logs_to_ratios(np.log(natural))
            x = np.asarray(natural, dtype=float)
            x = x if self.dims else x[..., None]
            if self.transform == "ratios":
                return logit(x)
            return np.log(x) if self.transform == "log" else x


@dataclass(frozen=True)
class Stem:
    """A parameter before pooling."""

    name: str
    slot: Slot
    transform: Transform = "identity"
    pooled: bool = False  # over several annotators

    @property
    def is_slope(self) -> bool:
        """Whether it has an entry for every column of a factor."""
        return self.slot in ("a", "alpha")


def _entries(
    stem: Stem, spec: "ModelSpec", data: PUData
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Dimensions of a parameter, and readable names of its coordinates."""
    if stem.is_slope:
        of_class = stem.slot == "a"
        mask = data.class_mask if of_class else data.selection_mask
        names = compress(data.feature_names, mask)
        dim = data.class_dim if of_class else data.selection_dim
        return (dim,), tuple(f"{stem.name}[{name}]" for name in names)
    if stem.slot == "delta":
        return ("visit",), tuple(f"delta[{name}]" for name in data.visit_names)
    if stem.slot == "rates":
        labels = spec.propensity.coordinate_names
        return ("rate",) if len(labels) > 1 else (), labels
    if stem.name == "epsilon" and data.n_annotators > 1:
        return ("annotator",), tuple(f"logit epsilon[{name}]" for name in data.annotators)
    return (), (f"logit {stem.name}" if stem.transform == "ratios" else stem.name,)


def with_priors(spec: "ModelSpec", data: PUData | None = None) -> dict[str, tuple[Stem, Role]]:
    """All parameters of a model that have a prior, by name.

    With several annotators in ``data``, a mean and a scale replace the value.
    """
    every, several = [Stem("a", "a"), Stem("b", "b")], data is not None and data.n_annotators > 1
    if spec.has_selection and (data is None or data.selection_mask.any()):
        every.append(Stem("alpha", "alpha", pooled=several))
    if spec.has_selection:
        every.append(Stem("beta", "beta", pooled=several))
    if data is not None and data.visit_names:
        every.append(Stem("delta", "delta"))
    if spec.rates_name:
        every.append(Stem(spec.rates_name, "rates", "ratios", pooled=several))
    if spec.false_marks:
        every.append(Stem("epsilon", "epsilon", "ratios"))
    out: dict[str, tuple[Stem, Role]] = {}
    for stem in every:
        role: Role = "mean" if stem.pooled else "value"
        out[f"{stem.name}_mean" if stem.pooled else stem.name] = stem, role
    return out | {f"sigma_{stem.name}": (stem, "scale") for stem in every if stem.pooled}


def table(spec: "ModelSpec", data: PUData, priors: Priors) -> tuple[Block, ...]:
    """The blocks of a model on these data, in the order of their coordinates."""
    values, scales, deviations, hypers = [], [], [], []
    for name, (stem, role) in with_priors(spec, data).items():
        dims, labels = _entries(stem, spec, data)
        make, prior = partial(Block, slot=stem.slot, stem=stem.name), priors[name]
        if role == "scale":
            own = () if prior.is_known else (f"log {name}",)
            scales.append(make(name, role, "log", (), own, prior))
            labels = tuple(f"z of {c}, {who}" for who in data.annotators for c in labels)
            dims = ("annotator", *(("log_ratio",) if dims == ("rate",) else dims))
            z = f"z_{stem.name}"
            deviations.append(make(z, "deviation", "identity", dims, labels, STANDARD))
        elif (unknown := slope_scales(prior, len(labels))) is None:
            values.append(make(name, role, stem.transform, dims, labels, prior))
        else:
            z, sigma = f"z_{name}", f"sigma_{name}"
            values.append(make(z, role, "identity", dims, labels, unknown.unit, scales=unknown))
            labels = tuple(f"log {sigma}[{term}]" for term in unknown.names) or (f"log {sigma}",)
            axis = "class_block" if stem.slot == "a" else "selection_block"
            dims = (axis,) if unknown.names else ()
            make = partial(make, stem=name, scales=unknown)
            hypers.append(make(sigma, "hyper", "log", dims, labels, unknown.prior))
    return (*values, *scales, *deviations, *hypers)


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


def logit(rate: Array | float) -> Array:
    """The coordinate of a probability, cut at ±`LARGEST`."""
    with np.errstate(divide="ignore"):
        return np.clip(np.log(rate) - np.log1p(-np.asarray(rate)), -LARGEST, LARGEST)
