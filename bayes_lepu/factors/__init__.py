"""Factors of the row formula, for t and for s: a link, and rates."""

from bayes_lepu.errors import ModelError
from bayes_lepu.factors.curves import FACTORS, ceiling
from bayes_lepu.factors.factor import RATES, Factor, Link
from bayes_lepu.suggestions import unknown

__all__ = [
    "CURVES",
    "RATES",
    "REGISTRY",
    "Factor",
    "Link",
    "ceiling",
    "get_curve",
    "get_factor",
    "get_link",
]

REGISTRY: dict[str, Factor] = {factor.name: factor for factor in FACTORS}
# The factors that a class can have: links without rates to estimate.
CURVES = {name: factor for name, factor in REGISTRY.items() if factor.is_plain}


def get_factor(name: str) -> Factor:
    """The factor of this name."""
    if name not in REGISTRY:
        raise ModelError(unknown("propensity", name, REGISTRY))
    return REGISTRY[name]


def get_link(name: str) -> Link:
    """The link of this name."""
    return get_factor(name).link


def get_curve(class_link: str | Factor) -> Factor:
    """The class by the name of its link, or the user's own factor with known rates."""
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
