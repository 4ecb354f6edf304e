r"""Factors: a link, and the rates that mix it with the constants 1 and 0.

.. math::
    \psi(\omega) = \gamma + \rho\,F(\omega), \qquad
    1 - \psi = \lambda + \rho\,(1 - F(\omega)), \qquad \gamma + \lambda + \rho = 1 .

Rates are stored as logarithms (log γ, log λ, log ρ), and ψ and 1 - ψ are sums of positive terms.
The coordinates of k free rates are the k - 1 logarithms of their ratios to the last one. With
:math:`u, v` the coordinates of γ and λ,

.. math::
    \partial\psi/\partial\omega = \rho F'(\omega), \qquad
    \partial\psi/\partial u = \gamma (1-\psi), \qquad \partial\psi/\partial v = -\lambda\psi .

The class probability t and the propensity s of every annotator are such factors; the rates of t
are known. A predictor ``z`` has any shape; ``log_rates`` is ``(..., 3)`` and its leading axes
broadcast against z.
"""

import copyreg
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bayes_lepu.errors import ModelError
from bayes_lepu.links import Array

RATES = ("gamma", "lambda", "rho")
LARGEST = 700.0  # log ratios of rates are cut here: e^700 is still a number


@dataclass(frozen=True, eq=False)
class Link:
    """A distribution function F of the predictor, written for NumPy, numba and PyTensor.

    Attributes
    ----------
    name : str
    logs : callable
        NumPy: ``z -> (log F, log(1 - F), log F')``, finite for z up to ±750.
    bend : callable
        NumPy: ``z -> F''/F'``, the slope of log F'.
    scalar_logs : callable
        The same as ``logs`` for one number, to be compiled by numba.
    graph : callable
        PyTensor: ``z -> (log F, log(1 - F))``.
    scalar : callable, optional
        One number, to be compiled by numba: ``z -> (F, 1 - F, F')`` for z within ±300, neither of
        the first two formed as one minus the other. By default the exponentials of ``scalar_logs``.
    value, complement, log_odds : callable, optional
        NumPy: ``z -> F``, ``z -> 1 - F`` (z within ±700) and ``z -> log F - log(1 - F)``, where
        that is quicker than by ``logs``.
    """

    name: str
    logs: Callable[[Array], tuple[Array, Array, Array]]
    bend: Callable[[Array], Array]
    scalar_logs: Callable[[float], tuple[float, float, float]]
    graph: Callable[[Any], tuple[Any, Any]]
    scalar: Callable[[float], tuple[float, float, float]] | None = None
    value: Callable[[Array], Array] | None = None
    complement: Callable[[Array], Array] | None = None
    log_odds: Callable[[Array], Array] | None = None

    def __reduce__(self) -> Any:
        return _pickled(self, "get_link")

    def mixed(self, z: ArrayLike, log_rates: ArrayLike) -> tuple[Array, Array, Array]:
        """Log ψ, log(1 - ψ) and log ∂ψ/∂z of the link mixed by rates."""
        log_gamma, log_lam, log_rho = np.moveaxis(np.asarray(log_rates, dtype=float), -1, 0)
        log_up, log_down, log_slope = self.logs(np.asarray(z, dtype=float))
        return (
            _log_sum(log_gamma, log_rho + log_up),
            _log_sum(log_lam, log_rho + log_down),
            log_rho + log_slope,
        )

    def mixed_value(self, z: ArrayLike, log_rates: ArrayLike) -> Array:
        """ψ of the link mixed by rates."""
        if self.value is None:
            return np.exp(self.mixed(z, log_rates)[0])
        gamma, _, rho = np.exp(np.moveaxis(np.asarray(log_rates, dtype=float), -1, 0))
        # The rates add up to one but for rounding.
        return np.minimum(gamma + rho * self.value(np.asarray(z, dtype=float)), 1.0)


@dataclass(frozen=True, eq=False)
class Factor:
    """A probability as a function of its predictor: t(x) of the class, or s(x) of an annotator.

    ``formula`` is the function in one line with η for the predictor. ``free`` lists the rates
    of ``("gamma", "lambda", "rho")`` that are not zero, in this order. They sum to one, so a single
    one equals one. ``fixed`` has all three if they are known. The free rates form the parameter
    ``rates_name``, are reported as ``components``, and have a Beta or Dirichlet prior with this
    ``concentration``. ``note`` explains the formula in a few words.
    """

    name: str
    formula: str
    link: Link
    free: tuple[str, ...] = ("rho",)
    fixed: tuple[float, float, float] | None = None
    rates_name: str = ""
    components: tuple[str, ...] = ()
    concentration: tuple[float, ...] = ()
    note: str = ""

    def __post_init__(self) -> None:
        if list(self.free) != [name for name in RATES if name in self.free] or not self.free:
            raise ModelError(
                f"free = {self.free!r} in the factor {self.name!r}; names out of "
                f"{', '.join(RATES)} are expected, in this order."
            )
        if self.fixed is not None:
            rates = np.array(self.fixed, dtype=float)
            if rates.shape != (3,) or not rates.min() >= 0 or abs(rates.sum() - 1) > 1e-12:
                raise ModelError(
                    f"fixed = {self.fixed!r} in the factor {self.name!r}; three rates "
                    "(γ, λ, ρ) >= 0 that sum to one are expected."
                )
        if self.n_coordinates and not self.rates_name:
            raise ModelError(f"The factor {self.name!r} has free rates; give rates_name.")
        if self.n_coordinates:
            object.__setattr__(self, "components", self.components or self.free)
            object.__setattr__(self, "concentration", self.concentration or (1.0,) * len(self.free))

    def __reduce__(self) -> Any:
        return _pickled(self, "get_factor")

    def written(self, symbol: str, predictor: str) -> str:
        """The function with its symbol and predictor: ``s(x) = σ(α·x + β)``."""
        text = f"{symbol}(x) = {self.formula.replace('η', predictor)}"
        return f"{text}: {self.note}" if self.note else text

    @property
    def is_plain(self) -> bool:
        """Whether ψ is its link alone, without rates."""
        return self.fixed is None and self.free == ("rho",)

    @property
    def present(self) -> tuple[str, ...]:
        """The rates that are not zero by construction."""
        if self.fixed is None:
            return self.free
        return tuple(name for name, rate in zip(RATES, self.fixed, strict=True) if rate > 0)

    @property
    def has_predictor(self) -> bool:
        """Whether ψ depends on x at all."""
        return "rho" in self.present

    @property
    def n_coordinates(self) -> int:
        """How many coordinates the free rates have."""
        return 0 if self.fixed is not None else len(self.free) - 1

    @property
    def coordinate_names(self) -> tuple[str, ...]:
        """Readable names of the coordinates."""
        if self.n_coordinates == 1:
            return (f"logit {self.components[0]}",)
        return tuple(f"log({name}/{self.free[-1]})" for name in self.free[: self.n_coordinates])

    @property
    def coordinate_rates(self) -> tuple[int, ...]:
        """The position in (γ, λ, ρ) of the rate of every coordinate."""
        return tuple(RATES.index(name) for name in self.free[: self.n_coordinates])

    def log_rates(self, coordinates: ArrayLike = ()) -> Array:
        """(log γ, log λ, log ρ) of coordinates ``(..., K)``, by a softmax over the free rates."""
        if self.fixed is not None:
            with np.errstate(divide="ignore"):
                return np.log(np.array(self.fixed, dtype=float))
        logs = ratios_to_logs(np.asarray(coordinates, dtype=float))
        out = np.full((*logs.shape[:-1], 3), -np.inf)
        out[..., [RATES.index(name) for name in self.free]] = logs
        return out

    def coordinates(self, log_rates: ArrayLike) -> Array:
        """Coordinates ``(..., K)`` of log rates ``(..., 3)``, cut at ±`LARGEST`."""
        kept = [RATES.index(name) for name in self.free][: 1 + self.n_coordinates]
        return logs_to_ratios(np.asarray(log_rates, dtype=float)[..., kept])

    def logs(self, z: ArrayLike, log_rates: ArrayLike) -> tuple[Array, Array, Array]:
        """Log ψ, log(1 - ψ) and log ∂ψ/∂z."""
        return self.link.mixed(z, log_rates)

    def value(self, z: ArrayLike, log_rates: ArrayLike | None = None) -> Array:
        """ψ at values of the predictor, by default with the rates that are known."""
        return self.link.mixed_value(z, self.log_rates() if log_rates is None else log_rates)

    def log_odds(self, z: Array) -> Array:
        """Log ψ - log(1 - ψ) with the rates that are known."""
        if self.is_plain and self.link.log_odds is not None:
            return self.link.log_odds(z)
        log_psi, log_not_psi, _ = self.link.mixed(z, self.log_rates())
        return log_psi - log_not_psi

    def graph(self, z: Any, log_rates: Any) -> tuple[Any, Any]:
        """PyTensor's log ψ and log(1 - ψ); ``log_rates`` has its three rates along the last axis.

        A rate that is zero by construction is left out, because the gradient through an infinite
        logarithm is not a number.
        """
        import pytensor.tensor as pt

        log_up, log_down = self.link.graph(z)
        rates = {name: log_rates[..., RATES.index(name)] for name in self.present}

        def total(rate: str, part: Any) -> Any:
            terms = [rates[rate]] if rate in rates else []
            terms += [rates["rho"] + part] if "rho" in rates else []
            terms = terms or [-np.inf]
            return logaddexp(*terms) if len(terms) == 2 else terms[0] + pt.zeros_like(z)

        return total("gamma", log_up), total("lambda", log_down)


def logaddexp(x: Any, y: Any) -> Any:
    """PyTensor's log(e^x + e^y) with bounded gradients everywhere, ties included."""
    import pytensor.tensor as pt

    return pt.switch(x > y, x + pt.softplus(y - x), y + pt.softplus(x - y))


def ratios_to_logs(u: Array) -> Array:
    """Logarithms of the components (..., k + 1) of a simplex from its coordinates (..., k)."""
    z = np.concatenate([u, np.zeros((*u.shape[:-1], 1))], axis=-1)
    return z - np.logaddexp.reduce(z, axis=-1, keepdims=True)


def logs_to_ratios(log_w: Array) -> Array:
    """Inverse of `ratios_to_logs`, cut at ±`LARGEST`."""
    with np.errstate(invalid="ignore"):
        ratios = log_w[..., :-1] - log_w[..., -1:]
    return np.clip(np.nan_to_num(ratios), -LARGEST, LARGEST)


def _pickled(value: "Link | Factor", getter: str) -> Any:
    """Pickle the library's own links and factors by name, so that loading gives the same object."""
    from bayes_lepu import factors

    get = getattr(factors, getter)
    if value.name in factors.REGISTRY and get(value.name) is value:
        return get, (value.name,)
    return copyreg.__newobj__, (type(value),), value.__dict__  # type: ignore[attr-defined]


def _log_sum(log_rate: Array, rest: Array) -> Array:
    """Log of rate + e^rest; without rates, nothing is computed."""
    return rest if np.isneginf(log_rate).all() else np.logaddexp(log_rate, rest)
