r"""The variables of the PyMC model, by name, at draws of the parameters.

Free variables follow from the table of blocks: slopes, intercepts and rates as they are, what
annotators share and unknown scales from ``pooling``, and the deviations
:math:`z_j = (\alpha_j - \bar\alpha) / \sigma_\alpha` from these. Rates deviate on the scale of
their coordinates.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayes_lepu.data.pu_data import PUData
from bayes_lepu.factors import RATES
from bayes_lepu.links import Array
from bayes_lepu.model.blocks import Block
from bayes_lepu.model.coordinates import Layout
from bayes_lepu.model.density import LogDensity
from bayes_lepu.model.parameters import Parameters, sigma_norm
from bayes_lepu.model.spec import ModelSpec
from bayes_lepu.model.transforms import is_known, to_coordinates
from bayes_lepu.priors.prior import INTERCEPTS, slope_masks

# Dimensions besides those of the draws, and values.
Variables = dict[str, tuple[tuple[str, ...], Array]]


def free_variables(density: LogDensity, p: Parameters) -> Variables:
    """Values of every block of the table; of pooled ones that the draws do not hold, none."""
    natural = annotator_values(density, p)
    out: Variables = {}
    for block in density.layout.blocks:
        if block.name in p.pooling:
            out[block.name] = block.dims, p.pooling[block.name]
        elif block.scales is not None and block.role != "hyper":
            out |= _with_scales(block, p, natural)
        elif block.role == "value":
            out[block.name] = block.dims, natural[block.name]
        elif block.role == "deviation" and f"sigma_{block.stem}" in p.pooling:
            out[block.name] = block.dims, _deviation(density.layout, p, block, natural)
    return out


def annotator_values(density: LogDensity, p: Parameters) -> dict[str, Array]:
    """Slopes, intercepts and rates of the row formula, without masked columns."""
    columns = density.layout.columns
    out = {"a": p.a[..., columns["a"]], "b": p.b}
    if density.spec.has_selection:
        out |= {"alpha": p.alpha[..., columns["alpha"]], "beta": p.beta}
    if density.data.visit_names:
        out["delta"] = p.alpha[..., 0, columns["delta"][:, 0]]
    if density.spec.rates_name:
        out[density.spec.rates_name] = _rates(density.spec, p)
    return out | p.nuisance


def from_variables(density: LogDensity, values: Mapping[str, Array], log_w: Array) -> Parameters:
    """The way back, with the logarithms of the rates, which the rates themselves do not tell."""
    spec, data = density.spec, density.data
    b, own = values["b"], log_w.shape[:-1]
    a, alpha = np.zeros((*b.shape, data.p)), np.zeros((*own, data.p))
    a[..., data.class_mask] = values["a"]
    if spec.has_selection:
        alpha[..., data.selection_mask] = values["alpha"]
    for k, places in enumerate(data.visit_places):
        alpha[..., np.arange(places.size), places] = values["delta"][..., k, None]
    shared = [b.parameter for b in density.layout.blocks if b.role not in ("value", "deviation")]
    return Parameters(
        a,
        b,
        alpha,
        values["beta"] if spec.has_selection else np.zeros(own),
        log_w,
        epsilon=values["epsilon"] if spec.false_marks else None,
        pooling={name: values[name] for name in shared if name in values},
        link=spec.propensity.link,
        of_class=spec.of_class,
    )


def log_prior(density: LogDensity, values: Variables) -> Variables:
    """Normalised log prior density of every free variable, entry by entry, as PyMC computes it."""
    out: Variables = {}
    for block in density.layout.blocks:
        if block.name not in values or is_known(block.prior):
            continue
        (dims, x), prior = values[block.name], block.prior
        dims = dims[:-1] if prior.form.support == "simplex" else dims
        constant = [part.log_normalizer() for part in prior.parts or (prior,)]
        out[block.name] = dims, prior.entry_logpdf(x) + np.squeeze(constant)
    return out


def _with_scales(block: Block, p: Parameters, natural: Mapping[str, Array]) -> Variables:
    """Slopes in units of unknown scales; none where the draws do not hold the scales."""
    name = block.parameter
    sigma, out = p.pooling.get(f"sigma_{name}"), Variables()
    slopes = p.pooling[name] if block.role == "mean" and name in p.pooling else natural[block.stem]
    if block.role == "mean" and name in p.pooling:
        out[name] = block.dims, slopes
    if sigma is not None and block.scales is not None:
        out[block.name] = block.dims, block.scales.units(slopes, sigma)
    return out


def _deviation(layout: Layout, p: Parameters, block: Block, natural: Mapping[str, Array]) -> Array:
    """How far every annotator is from what they share, in units of how much they differ."""
    shared = next(b for b in layout.blocks if b.role == "mean" and b.stem == block.stem)
    own = to_coordinates(shared, natural[block.stem])
    mean = to_coordinates(shared, p.pooling[f"{block.stem}_mean"])
    z = (own - mean[..., None, :]) / p.pooling[f"sigma_{block.stem}"][..., None, None]
    return z if len(block.dims) > 1 else z[..., 0]


def _rates(spec: ModelSpec, p: Parameters) -> Array:
    """The free rates as the PyMC model has them: a probability, or a simplex."""
    if spec.n_rates == 1:
        return np.exp(p.log_w[..., RATES.index(spec.propensity.free[0])])
    return np.exp(p.log_w)


class Predictor(NamedTuple):
    """The names of a predictor's slopes and intercept, and the columns it has."""

    slope: str
    intercept: str
    dim: str
    mask: NDArray[np.bool_]


def predictors(spec: ModelSpec, data: PUData) -> list[Predictor]:
    """The class, and s where it depends on x."""
    dims = data.class_dim, data.selection_dim
    every = zip(slope_masks(data).items(), INTERCEPTS, dims, strict=True)
    found = [Predictor(slope, intercept, dim, mask) for (slope, mask), intercept, dim in every]
    return found if spec.has_selection else found[:1]


def scalars(spec: ModelSpec, data: PUData, draws: Parameters) -> dict[str, Array]:
    """Intercepts, sd of the linear predictors, and free rates, by name and annotator."""
    t, *selection = predictors(spec, data)
    out = {t.intercept: draws.b, f"|{t.slope}|": sigma_norm(draws.a, data.X)}
    if data.n_annotators == 1:
        for s in selection:
            out[s.intercept] = draws.beta
            out[f"|{s.slope}|"] = sigma_norm(draws.alpha, data.X)
        return out | draws.rates(spec.shape_rates)
    rates = draws.rates(spec.propensity.free[:-1] if spec.n_rates else ())
    for j, name in enumerate(data.annotators):
        for s in selection:
            out[f"{s.intercept}[{name}]"] = draws.beta[..., j]
            out[f"|{s.slope}[{name}]|"] = sigma_norm(draws.alpha[..., j, :], data.X)
        out |= {f"{rate}[{name}]": values[..., j] for rate, values in rates.items()}
    return out
