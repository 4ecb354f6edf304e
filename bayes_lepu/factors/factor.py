r"""What a factor is: a link, and the rates that mix it with certainty and impossibility.

.. math::
    \psi(\omega) = \gamma \cdot 1 + \lambda \cdot 0 + \rho\,F(\omega), \qquad
    1 - \psi = \lambda + \rho\,(1 - F(\omega)), \qquad \gamma + \lambda + \rho = 1 .

The rates are always handled as logarithms (log γ, log λ, log ρ), and both ψ and 1 - ψ are sums of
positive terms. Those rates that are free have one coordinate less than there are of them: the
logarithms of their ratios to the last one. With :math:`u, v` the coordinates of γ and λ,

.. math::
    \partial\psi/\partial\omega = \rho F'(\omega), \qquad
    \partial\psi/\partial u = \gamma (1-\psi), \qquad \partial\psi/\partial v = -\lambda\psi .

The class probability t and the propensity s of every annotator are such factors; the rates of t
are known.

Conventions
-----------
A predictor ``z`` has any shape; ``log_rates`` is ``(..., 3)`` and its leading axes broadcast
against z.
"""

import copyreg
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bayes_lepu.errors import ModelError
from bayes_lepu.factors.scalars import kind_of, make_tag
from bayes_lepu.links import Array

RATES = ("gamma", "lambda", "rho")

_BY_TAG: "dict[type, Link]" = {}


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
        The same as ``logs`` for one number, compiled by numba.
    graph : callable
        PyTensor: ``z -> (log F, log(1 - F))``.
    scalar : callable, optional
        One number, compiled by numba: ``z -> (F, 1 - F)`` for z within ±300, neither formed as one
        minus the other. Without it the exponentials of ``scalar_logs`` serve.
    scalar_slope : callable, optional
        One number, compiled by numba: ``(z, F, 1 - F) -> F'``; given together with ``scalar``.
    value : callable, optional
        NumPy: ``z -> F``, where that is quicker than by ``logs``.
    complement : callable, optional
        NumPy: ``z -> 1 - F`` for z within ±700, where that is quicker than by ``logs``.
    log_odds : callable, optional
        NumPy: ``z -> log F - log(1 - F)``, where that is quicker than by ``logs``.
    tag : tuple
        What stands for the link in the arguments of compiled code (made, not given).

    Notes
    -----
    Compiled code kept on disk is tied to the text of the file in which the functions stand, so a
    link in a file of one's own is compiled again when that file changes.
    """

    name: str
    logs: Callable[[Array], tuple[Array, Array, Array]]
    bend: Callable[[Array], Array]
    scalar_logs: Callable[[float], tuple[float, float, float]]
    graph: Callable[[Any], tuple[Any, Any]]
    scalar: Callable[[float], tuple[float, float]] | None = None
    scalar_slope: Callable[[float, float, float], float] | None = None
    value: Callable[[Array], Array] | None = None
    complement: Callable[[Array], Array] | None = None
    log_odds: Callable[[Array], Array] | None = None
    tag: tuple = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if (self.scalar is None) != (self.scalar_slope is None):
            raise ModelError(
                f"The link {self.name!r} has only one of scalar and scalar_slope. "
                "Give both, or neither to use scalar_logs throughout."
            )
        tag = make_tag(self.name, self.scalar_logs, self.scalar, self.scalar_slope)
        object.__setattr__(self, "tag", tag)
        _BY_TAG[type(tag)] = self

    def __reduce__(self) -> Any:
        return _pickled(self, "get_link")


def link_of(tag: tuple) -> Link:
    """The link behind a tag."""
    return _BY_TAG[kind_of(tag)]


@dataclass(frozen=True, eq=False)
class Factor:
    """A probability as a function of its predictor: t(x) of the class, or s(x) of an annotator.

    Attributes
    ----------
    name : str
    formula : str
        The function in one line, for people, with η for the predictor: ``"σ(η)"``.
    link : Link
    free : tuple of str
        Which of ``("gamma", "lambda", "rho")`` are free, in this order; they sum to one and the
        others are zero. A single name means a rate of one.
    fixed : tuple of three float, optional
        Rates (γ, λ, ρ) that are known; then nothing is free.
    rates_name : str
        Name of the parameter that the free rates form together ("" where nothing is free).
    components : tuple of str
        Names under which the free rates are reported; by default those of ``free``.
    concentration : tuple of float
        Default prior of the free rates: Beta for two of them, Dirichlet for three.
    note : str
        What the formula means, in a few words.
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
        if self.n_coordinates == 0:
            return
        if not self.rates_name:
            raise ModelError(f"The factor {self.name!r} has free rates; give rates_name.")
        if not self.components:
            object.__setattr__(self, "components", self.free)
        if not self.concentration:
            object.__setattr__(self, "concentration", (1.0,) * len(self.free))

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
    def has_predictor(self) -> bool:
        """Whether ψ depends on x at all."""
        return self.fixed[2] > 0 if self.fixed is not None else "rho" in self.free

    @property
    def n_coordinates(self) -> int:
        """How many coordinates the free rates have."""
        return 0 if self.fixed is not None else len(self.free) - 1

    @property
    def coordinate_names(self) -> tuple[str, ...]:
        """Readable names of the coordinates."""
        if self.n_coordinates == 1:
            return (f"logit {self.components[0]}",)
        last = self.free[-1]
        return tuple(f"log({name}/{last})" for name in self.free[: self.n_coordinates])

    @property
    def coordinate_rates(self) -> tuple[int, ...]:
        """Which rate, by its place in (γ, λ, ρ), every coordinate belongs to."""
        return tuple(RATES.index(name) for name in self.free[: self.n_coordinates])

    def log_rates(self, coordinates: ArrayLike = ()) -> Array:
        """(log γ, log λ, log ρ) of coordinates ``(..., K)``, by a softmax over the free rates."""
        if self.fixed is not None:
            with np.errstate(divide="ignore"):
                return np.log(np.array(self.fixed, dtype=float))
        coordinates = np.asarray(coordinates, dtype=float)
        lead = coordinates.shape[:-1]
        logits = np.concatenate([coordinates, np.zeros((*lead, 1))], axis=-1)
        out = np.full((*lead, 3), -np.inf)
        places = [RATES.index(name) for name in self.free]
        out[..., places] = logits - np.logaddexp.reduce(logits, axis=-1, keepdims=True)
        return out

    def coordinates(self, log_rates: ArrayLike) -> Array:
        """Coordinates ``(..., K)`` of log rates ``(..., 3)``; infinite ones are cut at ±700."""
        log_rates = np.asarray(log_rates, dtype=float)
        kept = log_rates[..., [RATES.index(name) for name in self.free]]
        if self.n_coordinates == 0:
            return np.zeros((*log_rates.shape[:-1], 0))
        with np.errstate(invalid="ignore"):
            ratios = kept[..., :-1] - kept[..., -1:]
        return np.clip(np.nan_to_num(ratios, posinf=700, neginf=-700), -700, 700)

    def logs(self, z: ArrayLike, log_rates: ArrayLike) -> tuple[Array, Array, Array]:
        """Log ψ, log(1 - ψ) and log ∂ψ/∂z, each from a sum of positive terms."""
        return log_factor(self.link, z, log_rates)

    def value(self, z: ArrayLike, log_rates: ArrayLike | None = None) -> Array:
        """ψ at values of the predictor, by default with the rates that are known."""
        return factor_value(self.link, z, self.log_rates() if log_rates is None else log_rates)

    def log_odds(self, z: Array) -> Array:
        """Log ψ - log(1 - ψ) with the rates that are known."""
        if self.is_plain and self.link.log_odds is not None:
            return self.link.log_odds(z)
        log_psi, log_not_psi, _ = log_factor(self.link, z, self.log_rates())
        return log_psi - log_not_psi

    def graph(self, z: Any, log_rates: Any) -> tuple[Any, Any]:
        """PyTensor's log ψ and log(1 - ψ); ``log_rates`` has its three rates along the last axis.

        A rate that is zero by construction is left out, because the gradient through an infinite
        logarithm is not a number.
        """
        log_up, log_down = self.link.graph(z)
        present = self.free if self.fixed is None else _positive(self.fixed)
        log_gamma, log_lam, log_rho = (log_rates[..., i] for i in range(3))
        psi = [log_gamma] if "gamma" in present else []
        not_psi = [log_lam] if "lambda" in present else []
        if "rho" in present:
            psi.append(log_rho + log_up)
            not_psi.append(log_rho + log_down)
        return _log_sum_graph(psi, z), _log_sum_graph(not_psi, z)


def log_factor(link: Link, z: ArrayLike, log_rates: ArrayLike) -> tuple[Array, Array, Array]:
    """Log ψ, log(1 - ψ) and log ∂ψ/∂z of a link mixed by rates."""
    log_rates = np.asarray(log_rates, dtype=float)
    log_gamma, log_lam, log_rho = (log_rates[..., i] for i in range(3))
    log_up, log_down, log_slope = link.logs(np.asarray(z, dtype=float))
    return (
        _log_sum(log_gamma, log_rho + log_up),
        _log_sum(log_lam, log_rho + log_down),
        log_rho + log_slope,
    )


def factor_value(link: Link, z: ArrayLike, log_rates: ArrayLike) -> Array:
    """ψ of a link mixed by rates."""
    if link.value is None:
        return np.exp(log_factor(link, z, log_rates)[0])
    gamma, _, rho = np.exp(np.moveaxis(np.asarray(log_rates, dtype=float), -1, 0))
    # The rates add up to one but for rounding.
    return np.minimum(gamma + rho * link.value(np.asarray(z, dtype=float)), 1.0)


def _pickled(value: "Link | Factor", getter: str) -> Any:
    """What comes with the library goes by its name, so that it is the same object again."""
    from bayes_lepu import factors

    get = getattr(factors, getter)
    if value.name in factors.REGISTRY and get(value.name) is value:
        return get, (value.name,)
    return copyreg.__newobj__, (type(value),), value.__dict__  # type: ignore[attr-defined]


def _log_sum(log_rate: Array, rest: Array) -> Array:
    """Log of rate + e^rest; without rates, nothing is computed."""
    return rest if np.isneginf(log_rate).all() else np.logaddexp(log_rate, rest)


def _positive(rates: tuple[float, float, float]) -> tuple[str, ...]:
    return tuple(name for name, rate in zip(RATES, rates, strict=True) if rate > 0)


def _log_sum_graph(terms: list[Any], like: Any) -> Any:
    """Log of the sum of e^term with bounded gradients, ties included."""
    import pytensor.tensor as pt

    if not terms:
        return -np.inf + pt.zeros_like(like)
    if len(terms) == 1:
        return terms[0] + pt.zeros_like(like)
    x, y = terms
    return pt.switch(x > y, x + pt.softplus(y - x), y + pt.softplus(x - y))
