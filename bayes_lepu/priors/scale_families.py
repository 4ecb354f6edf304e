r"""The horseshoe: a scale of its own for the slope of every column.

.. math:: a_j \sim N(0, \sigma_j), \qquad
    p(\sigma_j \mid \tau) \propto \frac{e^{-\sigma_j^2 / 2 c^2}}{1 + (\sigma_j / \tau)^2}

A half-Cauchy of scale τ draws slopes to zero and lets single ones out (Carvalho et al., 2010,
doi:10.1093/biomet/asq017); the slab c holds those that are out as a normal prior would (Piironen
and Vehtari, 2017, doi:10.1214/17-EJS1337SI). The global scale τ is a number, or unknown with a
prior of its own: then it is learned from all columns of the factor. The density of a_j is infinite
at zero: there is no mode, and the horseshoe is for sampling.
"""

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import erfcx

from bayes_lepu.links import Array
from bayes_lepu.priors.families import LOG_2, Family, StudentT, register

if TYPE_CHECKING:
    from bayes_lepu.priors.prior import Prior


class HalfCauchy(Family):
    """A half-Cauchy scale, with a slab where one is given."""

    name = "half-cauchy"
    support = "positive"
    takes = ("scale", "slab")

    def logpdf(self, prior: "Prior", x: Array) -> Array:
        """-log(1 + x²/τ²) - x²/2c²."""
        return -np.log1p((x / prior.known_scale) ** 2) - 0.5 * (x * inverse_slab(prior)) ** 2

    def grad(self, prior: "Prior", x: Array) -> Array:
        """-2x / (τ² + x²) - x/c²."""
        return -2 * x / (prior.known_scale**2 + x**2) - x * inverse_slab(prior) ** 2

    def curvature(self, prior: "Prior", x: Array) -> Array:
        """2 (τ² - x²) / (τ² + x²)² + 1/c²."""
        square = prior.known_scale**2
        return 2 * (square - x**2) / (square + x**2) ** 2 + inverse_slab(prior) ** 2

    def log_normalizer(self, prior: "Prior") -> float:
        """-log[(π τ / 2) e^(τ²/2c²) erfc(τ / c√2)]."""
        return float(_level(prior.known_scale, inverse_slab(prior)))

    def sample(self, prior: "Prior", rng: np.random.Generator, size: tuple[int, ...]) -> Array:
        """Independent draws."""
        return draw_scales(np.full(size, prior.known_scale), inverse_slab(prior), rng)

    def variable(self, prior: "Prior", name: str, dims: Any, scale: Any) -> Any:
        """A variable of this density, sampled by its logarithm."""
        import pymc as pm
        import pytensor.tensor as pt
        from pymc.distributions.transforms import log

        if not prior.slab:
            return pm.HalfCauchy(name, scale, dims=dims)
        inverse = np.float64(inverse_slab(prior))

        def logp(value: Any, tau: Any) -> Any:
            level = -pt.log(np.float64(math.pi / 2) * tau * pt.erfcx(tau * inverse / ROOT_2))
            inside = level - pt.log1p((value / tau) ** 2) - (value * inverse) ** 2 / np.float64(2)
            return pt.switch(value >= 0, inside, -np.inf)

        def draw(tau: Any, rng: Any = None, size: Any = None) -> Any:
            shape = np.shape(tau) if size is None else tuple(size)
            return draw_scales(np.broadcast_to(tau, shape), float(inverse), rng)

        return pm.CustomDist(
            name,
            scale,
            logp=logp,
            random=draw,
            dims=dims,
            signature="()->()",
            default_transform=log,
        )


class HalfStudentT(StudentT):
    """Student's t with ``nu`` degrees of freedom of a positive number, for a global scale."""

    name = "half-student-t"
    support = "positive"
    takes = ("scale", "nu")

    def log_normalizer(self, prior: "Prior") -> float:
        """That of Student's t plus log 2."""
        return super().log_normalizer(prior) + LOG_2

    def sample(self, prior: "Prior", rng: np.random.Generator, size: tuple[int, ...]) -> Array:
        """Sizes of Student's draws."""
        return np.abs(super().sample(prior, rng, size))

    def variable(self, prior: "Prior", name: str, dims: Any, scale: Any) -> Any:
        """`pymc.HalfStudentT`."""
        import pymc as pm

        return pm.HalfStudentT(name, nu=np.float64(prior.nu), sigma=scale, dims=dims)


class Horseshoe(Family):
    """Of slopes: a normal for each, with a half-Cauchy scale of its own.

    Where the columns are known, `by_column` writes it out: ``scale`` is τ or its prior, ``slab`` is
    c.
    """

    name = "horseshoe"
    takes = ("scale", "slab")


ROOT_2 = np.float64(math.sqrt(2))
GLOBAL = ("half-cauchy", "half-student-t", "halfnormal")  # what an unknown τ can have as a prior


def of_column(prior: "Prior", column: str) -> "Prior":
    """The prior of one column; of a horseshoe, a normal whose unknown scale is the column's own."""
    if prior.family != Horseshoe.name:
        return prior
    make = type(prior)
    scale = make(HalfCauchy.name, scale=prior.scale, slab=prior.slab)
    return make("normal", scale=scale, block=column)


def log_given_global(sigma: Array, tau: Array, inverse: Array) -> Array:
    """Normalised log p(σ | τ) of every scale."""
    inside = -np.log1p((sigma / tau) ** 2) - 0.5 * (sigma * inverse) ** 2
    return inside + _level(tau, inverse)


def draw_scales(tau: Array, inverse: Array | float, rng: np.random.Generator) -> Array:
    """One scale for every τ: drawn from the narrower of half-Cauchy and slab, kept by the other."""
    shape = np.shape(tau)
    tau = np.ravel(tau)
    inverse = np.broadcast_to(inverse, shape).ravel()
    out, left = np.empty(tau.size), np.arange(tau.size)
    while left.size:
        t, k = tau[left], inverse[left]
        by_slab = t * k > 1
        drawn = t * np.abs(rng.standard_cauchy(left.size))
        drawn[by_slab] = np.abs(rng.normal(size=by_slab.sum())) / k[by_slab]
        kept = np.where(by_slab, 1 / (1 + (drawn / t) ** 2), np.exp(-0.5 * (drawn * k) ** 2))
        out[left] = drawn
        left = left[rng.random(left.size) > kept]
    return out.reshape(shape)


def inverse_slab(prior: "Prior") -> float:
    """1/c, 0 without a slab."""
    return 1 / prior.slab if prior.slab else 0.0


def _level(tau: Array | float, inverse: Array | float) -> Array:
    """-log ∫ of the half-Cauchy with its slab."""
    return -np.log(0.5 * math.pi * tau * erfcx(np.multiply(tau, inverse) / ROOT_2))


register(HalfCauchy())
register(HalfStudentT())
register(Horseshoe())
