"""From the panel density to draws: modes from several starts, then NUTS around the best one.

Nothing here exchanges factors: the density has no mirror image. Where few rows are shared a mode
near the exchanged answer can remain, so one start is placed there on purpose.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import scipy.linalg
from scipy.optimize import minimize
from scipy.special import logsumexp

from bayes_lepu.errors import ConvergenceError
from bayes_lepu.inference.basins import Run, run_twice_if_hard
from bayes_lepu.inference.laplace import Gaussian
from bayes_lepu.inference.nuts import NutsOptions, sample_whitened
from bayes_lepu.links import Array
from bayes_lepu.panel import compiled
from bayes_lepu.panel.density import PanelDensity
from bayes_lepu.panel.parameters import PanelParameters

STARTS = 8
LOG_SIGMA_BOUNDS = (-12.0, 4.0)  # of the search only
SETTLING_STEPS = 8
DISTINCT = 0.05  # RMS difference of t that makes another mode another answer


@dataclass(frozen=True, eq=False)
class PanelPosterior:
    """Draws with what belongs to them.

    Attributes
    ----------
    parameters : PanelParameters
        Draws of shape (chain, draw, ...).
    stats : mapping of str to (chain, draw) array
    mode_weights : tuple of float
        Share of the evidence of each distinct mode (Laplace), the sampled one first.
    """

    parameters: PanelParameters
    stats: Mapping[str, Array]
    mode_weights: tuple[float, ...]


def sample_panel(density: PanelDensity, options: NutsOptions) -> PanelPosterior:
    """Posterior draws."""
    modes = find_modes(density, np.random.default_rng([options.random_seed, 6]))

    start = gaussian_at(density, settle_scales(density, modes[0].mean))
    centring = choose_centring(density, start.mean)

    def sample(start: Gaussian, settings: NutsOptions) -> Run:
        mean, root, k = start.mean, np.ascontiguousarray(start.root), density.constants
        drawn = sample_whitened(
            lambda: lambda u: compiled.whitened(u, mean, root, centring, k), start, settings
        )
        return Run(start, *drawn)

    run = run_twice_if_hard(sample, centred_gaussian(density, start, centring), options)
    evidence = np.array([g.log_evidence for g in modes])
    shares = np.exp(evidence - logsumexp(evidence))
    z = density.from_centred(run.z, centring)
    return PanelPosterior(density.unpack(z), run.stats, tuple(map(float, shares)))


def find_modes(density: PanelDensity, rng: np.random.Generator) -> list[Gaussian]:
    """Gaussians at the distinct modes, the largest evidence first."""
    starts = list(_starts(density, rng))
    optima = [climb(density, z) for z in starts]
    best = max(optima, key=lambda z: density.logp_grad(z)[0])
    optima.append(climb(density, exchanged(density, best)))
    optima.sort(key=lambda z: -density.logp_grad(z)[0])
    distinct: list[Array] = []
    for z in optima:
        if np.isfinite(z).all() and all(_differ(density, z, other) for other in distinct):
            distinct.append(z)
    if not distinct:
        raise ConvergenceError(
            "No mode was found from any start. Check the columns for extreme values, or give "
            "tighter priors (priors=)."
        )
    return sorted((gaussian_at(density, z) for z in distinct), key=lambda g: -g.log_evidence)


def climb(density: PanelDensity, start: Array, *, hold_scales: bool = False) -> Array:
    """The mode next to ``start``, if asked with the scales sigma held where they are."""

    def loss(z: Array) -> tuple[float, Array]:
        value, grad = density.logp_grad(z)
        return -value, -grad

    bounds: list[tuple[float | None, float | None]] = [(None, None)] * density.dim
    for name in ("sigma_alpha", "sigma_beta"):
        if name in density.blocks:
            at = density.blocks[name].start
            bounds[at] = (start[at], start[at]) if hold_scales else LOG_SIGMA_BOUNDS
    options = {"maxiter": 2000, "maxfun": 4000, "ftol": 1e-13, "gtol": 1e-7}
    return minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options).x


def exchanged(density: PanelDensity, z: Array) -> Array:
    """The same point with the class and the average annotator exchanged, where columns allow."""
    blocks, out = density.blocks, z.copy()
    table = density.data.table
    if "alpha_mean" in blocks and np.array_equal(table.class_mask, table.selection_mask):
        for one, other in (("a", "alpha_mean"), ("b", "beta_mean")):
            out[blocks[one]], out[blocks[other]] = z[blocks[other]], z[blocks[one]]
    return out


def gaussian_at(density: PanelDensity, z: Array) -> Gaussian:
    """Gaussian approximation at a mode."""
    root = scipy.linalg.cholesky(_inverse(density.curvature(z)), lower=True)
    evidence = density.logp_grad(z)[0] + 0.5 * density.dim * np.log(2 * np.pi)
    return Gaussian(z, root, float(evidence + np.log(np.diag(root)).sum()))


def settle_scales(density: PanelDensity, z: Array) -> Array:
    """Move the scales from the joint mode, which overstates them, to their marginal mode.

    At the joint mode a large sigma pays because all deviations z can be small. An EM step sets
    sigma² to the mean of squared deviations *and* their variance given sigma (half-normal prior
    and Jacobian included), and climbs again.
    """
    z = z.copy()
    for _ in range(SETTLING_STEPS):
        covariance = np.diag(_inverse(density.curvature(z)))
        for name in ("alpha", "beta"):
            if f"z_{name}" not in density.blocks:
                continue
            block, at = density.blocks[f"z_{name}"], density.blocks[f"sigma_{name}"].start
            squares = np.exp(2 * z[at]) * float(np.sum(z[block] ** 2 + covariance[block]))
            prior = float(density.priors[f"sigma_{name}"].scale) ** 2  # type: ignore[arg-type]
            free = block.stop - block.start - 1
            variance = 0.5 * prior * (np.sqrt(free**2 + 4 * squares / prior) - free)
            z[block] *= np.exp(z[at]) / np.sqrt(variance)  # the coefficients stay where they are
            z[at] = 0.5 * np.log(variance)
        z = climb(density, z, hold_scales=True)
    return z


def choose_centring(density: PanelDensity, z: Array) -> Array:
    """How far to centre each deviation: the data's share of what is known about it.

    Where the data know an annotator's coefficient, the coefficient itself is nearly independent of
    the scale sigma; where only the pooling does, its standardised deviation is; between the two a
    mixture is best (Papaspiliopoulos et al., 2007, doi:10.1214/088342307000000014).
    """
    total = np.diag(density.curvature(z))  # of which the pooling contributes 1
    centring = np.zeros(density.dim)
    deviations = list(density.pooled_at)
    centring[deviations] = 1.0 - 1.0 / np.maximum(total[deviations], 1.0)
    return centring


def centred_gaussian(density: PanelDensity, at: Gaussian, centring: Array) -> Gaussian:
    """The Gaussian at a mode, carried over to the sampling coordinates."""
    z, jacobian = at.mean, np.eye(density.dim)
    for i, (mean, scale) in density.pooled_at.items():
        c = centring[i]
        size = np.exp(c * z[scale])
        jacobian[i, mean], jacobian[i, scale], jacobian[i, i] = c, c * size * z[i], size
    root = jacobian @ at.root
    lower = scipy.linalg.qr(root.T, mode="r")[0].T
    lower = lower[:, : density.dim] * np.sign(np.diag(lower))
    return Gaussian(density.to_centred(z, centring), lower, at.log_evidence)


def _inverse(curvature: Array) -> Array:
    """Covariance; flat or rising directions get the prior's unit scale."""
    values, vectors = np.linalg.eigh(curvature)
    covariance = (vectors / np.where(values > 1e-3, values, 1.0)) @ vectors.T
    return 0.5 * (covariance + covariance.T)


def _starts(density: PanelDensity, rng: np.random.Generator) -> Array:
    """Half-way between the centre of the prior and draws of it, at middling spreads."""
    z = 0.5 * density.sample_prior(STARTS, rng)
    for name in ("sigma_alpha", "sigma_beta"):
        if name in density.blocks:
            z[:, density.blocks[name]] = np.log(0.5 * float(density.priors[name].scale))  # type: ignore[arg-type]
    return z


def _differ(density: PanelDensity, one: Array, other: Array) -> bool:
    X = density.data.table.X
    gap = density.unpack(one).t(X) - density.unpack(other).t(X)
    return bool(np.sqrt(np.mean(gap**2)) > DISTINCT)
