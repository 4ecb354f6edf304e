"""NUTS by `pymc.sample` on the PyMC model itself: slower to compile, independent of the kernel.

The density is not folded here: `foreign_draws` brings the draws into one order, and warns where the
chains stayed on one side and the other one counts. Chains start, without jitter, at the labelled
MAP mode.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from bayes_lepu.engines.nuts import STATS, NutsOptions
from bayes_lepu.links import Array
from bayes_lepu.model.density import LogDensity
from bayes_lepu.model.parameters import Parameters
from bayes_lepu.model.transforms import to_coordinates, to_natural

if TYPE_CHECKING:
    import pymc as pm

INSIDE = 1e-4  # rates start at least so far from 0 and 1


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
            compute_convergence_checks=False,
            nuts_sampler="pymc",
            init="adapt_diag",
            initvals=_values(density, start),
        )
    made = trace["posterior"].sizes if "posterior" in trace.children else {}
    if (made.get("chain"), made.get("draw")) != (options.chains, options.draws):
        raise KeyboardInterrupt  # PyMC swallows it and returns what it has
    return coordinates_of(density, trace["posterior"]), stats_of(trace)


def stats_of(trace: Any) -> dict[str, Array]:
    """Statistics of the sampler under PyMC's names, of those that it kept."""
    group: Any = trace.get("sample_stats", {})
    named = {name: group[other] for name, other in STATS.items() if other in group}
    named |= {name: group[name] for name in STATS if name in group}
    return {name: values.to_numpy() for name, values in named.items()}


def _values(density: LogDensity, point: Parameters) -> dict[str, Any]:
    """The point as starting values of the PyMC variables, rates a little inside."""
    z, out = density.pack(point), {}
    for block in density.layout.blocks:
        if block.size == 0:
            continue
        x = to_natural(block, z[density.layout.slices[block.name]])
        if block.transform == "ratios":
            x = np.clip(x, INSIDE, 1 - INSIDE)
        if block.prior.form.support == "simplex":
            x = x / x.sum()
        if block.role == "deviation":  # annotators first
            J = density.data.n_annotators
            x = x.reshape((J, block.size // J)[: len(block.dims)])
        out[block.name] = x
    return out


def coordinates_of(density: LogDensity, posterior: Any) -> Array:
    """Coordinates of the density from the natural values of the PyMC variables."""
    parts = []
    for block in density.layout.blocks:
        if block.size:
            values = to_coordinates(block, posterior[block.name].to_numpy())
            parts.append(values.reshape(*values.shape[:2], -1))
    return np.concatenate(parts, axis=-1)
