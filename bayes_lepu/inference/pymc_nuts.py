"""NUTS by `pymc.sample` on the PyMC model itself: slower to compile, independent of the kernel.

The density is not folded here. Chains start, without jitter, at the labelled MAP mode.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from bayes_lepu.inference.nuts import NutsOptions
from bayes_lepu.links import Array
from bayes_lepu.models.density import LogDensity
from bayes_lepu.models.parameters import Parameters

if TYPE_CHECKING:
    import pymc as pm

STATS = ("diverging", "energy", "n_steps", "tree_depth", "step_size", "acceptance_rate")


def sample_pymc(
    density: LogDensity, model: "pm.Model", start: Parameters, options: NutsOptions
) -> tuple[Array, dict[str, Array]]:
    """Draws ``(chain, draw, dim)`` in the coordinates of the density, and statistics."""
    import pymc as pm

    with model:
        trace = pm.sample(
            draws=options.draws,
            tune=options.tune,
            chains=options.chains,
            cores=options.cores,
            target_accept=options.target_accept,
            random_seed=options.random_seed,
            progressbar=options.progressbar,
            nuts_sampler="pymc",
            init="adapt_diag",
            initvals=_values(density, start),
            compute_convergence_checks=False,
        )
    made = trace["posterior"].sizes if "posterior" in trace.children else {}
    if (made.get("chain"), made.get("draw")) != (options.chains, options.draws):
        raise KeyboardInterrupt  # PyMC swallows it and returns what it has
    sample_stats = trace["sample_stats"]
    stats = {name: sample_stats[name].to_numpy() for name in STATS if name in sample_stats}
    return _coordinates(density, trace["posterior"]), stats


def _values(density: LogDensity, point: Parameters) -> dict[str, Any]:
    data, spec = density.data, density.spec
    values: dict[str, Any] = {"a": point.a[data.class_mask], "b": point.b}
    if spec.has_selection:
        values |= {"alpha": point.alpha[data.selection_mask], "beta": point.beta}
    weights = np.clip(np.exp(point.log_w), 1e-4, 1 - 1e-4)
    if spec.n_weights == 1:
        values["c"] = weights[0]
    if spec.n_weights == 2:
        values["rates"] = weights / weights.sum()
    return values


def _coordinates(density: LogDensity, posterior: Any) -> Array:
    spec = density.spec
    parts = [posterior["a"].to_numpy(), posterior["b"].to_numpy()[..., None]]
    if spec.has_selection:
        parts += [posterior["alpha"].to_numpy(), posterior["beta"].to_numpy()[..., None]]
    if spec.n_weights == 1:
        c = posterior["c"].to_numpy()[..., None]
        parts.append(np.log(c) - np.log1p(-c))
    if spec.n_weights == 2:
        log_w = np.log(posterior["rates"].to_numpy())
        parts.append(log_w[..., :2] - log_w[..., 2:])
    parts += [np.log(posterior[f"sigma_{name}"].to_numpy())[..., None] for name in density.hyper]
    return np.concatenate(parts, axis=-1)
