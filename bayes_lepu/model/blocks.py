r"""The parameter table of a model, and everything that follows from it.

A model is a list of blocks. A block has a name, a place in the row formula (its slot), dimensions,
a transform to unconstrained coordinates, and a prior. From the table follow the packing of
parameters into a vector of coordinates z (`coordinates`), the names of the coordinates, the prior's
density, and the variables of the PyMC graph.

One annotator has the blocks ``alpha``, ``beta`` and the rates of the propensity. Several annotators
are partially pooled: each of these blocks becomes three,

.. math:: \alpha_j = \bar\alpha + \sigma_\alpha z_j, \qquad z_j \sim N(0, 1),

``alpha_mean`` with the prior the block has for one annotator, ``sigma_alpha``, and the deviations
``z_alpha``. Rates are pooled on the scale of their coordinates. Slopes ``delta`` of columns that
differ between the annotators of a row are the same for all of them. Slopes with unknown scales are
``z_a`` of unit scale times ``sigma_a``.
"""

from dataclasses import dataclass
from itertools import compress
from typing import TYPE_CHECKING, Literal

from bayes_lepu.data.pu_data import PUData
from bayes_lepu.model.slope_scales import SlopeScales, slope_scales
from bayes_lepu.model.transforms import is_known
from bayes_lepu.priors.prior import Prior, Priors

if TYPE_CHECKING:
    from bayes_lepu.model.spec import ModelSpec

Slot = Literal["a", "b", "alpha", "beta", "delta", "rates", "epsilon"]
Role = Literal["value", "mean", "scale", "deviation", "hyper"]
Transform = Literal["identity", "log", "ratios"]

STANDARD = Prior("normal", scale=1.0)  # of the annotators' deviations


@dataclass(frozen=True)
class Block:
    """One row of the parameter table.

    Attributes
    ----------
    name : str
        The name of the PyMC variable.
    slot : str
        Which part of the row formula it feeds.
    role : {"value", "mean", "scale", "deviation", "hyper"}
        The parameter itself; what annotators share, how much they differ, and by how much each
        does; or the unknown scales of slopes.
    transform : {"identity", "log", "ratios"}
        From the natural value to the coordinates.
    dims : tuple of str
    labels : tuple of str
        Readable names of the coordinates.
    prior : Prior
    stem : str
        The parameter it belongs to.
    parameter : str
        What its natural values are called in priors and results: ``alpha_mean`` of the slopes
        ``z_alpha_mean`` in units of their scales, elsewhere the name.
    scales : SlopeScales, optional
        Of slopes in units of unknown scales, and of these scales.
    """

    name: str
    slot: Slot
    role: Role
    transform: Transform
    dims: tuple[str, ...]
    labels: tuple[str, ...]
    prior: Prior
    stem: str
    parameter: str
    scales: SlopeScales | None = None

    @property
    def size(self) -> int:
        """Number of coordinates."""
        return len(self.labels)


@dataclass(frozen=True)
class Stem:
    """A parameter before pooling."""

    name: str
    slot: Slot
    transform: Transform = "identity"
    pooled: bool = False  # over annotators, where there are several

    @property
    def is_slope(self) -> bool:
        """Whether it has an entry for every column of a factor."""
        return self.slot in ("a", "alpha")


def stems(spec: "ModelSpec", *, visits: bool = False) -> list[Stem]:
    """The parameters of a model, before pooling: the one list of their names."""
    out = [Stem("a", "a"), Stem("b", "b")]
    if spec.has_selection:
        out += [Stem("alpha", "alpha", pooled=True), Stem("beta", "beta", pooled=True)]
    if visits:
        out.append(Stem("delta", "delta"))
    if spec.rates_name:
        out.append(Stem(spec.rates_name, "rates", "ratios", pooled=True))
    if spec.false_marks:
        out.append(Stem("epsilon", "epsilon", "ratios"))
    return out


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


def with_priors(
    spec: "ModelSpec", annotators: int = 1, *, visits: bool = False
) -> dict[str, tuple[Stem, Role]]:
    """What carries a prior, by name: parameters, or what annotators share and how they differ."""
    every = stems(spec, visits=visits)
    pooled = [stem for stem in every if stem.pooled and annotators > 1]
    out: dict[str, tuple[Stem, Role]] = {}
    for stem in every:
        if stem in pooled:
            out[f"{stem.name}_mean"] = stem, "mean"
        else:
            out[stem.name] = stem, "value"
    return out | {f"sigma_{stem.name}": (stem, "scale") for stem in pooled}


def table(spec: "ModelSpec", data: PUData, priors: Priors) -> tuple[Block, ...]:
    """The blocks of a model on these data, in the order of their coordinates."""
    values, scales, deviations, hypers = [], [], [], []
    carriers = with_priors(spec, data.n_annotators, visits=bool(data.visit_names))
    for name, (stem, role) in carriers.items():
        dims, labels = _entries(stem, spec, data)
        if role == "scale":
            log_label = () if is_known(priors[name]) else (f"log {name}",)
            scales.append(
                Block(name, stem.slot, role, "log", (), log_label, priors[name], stem.name, name)
            )
            labels = tuple(f"z of {c}, {who}" for who in data.annotators for c in labels)
            dims = ("annotator", *(("log_ratio",) if dims == ("rate",) else dims))
            z = f"z_{stem.name}"
            deviations.append(
                Block(z, stem.slot, "deviation", "identity", dims, labels, STANDARD, stem.name, z)
            )
            continue
        unknown = slope_scales(priors[name], len(labels))
        own, prior = (f"z_{name}", unknown.unit) if unknown else (name, priors[name])
        values.append(
            Block(
                own, stem.slot, role, stem.transform, dims, labels, prior, stem.name, name, unknown
            )
        )
        hypers += [_scale_block(stem, name, unknown)] if unknown else []
    return (*values, *scales, *deviations, *hypers)


def _scale_block(stem: Stem, of: str, unknown: SlopeScales) -> Block:
    """The unknown scales of slopes."""
    name = f"sigma_{of}"
    labels = tuple(f"log {name}[{block}]" for block in unknown.names) or (f"log {name}",)
    dims = ("class_block" if stem.slot == "a" else "selection_block",) if unknown.names else ()
    return Block(name, stem.slot, "hyper", "log", dims, labels, unknown.prior, of, name, unknown)
