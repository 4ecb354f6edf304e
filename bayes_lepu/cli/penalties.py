"""Penalties and priors as one writes them on the command line."""

import re
from collections.abc import Callable, Sequence
from typing import Any

from bayes_lepu.errors import ModelError
from bayes_lepu.priors.prior import Prior

CALL = re.compile(r"(\w+)\s*(?:\((.*)\))?$", re.DOTALL)


def read_penalty(text: str | None) -> Any:
    """``l2``, or ``a=l2,alpha=l1``."""
    return _one_or_each(text, str.strip)


def read_strength(text: str | None) -> Any:
    """``0.01``, or ``a=0.01,alpha=0.1``."""
    return _one_or_each(text, _number)


def read_priors(texts: Sequence[str] | None) -> dict[str, Prior] | None:
    """Priors by name from ``a=normal(0, 2)``, ``c=beta(1, 9)``, ``alpha=normal(halfnormal(1))``."""
    if not texts:
        return None
    priors = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise ModelError(
                f"--prior {text!r} names no parameter; NAME=FAMILY(...) is expected, such as "
                "'a=normal(0, 2)'."
            )
        priors[name.strip()] = _prior(value.strip())
    return priors


def _prior(text: str) -> Prior:
    """A family with its numbers: the scale, or the centre and the scale; or concentrations."""
    found = CALL.match(text)
    if found is None:
        raise ModelError(f"{text!r} is no prior; FAMILY(...) is expected, such as normal(0, 2).")
    family, inside = found.group(1), (found.group(2) or "").strip()
    if inside.startswith("halfnormal"):
        return Prior(family, scale=_prior(inside))
    numbers = [_number(part) for part in inside.split(",")] if inside else []
    if family in ("beta", "dirichlet"):
        return Prior(family, concentration=tuple(numbers))
    if len(numbers) > 2:
        raise ModelError(f"{text!r} has {len(numbers)} numbers; a centre and a scale are expected.")
    scale = numbers[-1] if numbers else None
    return Prior(family, scale=scale, loc=numbers[0] if len(numbers) == 2 else 0.0)


def _one_or_each(text: str | None, read: Callable[[str], Any]) -> Any:
    if text is None or "=" not in text:
        return None if text is None else read(text)
    parts = [part.partition("=") for part in text.split(",")]
    return {name.strip(): read(value) for name, _, value in parts}


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ModelError(f"{text.strip()!r} is not a number; one is expected here.") from None
