r"""Draws that `pymc.sample` made, on the PyMC model itself, their factors brought into one order.

Chains start, without jitter, at the labelled MAP mode; the density is not folded.

A sampler that does not know that the factors can be exchanged leaves chains on one side, on the
other, or on both, in shares :math:`n_A, n_B` that need not be those of the posterior,
:math:`Z_A, Z_B`. Pivoted to one side, its draws θ are those of the mixture
:math:`n_A\,p(\theta)/Z_A + n_B\,p(S\theta)/Z_B`, and become draws of the folded density
:math:`p(\theta)+p(S\theta)` by the weights

.. math:: W = \frac{1}{n_A\,w/Z_A + n_B\,(1-w)/Z_B}, \qquad
    Z_A \propto \sum W w, \quad Z_B \propto \sum W (1-w),

with :math:`w = p(\theta)/(p(\theta)+p(S\theta))`, where the masses are found by iteration
(bridge sampling; Meng and Wong, 1996). Where the priors treat both factors alike, w = 1/2 and all
weights are equal. From there on the draws are treated as those of the library's own sampler.
"""

import math
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_expit, logsumexp

from bayes_lepu.engines import folding, nuts
from bayes_lepu.engines.laplace import TRUSTED_K
from bayes_lepu.errors import OWN_CODE, ConvergenceWarning
from bayes_lepu.links import Array
from bayes_lepu.model.density import LogDensity
from bayes_lepu.model.parameters import Parameters


def sample_pymc(
    density: LogDensity, start: Parameters, options: nuts.NutsOptions
) -> tuple[Array, dict[str, Array]]:
    """Draws ``(chain, draw, dim)`` in the coordinates of the density, and statistics."""
    import pymc as pm

    with density.spec.build(density.data, density.priors):
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
    return density.layout.of_variables(trace["posterior"]), stats_of(trace)


def stats_of(trace: Any) -> dict[str, Array]:
    """Statistics of the sampler under PyMC's names, of those that it kept."""
    group: Any = trace.get("sample_stats", {})
    named = {name: group[other] for name, other in nuts.STATS.items() if other in group}
    named |= {name: group[name] for name in nuts.STATS if name in group}
    return {name: values.to_numpy() for name, values in named.items()}


def _values(density: LogDensity, point: Parameters) -> dict[str, Any]:
    """The point as starting values of the PyMC variables, rates a little inside."""
    layout = density.layout
    out = layout.variables(density.pack(point))
    for block in layout.blocks:
        if block.transform == "ratios":
            x = np.clip(out[block.name], 1e-4, 1 - 1e-4)
            out[block.name] = x / x.sum() if block.is_simplex else x
    return {block.name: out[block.name] for block in layout.blocks if block.size}


def name_factors(
    density: LogDensity,
    z: Array,
    stats: Mapping[str, Array],
    reference: Array,
    rule: str,
    rng: np.random.Generator,
) -> nuts.Sample:
    """Draws ``(chain, draw, dim)`` of the posterior with their factors named, as `fit` does it."""
    if not density.can_exchange:
        return nuts.Sample(z, stats)
    folded = folding.pivot(density, z, reference)
    log_weight = log_side_weights(folded.log_odds, folded.mirrored)
    weight = np.exp(log_weight - log_weight.max())
    effective = 0.0 if has_heavy_tail(log_weight) else weight.sum() ** 2 / (weight**2).sum()
    effective /= weight.size
    own = np.where(folded.mirrored, -folded.log_odds, folded.log_odds)
    lost = own < math.log(1e-6)  # odds that a side of any mass hardly ever has
    _warn_lost(min(effective, np.mean(~lost)), int((lost.mean(axis=1) > 0.5).sum()), len(lost))
    index = folding.condition_on_naming(weight.reshape(1, -1), rng)[0]
    by_draw = {**stats, "mirrored": folded.mirrored.astype(float)}
    taken = {name: v.reshape(-1)[index].reshape(weight.shape) for name, v in by_draw.items()}
    drawn = folded.z.reshape(-1, z.shape[-1])[index].reshape(z.shape)
    return nuts.label_draws(density, drawn, taken, reference, rule, rng)


def log_side_weights(log_odds: Array, mirrored: NDArray[np.bool_]) -> Array:
    """Log W of pivoted draws, from log w/(1-w) and from whether they came from the other side."""
    log_odds = np.clip(log_odds, -1e6, 1e6)  # signs in the priors can leave no mass at all
    log_w, log_not_w = log_expit(log_odds), log_expit(-log_odds)
    there = float(np.mean(mirrored))
    if there in (0.0, 1.0):
        return -(log_not_w if there else log_w)
    log_here, log_there = math.log1p(-there), math.log(there)
    log_mass = np.array([log_here, log_there])
    for _ in range(200):  # the masses settle in ten unless the sides hardly overlap
        weight = -np.logaddexp(log_here - log_mass[0] + log_w, log_there - log_mass[1] + log_not_w)
        log_mass = np.array([logsumexp(weight + log_w), logsumexp(weight + log_not_w)])
        log_mass -= logsumexp(log_mass)
    return weight


def has_heavy_tail(log_weight: Array) -> bool:
    """Whether a few draws may stand for many that are missing, by the Pareto k of the weights.

    The bound is that of `arviz.loo`, which follows the number of draws (Vehtari et al., 2024).
    """
    from arviz_stats.base import array_stats

    if log_weight.size < 400:  # a tail needs some draws to have a shape
        return False
    try:
        k = array_stats.psislw(-log_weight.reshape(-1))[1]  # takes log densities of rows
    except ValueError:  # the largest weights are equal: there is no tail
        return False
    return not k <= min(TRUSTED_K, 1 - 1 / math.log10(log_weight.size))


def _warn_lost(effective: float, lost: int, chains: int) -> None:
    """Say where chains stayed in the wrong order of t and s."""
    if effective < 0.1:
        text = (
            "The chains stayed on one side of the exchange of t and s, and to make up for it a few "
            "of the draws would have to stand for all. Use lepu.fit, which samples both sides."
        )
    elif lost:
        text = (
            f"{lost} of {chains} chains stayed in an order of t and s that has next to no "
            "posterior mass. Their draws are weighted by what they count in the other order, and "
            "the answer rests on the other chains. Use lepu.fit, which samples both orders."
        )
    else:
        return
    warnings.warn(text, ConvergenceWarning, skip_file_prefixes=OWN_CODE)
