r"""Signs that the priors give slopes: the orientation they support, and draws that keep them.

A prior that gives slope i a sign multiplies the density by the wall Φ(k_i z_i). Where it says that
a slope of t is positive, the exchange of t and s hands that sign to a slope of s, and the odds of
the two orientations by the signs alone are those of the walls at θ and at S θ.

The curvature at a mode next to a wall is that of the wall, not of the posterior behind it.
Laplace's Gaussians there have the curvature of the density without the walls, and a draw of theirs
is kept with probability :math:`\prod_i \Phi(k_i z_i)`.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import log_ndtr

from bayes_lepu.engines.laplace import Mixture, gaussian_near
from bayes_lepu.errors import ModelError
from bayes_lepu.links import Array
from bayes_lepu.model.density import LogDensity

SETTLED = 0.95  # probability of a naming from which the signs are said to settle it
ROUNDS = 200  # of draws before giving up: seven slopes at their walls leave one draw in 128


def settle_naming(density: LogDensity, z: Array, probability: float | None) -> bool:
    """Whether the signs leave no doubt about the naming at z, which has this probability."""
    if probability is None or probability < SETTLED or not density.can_exchange:
        return False
    if not density.walls.any():
        return False
    here, there = (log_walls(density.walls, x) for x in (z, density.swap(z)))
    return bool(here - there >= math.log(SETTLED / (1 - SETTLED)))


def log_walls(walls: Array, z: Array) -> Array:
    """Σ log Φ(k z) over the coordinates whose sign is known."""
    known = walls != 0
    return log_ndtr(walls[known] * z[..., known]).sum(axis=-1)


@dataclass(frozen=True, eq=False)
class OneSided(Mixture):
    """Gaussians times the walls of the priors; the density is not normalised."""

    walls: Array

    def sample(self, rng: np.random.Generator, count: int) -> Array:
        """Draws of the Gaussians, each kept with the probability that the walls give it."""
        kept = np.empty((0, self.walls.size))
        for _ in range(ROUNDS):
            z = super().sample(rng, count)
            kept = np.vstack([kept, z[np.log(rng.random(count)) < log_walls(self.walls, z)]])
            if len(kept) >= count:
                return kept[:count]
        raise ModelError(
            f"The priors give {np.count_nonzero(self.walls)} slope(s) a sign, and fewer than one "
            f"draw in {ROUNDS} of the Gaussians of method='laplace' has them all. Use "
            "method='nuts', or give the signs of fewer slopes."
        )

    def logpdf(self, z: Array) -> Array:
        """Log density up to a constant, which importance weights do not need."""
        return super().logpdf(z) + log_walls(self.walls, z)


def one_sided(density: LogDensity, mixture: Mixture) -> Mixture:
    """The mixture with the curvature behind the walls, where the priors give signs."""
    if not density.walls.any():
        return mixture
    priors = {name: prior.unsigned() for name, prior in density.priors.items()}
    free = replace(density, priors=priors)
    return OneSided(tuple(gaussian_near(free, g.mean) for g in mixture.parts), density.walls)
