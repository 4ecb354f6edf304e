r"""The paper's way up: Adam and Nadam, and its coordinates (γ', λ') of PsychM's rates.

.. math:: \gamma = \frac{|\gamma'|}{1 + |\gamma'| + |\lambda'|}, \qquad
    \lambda = \frac{|\lambda'|}{1 + |\gamma'| + |\lambda'|}

The library climbs in u = log|γ'| and v = log|λ'|. The maxima are the same; the way there is not
(the paper's coordinates have a kink at 0 and four mirror images). `adam`, `nadam` and what
`in_paper_coordinates` makes of them are values for ``optimizer=`` of
`bayes_lepu.inference.map.fit_map`.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bayes_lepu.inference.l1 import climb_sparse
from bayes_lepu.links import Array
from bayes_lepu.models.density import LogDensity

SMALLEST = 1e-12  # |γ'| below this is read as this, which keeps the one-sided slope at 0
ITERATIONS = 3000
FIRST_RATE = 0.1  # falls to zero along a cosine, so that the last steps settle

Gradient = Callable[[Array], tuple[float, Array]]
Steps = Callable[[Gradient, Array], Array]
Climber = Callable[[LogDensity, Array], Array]


def adam_steps(logp_grad: Gradient, start: Array, *, nesterov: bool = False) -> Array:
    """Full-batch Adam (or Nadam) with the usual constants."""
    z, m, v = start.copy(), np.zeros_like(start), np.zeros_like(start)
    beta1, beta2 = 0.9, 0.999
    for k in range(1, ITERATIONS + 1):
        grad = logp_grad(z)[1]
        m = beta1 * m + (1 - beta1) * grad
        v = beta2 * v + (1 - beta2) * grad**2
        mean = m / (1 - beta1**k)
        if nesterov:
            mean = beta1 * m / (1 - beta1 ** (k + 1)) + (1 - beta1) * grad / (1 - beta1**k)
        rate = FIRST_RATE * 0.5 * (1 + np.cos(np.pi * k / ITERATIONS))
        z = z + rate * mean / (np.sqrt(v / (1 - beta2**k)) + 1e-8)
    return z


def nadam_steps(logp_grad: Gradient, start: Array) -> Array:
    """Full-batch Nadam."""
    return adam_steps(logp_grad, start, nesterov=True)


def adam(density: LogDensity, start: Array) -> Array:
    """Climb by Adam; an L1 penalty is climbed to exact zeros instead."""
    return _climb(density, density.logp_grad, start, adam_steps)


def nadam(density: LogDensity, start: Array) -> Array:
    """Climb by Nadam; an L1 penalty is climbed to exact zeros instead."""
    return _climb(density, density.logp_grad, start, nadam_steps)


def in_paper_coordinates(steps: Steps) -> Climber:
    """A climber that takes ``steps`` in the paper's (γ', λ') where the model has both rates."""

    def climb(density: LogDensity, start: Array) -> Array:
        if density.spec.n_rates != 2:
            return _climb(density, density.logp_grad, start, steps)
        paper = PaperCoordinates(density)
        x = _climb(density, paper.logp_grad, paper.forward(start), steps)
        return paper.backward(x)

    return climb


def _climb(density: LogDensity, logp_grad: Gradient, start: Array, steps: Steps) -> Array:
    if density.is_kinked:
        return climb_sparse(density, start, logp_grad)
    return steps(logp_grad, start)


@dataclass(frozen=True, eq=False)
class PaperCoordinates:
    """A density of PsychM in the paper's (γ', λ')."""

    density: LogDensity

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

    @property
    def _weights(self) -> slice:
        return self.density.blocks.rates

    def _away_from_zero(self, x: Array) -> Array:
        w = x[self._weights]
        return np.where(np.abs(w) < SMALLEST, SMALLEST, w)

    def _slope(self, x: Array) -> Array:
        """Derivative of u = log|γ'|, and one for everything that is not a rate."""
        slope = np.ones_like(x)
        slope[self._weights] = 1.0 / self._away_from_zero(x)
        return slope
