r"""Laplace: a Gaussian at every mode of the unconstrained posterior, weighted by evidence.

.. math::
    \log Z_k \approx \log p(z_k) + \tfrac d2 \log 2\pi - \tfrac12 \log\det H_k,

with H the observed information plus prior precision at mode k. Draws of the mixture are resampled
by their importance weights. The Pareto k of the weights shows whether they can be used (up to 0.7).
If k is above 0.5, each Gaussian becomes a Student-t with the mean and covariance of its weighted
draws (population Monte Carlo, Cappé et al., 2008).

A prior that gives slope i a sign multiplies the density by a smooth wall Φ(k_i z_i). The Gaussians
have the curvature without the walls; a draw is kept with probability
:math:`\prod_i \Phi(k_i z_i)`.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg
from scipy.special import gammaln, log_ndtr, logsumexp

from bayes_lepu.engines.optimizers import optimise
from bayes_lepu.errors import ModelError
from bayes_lepu.links import Array
from bayes_lepu.model.density import LogDensity
from bayes_lepu.model.parameters import Parameters
from bayes_lepu.rows.factoring import inverse_root

# Rows times draws for which weights are computed: a second or two. Beyond 30,000 rows and the usual
# 4000 draws fewer have weights, and the draws stay those of the mixture.
ROWS_BY_DRAWS = 120_000_000
KEPT_ROUNDS = 200  # of draws before giving up: seven slopes at their walls leave one in 128
TRUSTED_K = 0.7  # Pareto k up to which importance weights have a usable mean (Vehtari et al.)


@dataclass(frozen=True, eq=False)
class Gaussian:
    """A Gaussian approximation at one mode; a Student-t where the degrees of freedom are finite."""

    mean: Array  # (dim,)
    root: Array  # (dim, dim), the lower factor L of the covariance L L'
    log_evidence: float
    tails: float = np.inf  # degrees of freedom

    def sample(self, rng: np.random.Generator, count: int) -> Array:
        """Draws of shape (count, dim)."""
        u = rng.standard_normal((count, self.mean.size))
        if np.isfinite(self.tails):
            u *= np.sqrt(self.tails / rng.chisquare(self.tails, (count, 1)))
        return self.mean + u @ self.root.T

    def logpdf(self, z: Array) -> Array:
        """Log density at draws of shape (count, dim)."""
        u = scipy.linalg.solve_triangular(self.root, (z - self.mean).T, lower=True)
        square, dim, nu = (u * u).sum(axis=0), self.mean.size, self.tails
        at_mean = -np.log(np.diag(self.root)).sum() - 0.5 * dim * np.log(2 * np.pi)
        if not np.isfinite(nu):
            return at_mean - 0.5 * square
        at_mean += gammaln((nu + dim) / 2) - gammaln(nu / 2) - 0.5 * dim * np.log(nu / 2)
        return at_mean - 0.5 * (nu + dim) * np.log1p(square / nu)


@dataclass(frozen=True, eq=False)
class Mixture:
    """Gaussians at distinct modes with their evidence weights, times the walls of the priors.

    With walls the density is not normalised, which importance weights do not need.
    """

    parts: tuple[Gaussian, ...]
    walls: Array | None = None  # where the priors give slopes a sign

    @property
    def weights(self) -> Array:
        """Relative evidence of the modes."""
        logs = np.array([g.log_evidence for g in self.parts])
        return np.exp(logs - logsumexp(logs))

    @property
    def best(self) -> Gaussian:
        """The mode with the largest evidence."""
        return max(self.parts, key=lambda g: g.log_evidence)

    def sample(self, rng: np.random.Generator, count: int) -> Array:
        """Draws in random order, each kept with the probability that the walls give it."""
        kept: list[Array] = []
        signs = 0 if self.walls is None else np.count_nonzero(self.walls)
        for _ in range(KEPT_ROUNDS):
            counts = rng.multinomial(count, self.weights)
            draws = [g.sample(rng, int(k)) for g, k in zip(self.parts, counts, strict=True)]
            z = rng.permutation(np.concatenate(draws))
            if self.walls is None:
                return z
            kept.append(z[np.log(rng.random(count)) < log_walls(self.walls, z)])
            if sum(map(len, kept)) >= count:
                return np.concatenate(kept)[:count]
        raise ModelError(
            f"The priors give {signs} slope(s) a sign, and fewer than one draw in {KEPT_ROUNDS} of "
            "the Gaussians of method='laplace' has them all. Use method='nuts', or give the signs "
            "of fewer slopes."
        )

    def logpdf(self, z: Array) -> Array:
        """Log density of the mixture."""
        walls = 0.0 if self.walls is None else log_walls(self.walls, z)
        return logsumexp(self._logs(z), axis=0) + walls

    def responsibilities(self, z: Array) -> Array:
        """Probability that each draw is of each part, ``(parts, draws)``."""
        logs = self._logs(z)
        return np.exp(logs - logsumexp(logs, axis=0))

    def _logs(self, z: Array) -> Array:
        return np.stack([g.logpdf(z) for g in self.parts]) + np.log(self.weights)[:, None]


def log_walls(walls: Array, z: Array) -> Array:
    """Σ log Φ(k z) over the coordinates whose sign is known."""
    known = walls != 0
    return log_ndtr(walls[known] * z[..., known]).sum(axis=-1)


def one_sided(density: LogDensity, mixture: Mixture) -> Mixture:
    """The mixture with the curvature behind the walls, where the priors give signs."""
    if not density.prior.wall.any():
        return mixture
    priors = {name: prior.unsigned() for name, prior in density.priors.items()}
    free = replace(density, priors=priors)
    return Mixture(tuple(gaussian_near(free, g.mean) for g in mixture.parts), density.prior.wall)


def gaussian_at(density: LogDensity, start: Array) -> Gaussian:
    """The Gaussian at the mode next to ``start``."""
    return gaussian_near(density, optimise(density, start).z)


def gaussian_near(density: LogDensity, z: Array) -> Gaussian:
    """The Gaussian with mean z and the curvature there."""
    root = covariance_root(density, z)
    log_det = np.log(np.diag(root)).sum()
    evidence = density.logp(z) + 0.5 * density.dim * np.log(2 * np.pi) + log_det
    return Gaussian(z, root, float(evidence))


def mixture_at(density: LogDensity, points: Iterable[Parameters]) -> Mixture:
    """Gaussians at the distinct modes of the unconstrained density next to these points."""
    parts: list[Gaussian] = []
    for point in points:
        candidate = gaussian_at(density, density.pack(point))
        if not any(_same(candidate, other) for other in parts):
            parts.append(candidate)
    return Mixture(tuple(sorted(parts, key=lambda g: -g.log_evidence)))


def importance(density: LogDensity, mixture: Mixture, z: Array) -> tuple[Array, float]:
    """Weights p/q of draws, the largest smoothed, and their Pareto k (Vehtari et al., 2024)."""
    from arviz_stats.base import array_stats

    log_weights = density.logps(z) - mixture.logpdf(z)
    smoothed, k = array_stats.psislw(-log_weights)  # takes log densities of rows
    weights = np.exp(smoothed - np.max(smoothed))
    return weights / weights.sum(), float(k)


def weighed(density: LogDensity, mixture: Mixture, rng: np.random.Generator) -> Mixture:
    """The mixture with the evidence that importance weights give its parts, if they are usable."""
    z = mixture.sample(rng, int(np.clip(ROWS_BY_DRAWS // density.data.n_all, 200, 4000)))
    weights, k = importance(density, mixture, z)
    if not k <= TRUSTED_K:
        return mixture
    logs = np.log(mixture.responsibilities(z) @ weights)
    pairs = zip(mixture.parts, logs, strict=True)
    return Mixture(tuple(replace(part, log_evidence=float(log)) for part, log in pairs))


def resample(
    density: LogDensity, mixture: Mixture, rng: np.random.Generator, count: int
) -> tuple[Array, float]:
    """Draws of the posterior by importance resampling, and the Pareto k of the weights.

    Up to twice as many draws of the mixture are resampled in proportion to their weights. If k
    exceeds `TRUSTED_K`, the weights are useless, and the draws are those of the mixture.
    """
    affordable = ROWS_BY_DRAWS // density.data.n_all
    weighed = max(min(2 * count, affordable // 3), min(count, affordable))
    weighed = max(weighed, 200)  # for the tail of the weights to be seen
    z = mixture.sample(rng, max(count, weighed))
    weights, k = importance(density, mixture, z[:weighed])
    if weighed < count:
        return z[:count], k
    for _ in range(min(3, affordable // weighed - 1)):  # k seldom falls after the second
        if k <= 0.5:  # the weights have a finite variance
            break
        moved = moved_to(mixture, z[:weighed], weights)
        there = moved.sample(rng, weighed)
        weights_there, k_there = importance(density, moved, there)
        if not k_there < k:
            break
        mixture, z, weights, k = moved, there, weights_there, k_there
    if not k <= TRUSTED_K:
        return z[:count], k
    places = (np.arange(count) + rng.random()) / count
    index = np.minimum(np.searchsorted(np.cumsum(weights), places), weighed - 1)
    return rng.permutation(z[index]), k


def moved_to(mixture: Mixture, z: Array, weights: Array) -> Mixture:
    """The mixture with a Student-t in place of each part, at the mean and spread of its draws."""
    shares, parts = weights * mixture.responsibilities(z), []
    for part, own in zip(mixture.parts, shares, strict=True):
        total = max(float(own.sum()), np.finfo(float).tiny)
        # Tails heavier than those of a posterior keep the weights even.
        part = replace(part, tails=7.0, log_evidence=float(np.log(total)))
        if total**2 > 10 * part.mean.size * float(own @ own):  # ten effective draws a coordinate
            mean = own @ z / total
            off = (z - mean) * np.sqrt(own / total)[:, None]
            root = lower_factor(off.T)
            part = replace(part, mean=mean, root=root)
        parts.append(part)
    return replace(mixture, parts=tuple(parts))


def covariance_root(density: LogDensity, z: Array) -> Array:
    """Lower Cholesky factor of the inverse curvature; expected information where needed."""
    for find in (density.observed_information, lambda z: density.logp_grad_info(z)[2]):
        curvature = find(z)
        root = inverse_root(curvature)
        if root is not None:
            return root
    scale = np.diag(curvature)
    return np.diag(np.where(np.isfinite(scale), np.maximum(scale, 1e-6), 1.0) ** -0.5)


def gaussian_of_draws(z: Array, log_evidence: float) -> Gaussian:
    """Mean and covariance of draws ``(draws, dim)``, with a little added to every variance."""
    centred = (z - z.mean(axis=0)) / np.sqrt(len(z) - 1)
    root = lower_factor(np.hstack([centred.T, 1e-5 * np.eye(z.shape[1])]))
    return Gaussian(z.mean(axis=0), root, log_evidence)


def lower_factor(root: Array) -> Array:
    """The lower-triangular factor of root root', however small its smallest direction."""
    lower = scipy.linalg.qr(root.T, mode="r")[0].T[:, : len(root)]
    return np.ascontiguousarray(lower * np.where(np.diag(lower) < 0, -1.0, 1.0))


def _same(one: Gaussian, other: Gaussian) -> bool:
    gap = scipy.linalg.solve_triangular(other.root, one.mean - other.mean, lower=True)
    return bool(np.sqrt(np.mean(gap**2)) < 0.05)
