r"""The variables of the PyMC model, by name, at draws of the parameters.

Free variables follow from the table of blocks and the coordinates of the draws.
"""

import numpy as np

from bayes_lepu.data.pu_data import PUData
from bayes_lepu.links import Array
from bayes_lepu.model.density import LogDensity
from bayes_lepu.model.parameters import Parameters, sigma_norm
from bayes_lepu.model.spec import ModelSpec

# Dimensions besides those of the draws, and values.
Variables = dict[str, tuple[tuple[str, ...], Array]]


def free_variables(density: LogDensity, p: Parameters) -> Variables:
    """Values of every block of the table, and annotators' mean slopes in the internal units."""
    layout, z, out = density.layout, density.pack(p), Variables()
    values = layout.variables(z)
    for block in layout.blocks:
        if block.role == "mean" and block.scales is not None:
            out[block.parameter] = block.dims, layout.natural(block, z)
        out[block.name] = block.dims, values[block.name]
    return out


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


def scalars(spec: ModelSpec, data: PUData, draws: Parameters) -> dict[str, Array]:
    """Intercepts, sd of the linear predictors, and free rates, by name and annotator."""
    out, one = {"b": draws.b, "|a|": sigma_norm(draws.a, data.X)}, data.n_annotators == 1
    rates = spec.shape_rates if one else spec.propensity.free[:-1] if spec.n_rates else ()
    for j, name in enumerate(data.annotators):
        own, at = (draws, "") if one else (draws.of_annotator(j), f"[{name}]")
        if spec.has_selection:
            out |= {f"beta{at}": own.beta, f"|alpha{at}|": sigma_norm(own.alpha, data.X)}
        out |= {f"{rate}{at}": values for rate, values in own.rates(rates).items()}
    return out
