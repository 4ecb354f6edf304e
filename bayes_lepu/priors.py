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
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.special import betaln, gammaln

from bayes_lepu.errors import ModelError
from bayes_lepu.links import Array

Family = Literal["normal", "laplace", "flat", "halfnormal", "beta", "dirichlet"]
FAMILIES: tuple[str, ...] = ("normal", "laplace", "flat", "halfnormal", "beta", "dirichlet")
PENALTIES: tuple[str, ...] = ("l2", "l1", "none")
Penalty = Literal["l2", "l1", "none"]
DEFAULT_C = 0.01

CLASS_SLOPE_SCALE = 2.5
SELECTION_SLOPE_SCALE = 1.5
INTERCEPT_SCALE = 1.5


@dataclass(frozen=True)
class Prior:
    """A prior family with its parameters.

    Parameters
    ----------
    family : {"normal", "laplace", "flat", "halfnormal", "beta", "dirichlet"}
    scale : float or Prior, optional
        Standard deviation (normal), b (laplace), or a half-normal hyperprior over the scale.
    loc : float
        Centre of a normal or Laplace prior.
    concentration : tuple of float
        Parameters of a Beta or Dirichlet prior.

    Examples
    --------
    >>> Prior("normal", scale=2.5)
    Prior(normal, loc=0, scale=2.5)
    >>> Prior("laplace", scale=0.5).logpdf(np.zeros(1))
    0.0
    """

    family: Family
    scale: "float | Prior | None" = None
    loc: float = 0.0
    concentration: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if self.family not in FAMILIES:
            raise ModelError(f"Unknown prior family {self.family!r}. Known: {', '.join(FAMILIES)}.")
        if self.family in ("normal", "laplace", "halfnormal"):
            self._check_scale()
        elif self.scale is not None:
            raise ModelError(f"A {self.family} prior takes no scale; got {self.scale!r}.")
        if not _is_number(self.loc):
            raise ModelError(f"loc is {self.loc!r}; a finite number is expected.")
        if self.family in ("beta", "dirichlet"):
            self._check_concentration(2 if self.family == "beta" else 3)
        elif self.concentration:
            raise ModelError(f"A {self.family} prior takes no concentration; give its scale.")

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
            if self.family == "halfnormal" or self.scale.family != "halfnormal":
                raise ModelError(
                    "A hierarchical scale is written Prior('normal', scale=Prior('halfnormal', "
                    f"scale=...)); got {self.scale!r} as the scale of a {self.family} prior."
                )
        elif not (_is_number(self.scale) and self.scale > 0):  # type: ignore[operator]
            raise ModelError(
                f"A {self.family} prior needs a positive, finite scale; got {self.scale!r}. "
                "Use Prior('flat') for none (MAP only)."
            )

    def __repr__(self) -> str:
        if self.family == "flat":
            return "Prior(flat)"
        if self.concentration:
            return f"Prior({self.family}, concentration={self.concentration})"
        scale = self.scale if isinstance(self.scale, Prior) else f"{self.scale:.4g}"
        loc = "" if self.family == "halfnormal" else f", loc={self.loc:g}"
        return f"Prior({self.family}{loc}, scale={scale})"

    @property
    def hierarchical(self) -> bool:
        """Whether the scale is itself unknown."""
        return isinstance(self.scale, Prior)

    @property
    def proper(self) -> bool:
        """Whether the density integrates to one."""
        return self.family != "flat"

    def with_scale(self, scale: float) -> "Prior":
        """The same family with a known scale."""
        return Prior(self.family, scale=scale, loc=self.loc)

    def logpdf(self, x: Array) -> float:
        """Log density summed over the entries of x, up to the constant that MAP leaves out.

        Flat priors give 0; normal and Laplace kernels are without their normalising constant,
        so that with `penalty_priors` the value is minus the penalty exactly.
        """
        if self.family == "flat":
            return 0.0
        z = (np.asarray(x) - self.loc) / self._known_scale()
        if self.family == "laplace":
            return 0.0 - float(np.abs(z).sum())
        return -0.5 * float(z @ z)

    def grad(self, x: Array) -> Array:
        """Gradient of `logpdf` (the subgradient 0 at the kink of a Laplace prior)."""
        x = np.asarray(x, dtype=float)
        if self.family == "flat":
            return np.zeros_like(x)
        scale = self._known_scale()
        if self.family == "laplace":
            return -np.sign(x - self.loc) / scale
        return -(x - self.loc) / scale**2

    def precision(self) -> float:
        """Curvature of minus `logpdf` where it is constant: 1/scale² for a normal prior."""
        return self._known_scale() ** -2 if self.family == "normal" else 0.0

    def log_normalizer(self, *, size: int = 1) -> float:
        """What `logpdf` leaves out: add it to get the normalised log density."""
        if self.family == "beta":
            return -float(betaln(*self.concentration))
        if self.family == "dirichlet":
            k = np.array(self.concentration)
            return float(gammaln(k.sum()) - gammaln(k).sum())
        if self.family == "flat":
            return 0.0
        scale = self._known_scale()
        if self.family == "laplace":
            return -size * math.log(2 * scale)
        half = math.log(2) if self.family == "halfnormal" else 0.0
        return size * (half - math.log(scale) - 0.5 * math.log(2 * math.pi))

    def sample(self, rng: np.random.Generator, size: tuple[int, ...]) -> Array:
        """Independent draws; for Beta and Dirichlet the last axis is added."""
        if self.family == "normal":
            return rng.normal(self.loc, self._known_scale(), size)
        if self.family == "laplace":
            return rng.laplace(self.loc, self._known_scale(), size)
        if self.family == "halfnormal":
            return np.abs(rng.normal(0.0, self._known_scale(), size))
        if self.family == "beta":
            k1, k2 = self.concentration
            return rng.beta(k1, k2, size)
        if self.family == "dirichlet":
            return rng.dirichlet(self.concentration, size)
        raise ModelError("A flat prior cannot be sampled. Give a proper prior instead.")

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for saving."""
        scale = self.scale.to_dict() if isinstance(self.scale, Prior) else self.scale
        return {
            "family": self.family,
            "scale": scale,
            "loc": self.loc,
            "concentration": list(self.concentration),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Prior":
        """Inverse of `to_dict`."""
        scale = values["scale"]
        return cls(
            values["family"],
            scale=cls.from_dict(scale) if isinstance(scale, Mapping) else scale,
            loc=values["loc"],
            concentration=tuple(values["concentration"]),
        )

    def _known_scale(self) -> float:
        if isinstance(self.scale, Prior) or self.scale is None:
            raise ModelError(f"{self!r} has no known scale.")
        return self.scale


Priors = Mapping[str, Prior]


def penalty_prior(penalty: str, C: float) -> Prior:
    """The prior whose minus log density is the paper's penalty with coefficient C."""
    if penalty not in PENALTIES:
        raise ModelError(f"Unknown penalty {penalty!r}. Known: {', '.join(PENALTIES)}.")
    if not (_is_number(C) and C >= 0):
        raise ModelError(f"C = {C!r}; a finite number >= 0 is expected (0 means no penalty).")
    if penalty == "none" or C == 0:
        return Prior("flat")
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
        "weights": Prior("dirichlet", concentration=(1, 1, 1)),
    }


def default_priors(n_class: int, n_selection: int) -> dict[str, Prior]:
    """Weakly informative priors for standardised columns.

    The slope scale shrinks with the number of columns so that the implied prior of the class
    prior π stays wide; the propensity's slopes are given the smaller scale, which encodes the
    paper's Assumption 3 (s is smoother than t) softly.
    """
    return {
        "a": Prior("normal", scale=CLASS_SLOPE_SCALE / math.sqrt(n_class)),
        "alpha": Prior("normal", scale=SELECTION_SLOPE_SCALE / math.sqrt(n_selection)),
        "b": Prior("normal", scale=INTERCEPT_SCALE),
        "beta": Prior("normal", scale=INTERCEPT_SCALE),
        "c": Prior("beta", concentration=(1, 1)),
        "weights": Prior("dirichlet", concentration=(1, 1, 1)),
    }


def _is_number(value: Any) -> bool:
    real = isinstance(value, int | float | np.integer | np.floating)
    return real and not isinstance(value, bool) and math.isfinite(value)


def _per_factor(option: str, value: Any, default: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        return {"a": value, "alpha": value}
    unknown = set(value) - {"a", "alpha"}
    if unknown:
        raise ModelError(
            f"{option} has unknown key(s) {sorted(map(str, unknown))}; "
            "'a' (classifier) and 'alpha' (propensity) are expected."
        )
    return {"a": default, "alpha": default, **value}
