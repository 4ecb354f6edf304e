"""Posterior draws by NUTS or by the Laplace mixture, from MAP modes to labelled parameters."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from bayes_lepu.engines import basins, laplace, nuts, orientation, pooling, signs
from bayes_lepu.engines.foreign_draws import name_factors
from bayes_lepu.engines.laplace import Gaussian, Mixture
from bayes_lepu.engines.map import MapResult
from bayes_lepu.engines.nuts import NutsOptions
from bayes_lepu.engines.pymc_nuts import sample_pymc
from bayes_lepu.errors import OWN_CODE, IdentifiabilityWarning
from bayes_lepu.links import Array
from bayes_lepu.model.density import LogDensity
from bayes_lepu.model.parameters import Parameters, mean_of


@dataclass(frozen=True, eq=False)
class Posterior:
    """Labelled draws with what belongs to them.

    Attributes
    ----------
    parameters : Parameters
        Draws of shape (chain, draw, ...).
    stats : mapping of str to (chain, draw) array
    orientation : Orientation
    mode_weights : tuple of float
        Share of each separate basin (mirror images counted together), largest first.
    pareto_k : float or None
        Of the Laplace draws' importance weights.
    """

    parameters: Parameters
    stats: Mapping[str, Array]
    orientation: orientation.Orientation
    mode_weights: tuple[float, ...]
    pareto_k: float | None = None


def nutpie_posterior(
    density: LogDensity, found: MapResult, options: NutsOptions, *, rule: str
) -> Posterior:
    """NUTS on the compiled density around the mode with the largest evidence, factors named."""
    found_basins = basins.separate_basins(density, _mixture(density, found))
    run, shares = basins.sample_basins(density, found_basins, options)
    if len(shares) > 1:
        _warn_separate(shares)
    rng = np.random.default_rng([options.random_seed, 1])
    sample = nuts.label_draws(density, run.z, run.stats, run.start.mean, rule, rng)
    return _labelled(density, sample, rule, shares)


def pymc_posterior(
    density: LogDensity, found: MapResult, options: NutsOptions, *, rule: str
) -> Posterior:
    """NUTS by PyMC on the model's own graph, factors named."""
    model = density.spec.build(density.data, density.priors)
    z, stats = sample_pymc(density, model, found.point, options)
    return returned_posterior(density, found, z, stats, options, rule=rule)


def returned_posterior(
    density: LogDensity,
    found: MapResult,
    z: Array,
    stats: Mapping[str, Array],
    options: NutsOptions,
    *,
    rule: str,
) -> Posterior:
    """Draws that were made elsewhere, factors named."""
    rng = np.random.default_rng([options.random_seed, 1])
    sample = name_factors(density, z, stats, density.pack(found.point), rule, rng)
    return _labelled(density, sample, rule, (1.0,))


def laplace_posterior(
    density: LogDensity, found: MapResult, options: NutsOptions, *, rule: str
) -> Posterior:
    """Draws of the Laplace mixture, factors named, with the Pareto k of their weights."""
    rng = np.random.default_rng([options.random_seed, 1])
    mixture = _mixture(density, found)
    proposal = signs.one_sided(density, mixture)
    z, k = laplace.resample(density, proposal, rng, options.chains * options.draws)
    shaped = z.reshape(options.chains, options.draws, -1)
    sample = nuts.label_draws(density, shaped, {}, nuts.dominant(proposal).mean, rule, rng)
    sample = replace(sample, stats={})  # independent draws: no sampler to speak of
    shares = tuple(weight for _, weight in basins.separate_basins(density, mixture))
    return replace(_labelled(density, sample, rule, shares), pareto_k=k)


def _mixture(density: LogDensity, found: MapResult) -> Mixture:
    """Gaussians at the modes, with the mirror image of the best one where it is another mode."""
    mixture = laplace.mixture_at(density, [m.point for m in found.modes if m.gap <= 12.0])
    if pooling.is_pooled(density):
        return Mixture(tuple(_settled(density, part) for part in mixture.parts))
    if not density.can_exchange:
        return mixture
    mirrored = found.point.swap()
    return laplace.mixture_at(density, [*mixture.points(density), mirrored])


def _settled(density: LogDensity, part: Gaussian) -> Gaussian:
    """The Gaussian of pooled annotators at the marginal mode of their scales."""
    z = pooling.settle_scales(density, part.mean)
    return replace(laplace.gaussian_near(density, z), log_evidence=part.log_evidence)


def _labelled(
    density: LogDensity, sample: nuts.Sample, rule: str, weights: tuple[float, ...]
) -> Posterior:
    parameters = density.unpack(sample.z)
    center = mean_of(parameters.take_flat())
    by: orientation.SettledBy | None = "density" if sample.overruled else None
    if signs.settle_naming(density, density.pack(center), sample.probability):
        by = "priors"
    elif sample.overruled:
        assert sample.probability is not None
        _warn_overruled(rule, sample.probability)
    record = orientation.describe(
        center,
        density.spec,
        density.data,
        rule,
        probability=sample.probability,
        by=by,
    )
    return Posterior(parameters, sample.stats, record, weights)


def _warn_overruled(rule: str, probability: float) -> None:
    warnings.warn(
        f"The priors contradict the rule {rule!r}: under them the other naming of the factors has "
        f"probability {probability:.3g}, and it was taken. Give the factors equal priors to have "
        "them named by the rule, or orientation='none' to have them named by the priors.",
        IdentifiabilityWarning,
        skip_file_prefixes=OWN_CODE,
    )


def _warn_separate(shares: tuple[float, ...]) -> None:
    warnings.warn(
        f"The posterior has {len(shares)} separate modes that the chains do not connect, with "
        f"weights {', '.join(f'{w:.2f}' for w in shares)}. The draws mix them in that proportion "
        "(fit.stats['mode'] says which is which); an average over them describes neither. See "
        "fit.mode_table(), and settle the matter with selection_features=, audited rows (y=) or "
        "priors.",
        IdentifiabilityWarning,
        skip_file_prefixes=OWN_CODE,
    )
