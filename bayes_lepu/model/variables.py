r"""The variables of the PyMC model, by name, at draws of the parameters.

Free variables follow from the table of blocks and the coordinates of the draws.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayes_lepu.data.pu_data import PUData
from bayes_lepu.factors import RATES
from bayes_lepu.links import Array
from bayes_lepu.model.density import LogDensity
from bayes_lepu.model.parameters import Parameters, sigma_norm
from bayes_lepu.model.spec import ModelSpec
from bayes_lepu.priors.prior import INTERCEPTS, slope_masks

# Dimensions besides those of the draws, and values.
Variables = dict[str, tuple[tuple[str, ...], Array]]


def free_variables(density: LogDensity, p: Parameters) -> Variables:
    """Values of every block of the table; of pooled ones that the draws do not hold, none."""
    layout, out = density.layout, Variables()
    values, z = layout.variables(density.pack(p)), density.pack(p)
    for block in layout.blocks:
        scale = f"sigma_{block.parameter if block.scales is not None else block.stem}"
        if block.role == "mean" and block.scales is not None and block.parameter in p.pooling:
            out[block.parameter] = block.dims, layout.natural(block, z)
        held = {"value": True, "deviation": scale in p.pooling}
        if held.get(block.role, block.parameter in p.pooling) and (
            block.scales is None or block.role == "hyper" or scale in p.pooling
        ):
            out[block.name] = block.dims, values[block.name]
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
        one = RATES.index(density.spec.propensity.free[0])
        log_rates = p.log_w[..., one] if density.spec.n_rates == 1 else p.log_w
        out[density.spec.rates_name] = np.exp(log_rates)
    return out | p.nuisance


def log_prior(density: LogDensity, values: Variables) -> Variables:
    """Normalised log prior density of every free variable, entry by entry, as PyMC computes it."""
    out: Variables = {}
    for block in density.layout.blocks:
        if block.name not in values or block.prior.is_known:
            continue
        (dims, x), prior = values[block.name], block.prior
        dims = dims[:-1] if prior.form.support == "simplex" else dims
        constant = [part.log_normalizer() for part in prior.parts or (prior,)]
        out[block.name] = dims, prior.entry_logpdf(x) + np.squeeze(constant)
    return out


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
