r"""Priors as frozen values, the table of families, and the paper's penalties written as priors.

Every family of the real line has a log density of one form, given by five numbers (`Numbers`),

.. math:: \log f(x) = -\tfrac12 q r^2 - c\,|r| + \log\Phi(k x) + \text{const}, \qquad r = x - m,

where a Student t with :math:`\nu` degrees of freedom has :math:`-\tfrac{\nu + 1}{2}
\log(1 + q r^2 / \nu)` in place of the parabola. Families of probabilities are
:math:`\sum_k (\kappa_k - 1) \log w_k + \text{const}`. MAP leaves the constant out.

"positive" and "negative" are half-normals whose wall at zero is smooth, so that optimisers and
samplers can cross it: :math:`k = \pm 30 / \text{scale}` (Azzalini, 1985). The wrong sign has a
probability of arctan(1/30)/π = 1 %.

The paper minimises :math:`-\log L + C_\alpha \lVert\alpha\rVert + C_a \lVert a\rVert`. As a log
posterior this is

* L2, :math:`C \lVert a\rVert_2^2`: ``Normal(0, 1/sqrt(2 C))`` on every slope,
* L1, :math:`C \lVert a\rVert_1`: ``Laplace(0, 1/C)`` on every slope,
* intercepts flat, :math:`(\gamma, \lambda, 1-\gamma-\lambda)` uniform on the simplex,

so that the mode of the posterior density (no Jacobian) is the paper's estimate exactly.
Flat intercepts make the posterior improper for every data set, so they belong to MAP only.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, gammaln, log_ndtr

from bayes_lepu.data.pu_data import PUData
from bayes_lepu.errors import ModelError
from bayes_lepu.factors.curves import LOG_ROOT_2PI
from bayes_lepu.links import Array
from bayes_lepu.suggestions import unknown

Support = Literal["real", "positive", "unit", "simplex"]
Size = tuple[int, ...]

SIGN_SHAPE = 30.0  # k·scale: a steeper wall needs smaller steps of the sampler
PENALTIES: tuple[str, ...] = ("l2", "l1", "none")
DEFAULT_C = 0.01  # so small that it matters only where the labels leave a parameter open
SLOPES = ("a", "alpha")  # of the classifier and of the propensity
INTERCEPTS = ("b", "beta")
SMALLEST = 1e-100  # scales whose squares, and sums of them, neither vanish nor overflow

# Standard deviations that the columns together give the log-odds of a row, in the weak priors.
CLASS_SCALE = 2.5  # at least
SELECTION_SCALE = 1.2  # half of it: s is smoother than t
CLASS_LEVEL = 0.6  # of the scale above: π then has the same prior whatever that scale
SELECTION_LEVEL_SCALE = 2.5  # an annotator may mark one positive in a hundred


class Numbers(NamedTuple):
    """The numbers of a log density on the real line; arrays for priors of several columns."""

    loc: Any = 0.0  # m
    precision: Any = 0.0  # q
    rate: Any = 0.0  # c, the paper's coefficient of an L1 penalty
    nu: Any = 0.0  # degrees of freedom, 0 for a parabola
    wall: Any = 0.0  # k, 0 where no sign is known


def _is_number(value: Any) -> bool:
    real = isinstance(value, int | float | np.integer | np.floating)
    return real and not isinstance(value, bool) and math.isfinite(value)


@dataclass(frozen=True)
class Family:
    """One row of the table of families; its functions take a `Prior`."""

    name: str
    takes: tuple[str, ...]  # of scale, loc, nu, concentration and parts
    constant: Callable[["Prior"], float]  # log of what normalises one entry
    draw: Callable[["Prior", np.random.Generator, Size], Array]
    # The PyMC distribution by name, and its parameters; "" where PyMC has none.
    pymc: Callable[["Prior"], tuple[str, Mapping[str, Any]]]
    numbers: Callable[["Prior"], Numbers] = lambda prior: Numbers()
    support: Support = "real"  # where values live; a simplex along the last axis
    components: int = 0  # how many numbers ``concentration`` holds
    proper: bool = True  # whether the density integrates to one
    sign: float = 0.0  # 1 or -1 where nearly all of the mass lies on that side of zero


@dataclass(frozen=True)
class Prior:
    """A prior family with its parameters.

    Parameters
    ----------
    family : str
        "normal", "laplace", "student-t", "flat", "positive" or "negative" (slopes whose sign is
        known), "halfnormal" (scales), "beta", "dirichlet", or "columns".
    scale : float or Prior, optional
        Standard deviation (normal), b (laplace), or of a normal the half-normal prior of an
        unknown scale.
    loc : float
        Centre of a prior on the real line.
    concentration : tuple of float
        Parameters of a Beta or Dirichlet prior.
    nu : float, optional
        Degrees of freedom of a Student t.
    parts : tuple of Prior
        For the family "columns": a prior for every column; ``priors={"a": {"size": Prior(...)}}``
        makes one by the names of the columns.
    block : str
        For a part with an unknown scale: the term whose columns share it.

    Examples
    --------
    >>> Prior("normal", scale=2.5)
    Prior('normal', scale=2.5)
    >>> Prior("laplace", scale=0.5).logpdf(np.zeros(1))
    0.0
    """

    family: str
    scale: "float | Prior | None" = None
    loc: float = 0.0
    concentration: tuple[float, ...] = ()
    nu: float = 0.0
    parts: "tuple[Prior, ...]" = ()
    block: str = ""

    def __post_init__(self) -> None:
        takes = self.form.takes
        for name in ("scale", "loc", "nu", "parts", "concentration"):
            given, nothing = getattr(self, name), getattr(Prior, name)
            if name not in takes and not np.array_equal(given, nothing):
                raise ModelError(
                    f"A {self.family} prior takes no {name}, got {given!r}; it takes "
                    f"{' and '.join(takes) or 'nothing'}."
                )
        if not _is_number(self.loc):
            raise ModelError(f"loc is {self.loc!r}; a finite number is expected.")
        if "nu" in takes and not (_is_number(self.nu) and self.nu > 0):
            raise ModelError(
                f"A {self.family} prior needs nu > 0 degrees of freedom; got {self.nu!r}."
            )
        if "scale" in takes:
            self._check_scale()
        if "concentration" in takes:
            self._check_concentration()
        for part in self.parts:
            if part.form.support not in ("real", "positive") or part.parts:
                raise ModelError(
                    f"{part!r} cannot be the prior of a column; one of the real line is expected, "
                    "such as Prior('normal', scale=1.0) or Prior('positive', scale=1.0)."
                )
        for name, kind in (("loc", float), ("nu", float), ("parts", tuple)):
            object.__setattr__(self, name, kind(getattr(self, name)))

    def _check_concentration(self) -> None:
        wanted, given = self.form.components, self.concentration
        values = tuple(given) if isinstance(given, Iterable) else ()
        if len(values) != wanted or not all(_is_number(k) and k > 0 for k in values):
            raise ModelError(
                f"A {self.family} prior takes {wanted} positive numbers as concentration, "
                f"got {given!r}."
            )
        object.__setattr__(self, "concentration", tuple(map(float, values)))

    def _check_scale(self) -> None:
        if isinstance(self.scale, Prior):
            if self.family != "normal" or self.scale.family != "halfnormal":
                raise ModelError(
                    "A hierarchical scale is written Prior('normal', scale=Prior('halfnormal', "
                    f"scale=...)); got {self.scale!r} as the scale of a {self.family} prior."
                )
            return
        scale = float(self.scale) if _is_number(self.scale) else 0.0  # type: ignore[arg-type]
        if not SMALLEST <= scale <= 1 / SMALLEST:
            raise ModelError(
                f"A {self.family} prior needs a positive, finite scale; got {self.scale!r}. Give "
                f"a number from {SMALLEST:g} to {1 / SMALLEST:g}, whose square can be computed, or "
                "Prior('flat') for none (MAP only)."
            )
        object.__setattr__(self, "scale", scale)

    def __repr__(self) -> str:
        """The Python expression of this prior."""
        given = {f.name: getattr(self, f.name) for f in fields(self)[1:]}
        options = [f"{name}={value!r}" for name, value in given.items() if value]
        return f"Prior({', '.join([repr(self.family), *options])})"

    def short(self) -> str:
        """The prior in the usual notation: ``Normal(0, 2.5)``, ``Beta(1, 1)``, ``flat``."""
        if not self.form.takes:
            return self.family
        if self.parts:
            # Columns of a block, and of the same prior, are named once.
            found = dict.fromkeys((part.block, part.short()) for part in self.parts)
            texts = [f"{text} in {block}" if block else text for block, text in found]
            return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
        name = "HalfNormal" if self.family == "halfnormal" else self.family.capitalize()
        numbers = [f"{k:g}" for k in self.concentration]
        numbers += [f"{self.nu:g}"] if self.nu else []
        numbers += [f"{self.loc:g}"] if "loc" in self.form.takes else []
        if self.scale is not None:
            known = not isinstance(self.scale, Prior)
            numbers.append(f"{self.scale:.3g}" if known else self.scale.short())  # type: ignore[union-attr]
        return f"{name}({', '.join(numbers)})"

    @property
    def form(self) -> Family:
        """The row of the table of families."""
        if self.family not in FAMILIES:
            raise ModelError(
                f"{unknown('prior family', self.family, FAMILIES)} Any other prior is written in "
                "PyMC, in place of Prior('flat') in lepu.build_model "
                "(docs/reference/priors.md shows how)."
            )
        return FAMILIES[self.family]

    @property
    def hierarchical(self) -> bool:
        """Whether the scale, or the scale of a part, is itself unknown."""
        return isinstance(self.scale, Prior) or any(part.hierarchical for part in self.parts)

    @property
    def is_known(self) -> bool:
        """Whether it is a given value, without a coordinate."""
        return self.family == "known"

    def unsigned(self) -> "Prior":
        """The prior without its sign: a normal of the same scale."""
        if self.parts:
            return replace(self, parts=tuple(part.unsigned() for part in self.parts))
        return Prior("normal", scale=self.scale) if self.form.sign else self

    @property
    def proper(self) -> bool:
        """Whether the density integrates to one."""
        return self.form.proper and all(part.proper for part in self.parts)

    @property
    def known_scale(self) -> float:
        """The scale, where it is a number."""
        if isinstance(self.scale, Prior) or self.scale is None:
            raise ModelError(f"{self!r} has no known scale.")
        return float(self.scale)

    def logpdf(self, x: Array) -> float:
        """Log density summed over the entries of x, up to the constant that MAP leaves out."""
        return float(np.sum(self.entry_logpdf(x)))

    def entry_logpdf(self, x: Array) -> Array:
        """`logpdf` of every entry of x; of a Dirichlet, of every simplex along the last axis."""
        x = np.asarray(x, dtype=float)
        if self.form.support == "simplex":
            return np.log(x) @ (np.array(self.concentration) - 1)
        if self.form.support == "unit":
            k1, k2 = self.concentration
            return (k1 - 1) * np.log(x) + (k2 - 1) * np.log1p(-x)
        n = self.numbers
        square = n.precision * (x - n.loc) ** 2
        nu = np.where(np.equal(n.nu, 0), 1.0, n.nu)
        heavy = -0.5 * (nu + 1) * np.log1p(square / nu)
        wall = np.where(np.equal(n.wall, 0), 0.0, log_ndtr(n.wall * x))
        return np.where(np.equal(n.nu, 0), -0.5 * square, heavy) - n.rate * np.abs(x - n.loc) + wall

    @property
    def numbers(self) -> Numbers:
        """The log density on the real line as numbers, as the compiled density takes it."""
        return self.form.numbers(self)

    def log_normalizer(self, *, size: int = 1) -> float:
        """The constant that `logpdf` leaves out: their sum is the normalised log density."""
        return size * self.form.constant(self)

    def sample(self, rng: np.random.Generator, size: Size) -> Array:
        """Independent draws; a Dirichlet adds a last axis."""
        return self.form.draw(self, rng, size)

    def variable(self, name: str, *, dims: Any = None) -> Any:
        """The PyMC variable, inside a model context; one vector for priors of several columns."""
        import pymc as pm
        import pytensor.tensor as pt

        parts = (self.parts[0],) if len(set(self.parts)) == 1 else self.parts or (self,)
        distributions, given = zip(*(part.form.pymc(part) for part in parts), strict=True)
        if len(set(distributions)) > 1 or not distributions[0]:
            return self._custom_variable(name, dims)
        # As float64: PyTensor takes a plain 1.5 for a float32, with a logarithm of 7 digits.
        stacked = {k: np.array([numbers[k] for numbers in given], float) for k in given[0]}
        numbers = {k: v[0] if len(parts) == 1 else v for k, v in stacked.items()}
        if distributions[0] == "Deterministic":
            return pm.Deterministic(name, pt.constant(numbers["var"]))
        return getattr(pm, distributions[0])(name, dims=dims, **numbers)

    def _custom_variable(self, name: str, dims: Any) -> Any:
        """A variable with the density of `Numbers`: of several families, or of a known sign.

        `pymc.SkewNormal` has a density of seven digits, and -inf far beyond the wall.
        """
        import pymc as pm
        import pytensor.tensor as pt

        n = Numbers(*(np.asarray(values, dtype=float) for values in self.numbers))
        constant = np.squeeze([part.log_normalizer() for part in self.parts or (self,)])
        nu = np.where(n.nu == 0, 1.0, n.nu)

        def logp(value: Any, _: Any) -> Any:
            off = value - n.loc
            square = n.precision * off**2
            heavy = -0.5 * (nu + 1) * pt.log1p(square / nu)
            x = -n.wall * value / np.sqrt(2.0)
            near, far = pt.minimum(x, 0), pt.maximum(x, 0)
            beyond = pt.log(np.float64(0.5) * pt.erfcx(far)) - far**2
            wall = pt.switch(x < 0, pt.log(np.float64(0.5) * pt.erfc(near)), beyond)
            body = pt.switch(np.equal(n.nu, 0), -0.5 * square, heavy) - n.rate * pt.abs(off)
            return body + pt.switch(np.equal(n.wall, 0), 0.0, wall) + constant

        def draw(_: Any, rng: Any = None, size: Any = None) -> Any:
            return self.sample(rng, size or n.loc.shape)

        places = np.zeros(n.loc.shape)
        return pm.CustomDist(name, places, logp=logp, random=draw, dims=dims, signature="()->()")

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for saving."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Prior":
        """Inverse of `to_dict`."""
        given = {f.name: values[f.name] for f in fields(cls)}
        if isinstance(given["scale"], Mapping):
            given["scale"] = cls.from_dict(given["scale"])
        given["concentration"] = tuple(given["concentration"])
        given["parts"] = tuple(cls.from_dict(part) for part in given["parts"])
        return cls(**given)


def _signed(name: str, sign: float) -> Family:
    k = sign * SIGN_SHAPE

    def draw(p: Prior, rng: np.random.Generator, size: Size) -> Array:
        """δ |u₀| + √(1 - δ²) u₁ of two normals, with the sign of k."""
        inside, around = np.abs(rng.normal(size=size)), rng.normal(size=size)
        return p.known_scale * (k * inside + around) / np.hypot(1.0, k)

    return Family(
        name,
        ("scale",),
        sign=sign,
        numbers=lambda p: Numbers(0.0, p.known_scale**-2, wall=k / p.known_scale),
        constant=lambda p: math.log(2 / p.known_scale) - LOG_ROOT_2PI,
        draw=draw,
        pymc=lambda p: ("", {}),
    )


def _nothing_to_draw(prior: Prior, rng: np.random.Generator, size: Size) -> Array:
    raise ModelError("A flat prior cannot be sampled. Give a proper prior instead.")


def _student_constant(p: Prior) -> float:
    return float(-betaln(0.5, 0.5 * p.nu)) - 0.5 * math.log(p.nu) - math.log(p.known_scale)


FAMILIES = {
    family.name: family
    for family in (
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
            constant=lambda p: float(
                gammaln(sum(p.concentration)) - gammaln(p.concentration).sum()
            ),
            draw=lambda p, rng, size: rng.dirichlet(p.concentration, size),
            pymc=lambda p: ("Dirichlet", {"a": p.concentration}),
        ),
        Family(  # ``parts`` holds a prior for each entry along the last axis
            "columns",
            ("parts",),
            numbers=lambda p: Numbers(*np.array([part.numbers for part in p.parts]).T),
            # The mean over the parts: times their number it is the constant of all entries.
            constant=lambda p: float(np.mean([part.log_normalizer() for part in p.parts])),
            draw=lambda p, rng, size: np.stack(
                [q.sample(rng, size[:-1]) for q in p.parts], axis=-1
            ),
            pymc=lambda p: ("", {}),
        ),
    )
}


UNIFORM = {
    "c": Prior("beta", concentration=(1, 1)),
    "rates": Prior("dirichlet", concentration=(1, 1, 1)),
}
Priors = Mapping[str, Prior]
GivenPriors = Mapping[str, Any]  # of slopes also by column


def penalty_prior(penalty: str, C: float) -> Prior:
    """The prior whose minus log density is the paper's penalty with coefficient C."""
    if penalty not in PENALTIES:
        raise ModelError(unknown("penalty", penalty, PENALTIES))
    if not (_is_number(C) and (C == 0 or SMALLEST <= C <= 1 / SMALLEST)):
        raise ModelError(
            f"C = {C!r}; 0 (no penalty), or a finite number from {SMALLEST:g} to {1 / SMALLEST:g}, "
            "is expected."
        )
    if penalty == "none" or C == 0:
        return Prior("flat")
    C = float(C)
    return (
        Prior("laplace", scale=1 / C) if penalty == "l1" else Prior("normal", scale=(2 * C) ** -0.5)
    )


def penalty_priors(
    penalty: str | Mapping[str, str] = "l2", C: float | Mapping[str, float] = DEFAULT_C
) -> dict[str, Prior]:
    """The paper's loss as priors: penalised slopes, everything else flat or uniform.

    Parameters
    ----------
    penalty : {"l2", "l1", "none"} or mapping with keys "a" and "alpha"
    C : float or mapping with keys "a" and "alpha"
    """
    kinds = _per_factor("penalty", penalty, "l2")
    sizes = _per_factor("C", C, DEFAULT_C)
    return {
        "a": penalty_prior(kinds["a"], sizes["a"]),
        "alpha": penalty_prior(kinds["alpha"], sizes["alpha"]),
        "b": Prior("flat"),
        "beta": Prior("flat"),
        **UNIFORM,
    }


def weak_priors(
    n_class: int,
    n_selection: int,
    *,
    class_scale: float = CLASS_SCALE,
    selection_scale: float = SELECTION_SCALE,
) -> dict[str, Prior]:
    r"""Weakly informative priors for standardised columns.

    .. math:: a_j \sim N(0, A^2/p), \quad b \sim N(0, (0.6 A)^2), \quad
        \alpha_j \sim N(0, S^2/p_s), \quad \beta \sim N(0, 2.5^2).

    for p and p_s columns of t and s. The implied prior of π is wide, and s is probably smoother
    than t (a weak form of the paper's Assumption 3).
    """
    return {
        "a": Prior("normal", scale=class_scale / math.sqrt(n_class)),
        "alpha": Prior("normal", scale=selection_scale / math.sqrt(n_selection)),
        "b": Prior("normal", scale=CLASS_LEVEL * class_scale),
        "beta": Prior("normal", scale=SELECTION_LEVEL_SCALE),
        **UNIFORM,
    }


def _per_factor(option: str, value: Any, default: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        return dict.fromkeys(SLOPES, value)
    unknown = set(value) - set(SLOPES)
    if unknown:
        raise ModelError(
            f"{option} has unknown key(s) {sorted(map(str, unknown))}; "
            "'a' (classifier) and 'alpha' (propensity) are expected."
        )
    return {**dict.fromkeys(SLOPES, default), **value}


def slope_masks(data: PUData) -> dict[str, NDArray[np.bool_]]:
    """Which columns of X have a slope in each factor."""
    return dict(zip(SLOPES, (data.class_mask, data.selection_mask), strict=True))
