r"""A logistic propensity with guesses γ and no lapses, ψ = γ + (1-γ) σ(ω).

What is left of the psychometric function where only the ratio of two propensities can be known.
"""

from bayes_lepu.propensities.logistic import LINK
from bayes_lepu.propensities.propensity import Propensity

PROPENSITY = Propensity(
    "guessing",
    "s(x) = γ + (1-γ) σ(α·x + β): logistic with guesses γ",
    LINK,
    free=("gamma", "rho"),
    rates_name="gamma",
    components=("gamma",),
)
