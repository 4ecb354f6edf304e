r"""Separate basins of one posterior: found, weighed, and pooled in proportion, never silently.

Mirror images of one another count as one basin (folding takes care of them). Where the chains
started at the basin with the largest evidence never reach another one that matters, that one gets
chains of its own; the evidence of each comes from bridge sampling (Meng and Wong, 1996) between its
draws and its Gaussian,

.. math:: Z = \frac{E_g[q / (n_1 q / Z + n_2 g)]}{E_q[g / (n_1 q / Z + n_2 g)]},

and the answer takes draws of each in proportion to its evidence. ``stats["mode"]`` says which.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import logsumexp

from bayes_lepu.data.weights import evenly_spaced
from bayes_lepu.engines.folding import on_one_side
from bayes_lepu.engines.laplace import Gaussian, Mixture
from bayes_lepu.engines.modes import SAME, distance
from bayes_lepu.engines.nuts import NutsOptions, sample_nuts
from bayes_lepu.engines.pooling import gaussian_of_draws
from bayes_lepu.errors import LOGGER, tell
from bayes_lepu.links import Array
from bayes_lepu.model.density import LogDensity
from bayes_lepu.model.parameters import Parameters


@dataclass(frozen=True, eq=False)
class Run:
    """Chains started in one basin, their draws on one side of the exchange."""

    start: Gaussian
    z: Array
    stats: Mapping[str, Array]


def run_chains(density: LogDensity, start: Gaussian, options: NutsOptions) -> Run:
    """Chains in one basin; run once more where the first run shows that it was too hard.

    The curvature at a mode can be a poor guide to a long, bent ridge. Where R-hat or divergences
    say so, a second run of the same length starts from the mean and covariance of the first one's
    draws and takes smaller steps; the better of the two is kept.
    """
    first = _run(density, start, options)
    # R-hat of short chains is noisy: the bar of 1.01 is for chains of 1000 draws or more.
    bar = max(1.01, 1 + 10 / options.draws)
    if options.chains == 1 or (_is_calm(first) and _max_rhat(first) <= bar):
        return first
    wider = gaussian_of_draws(density, first.z.reshape(-1, density.dim), start.log_evidence)
    careful = replace(
        options,
        target_accept=max(options.target_accept, 0.97),
        random_seed=int(np.random.SeedSequence([options.random_seed, 7]).generate_state(1)[0]),
    )
    say = tell if options.progressbar else LOGGER.info
    say("The chains do not agree yet: sampling once more, from their spread and with smaller steps")
    runs = first, _run(density, wider, careful)
    return min(runs, key=lambda run: (not _is_calm(run), _max_rhat(run)))


def _run(density: LogDensity, start: Gaussian, options: NutsOptions) -> Run:
    z, stats = sample_nuts(density, start, options=options)
    if density.can_exchange:
        z, mirrored = on_one_side(density, z, start.mean)
        stats = {**stats, "mirrored": mirrored.astype(float)}
    return Run(start, z, stats)


def _is_calm(run: Run) -> bool:
    return float(np.mean(run.stats["diverging"])) <= 0.005


def _max_rhat(run: Run) -> float:
    from arviz_stats.base import array_stats

    worst = float(np.max(array_stats.rhat(run.z, chain_axis=0, draw_axis=1)))
    return worst if np.isfinite(worst) else np.inf


def separate_basins(density: LogDensity, mixture: Mixture) -> list[tuple[Gaussian, float]]:
    """Gaussians that speak differently, with their share of the evidence, largest first."""
    X, fold = density.data.X, density.can_exchange
    groups: list[tuple[Gaussian, float]] = []
    for part, weight in zip(mixture.parts, mixture.weights, strict=True):
        point = density.unpack(part.mean)
        for i, (first, total) in enumerate(groups):
            other = density.unpack(first.mean)
            mirrored = fold and distance(point.swap(), other, X) < 5 * SAME
            if mirrored or distance(point, other, X) < 5 * SAME:
                groups[i] = (first, total + float(weight))
                break
        else:
            groups.append((part, float(weight)))
    return sorted(groups, key=lambda group: -group[1])


def sample_basins(
    density: LogDensity, basins: list[tuple[Gaussian, float]], options: NutsOptions
) -> tuple[Run, tuple[float, ...]]:
    """Draws over all basins that matter, and the share of each (one share: a single basin).

    A basin with less than 5 % of the evidence gets no chains, nor one in which other chains have
    been in more than 2 % of their draws.
    """
    material = [start for start, weight in basins if weight > 0.05]
    first = run_chains(density, material[0], options)
    runs = [first]
    for start in material[1:]:
        if any(_share_nearer(density, run.z, start, run.start) > 0.02 for run in runs):
            continue
        new = run_chains(density, start, options)
        if all(_share_nearer(density, new.z, run.start, start) < 0.5 for run in runs):
            runs.append(new)
    if len(runs) == 1:
        return first, (1.0,)
    evidence = np.array([log_evidence(density, run, options.random_seed) for run in runs])
    shares = np.exp(evidence - logsumexp(evidence))
    order = np.argsort(-shares)
    rng = np.random.default_rng([options.random_seed, 4])
    pooled = _pool([runs[i] for i in order], shares[order], rng)
    return pooled, tuple(float(s) for s in shares[order])


def log_evidence(density: LogDensity, run: Run, seed: int) -> float:
    """Log of the mass of the (folded) density in the run's basin, by bridge sampling."""
    draws = run.z.reshape(-1, density.dim)
    draws = draws[evenly_spaced(len(draws), 4000)]
    proposals = run.start.sample(np.random.default_rng([seed, 5]), len(draws))
    at_draws = _log_target(density, draws) - run.start.logpdf(draws)
    at_proposals = _log_target(density, proposals) - run.start.logpdf(proposals)
    log_z = run.start.log_evidence
    for _ in range(100):
        numerator = logsumexp(at_proposals - np.logaddexp(at_proposals - log_z, 0.0))
        denominator = logsumexp(-np.logaddexp(at_draws - log_z, 0.0))
        log_z, before = float(numerator - denominator), log_z
        if abs(log_z - before) < 1e-8:
            break
    return log_z


def _log_target(density: LogDensity, z: Array) -> Array:
    if not density.can_exchange:
        return np.array([density.logp(point) for point in z])
    pairs = (density.fold(point) for point in z)
    return np.array([np.logaddexp(here, there) for here, _, there, _ in pairs])


def _share_nearer(density: LogDensity, z: Array, to: Gaussian, than: Gaussian) -> float:
    """Share of the draws that speak more like one basin than like another."""
    X = density.data.evenly(600).X
    flat = z.reshape(-1, density.dim)
    points = density.unpack(flat[evenly_spaced(len(flat), 800)])
    near, far = (_misfit(density, points, g, X) for g in (to, than))
    return float(np.mean(near < far))


def _misfit(density: LogDensity, points: Parameters, center: Gaussian, X: Array) -> Array:
    target = density.unpack(center.mean)
    versions = [target, target.swap()] if density.can_exchange else [target]
    t, s = points.t(X), points.s(X)
    misfits = [_squares(t - v.t(X)) + _squares(s - v.s(X)) for v in versions]
    return np.min(misfits, axis=0)


def _squares(difference: Array) -> Array:
    """Sum of squares of each draw, over rows and annotators."""
    return np.square(difference).reshape(len(difference), -1).sum(axis=1)


def _pool(runs: list[Run], shares: Array, rng: np.random.Generator) -> Run:
    """Chain by chain, draws of every basin in proportion, each basin's in their own order."""
    chains, draws = runs[0].z.shape[:2]
    mode = rng.choice(len(runs), size=(chains, draws), p=shares)
    index = np.empty((chains, draws), dtype=int)
    for c in range(chains):
        for m in range(len(runs)):
            places = np.flatnonzero(mode[c] == m)
            index[c, places] = np.linspace(0, draws - 1, places.size).astype(int)
    rows = np.arange(chains)[:, None]
    z = np.stack([run.z for run in runs])[mode, rows, index]
    stats = {
        name: np.stack([run.stats[name] for run in runs])[mode, rows, index]
        for name in runs[0].stats
        if name != "mirrored"  # each basin has sides of its own
    }
    return Run(runs[0].start, z, {**stats, "mode": mode.astype(float)})
