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
``z_a`` of unit scale times ``sigma_a``; where these have an unknown scale themselves (a horseshoe)
it is ``global_scale_a``.
"""

from dataclasses import dataclass
from itertools import compress
from typing import TYPE_CHECKING, Literal

from bayes_lepu.data.pu_data import PUData
from bayes_lepu.models.slope_scales import SlopeScales, slope_scales
from bayes_lepu.models.transforms import is_known
from bayes_lepu.priors.prior import Prior, Priors

if TYPE_CHECKING:
    from bayes_lepu.models.spec import ModelSpec

Slot = Literal["a", "b", "alpha", "beta", "delta", "rates", "epsilon"]
Role = Literal["value", "mean", "scale", "deviation", "hyper", "global"]
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
    role : {"value", "mean", "scale", "deviation", "hyper", "global"}
        The parameter itself; what annotators share, how much they differ, and by how much each
        does; the unknown scales of slopes; or the scale of these.
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
    """A parameter before pooling: its slot, the dimension of its entries, its coordinates."""

    name: str
    slot: Slot
    transform: Transform
    dim: str | None
    labels: tuple[str, ...]
    pooled: bool  # over annotators, where there are several


def stems(spec: "ModelSpec", data: PUData) -> list[Stem]:
    """The parameters of a model on these data, before pooling."""
    t_names = compress(data.feature_names, data.class_mask)
    s_names = compress(data.feature_names, data.selection_mask)
    out = [
        Stem("a", "a", "identity", data.class_dim, tuple(f"a[{f}]" for f in t_names), False),
        Stem("b", "b", "identity", None, ("b",), False),
    ]
    if spec.has_selection:
        labels = tuple(f"alpha[{f}]" for f in s_names)
        out += [
            Stem("alpha", "alpha", "identity", data.selection_dim, labels, True),
            Stem("beta", "beta", "identity", None, ("beta",), True),
        ]
    if data.visit_names:
        labels = tuple(f"delta[{name}]" for name in data.visit_names)
        out.append(Stem("delta", "delta", "identity", "visit", labels, False))
    if spec.rates_name:
        labels = spec.propensity.coordinate_names
        dim = "rate" if len(labels) > 1 else None
        out.append(Stem(spec.rates_name, "rates", "ratios", dim, labels, True))
    if spec.false_marks:
        who = data.annotators if data.n_annotators > 1 else ()
        labels = tuple(f"logit epsilon[{name}]" for name in who) or ("logit epsilon",)
        dim = "annotator" if who else None
        out.append(Stem("epsilon", "epsilon", "ratios", dim, labels, False))
    if spec.cases:
        out.append(Stem("kappa", "epsilon", "ratios", None, ("log C",), False))
    return out


def prior_names(spec: "ModelSpec", annotators: int = 1, *, visits: bool = False) -> dict[str, str]:
    """Names of the parameters that carry a prior, each with its parameter before pooling."""
    own = ["alpha", "beta"] if spec.has_selection else []
    own += [spec.rates_name] if spec.rates_name else []
    shared = {"a": "a", "b": "b"}
    marks = {"epsilon": "epsilon"} if spec.false_marks else {}
    marks |= {"kappa": "kappa"} if spec.cases else {}
    if annotators == 1:
        return shared | {name: name for name in own} | marks
    means = {f"{name}_mean": name for name in own}
    tied = {"delta": "delta"} if visits else {}
    return shared | means | tied | {f"sigma_{name}": name for name in own} | marks


def table(spec: "ModelSpec", data: PUData, priors: Priors) -> tuple[Block, ...]:
    """The blocks of a model on these data, in the order of their coordinates."""
    several = data.n_annotators > 1
    values, scales, deviations, hypers = [], [], [], []
    for s in stems(spec, data):
        dims = (s.dim,) if s.dim else ()
        pooled = several and s.pooled
        name = f"{s.name}_mean" if pooled else s.name
        role: Role = "mean" if pooled else "value"
        unknown = slope_scales(priors[name], len(s.labels))
        of_scales, prior = (f"z_{name}", unknown.unit) if unknown else (name, priors[name])
        values.append(
            Block(
                of_scales, s.slot, role, s.transform, dims, s.labels, prior, s.name, name, unknown
            )
        )
        hypers += _scale_blocks(s, name, unknown) if unknown else []
        if pooled:
            label = f"sigma_{s.name}"
            log_label = () if is_known(priors[label]) else (f"log {label}",)
            scales.append(
                Block(label, s.slot, "scale", "log", (), log_label, priors[label], s.name, label)
            )
            labels = tuple(f"z of {c}, {who}" for who in data.annotators for c in s.labels)
            own = ("annotator", *(("log_ratio",) if s.dim == "rate" else dims))
            z = f"z_{s.name}"
            deviations.append(
                Block(z, s.slot, "deviation", "identity", own, labels, STANDARD, s.name, z)
            )
    return (*values, *scales, *deviations, *hypers)


def _scale_blocks(stem: Stem, of: str, unknown: SlopeScales) -> list[Block]:
    """The unknown scales of slopes, after the global scale of these where they have one."""
    name, top = f"sigma_{of}", f"global_scale_{of}"
    labels = tuple(f"log {name}[{block}]" for block in unknown.names) or (f"log {name}",)
    dims = ("class_block" if stem.slot == "a" else "selection_block",) if unknown.names else ()
    own = Block(name, stem.slot, "hyper", "log", dims, labels, unknown.prior, of, name, unknown)
    if unknown.top is None:
        return [own]
    label = (f"log {top}",)
    return [Block(top, stem.slot, "global", "log", (), label, unknown.top, of, top), own]
