r"""The coordinates in which a climb is made.

``softmax``
    The density's own: u = log γ/ρ and v = log λ/ρ, free of corners.
``paper``
    The paper's γ' and λ', with

    .. math:: \gamma = \frac{|\gamma'|}{1 + |\gamma'| + |\lambda'|}, \qquad
        \lambda = \frac{|\lambda'|}{1 + |\gamma'| + |\lambda'|},

    so that u = log|γ'| and v = log|λ'|. The maxima are the same; the way there is not (a kink at
    0, four mirror images), which is why it is kept for reproduction only.
``scaled``
    z = centre + L⁻ᵀ x with information L Lᵀ: the coordinates in which every direction is known
    to about one unit, so that few steps suffice.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from bayes_lepu.data import PUData
from bayes_lepu.errors import ModelError
from bayes_lepu.links import Array
from bayes_lepu.models.density import LogDensity

PARAMETRIZATIONS = ("softmax", "paper")
SMALLEST = 1e-12  # |γ'| below this is read as this, which keeps the one-sided slope at 0


class Climbable(Protocol):
    """What an optimiser needs to know of a log density."""

    @property
    def data(self) -> PUData:
        """The data."""

    def logp(self, z: Array) -> float:
        """Log density."""

    def logp_grad(self, z: Array) -> tuple[float, Array]:
        """Log density and gradient."""

    def logp_grad_info(self, z: Array) -> tuple[float, Array, Array]:
        """Log density, gradient and expected information."""


@dataclass(frozen=True, eq=False)
class PaperCoordinates:
    """A density of PsychM in the paper's (γ', λ')."""

    density: LogDensity

    @property
    def data(self) -> PUData:
        """The data."""
        return self.density.data

    def forward(self, z: Array) -> Array:
        """From the density's coordinates to the paper's."""
        x = z.copy()
        x[self._weights] = np.exp(np.clip(z[self._weights], np.log(SMALLEST), 30.0))
        return x

    def backward(self, x: Array) -> Array:
        """From the paper's coordinates to the density's."""
        z = x.copy()
        z[self._weights] = np.log(np.abs(self._away_from_zero(x)))
        return z

    def logp(self, x: Array) -> float:
        """Log density."""
        return self.density.logp(self.backward(x))

    def logp_grad(self, x: Array) -> tuple[float, Array]:
        """Log density and gradient."""
        value, grad = self.density.logp_grad(self.backward(x))
        return value, grad * self._slope(x)

    def logp_grad_info(self, x: Array) -> tuple[float, Array, Array]:
        """Log density, gradient and expected information."""
        value, grad, information = self.density.logp_grad_info(self.backward(x))
        slope = self._slope(x)
        return value, grad * slope, information * np.outer(slope, slope)

    @property
    def _weights(self) -> slice:
        return self.density.blocks.weights

    def _away_from_zero(self, x: Array) -> Array:
        w = x[self._weights]
        return np.where(np.abs(w) < SMALLEST, SMALLEST, w)

    def _slope(self, x: Array) -> Array:
        """Derivative of u = log|γ'|, and one for everything that is not a weight."""
        slope = np.ones_like(x)
        slope[self._weights] = 1.0 / self._away_from_zero(x)
        return slope


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


def check_parametrization(name: str) -> str:
    """The name, or an error that lists the names."""
    if name not in PARAMETRIZATIONS:
        raise ModelError(f"Unknown parametrization {name!r}. Known: {', '.join(PARAMETRIZATIONS)}.")
    return name
