r"""Signs that the priors give slopes: what they say of the naming, and Gaussians that obey them.

Where a prior says that a slope of t is positive, the exchange of t and s hands that sign to a slope
of s, and the odds of the two namings by the signs alone are those of the walls at θ and at S θ.

A Gaussian knows nothing of a wall at zero. Near one, the posterior is the Gaussian of the density
*without* the signs, cut off there:

.. math:: N(\mu, H^{-1}) \text{ on } \{\pm z_i > 0\}, \qquad \mu = z + H^{-1} g,

with gradient g and curvature H of that density at the mode z. Coordinates with a sign are drawn
first, one after the other from normals that are cut off given those before (Geweke, 1991;
Hajivassiliou and McFadden, 1998), which leaves a proposal whose density is known.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy.special import log_ndtr, logsumexp, ndtri_exp

from bayes_lepu.inference.laplace import Gaussian, covariance_root, lower_factor
from bayes_lepu.links import Array
from bayes_lepu.models.density import LogDensity

SETTLED = 0.95  # probability of a naming from which the signs are said to settle it
DRAWS = 500  # for the mass that the signs leave of a Gaussian: known to a few per cent


def settle_naming(density: LogDensity, z: Array, probability: float | None) -> bool:
    """Whether the signs leave no doubt about the naming at z, which has this probability."""
    if probability is None or probability < SETTLED or not density.can_exchange:
        return False
    if not sign_places(density)[0].size:
        return False
    free = without_signs(density)
    here, there = (density.log_prior(x) - free.log_prior(x) for x in (z, density.swap(z)))
    return here - there >= math.log(SETTLED / (1 - SETTLED))


def sign_places(density: LogDensity) -> tuple[NDArray[np.intp], Array]:
    """Coordinates whose prior says a sign, and the signs."""
    places, signs = [], []
    for block in density.layout.blocks:
        at = density.layout.slices[block.name]
        if not any(part.sign for part in block.prior.parts or (block.prior,)):
            continue
        parts = block.prior.parts or (block.prior,) * block.size
        for place, part in zip(range(at.start, at.stop), parts, strict=True):
            if part.sign:
                places.append(place)
                signs.append(part.sign)
    return np.array(places, dtype=np.intp), np.array(signs, dtype=float)


def without_signs(density: LogDensity) -> LogDensity:
    """The same density with normal priors in place of those that say a sign."""
    return replace(density, priors={n: prior.unsigned() for n, prior in density.priors.items()})


@dataclass(frozen=True, eq=False)
class CutGaussian(Gaussian):
    """A Gaussian cut off at zero in its first coordinates.

    Attributes
    ----------
    mean : (dim,) array
        The mode that it stands for.
    root : (dim, dim) array
        Lower-triangular factor of the covariance before the cut, coordinates in ``order``.
    center : (dim,) array
        Mean before the cut, in ``order``.
    order : (dim,) array
        The coordinates, those with a sign first.
    sign : (signs,) array
    """

    center: Array
    order: NDArray[np.intp]
    sign: Array

    def sample(self, rng: np.random.Generator, count: int) -> Array:
        """Draws of shape (count, dim), each with its signs."""
        u = rng.standard_normal((count, self.mean.size))
        for i, sign in enumerate(self.sign):
            uniform = np.log1p(-rng.random(count))  # logarithm of a number in (0, 1]
            u[:, i] = -sign * ndtri_exp(self._log_mass(u, i) + uniform)
        z = np.empty_like(u)
        z[:, self.order] = self.center + u @ self.root.T
        return z

    def logpdf(self, z: Array) -> Array:
        """Log density, -inf on the wrong side of a cut."""
        moved = z[:, self.order] - self.center
        u = scipy.linalg.solve_triangular(self.root, moved.T, lower=True).T
        dim = self.mean.size
        out = -0.5 * (u * u).sum(axis=1) - np.log(np.diag(self.root)).sum()
        out -= 0.5 * dim * math.log(2 * math.pi)
        for i, sign in enumerate(self.sign):
            out -= self._log_mass(u, i)
            out[sign * z[:, self.order[i]] <= 0] = -np.inf
        return out

    def _log_mass(self, u: Array, i: int) -> Array:
        """Log probability of the sign of coordinate i, given those before it."""
        mean = self.center[i] + u[:, :i] @ self.root[i, :i]
        return log_ndtr(self.sign[i] * mean / self.root[i, i])


def cut_gaussian(density: LogDensity, z: Array) -> CutGaussian:
    """The Gaussian next to the mode z, with the signs that the priors give."""
    places, sign = sign_places(density)
    free = without_signs(density)
    value, grad = free.logp_grad(z)
    root = covariance_root(free, z)
    step = root @ (root.T @ grad)
    order = np.r_[places, np.setdiff1d(np.arange(z.size), places)]
    lower = lower_factor(root[order])
    evidence = value + 0.5 * float(grad @ step) + 0.5 * z.size * math.log(2 * math.pi)
    evidence += float(np.log(np.diag(lower)).sum())
    cut = CutGaussian(z, lower, evidence, (z + step)[order], order, sign)
    rng = np.random.default_rng(0)
    moved = (cut.sample(rng, DRAWS)[:, order] - cut.center).T
    u = scipy.linalg.solve_triangular(lower, moved, lower=True).T
    mass = sum(cut._log_mass(u, i) for i in range(sign.size))
    return replace(cut, log_evidence=evidence + float(logsumexp(mass)) - math.log(DRAWS))
