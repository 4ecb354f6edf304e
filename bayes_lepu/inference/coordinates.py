r"""Coordinates scaled to what is known: z = centre + L⁻ᵀ x with information L Lᵀ.

In them every direction is known to about one unit, so that few steps of a climb suffice.
"""

from dataclasses import dataclass

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from bayes_lepu.links import Array
from bayes_lepu.models.density import LogDensity


@dataclass(frozen=True, eq=False)
class ScaledCoordinates:
    """A density around a centre, in units of what is known about it."""

    density: LogDensity
    center: Array
    root: NDArray[np.float64]  # lower triangular L

    @classmethod
    def around(cls, density: LogDensity, center: Array, information: Array) -> "ScaledCoordinates":
        """Coordinates with this information, made positive definite where it is not."""
        scale = np.sqrt(np.maximum(np.diag(information), 1e-8))
        correlation = information / np.outer(scale, scale)
        values, vectors = np.linalg.eigh(correlation)
        repaired = (vectors * np.maximum(values, 1e-10)) @ vectors.T
        return cls(density, center, scale[:, None] * np.linalg.cholesky(repaired))

    def backward(self, x: Array) -> Array:
        """The density's coordinates."""
        return self.center + scipy.linalg.solve_triangular(self.root, x, lower=True, trans="T")

    def logp_grad(self, x: Array) -> tuple[float, Array]:
        """Log density and gradient."""
        value, grad = self.density.logp_grad(self.backward(x))
        return value, scipy.linalg.solve_triangular(self.root, grad, lower=True)
