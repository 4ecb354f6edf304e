r"""Priors as frozen values, and the paper's penalties written as priors.

The paper minimises :math:`-\log L + C_\alpha \lVert\alpha\rVert + C_a \lVert a\rVert`. Read as a
log posterior this is

* L2, :math:`C \lVert a\rVert_2^2`: ``Normal(0, 1/sqrt(2 C))`` on every slope,
* L1, :math:`C \lVert a\rVert_1`: ``Laplace(0, 1/C)`` on every slope,
* intercepts flat, :math:`(\gamma, \lambda, 1-\gamma-\lambda)` uniform on the simplex,

so that the mode of the posterior density (no Jacobian) is the paper's estimate exactly.
Flat intercepts make the posterior improper for every data set, so they belong to MAP only.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayes_lepu.data.pu_data import PUData
from bayes_lepu.errors import ModelError
from bayes_lepu.links import Array
from bayes_lepu.priors.families import (
    Family,
    Numbers,
    entry_logpdf,
    get_family,
    pymc_variable,
)
from bayes_lepu.suggestions import unknown

PENALTIES: tuple[str, ...] = ("l2", "l1", "none")
DEFAULT_C = 0.01  # so small that the labels decide wherever they can
SLOPES = ("a", "alpha")  # of the classifier and of the propensity
INTERCEPTS = ("b", "beta")
SMALLEST = 1e-100  # scales whose squares, and sums of them, neither vanish nor overflow

# Standard deviations that the columns together give the log-odds of a row, in the weak priors.
CLASS_SCALE = 2.5  # at least
SELECTION_SCALE = 1.2  # half of it: s is smoother than t
CLASS_LEVEL = 0.6  # of the scale above: π then has the same prior whatever that scale
SELECTION_LEVEL_SCALE = 2.5  # an annotator may mark one positive in a hundred


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
        Of the family "columns", a prior for every column; ``priors={"a": {"size": Prior(...)}}``
        makes one by the names of the columns.
    block : str
        Of a part with an unknown scale, the term whose columns share it.

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
        if "scale" in takes:
            self._check_scale()
        elif self.scale is not None:
            raise ModelError(f"A {self.family} prior takes no scale; got {self.scale!r}.")
        if not _is_number(self.loc):
            raise ModelError(f"loc is {self.loc!r}; a finite number is expected.")
        object.__setattr__(self, "loc", float(self.loc))
        if "loc" not in takes and self.loc != 0:
            raise ModelError(f"A {self.family} prior takes no loc; got {self.loc!r}.")
        if "nu" in takes and not (_is_number(self.nu) and self.nu > 0):
            raise ModelError(
                f"A {self.family} prior needs nu > 0 degrees of freedom; got {self.nu!r}."
            )
        object.__setattr__(self, "nu", float(self.nu))
        if "parts" in takes:
            self._check_parts()
        elif self.parts:
            raise ModelError(f"A {self.family} prior takes no parts; those are for 'columns'.")
        if "concentration" in takes:
            self._check_concentration(self.form.components)
        elif self.concentration:
            raise ModelError(f"A {self.family} prior takes no concentration; give its scale.")

    def _check_parts(self) -> None:
        for part in self.parts:
            if part.form.support not in ("real", "positive") or part.parts:
                raise ModelError(
                    f"{part!r} cannot be the prior of a column; one of the real line is expected, "
                    "such as Prior('normal', scale=1.0) or Prior('positive', scale=1.0)."
                )
        object.__setattr__(self, "parts", tuple(self.parts))

    def _check_concentration(self, wanted: int) -> None:
        given = tuple(self.concentration) if isinstance(self.concentration, Iterable) else ()
        if len(given) != wanted or not all(_is_number(k) and k > 0 for k in given):
            raise ModelError(
                f"A {self.family} prior takes {wanted} positive numbers as concentration, "
                f"got {self.concentration!r}."
            )
        object.__setattr__(self, "concentration", tuple(map(float, given)))

    def _check_scale(self) -> None:
        if isinstance(self.scale, Prior):
            if self.family != "normal" or self.scale.family != "halfnormal":
                raise ModelError(
                    "A hierarchical scale is written Prior('normal', scale=Prior('halfnormal', "
                    f"scale=...)); got {self.scale!r} as the scale of a {self.family} prior."
                )
        elif not (_is_number(self.scale) and self.scale > 0):  # type: ignore[operator]
            raise ModelError(
                f"A {self.family} prior needs a positive, finite scale; got {self.scale!r}. "
                "Use Prior('flat') for none (MAP only)."
            )
        elif not SMALLEST <= float(self.scale) <= 1 / SMALLEST:  # type: ignore[arg-type]
            raise ModelError(
                f"scale = {self.scale!r}; a number from {SMALLEST:g} to {1 / SMALLEST:g} is "
                "expected, whose square can be computed."
            )
        else:
            object.__setattr__(self, "scale", float(self.scale))  # type: ignore[arg-type]

    def __repr__(self) -> str:
        """The call that makes this value."""
        given = {f.name: getattr(self, f.name) for f in fields(self)[1:]}
        options = [f"{name}={value!r}" for name, value in given.items() if value]
        return f"Prior({', '.join([repr(self.family), *options])})"

    def short(self) -> str:
        """As statisticians write it: ``Normal(0, 2.5)``, ``Beta(1, 1)``, ``flat``."""
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
        return get_family(self.family)

    @property
    def hierarchical(self) -> bool:
        """Whether the scale is itself unknown, or that of a part."""
        return isinstance(self.scale, Prior) or any(part.hierarchical for part in self.parts)

    @property
    def is_known(self) -> bool:
        """Whether it is a value that is given, so that no coordinate is spent on it."""
        return self.family == "known"

    @property
    def sign(self) -> float:
        """The sign that it says a slope has, 1 or -1; 0 where it says none."""
        return self.form.sign

    def unsigned(self) -> "Prior":
        """The same without what it says about signs: a normal of its scale."""
        if self.parts:
            return replace(self, parts=tuple(part.unsigned() for part in self.parts))
        return Prior("normal", scale=self.scale) if self.sign else self

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
        """Log density summed over the entries of x, up to the constant that MAP leaves out.

        Flat priors give 0; normal and Laplace kernels are without their normalising constant,
        so that with `penalty_priors` the value is minus the penalty exactly.
        """
        return float(np.sum(self.entry_logpdf(x)))

    def entry_logpdf(self, x: Array) -> Array:
        """`logpdf` of every entry of x; of a Dirichlet, of every simplex along the last axis."""
        return entry_logpdf(self, np.asarray(x, dtype=float))

    @property
    def numbers(self) -> Numbers:
        """The log density on the real line as numbers, as the compiled density takes it."""
        return self.form.numbers(self)

    def log_normalizer(self, *, size: int = 1) -> float:
        """What `logpdf` leaves out: add it to get the normalised log density."""
        return size * self.form.constant(self)

    def sample(self, rng: np.random.Generator, size: tuple[int, ...]) -> Array:
        """Independent draws; a Dirichlet adds a last axis."""
        return self.form.draw(self, rng, size)

    def variable(self, name: str, *, dims: Any = None) -> Any:
        """A PyMC variable with this prior (inside a model context)."""
        return pymc_variable(self, name, dims)

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


Priors = Mapping[str, Prior]
GivenPriors = Mapping[str, Any]  # of slopes also by column


def penalty_prior(penalty: str, C: float) -> Prior:
    """The prior whose minus log density is the paper's penalty with coefficient C."""
    if penalty not in PENALTIES:
        raise ModelError(unknown("penalty", penalty, PENALTIES))
    if not (_is_number(C) and C >= 0):
        raise ModelError(f"C = {C!r}; a finite number >= 0 is expected (0 means no penalty).")
    if penalty == "none" or C == 0:
        return Prior("flat")
    C = float(C)
    if not SMALLEST <= C <= 1 / SMALLEST:
        raise ModelError(
            f"C = {C!r}; 0 or a number from {SMALLEST:g} to {1 / SMALLEST:g} is expected."
        )
    return (
        Prior("normal", scale=(2 * C) ** -0.5) if penalty == "l2" else Prior("laplace", scale=1 / C)
    )


def penalty_priors(
    penalty: str | Mapping[str, str] = "l2", C: float | Mapping[str, float] = DEFAULT_C
) -> dict[str, Prior]:
    """The paper's loss as priors: penalised slopes, everything else flat or uniform.

    Parameters
    ----------
    penalty : {"l2", "l1", "none"} or mapping with keys "a" and "alpha"
    C : float or mapping with keys "a" and "alpha"
        The paper's C_a and C_alpha.
    """
    kinds = _per_factor("penalty", penalty, "l2")
    sizes = _per_factor("C", C, DEFAULT_C)
    return {
        "a": penalty_prior(kinds["a"], sizes["a"]),
        "alpha": penalty_prior(kinds["alpha"], sizes["alpha"]),
        "b": Prior("flat"),
        "beta": Prior("flat"),
        "c": Prior("beta", concentration=(1, 1)),
        "rates": Prior("dirichlet", concentration=(1, 1, 1)),
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

    Slopes shrink with the number of columns, so that the implied prior of the class prior π stays
    wide. The propensity's are given the smaller scale, which encodes the paper's Assumption 3 (s is
    smoother than t) softly.

    Parameters
    ----------
    n_class, n_selection : int
        Columns of t and of s.
    class_scale, selection_scale : float
        A and S: what the columns together give the log-odds of a row.
    """
    return {
        "a": Prior("normal", scale=class_scale / math.sqrt(n_class)),
        "alpha": Prior("normal", scale=selection_scale / math.sqrt(n_selection)),
        "b": Prior("normal", scale=CLASS_LEVEL * class_scale),
        "beta": Prior("normal", scale=SELECTION_LEVEL_SCALE),
        "c": Prior("beta", concentration=(1, 1)),
        "rates": Prior("dirichlet", concentration=(1, 1, 1)),
    }


def _is_number(value: Any) -> bool:
    real = isinstance(value, int | float | np.integer | np.floating)
    return real and not isinstance(value, bool) and math.isfinite(value)


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
