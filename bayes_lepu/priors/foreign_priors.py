"""Priors written in the words of PyMC: those of pymc-extras and of PreliZ, by their names.

``pymc_extras.prior.Prior("Normal", mu=0, sigma=2)`` and ``preliz.Normal(0, 2)`` mean
``Prior("normal", scale=2.0)``. Neither library is needed: what has the name and the parameters of a
distribution of theirs is read by them. A half-normal, or a normal cut off at zero, is a sign where
a slope has it (`signed_families`).
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from bayes_lepu.errors import ModelError
from bayes_lepu.priors.prior import GivenPriors, Prior

ACCEPTED = (
    "Normal, Laplace, StudentT, HalfNormal, TruncatedNormal at zero, Beta, Dirichlet and Flat"
)


def read_priors(priors: GivenPriors) -> dict[str, Any]:
    """The priors with those of other libraries as `Prior`; the rest as it is."""
    if not isinstance(priors, Mapping):
        raise ModelError(
            f"priors = {priors!r}; a mapping of parameters to priors is expected, for example "
            'priors={"a": Prior("normal", scale=2.0)}.'
        )
    return {name: _read(prior, str(name)) for name, prior in priors.items()}


def _read(prior: Any, name: str) -> Any:
    if isinstance(prior, Mapping):
        return {column: _read(part, f"{name} of {column}") for column, part in prior.items()}
    found = _named_parameters(prior)
    return prior if found is None else _translated(prior, *found, name)


def _named_parameters(prior: Any) -> tuple[str, dict[str, Any]] | None:
    """Name and parameters of a distribution of another library, or None."""
    if isinstance(prior, Prior):
        return None
    if isinstance(given := getattr(prior, "parameters", None), Mapping):  # pymc-extras
        return str(getattr(prior, "distribution", "")), dict(given)
    if isinstance(names := getattr(prior, "param_names", None), tuple):  # PreliZ
        params = getattr(prior, "params", None)
        if params is None:
            raise ModelError(f"{type(prior).__name__}() has no parameters yet; give them.")
        return type(prior).__name__, dict(zip(names, params, strict=True))
    return None


def _translated(prior: Any, form: str, given: dict[str, Any], name: str) -> Prior:
    """The `Prior` that means the same."""
    if getattr(prior, "transform", None) is not None:
        raise ModelError(f"The prior of {name}, {prior!r}, has a transform; none is understood.")
    slope = not name.startswith("sigma_")
    location = {"mu": 0.0, "sigma": 1.0}
    match form:
        case "Normal":
            p = _values(given, location, prior, name)
            return Prior("normal", scale=p["sigma"], loc=p["mu"])
        case "Laplace":
            p = _values(given, {"mu": 0.0, "b": None}, prior, name)
            return Prior("laplace", scale=p["b"], loc=p["mu"])
        case "StudentT":
            p = _values(given, {"nu": None, **location}, prior, name)
            return Prior("student-t", scale=p["sigma"], loc=p["mu"], nu=p["nu"])
        case "HalfNormal":
            p = _values(given, {"sigma": 1.0}, prior, name)
            return Prior("positive" if slope else "halfnormal", scale=p["sigma"])
        case "TruncatedNormal":
            p = _values(given, {**location, "lower": -np.inf, "upper": np.inf}, prior, name)
            sides = {(0.0, np.inf): "positive", (-np.inf, 0.0): "negative"}
            side = sides.get((p["lower"], p["upper"]))
            if side and p["mu"] == 0:
                return Prior(side, scale=p["sigma"])
        case "Beta":
            p = _values(given, {"alpha": None, "beta": None}, prior, name)
            return Prior("beta", concentration=(p["alpha"], p["beta"]))
        case "Dirichlet":
            (values,) = given.values()
            return Prior("dirichlet", concentration=tuple(np.ravel(values).tolist()))
        case "Flat":
            return Prior("flat")
    raise ModelError(
        f"The prior of {name} is {prior!r}, which is none of those that are understood: {ACCEPTED}."
    )


def _values(
    given: dict[str, Any], defaults: Mapping[str, float | None], prior: Any, name: str
) -> dict[str, Any]:
    """The parameters as numbers, or a prior for an unknown scale; PyMC's defaults for others."""
    values = {**defaults, **{k: v for k, v in given.items() if v is not None}}
    if (more := set(values) - set(defaults)) or None in values.values():
        lacking = [k for k, v in values.items() if v is None]
        wrong = f"has {', '.join(sorted(more))}" if more else f"lacks {', '.join(lacking)}"
        raise ModelError(
            f"The prior of {name}, {prior!r}, {wrong}; {', '.join(defaults)} are expected."
        )
    return {k: _value(v, prior, name) for k, v in values.items()}


def _value(value: Any, prior: Any, name: str) -> Any:
    found = _named_parameters(value)
    if found is not None:
        return _translated(value, *found, f"sigma_{name}")
    if np.ndim(value) > 0 or not isinstance(value, int | float | np.number | np.ndarray):
        raise ModelError(
            f"The prior of {name}, {prior!r}, has {value!r} as a parameter; a number is expected. "
            "Give columns their own priors by name: {'size': ...}."
        )
    return float(value)
