"""What the data and the prior know at one point, side by side."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bayes_lepu.likelihood.factoring import inverse, solve
from bayes_lepu.links import Array


@dataclass(frozen=True, eq=False)
class Local:
    """Data information against prior precision at one point.

    Attributes
    ----------
    z : array
    names : list of str
    data : (dim, dim) array
        Expected information of the data, likelihood only.
    prior : (dim, dim) array
        Precision of the prior (of the default prior where the fit's own is flat).
    pi_gradient : array
        Gradient of π in the coordinates.
    """

    z: Array
    names: list[str]
    data: Array
    prior: Array
    pi_gradient: Array

    @cached_property
    def covariance(self) -> Array:
        """Inverse of data information plus prior precision."""
        return inverse(self.data + self.prior)

    def sample(self, rng: np.random.Generator, count: int) -> Array:
        """Draws of the Gaussian with this covariance."""
        values, vectors = np.linalg.eigh(self.covariance)
        noise = rng.normal(size=(count, len(values))) * np.sqrt(np.maximum(values, 0.0))
        return self.z + noise @ vectors.T

    def sd(self, gradient: Array, extra: Array | float = 0.0) -> float:
        """Delta-method sd of a function, with ``extra`` information added to that at hand."""
        total = self.data + self.prior + extra
        return float(np.sqrt(max(float(gradient @ solve(total, gradient)), 0.0)))
