"""Propensities, one file each, and the table of those that come with the library."""

from bayes_lepu.errors import ModelError
from bayes_lepu.propensities import (
    cauchit,
    cloglog,
    constant,
    guessing,
    logistic,
    loglog,
    one,
    probit,
    psychometric,
)
from bayes_lepu.propensities.logistic import ceiling
from bayes_lepu.propensities.propensity import RATES, Link, Propensity, link_of, log_factor
from bayes_lepu.suggestions import unknown

__all__ = [
    "RATES",
    "REGISTRY",
    "Link",
    "Propensity",
    "ceiling",
    "get_propensity",
    "link_of",
    "log_factor",
]

REGISTRY: dict[str, Propensity] = {
    module.PROPENSITY.name: module.PROPENSITY
    for module in (
        one,
        constant,
        logistic,
        psychometric,
        guessing,
        probit,
        cloglog,
        loglog,
        cauchit,
    )
}


def get_propensity(name: str) -> Propensity:
    """The propensity of this name."""
    if name not in REGISTRY:
        raise ModelError(unknown("propensity", name, REGISTRY))
    return REGISTRY[name]
