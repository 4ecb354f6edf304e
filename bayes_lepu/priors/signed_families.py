r"""Priors that know the sign of a slope: nearly all of their mass is on one side of zero.

.. math:: \log p(x) = -\frac{x^2}{2 s^2} + \log\Phi\!\left(\pm k\,\frac{x}{s}\right) + \text{const},
    \qquad k = 30,

a skew normal (Azzalini, 1985). It is smooth, so that optimisers and samplers can cross zero, and
gives the wrong sign a probability of arctan(1/k)/π = 1 %. Beyond zero it is a half-normal. Draws of
``method="laplace"`` all have the sign.
"""

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import log_ndtr

from bayes_lepu.links import Array
from bayes_lepu.priors.families import Family, register

if TYPE_CHECKING:
    from bayes_lepu.priors.prior import Prior

SHAPE = 30.0  # steeper walls leave less beyond zero and cost the sampler smaller steps


class Positive(Family):
    """A slope that is positive, of the size of ``scale``."""

    name = "positive"
    takes = ("scale",)
    sign = 1.0

    def logpdf(self, prior: "Prior", x: Array) -> Array:
        """-x² / (2 scale²) + log Φ(k x / scale)."""
        return -0.5 * (x / prior.known_scale) ** 2 + log_ndtr(self._u(prior, x))

    def grad(self, prior: "Prior", x: Array) -> Array:
        """-x / scale² + (k / scale) φ/Φ."""
        return -x / prior.known_scale**2 + self._step(prior) * _hazard(self._u(prior, x))

    def curvature(self, prior: "Prior", x: Array) -> Array:
        """1 / scale² + (k / scale)² r (r + u) with r = φ/Φ."""
        u = self._u(prior, x)
        r = _hazard(u)
        return prior.known_scale**-2 + self._step(prior) ** 2 * r * (r + u)

    def log_normalizer(self, prior: "Prior") -> float:
        """That of the normal plus log 2."""
        return math.log(2 / prior.known_scale) - 0.5 * math.log(2 * math.pi)

    def sample(self, prior: "Prior", rng: np.random.Generator, size: tuple[int, ...]) -> Array:
        """δ |u₀| + √(1 - δ²) u₁ of two normals, with the sign."""
        delta = SHAPE / math.hypot(1.0, SHAPE)
        x = delta * np.abs(rng.normal(size=size)) + math.sqrt(1 - delta**2) * rng.normal(size=size)
        return self.sign * prior.known_scale * x

    def variable(self, prior: "Prior", name: str, dims: Any, scale: Any) -> Any:
        """`pymc.SkewNormal`."""
        import pymc as pm

        shape = np.float64(self.sign * SHAPE)
        return pm.SkewNormal(name, mu=np.float64(0.0), sigma=scale, alpha=shape, dims=dims)

    def _step(self, prior: "Prior") -> float:
        return self.sign * SHAPE / prior.known_scale

    def _u(self, prior: "Prior", x: Array) -> Array:
        return self._step(prior) * x


class Negative(Positive):
    """A slope that is negative."""

    name = "negative"
    sign = -1.0


def _hazard(u: Array) -> Array:
    """φ(u) / Φ(u), in the far tail too."""
    return np.exp(-0.5 * u * u - 0.5 * math.log(2 * math.pi) - log_ndtr(u))


register(Positive())
register(Negative())
