"""The engines behind `fit`: from a density to draws (or a point) and a record of their quality."""

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from bayes_lepu.data.pu_data import PUData
from bayes_lepu.engines import folding, laplace, nuts, orientation, pooling
from bayes_lepu.engines.folding import Sample
from bayes_lepu.engines.laplace import TRUSTED_K, Gaussian, Mixture
from bayes_lepu.engines.map import MapResult, fit_map
from bayes_lepu.engines.modes import Mode
from bayes_lepu.engines.nuts import NutsOptions
from bayes_lepu.engines.orientation import Orientation
from bayes_lepu.engines.pooling import known_scales
from bayes_lepu.errors import OWN_CODE, ConvergenceWarning, IdentifiabilityWarning, ModelError
from bayes_lepu.links import Array
from bayes_lepu.model.density import LogDensity
from bayes_lepu.model.parameters import Parameters, mean_of, stack
from bayes_lepu.model.spec import ModelSpec
from bayes_lepu.priors.prior import Priors


@dataclass(frozen=True, eq=False)
class Request:
    """The request of `fit` to an engine: model, data, priors, and options of the sampler."""

    spec: ModelSpec
    data: PUData
    priors: Priors
    rule: str
    nuts: NutsOptions
    sampler: str

    @property
    def density(self) -> LogDensity:
        """The log posterior on unconstrained coordinates."""
        return LogDensity(self.spec, self.data, self.priors, jacobian=True)

    def modes(self, priors: Priors) -> MapResult:
        """The MAP modes under these priors, the same ones for every seed."""
        rng = np.random.default_rng(0)
        return fit_map(self.spec, self.data, priors, rule=self.rule, rng=rng)

    def modes_for_draws(self) -> MapResult:
        """Starting modes for samplers, with unknown scales at the scales of their priors.

        Warnings are suppressed, because the engine warns about its own result.
        """
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", IdentifiabilityWarning)
            return self.modes(known_scales(self.priors))


@dataclass(frozen=True)
class Quality:
    """The engine's own check of its result.

    Attributes
    ----------
    words : str
        One sentence; empty for chains, which the verdict checks.
    trusted : bool or None
        Whether the result can be used; None for chains, which the verdict checks.
    figures : mapping of str to number
        The measured values: ``kkt_residual``, ``pareto_k``, ``divergences``, ``e_bfmi``,
        ``mode_weights`` and others.
    """

    words: str = ""
    trusted: bool | None = None
    figures: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Outcome:
    """The result of an engine."""

    parameters: Parameters  # draws of shape (chain, draw, ...); (1, 1, ...) for a point
    modes: tuple[Mode, ...]
    orientation: Orientation
    quality: Quality
    stats: Mapping[str, Array] = field(default_factory=dict)
    seconds: float | None = None  # how long sampling took
    priors: Priors | None = None  # where the engine found unknown scales in them


def run_map(request: Request) -> Outcome:
    """The mode of the posterior density: the paper's penalised MLE.

    Unknown scales are estimated first, by their marginal likelihood.
    """
    priors = request.priors
    if any(prior.hierarchical for prior in priors.values()):
        if request.data.is_sparse:
            raise ModelError(
                "A prior has an unknown scale, which is found by the curvature in all columns; of "
                "a sparse matrix only products are taken. Give a fixed scale, or use X.toarray()."
            )
        first, density = request.modes_for_draws(), replace(request.density, jacobian=False)
        priors = pooling.estimate_scales(density, first.point)[0]
    found = request.modes(priors)
    _warn_doubtful(found)
    best = found.modes[0]
    words = "a converged optimum" if best.converged else "not a converged optimum"
    return Outcome(
        parameters=stack([stack([found.point])]),
        modes=found.modes,
        orientation=found.orientation,
        quality=Quality(words, best.converged, {"kkt_residual": found.kkt}),
        priors=priors,
    )


def run_laplace(request: Request) -> Outcome:
    """Gaussians at the modes, weighted by evidence."""
    found, density, asked = request.modes_for_draws(), request.density, request.nuts
    rng = np.random.default_rng([asked.random_seed, 1])
    mixture = _mixture(density, found)
    proposal = laplace.one_sided(density, mixture)
    z, k = laplace.resample(density, proposal, rng, asked.chains * asked.draws)
    z = z.reshape(asked.chains, asked.draws, -1)
    sample = folding.label_draws(density, z, {}, proposal.best.mean, request.rule, rng)
    sample = replace(sample, stats={})  # independent draws: no sampler to speak of
    shares = [weight for _, weight in nuts.separate_basins(density, mixture)]
    trust = "usable" if k <= TRUSTED_K else "do not trust it, use method='nuts'"
    shown = f"Pareto k = {k:.2f}" if np.isfinite(k) else "weights without a Pareto k"
    words = f"Gaussians at the modes, {shown}: {trust}"
    quality = Quality(words, k <= TRUSTED_K, {"pareto_k": k, "mode_weights": shares})
    return replace(_outcome(density, found, sample, request.rule), quality=quality)


def run_nuts(request: Request) -> Outcome:
    """Posterior draws by NUTS with the chosen sampler."""
    found, begun = request.modes_for_draws(), time.perf_counter()
    outcome = SAMPLERS[request.sampler](request, found)
    return replace(outcome, seconds=round(time.perf_counter() - begun, 3))


def nutpie_draws(request: Request, found: MapResult) -> Outcome:
    """NUTS on the compiled density around the mode with the largest evidence."""
    density, asked = request.density, request.nuts
    mixture = _mixture(density, found)
    basins = nuts.separate_basins(density, mixture)
    if sum(share > nuts.SMALL_SHARE for _, share in basins) > 1:
        mixture = laplace.weighed(density, mixture, np.random.default_rng([asked.random_seed, 5]))
        basins = nuts.separate_basins(density, mixture)
    run, shares = nuts.sample_basins(density, basins, asked)
    if len(shares) > 1:
        _warn_separate(shares)
    rng = np.random.default_rng([asked.random_seed, 1])
    sample = folding.label_draws(density, run.z, run.stats, run.start.mean, request.rule, rng)
    return _outcome(density, found, sample, request.rule, shares)


def pymc_draws(request: Request, found: MapResult) -> Outcome:
    """NUTS by PyMC on the model's own graph."""
    z, stats = nuts.sample_pymc(request.density, found.point, request.nuts)
    return returned(request, found, z, stats)


def returned(request: Request, found: MapResult, z: Array, stats: Mapping[str, Array]) -> Outcome:
    """The outcome of draws that another sampler made, in one orientation."""
    density, rng = request.density, np.random.default_rng([request.nuts.random_seed, 1])
    reference = density.pack(found.point)
    sample = folding.label_unfolded(density, z, stats, reference, request.rule, rng)
    return _outcome(density, found, sample, request.rule)


# NUTS on the compiled density, and by PyMC on its own graph; each decides its draws' orientation.
SAMPLERS: dict[str, Callable[[Request, MapResult], Outcome]] = {
    "nutpie": nutpie_draws,
    "pymc": pymc_draws,
}
ENGINES: dict[str, Callable[[Request], Outcome]] = {
    "nuts": run_nuts,
    "map": run_map,
    "laplace": run_laplace,
}
POINT = "map"  # the engine of penalties, flat priors and sparse matrices


def _outcome(
    density: LogDensity,
    found: MapResult,
    sample: Sample,
    rule: str,
    shares: tuple[float, ...] = (1.0,),
) -> Outcome:
    """Oriented draws with the sampler's statistics; the verdict checks whether the chains agree."""
    from arviz_stats.base import array_stats

    parameters, stats = density.unpack(sample.z), sample.stats
    center = mean_of(parameters.take_flat())
    by: orientation.SettledBy | None = "density" if sample.overruled else None
    if orientation.settled_by_signs(density, density.pack(center), sample.probability):
        by = "priors"
    elif sample.overruled:
        _warn_overruled(rule, sample.probability)
    record = orientation.describe(
        center, density.spec, density.data, rule, probability=sample.probability, by=by
    )
    figures: dict[str, Any] = {"mode_weights": list(shares)}
    if "diverging" in stats:  # other samplers keep less
        figures["divergences"] = int(np.sum(stats["diverging"]))
    if "energy" in stats:
        figures["e_bfmi"] = float(np.min(array_stats.bfmi(np.asarray(stats["energy"]))))
    return Outcome(parameters, found.modes, record, Quality(figures=figures), stats)


def _mixture(density: LogDensity, found: MapResult) -> Mixture:
    """Gaussians at the modes, and at the best one with t and s swapped if that is another mode."""
    # Modes further below the best would get no draw.
    mixture = laplace.mixture_at(density, [m.point for m in found.modes if m.gap <= 12.0])
    if density.layout.has_scales:
        return Mixture(tuple(_with_scales(density, part) for part in mixture.parts))
    if not density.can_exchange:
        return mixture
    points = [density.unpack(part.mean) for part in mixture.parts]
    return laplace.mixture_at(density, [*points, found.point.swap()])


def _with_scales(density: LogDensity, part: Gaussian) -> Gaussian:
    """The Gaussian at the marginal mode of unknown scales."""
    point = pooling.estimate_scales(density, density.unpack(part.mean))[1]
    near = laplace.gaussian_near(density, density.pack(point))
    return replace(near, log_evidence=part.log_evidence)


def _warn(text: str, kind: type[Warning] = IdentifiabilityWarning) -> None:
    warnings.warn(text, kind, skip_file_prefixes=OWN_CODE)


def _warn_overruled(rule: str, probability: float | None) -> None:
    _warn(
        f"The priors contradict the rule {rule!r}: under them the other orientation has "
        f"probability {probability:.3g}, and it was chosen. Give the factors equal priors if the "
        "rule is to decide, or orientation='none' if the priors are to decide."
    )


def _warn_separate(shares: tuple[float, ...]) -> None:
    _warn(
        f"The posterior has {len(shares)} separate modes that the chains do not connect, with "
        f"weights {', '.join(f'{w:.2f}' for w in shares)}. The draws mix them in that proportion "
        "(fit.stats['mode'] has the mode of each draw); an average over them describes neither. "
        "See fit.mode_table(), and resolve the orientation by selection_features=, audited rows "
        "(y=) or priors."
    )


def _warn_doubtful(result: MapResult) -> None:
    """Warn of a mode that should not be trusted."""
    best = result.modes[0]
    if (steepest := max(best.norm_a, best.norm_alpha)) > 100.0:  # probabilities are 0 or 1
        _warn(
            f"A linear predictor has standard deviation {steepest:.3g}: its slopes tend to "
            "infinity because a plane separates the labelled rows, and only the penalty (if any) "
            "keeps them finite. Use a stronger penalty (C=) or fewer columns.",
            ConvergenceWarning,
        )
    if best.artefact:
        others = sum(not m.artefact for m in result.modes[1:])
        who = f"{others} of the other modes describe" if others else "No mode describes"
        _warn(
            f"The best mode looks like an artefact: {best.artefact}, so the other factor does the "
            f"work of both. {who} the rows (fit.mode_table()). Use a simpler "
            "model ('scar'), a larger C_alpha (C={'alpha': ...}), or audited rows (y=)."
        )
    if not best.converged:
        _warn(
            f"The best mode is not a converged optimum (residual {result.kkt:.2g}). Use a "
            "stronger penalty (C=) or fewer columns.",
            ConvergenceWarning,
        )
