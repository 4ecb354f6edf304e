r"""The psychometric function, :math:`\psi = \gamma + (1-\gamma-\lambda)\,\sigma(\omega)`.

A logistic propensity with guesses γ and lapses λ.
"""

from bayes_lepu.propensities.logistic import LINK
from bayes_lepu.propensities.propensity import Propensity

PROPENSITY = Propensity(
    "psychometric",
    "s(x) = γ + (1-γ-λ) σ(α·x + β): logistic with guesses γ and lapses λ",
    LINK,
    free=("gamma", "lambda", "rho"),
    rates_name="rates",
)
