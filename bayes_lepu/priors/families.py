r"""The families of priors: one table, read by `Prior`, the compiled density and the PyMC graph.

Every family of the real line has a log density of one form, given by five numbers (`Numbers`),

.. math:: \log f(x) = -\tfrac12 q r^2 - c\,|r| + \log\Phi(k x) + \text{const}, \qquad r = x - m,

where a Student t with :math:`\nu` degrees of freedom has :math:`-\tfrac{\nu + 1}{2}
\log(1 + q r^2 / \nu)` in place of the parabola. Families of probabilities are
:math:`\sum_k (\kappa_k - 1) \log w_k + \text{const}`. The constant is kept apart: MAP leaves it
out, so that the paper's penalties are matched exactly.

Slopes whose sign is known, "positive" and "negative", are skew normals (Azzalini, 1985) with
:math:`k = \pm 30 / \text{scale}`: half-normals whose wall at zero is smooth, so that optimisers and
samplers can cross it. The wrong sign has a probability of arctan(1/30)/π = 1 %.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from scipy.special import betaln, gammaln, log_ndtr

from bayes_lepu.errors import ModelError
from bayes_lepu.factors.curves import LOG_ROOT_2PI
from bayes_lepu.links import Array
from bayes_lepu.suggestions import unknown

if TYPE_CHECKING:
    from bayes_lepu.priors.prior import Prior

Support = Literal["real", "positive", "unit", "simplex"]
Size = tuple[int, ...]

SIGN_SHAPE = 30.0  # k·scale: steeper walls leave less beyond zero and cost the sampler small steps


class Numbers(NamedTuple):
    """The log density of a family of the real line; of several columns, arrays of them."""

    loc: Any = 0.0  # m
    precision: Any = 0.0  # q
    rate: Any = 0.0  # c, the paper's coefficient of an L1 penalty
    nu: Any = 0.0  # degrees of freedom, 0 for a parabola
    wall: Any = 0.0  # k, 0 where no sign is known


@dataclass(frozen=True)
class Family:
    """One row of the table.

    Attributes
    ----------
    name : str
    takes : tuple of str
        The options of `Prior` that it uses, of ``scale``, ``loc``, ``nu``, ``concentration``,
        ``parts``.
    constant : function of a prior
        Logarithm of the constant that normalises one entry.
    draw : function of a prior, a generator and a shape
        Independent draws; a simplex adds its axis.
    pymc : function of a prior
        Name of the PyMC distribution, or what makes the variable, and its parameters.
    numbers : function of a prior
        Its `Numbers`.
    support : {"real", "positive", "unit", "simplex"}
        Where its values live; a simplex has its components along the last axis.
    components : int
        How many numbers ``concentration`` holds.
    proper : bool
        Whether the density integrates to one.
    sign : float
        1 or -1 where nearly all of its mass lies on that side of zero.
    """

    name: str
    takes: tuple[str, ...]
    constant: Callable[["Prior"], float]
    draw: Callable[["Prior", np.random.Generator, Size], Array]
    pymc: Callable[["Prior"], tuple[str | Callable[..., Any], Mapping[str, Any]]]
    numbers: Callable[["Prior"], Numbers] = lambda prior: Numbers()
    support: Support = "real"
    components: int = 0
    proper: bool = True
    sign: float = 0.0


def _signed(name: str, sign: float) -> Family:
    k = sign * SIGN_SHAPE
    return Family(
        name,
        ("scale",),
        sign=sign,
        numbers=lambda p: Numbers(0.0, p.known_scale**-2, wall=k / p.known_scale),
        constant=lambda p: math.log(2 / p.known_scale) - LOG_ROOT_2PI,
        draw=lambda p, rng, size: _draw_skew_normal(p.known_scale, k, rng, size),
        pymc=lambda p: (_skew_normal, {"sigma": p.known_scale, "alpha": k}),
    )


def _draw_skew_normal(sigma: Any, alpha: Any, rng: np.random.Generator, size: Size) -> Array:
    """δ |u₀| + √(1 - δ²) u₁ of two normals, with the sign of alpha."""
    inside, around = np.abs(rng.normal(size=size)), rng.normal(size=size)
    return sigma * (alpha * inside + around) / np.hypot(1.0, alpha)


def _skew_normal(name: str, *, sigma: Any, alpha: Any, dims: Any) -> Any:
    """`pymc.SkewNormal`, whose own density has seven digits and is -inf far beyond the wall."""
    import pymc as pm
    import pytensor.tensor as pt

    half, root_2 = np.float64(0.5), np.float64(math.sqrt(2))

    def logp(value: Any, sigma: Any, alpha: Any) -> Any:
        x = -alpha * value / (sigma * root_2)
        near, far = pt.minimum(x, 0), pt.maximum(x, 0)
        wall = pt.switch(x < 0, pt.log(half * pt.erfc(near)), pt.log(half * pt.erfcx(far)) - far**2)
        level = np.float64(math.log(2) - LOG_ROOT_2PI) - pt.log(sigma)
        return wall + level - half * (value / sigma) ** 2

    def draw(sigma: Any, alpha: Any, rng: Any = None, size: Any = None) -> Any:
        return _draw_skew_normal(sigma, alpha, rng, np.shape(sigma) if size is None else size)

    options = {"logp": logp, "random": draw, "signature": "(),()->()"}
    return pm.CustomDist(name, sigma, alpha, dims=dims, **options)


def _nothing_to_draw(prior: "Prior", rng: np.random.Generator, size: Size) -> Array:
    raise ModelError("A flat prior cannot be sampled. Give a proper prior instead.")


def _student_constant(p: "Prior") -> float:
    level = gammaln(0.5 * (p.nu + 1)) - gammaln(0.5 * p.nu)
    return float(level - 0.5 * math.log(p.nu * math.pi) - math.log(p.known_scale))


_TABLE = (
    Family(
        "normal",
        ("scale", "loc"),
        numbers=lambda p: Numbers(p.loc, p.known_scale**-2),
        constant=lambda p: -math.log(p.known_scale) - LOG_ROOT_2PI,
        draw=lambda p, rng, size: rng.normal(p.loc, p.known_scale, size),
        pymc=lambda p: ("Normal", {"mu": p.loc, "sigma": p.known_scale}),
    ),
    Family(  # the paper's L1 penalty
        "laplace",
        ("scale", "loc"),
        numbers=lambda p: Numbers(p.loc, rate=1 / p.known_scale),
        constant=lambda p: -math.log(2 * p.known_scale),
        draw=lambda p, rng, size: rng.laplace(p.loc, p.known_scale, size),
        pymc=lambda p: ("Laplace", {"mu": p.loc, "b": p.known_scale}),
    ),
    Family(
        "student-t",
        ("scale", "loc", "nu"),
        numbers=lambda p: Numbers(p.loc, p.known_scale**-2, nu=p.nu),
        constant=_student_constant,
        draw=lambda p, rng, size: p.loc + p.known_scale * rng.standard_t(p.nu, size),
        pymc=lambda p: ("StudentT", {"nu": p.nu, "mu": p.loc, "sigma": p.known_scale}),
    ),
    Family(  # no prior at all: MAP only, because the posterior is improper
        "flat",
        (),
        proper=False,
        constant=lambda p: 0.0,
        draw=_nothing_to_draw,
        pymc=lambda p: ("Flat", {}),
    ),
    _signed("positive", 1.0),
    _signed("negative", -1.0),
    Family(  # of scales
        "halfnormal",
        ("scale",),
        support="positive",
        numbers=lambda p: Numbers(0.0, p.known_scale**-2),
        constant=lambda p: math.log(2 / p.known_scale) - LOG_ROOT_2PI,
        draw=lambda p, rng, size: np.abs(rng.normal(0.0, p.known_scale, size)),
        pymc=lambda p: ("HalfNormal", {"sigma": p.known_scale}),
    ),
    Family(  # a scale that is taken as known, ``loc``: no coordinate is spent on it
        "known",
        ("loc",),
        support="positive",
        constant=lambda p: 0.0,
        draw=lambda p, rng, size: np.full(size, p.loc),
        pymc=lambda p: ("Deterministic", {"var": p.loc}),
    ),
    Family(
        "beta",
        ("concentration",),
        support="unit",
        components=2,
        constant=lambda p: -float(betaln(*p.concentration)),
        draw=lambda p, rng, size: rng.beta(p.concentration[0], p.concentration[1], size),
        pymc=lambda p: ("Beta", dict(zip(("alpha", "beta"), p.concentration, strict=True))),
    ),
    Family(
        "dirichlet",
        ("concentration",),
        support="simplex",
        components=3,
        constant=lambda p: float(gammaln(sum(p.concentration)) - gammaln(p.concentration).sum()),
        draw=lambda p, rng, size: rng.dirichlet(p.concentration, size),
        pymc=lambda p: ("Dirichlet", {"a": p.concentration}),
    ),
    Family(  # ``parts`` holds a prior for each entry along the last axis
        "columns",
        ("parts",),
        numbers=lambda p: Numbers(*np.array([part.numbers for part in p.parts]).T),
        # The mean over the parts: times their number it is the constant of all entries.
        constant=lambda p: float(np.mean([part.log_normalizer() for part in p.parts])),
        draw=lambda p, rng, size: np.stack([q.sample(rng, size[:-1]) for q in p.parts], axis=-1),
        pymc=lambda p: ("CustomDist", {}),  # made by `columns_variable`
    ),
)
FAMILIES: dict[str, Family] = {family.name: family for family in _TABLE}


def get_family(name: str) -> Family:
    """The family of this name."""
    if name not in FAMILIES:
        raise ModelError(
            f"{unknown('prior family', name, FAMILIES)} Any other prior is written in PyMC, in "
            "place of Prior('flat') in lepu.build_model (docs/reference/priors.md shows how)."
        )
    return FAMILIES[name]


def entry_logpdf(prior: "Prior", x: Array) -> Array:
    """Log density of every entry of x (of every simplex) without its constant."""
    if prior.form.support == "simplex":
        return np.log(x) @ (np.array(prior.concentration) - 1)
    if prior.form.support == "unit":
        k1, k2 = prior.concentration
        return (k1 - 1) * np.log(x) + (k2 - 1) * np.log1p(-x)
    n = prior.numbers
    square = n.precision * (x - n.loc) ** 2
    nu = np.where(np.equal(n.nu, 0), 1.0, n.nu)
    heavy = -0.5 * (nu + 1) * np.log1p(square / nu)
    wall = np.where(np.equal(n.wall, 0), 0.0, log_ndtr(n.wall * x))
    return np.where(np.equal(n.nu, 0), -0.5 * square, heavy) - n.rate * np.abs(x - n.loc) + wall


def pymc_variable(prior: "Prior", name: str, dims: Any) -> Any:
    """The PyMC variable, inside a model context.

    Numbers are handed over as float64: PyTensor takes a plain 1.5 for a float32 and computes its
    logarithm with seven digits.
    """
    import pymc as pm

    parts = prior.parts
    if parts and len(set(parts)) == 1:
        prior = parts[0]
    elif parts:
        return _columns_variable(prior, name, dims)
    distribution, given = prior.form.pymc(prior)
    numbers: dict[str, Any] = {key: np.asarray(value, float) for key, value in given.items()}
    if distribution == "Deterministic":
        import pytensor.tensor as pt

        return pm.Deterministic(name, pt.constant(numbers["var"]))
    return _made(distribution, name, numbers, dims)


def _made(distribution: str | Callable[..., Any], name: str, numbers: Any, dims: Any) -> Any:
    import pymc as pm

    make = getattr(pm, distribution) if isinstance(distribution, str) else distribution
    return make(name, **numbers, dims=dims)


def _columns_variable(prior: "Prior", name: str, dims: Any) -> Any:
    """One variable whose entries have the densities of the parts."""
    import pymc as pm
    import pytensor.tensor as pt

    given = [part.form.pymc(part) for part in prior.parts]
    if len({distribution for distribution, _ in given}) == 1:  # a vector of one distribution
        vectors = {key: np.array([numbers[key] for _, numbers in given]) for key in given[0][1]}
        return _made(given[0][0], name, vectors, dims)

    def logp(value: Any, _: Any) -> Any:
        with pm.Model(model=None):  # only their densities are wanted, not the variables
            parts = [part.variable(f"part {j}") for j, part in enumerate(prior.parts)]
        return pt.stack([pm.logp(part, value[j]) for j, part in enumerate(parts)])

    def draw(_: Any, rng: Any = None, size: Any = None) -> Any:
        return prior.sample(rng, (*(size or ())[:-1], len(prior.parts)))

    places = np.arange(len(prior.parts))
    return pm.CustomDist(name, places, logp=logp, random=draw, dims=dims, signature="()->()")
