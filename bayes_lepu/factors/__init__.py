"""Factors of the row formula, t and s alike: a link in a file each, and rates."""

from bayes_lepu.errors import ModelError
from bayes_lepu.factors import cauchit, cloglog, logistic, probit, rates
from bayes_lepu.factors.factor import RATES, Factor, Link, factor_value, link_of, log_factor
from bayes_lepu.factors.rates import ceiling
from bayes_lepu.factors.scalars import give_numbers
from bayes_lepu.suggestions import unknown

__all__ = [
    "CURVES",
    "RATES",
    "REGISTRY",
    "Factor",
    "Link",
    "ceiling",
    "factor_value",
    "get_curve",
    "get_factor",
    "get_link",
    "link_of",
    "log_factor",
]

REGISTRY: dict[str, Factor] = {
    factor.name: factor
    for module in (rates, logistic, probit, cloglog, cauchit)
    for factor in module.FACTORS
}
# Those that a class can have: a link without rates to estimate.
CURVES = {name: factor for name, factor in REGISTRY.items() if factor.is_plain}
give_numbers(factor.link.tag for factor in CURVES.values())


def get_factor(name: str) -> Factor:
    """The factor of this name."""
    if name not in REGISTRY:
        raise ModelError(unknown("propensity", name, REGISTRY))
    return REGISTRY[name]


def get_link(name: str) -> Link:
    """The link of this name."""
    return get_factor(name).link


def get_curve(class_link: str | Factor) -> Factor:
    """The class by the name of its link, or a factor of one's own whose rates are known."""
    if not isinstance(class_link, Factor):
        if class_link not in CURVES:
            raise ModelError(
                f"{unknown('class_link', class_link, CURVES)} Also a Factor of your own, such as "
                "bayes_lepu.factors.ceiling(0.9)."
            )
        return CURVES[class_link]
    if class_link.n_coordinates or not class_link.has_predictor:
        raise ModelError(
            f"class_link is the factor {class_link.name!r}, whose rates are estimated or which no "
            "column enters; a link, with rates that are known (fixed=), is expected."
        )
    return class_link
