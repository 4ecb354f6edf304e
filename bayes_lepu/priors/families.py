r"""Families of prior densities, one class each, in a registry.

A family knows the log density of a `Prior` up to the constant that MAP leaves out, its gradient and
curvature, that constant, draws, and the PyMC variable. A family of your own is a subclass of
`Family` handed to `register`; `Prior(name, ...)` then finds it by its name and every method works.

Families whose log density is a parabola, an absolute value or a sum of logarithms also say so by
`Family.parabola` or `Family.exponents`: these run inside the compiled density. The others are added
in Python, which is exact and a little slower.
"""

import math
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from scipy.special import betaln, gammaln

from bayes_lepu.errors import ModelError
from bayes_lepu.links import Array
from bayes_lepu.suggestions import unknown

if TYPE_CHECKING:
    from bayes_lepu.priors.prior import Prior

Support = Literal["real", "positive", "unit", "simplex"]
LOG_2 = math.log(2)


class Parabola(NamedTuple):
    """A log density -precision (x - loc)²/2 - rate |x - loc|."""

    loc: float
    precision: float
    rate: float


class Family:
    """A family of prior densities.

    Attributes
    ----------
    name : str
        What `Prior` calls it.
    support : {"real", "positive", "unit", "simplex"}
        Where its values live; a simplex has its components along the last axis.
    takes : tuple of str
        The options of `Prior` that it uses, of ``scale``, ``loc``, ``concentration``, ``nu``,
        ``slab``, ``parts``.
    components : int
        How many numbers ``concentration`` holds, 0 for none.
    proper : bool
        Whether the density integrates to one.
    sign : float
        1 or -1 where nearly all of its mass lies on that side of zero.
    """

    name: str
    support: Support = "real"
    takes: tuple[str, ...] = ("scale", "loc")
    components: int = 0
    proper: bool = True
    sign: float = 0.0

    def logpdf(self, prior: "Prior", x: Array) -> Array:
        """Log density of every entry of x without the constant of `log_normalizer`."""
        raise NotImplementedError

    def grad(self, prior: "Prior", x: Array) -> Array:
        """Derivative of `logpdf`."""
        raise NotImplementedError

    def curvature(self, prior: "Prior", x: Array) -> Array:
        """Minus the second derivative of `logpdf`."""
        raise NotImplementedError

    def log_normalizer(self, prior: "Prior") -> float:
        """What `logpdf` leaves out, for one entry."""
        raise NotImplementedError

    def sample(self, prior: "Prior", rng: np.random.Generator, size: tuple[int, ...]) -> Array:
        """Independent draws; a simplex adds its axis."""
        raise NotImplementedError

    def variable(self, prior: "Prior", name: str, dims: Any, scale: Any) -> Any:
        """The PyMC variable, inside a model context; ``scale`` is a number or a variable."""
        raise NotImplementedError

    def parabola(self, prior: "Prior") -> Parabola | None:
        """The log density as a `Parabola`, where it is one."""
        return None

    def exponents(self, prior: "Prior") -> tuple[float, ...] | None:
        """Exponents of the components of a simplex in the density, where that is its form."""
        return None


class Normal(Family):
    """Normal(loc, scale)."""

    name = "normal"

    def logpdf(self, prior: "Prior", x: Array) -> Array:
        """-(x - loc)² / (2 scale²)."""
        return -0.5 * ((x - prior.loc) / prior.known_scale) ** 2

    def grad(self, prior: "Prior", x: Array) -> Array:
        """-(x - loc) / scale²."""
        return -(x - prior.loc) / prior.known_scale**2

    def curvature(self, prior: "Prior", x: Array) -> Array:
        """1 / scale²."""
        return np.full(np.shape(x), prior.known_scale**-2)

    def log_normalizer(self, prior: "Prior") -> float:
        """-log(scale √(2π))."""
        return -math.log(prior.known_scale) - 0.5 * math.log(2 * math.pi)

    def sample(self, prior: "Prior", rng: np.random.Generator, size: tuple[int, ...]) -> Array:
        """Independent draws."""
        return rng.normal(prior.loc, prior.known_scale, size)

    def variable(self, prior: "Prior", name: str, dims: Any, scale: Any) -> Any:
        """`pymc.Normal`."""
        import pymc as pm

        return pm.Normal(name, np.float64(prior.loc), scale, dims=dims)

    def parabola(self, prior: "Prior") -> Parabola:
        """Precision 1/scale²."""
        return Parabola(prior.loc, prior.known_scale**-2, 0.0)


class Laplace(Family):
    """Laplace(loc, scale), the paper's L1 penalty."""

    name = "laplace"

    def logpdf(self, prior: "Prior", x: Array) -> Array:
        """-|x - loc| / scale."""
        return 0.0 - np.abs(x - prior.loc) / prior.known_scale

    def grad(self, prior: "Prior", x: Array) -> Array:
        """The subgradient 0 at the kink."""
        return -np.sign(x - prior.loc) / prior.known_scale

    def curvature(self, prior: "Prior", x: Array) -> Array:
        """Zero away from the kink."""
        return np.zeros(np.shape(x))

    def log_normalizer(self, prior: "Prior") -> float:
        """-log(2 scale)."""
        return -math.log(2 * prior.known_scale)

    def sample(self, prior: "Prior", rng: np.random.Generator, size: tuple[int, ...]) -> Array:
        """Independent draws."""
        return rng.laplace(prior.loc, prior.known_scale, size)

    def variable(self, prior: "Prior", name: str, dims: Any, scale: Any) -> Any:
        """`pymc.Laplace`."""
        import pymc as pm

        return pm.Laplace(name, np.float64(prior.loc), scale, dims=dims)

    def parabola(self, prior: "Prior") -> Parabola:
        """Rate 1/scale."""
        return Parabola(prior.loc, 0.0, 1.0 / prior.known_scale)


class StudentT(Family):
    """Student's t with ``nu`` degrees of freedom: heavier tails than the normal."""

    name = "student-t"
    takes: tuple[str, ...] = ("scale", "loc", "nu")

    def logpdf(self, prior: "Prior", x: Array) -> Array:
        """-(nu + 1)/2 log(1 + z²/nu) with z = (x - loc)/scale."""
        z = (x - prior.loc) / prior.known_scale
        return -0.5 * (prior.nu + 1) * np.log1p(z * z / prior.nu)

    def grad(self, prior: "Prior", x: Array) -> Array:
        """-(nu + 1) z / (nu + z²) / scale."""
        z = (x - prior.loc) / prior.known_scale
        return -(prior.nu + 1) * z / (prior.nu + z * z) / prior.known_scale

    def curvature(self, prior: "Prior", x: Array) -> Array:
        """(nu + 1)(nu - z²) / (nu + z²)² / scale²; negative far out."""
        z = (x - prior.loc) / prior.known_scale
        return (prior.nu + 1) * (prior.nu - z * z) / (prior.nu + z * z) ** 2 / prior.known_scale**2

    def log_normalizer(self, prior: "Prior") -> float:
        """Of the density of SciPy and PyMC."""
        nu = prior.nu
        level = gammaln(0.5 * (nu + 1)) - gammaln(0.5 * nu)
        return float(level - 0.5 * math.log(nu * math.pi) - math.log(prior.known_scale))

    def sample(self, prior: "Prior", rng: np.random.Generator, size: tuple[int, ...]) -> Array:
        """Independent draws."""
        return prior.loc + prior.known_scale * rng.standard_t(prior.nu, size)

    def variable(self, prior: "Prior", name: str, dims: Any, scale: Any) -> Any:
        """`pymc.StudentT`."""
        import pymc as pm

        nu, loc = np.float64(prior.nu), np.float64(prior.loc)
        return pm.StudentT(name, nu=nu, mu=loc, sigma=scale, dims=dims)


class Flat(Family):
    """No prior at all; for MAP only, because the posterior is improper."""

    name = "flat"
    takes: tuple[str, ...] = ()
    proper = False

    def logpdf(self, prior: "Prior", x: Array) -> Array:
        """Zero."""
        return np.zeros(np.shape(x))

    def grad(self, prior: "Prior", x: Array) -> Array:
        """Zero."""
        return np.zeros(np.shape(x))

    def curvature(self, prior: "Prior", x: Array) -> Array:
        """Zero."""
        return np.zeros(np.shape(x))

    def log_normalizer(self, prior: "Prior") -> float:
        """Zero: there is nothing to normalise."""
        return 0.0

    def sample(self, prior: "Prior", rng: np.random.Generator, size: tuple[int, ...]) -> Array:
        """Refused."""
        raise ModelError("A flat prior cannot be sampled. Give a proper prior instead.")

    def variable(self, prior: "Prior", name: str, dims: Any, scale: Any) -> Any:
        """`pymc.Flat`."""
        import pymc as pm

        return pm.Flat(name, dims=dims)

    def parabola(self, prior: "Prior") -> Parabola:
        """Nothing."""
        return Parabola(0.0, 0.0, 0.0)


class Known(Flat):
    """A number that is taken as known, ``loc``: no coordinate is spent on it."""

    name = "known"
    support = "positive"
    takes = ("loc",)
    proper = True

    def sample(self, prior: "Prior", rng: np.random.Generator, size: tuple[int, ...]) -> Array:
        """The number itself."""
        return np.full(size, prior.loc)

    def variable(self, prior: "Prior", name: str, dims: Any, scale: Any) -> Any:
        """A constant under the variable's name."""
        import pymc as pm
        import pytensor.tensor as pt

        return pm.Deterministic(name, pt.constant(np.float64(prior.loc)))


class HalfNormal(Normal):
    """Normal(0, scale) of a positive number, for scales."""

    name = "halfnormal"
    support = "positive"
    takes = ("scale",)

    def log_normalizer(self, prior: "Prior") -> float:
        """That of the normal plus log 2."""
        return super().log_normalizer(prior) + LOG_2

    def sample(self, prior: "Prior", rng: np.random.Generator, size: tuple[int, ...]) -> Array:
        """Sizes of normal draws."""
        return np.abs(super().sample(prior, rng, size))

    def variable(self, prior: "Prior", name: str, dims: Any, scale: Any) -> Any:
        """`pymc.HalfNormal`."""
        import pymc as pm

        return pm.HalfNormal(name, scale, dims=dims)


class Beta(Family):
    """Beta density of a probability."""

    name = "beta"
    support = "unit"
    takes = ("concentration",)
    components = 2

    def logpdf(self, prior: "Prior", x: Array) -> Array:
        """(k₁ - 1) log x + (k₂ - 1) log(1 - x)."""
        k1, k2 = prior.concentration
        return (k1 - 1) * np.log(x) + (k2 - 1) * np.log1p(-x)

    def grad(self, prior: "Prior", x: Array) -> Array:
        """(k₁ - 1) / x - (k₂ - 1) / (1 - x)."""
        k1, k2 = prior.concentration
        return (k1 - 1) / x - (k2 - 1) / (1 - x)

    def curvature(self, prior: "Prior", x: Array) -> Array:
        """(k₁ - 1) / x² + (k₂ - 1) / (1 - x)²."""
        k1, k2 = prior.concentration
        return (k1 - 1) / x**2 + (k2 - 1) / (1 - x) ** 2

    def log_normalizer(self, prior: "Prior") -> float:
        """-log B(k₁, k₂)."""
        return -float(betaln(*prior.concentration))

    def sample(self, prior: "Prior", rng: np.random.Generator, size: tuple[int, ...]) -> Array:
        """Independent draws."""
        k1, k2 = prior.concentration
        return rng.beta(k1, k2, size)

    def variable(self, prior: "Prior", name: str, dims: Any, scale: Any) -> Any:
        """`pymc.Beta`."""
        import pymc as pm

        return pm.Beta(name, *map(np.float64, prior.concentration), dims=dims)

    def exponents(self, prior: "Prior") -> tuple[float, ...]:
        """K - 1 of x and of 1 - x."""
        return tuple(k - 1 for k in prior.concentration)


class Dirichlet(Family):
    """Dirichlet density of probabilities that sum to one."""

    name = "dirichlet"
    support = "simplex"
    takes = ("concentration",)
    components = 3

    def logpdf(self, prior: "Prior", x: Array) -> Array:
        """Sum of (k - 1) log x over the components."""
        return np.log(x) @ (np.array(prior.concentration) - 1)

    def grad(self, prior: "Prior", x: Array) -> Array:
        """(k - 1) / x."""
        return (np.array(prior.concentration) - 1) / x

    def curvature(self, prior: "Prior", x: Array) -> Array:
        """(k - 1) / x²."""
        return (np.array(prior.concentration) - 1) / x**2

    def log_normalizer(self, prior: "Prior") -> float:
        """Log Γ(Σ k) - Σ log Γ(k)."""
        k = np.array(prior.concentration)
        return float(gammaln(k.sum()) - gammaln(k).sum())

    def sample(self, prior: "Prior", rng: np.random.Generator, size: tuple[int, ...]) -> Array:
        """Independent draws, components along a last axis."""
        return rng.dirichlet(prior.concentration, size)

    def variable(self, prior: "Prior", name: str, dims: Any, scale: Any) -> Any:
        """`pymc.Dirichlet`."""
        import pymc as pm

        return pm.Dirichlet(name, np.array(prior.concentration), dims=dims)

    def exponents(self, prior: "Prior") -> tuple[float, ...]:
        """K - 1 of every component."""
        return tuple(k - 1 for k in prior.concentration)


FAMILIES: dict[str, Family] = {}


def register(family: Family) -> Family:
    """Make a family known to `Prior` by its name.

    Examples
    --------
    >>> class Cauchy(StudentT):
    ...     name = "cauchy"
    >>> _ = register(Cauchy())
    >>> "cauchy" in FAMILIES
    True
    >>> del FAMILIES["cauchy"]
    """
    FAMILIES[family.name] = family
    return family


for _family in (Normal, Laplace, StudentT, Flat, Known, HalfNormal, Beta, Dirichlet):
    register(_family())


def get_family(name: str) -> Family:
    """The family of this name."""
    if name not in FAMILIES:
        raise ModelError(unknown("prior family", name, FAMILIES))
    return FAMILIES[name]
