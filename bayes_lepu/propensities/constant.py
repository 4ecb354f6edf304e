"""Positive rows are marked completely at random with probability ψ = c."""

from bayes_lepu.propensities.logistic import LINK
from bayes_lepu.propensities.propensity import Propensity

PROPENSITY = Propensity(
    "constant",
    "s(x) = c: labelled completely at random",
    LINK,
    free=("gamma", "lambda"),
    rates_name="c",
    components=("c",),
)
