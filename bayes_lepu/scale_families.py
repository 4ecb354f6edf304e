r"""The horseshoe: a scale of its own for the slope of every column.

.. math:: a_j \sim N(0, \sigma_j), \qquad
    p(\sigma) \propto \frac{e^{-\sigma^2 / 2 c^2}}{1 + (\sigma / \tau)^2}

A half-Cauchy of scale τ draws slopes to zero and lets single ones out (Carvalho et al., 2010,
doi:10.1093/biomet/asq017); the slab c holds those that are out as a normal prior would (Piironen
and Vehtari, 2017, doi:10.1214/17-EJS1337SI, who let τ be unknown; here it is given). The density of
a_j is infinite at zero: there is no mode, and the horseshoe is for sampling.
"""

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import erfcx

from bayes_lepu.families import Family, register
from bayes_lepu.links import Array

if TYPE_CHECKING:
    from bayes_lepu.priors import Prior


class HalfCauchy(Family):
    """A half-Cauchy scale with a slab."""

    name = "half-cauchy"
    support = "positive"
    takes = ("scale", "slab")

    def logpdf(self, prior: "Prior", x: Array) -> Array:
        """-log(1 + x²/τ²) - x²/2c²."""
        return -np.log1p((x / prior.known_scale) ** 2) - 0.5 * (x / prior.slab) ** 2

    def grad(self, prior: "Prior", x: Array) -> Array:
        """-2x / (τ² + x²) - x/c²."""
        return -2 * x / (prior.known_scale**2 + x**2) - x / prior.slab**2

    def curvature(self, prior: "Prior", x: Array) -> Array:
        """2 (τ² - x²) / (τ² + x²)² + 1/c²."""
        square = prior.known_scale**2
        return 2 * (square - x**2) / (square + x**2) ** 2 + prior.slab**-2

    def log_normalizer(self, prior: "Prior") -> float:
        """-log[(π τ / 2) e^(τ²/2c²) erfc(τ / c√2)]."""
        tau = prior.known_scale
        return -math.log(0.5 * math.pi * tau * erfcx(tau / (prior.slab * math.sqrt(2))))

    def sample(self, prior: "Prior", rng: np.random.Generator, size: tuple[int, ...]) -> Array:
        """Half-Cauchy draws, each kept with the probability that the slab gives it."""
        out = np.empty(math.prod(size))
        left = np.arange(out.size)
        while left.size:
            drawn = prior.known_scale * np.abs(rng.standard_cauchy(left.size))
            out[left] = drawn
            left = left[rng.random(left.size) > np.exp(-0.5 * (drawn / prior.slab) ** 2)]
        return out.reshape(size)

    def variable(self, prior: "Prior", name: str, dims: Any, scale: Any) -> Any:
        """A variable of this density, sampled by its logarithm."""
        import pymc as pm
        import pytensor.tensor as pt
        from pymc.distributions.transforms import log

        slab, level = np.float64(prior.slab), self.log_normalizer(prior)

        def logp(value: Any, tau: Any) -> Any:
            inside = level - pt.log1p((value / tau) ** 2) - (value / slab) ** 2 / np.float64(2)
            return pt.switch(value >= 0, inside, -np.inf)

        def draw(tau: Any, rng: Any = None, size: Any = None) -> Any:
            return self.sample(prior, rng, tuple(np.shape(tau) if size is None else size))

        return pm.CustomDist(
            name,
            scale,
            logp=logp,
            random=draw,
            dims=dims,
            signature="()->()",
            default_transform=log,
        )


class Horseshoe(Family):
    """Of slopes: a normal for each, with a half-Cauchy scale of its own.

    Where the columns are known, `by_column` writes it out: ``scale`` is τ, ``slab`` is c.
    """

    name = "horseshoe"
    takes = ("scale", "slab")


def of_column(prior: "Prior", column: str) -> "Prior":
    """The prior of one column; of a horseshoe, a normal whose unknown scale is the column's own."""
    if prior.family != Horseshoe.name:
        return prior
    make = type(prior)
    scale = make(HalfCauchy.name, scale=prior.scale, slab=prior.slab)
    return make("normal", scale=scale, block=column)


register(HalfCauchy())
register(Horseshoe())
