r"""The logistic curve with rates: a floor, a ceiling, or nothing but rates.

.. math:: \psi = \gamma + \rho\,\sigma(\eta), \qquad \gamma + \lambda + \rho = 1

The psychometric function has guesses γ and lapses λ; a constant is ρ = 0.
"""

import numpy as np

from bayes_lepu.errors import ModelError
from bayes_lepu.factors.factor import Factor
from bayes_lepu.factors.logistic import LINK

FACTORS = (
    Factor("one", "1", LINK, free=("gamma",), note="every positive row is labelled"),
    Factor(
        "constant",
        "c",
        LINK,
        free=("gamma", "lambda"),
        rates_name="c",
        components=("c",),
        note="labelled completely at random",
    ),
    Factor(
        "psychometric",
        "γ + (1-γ-λ) σ(η)",
        LINK,
        free=("gamma", "lambda", "rho"),
        rates_name="rates",
        note="logistic with guesses γ and lapses λ",
    ),
)


def ceiling(highest: float) -> Factor:
    """A logistic curve that ends below one: the highest probability is ``highest``."""
    if not 0 < highest <= 1:
        raise ModelError(f"ceiling({highest!r}); a number above 0 and at most 1 is expected.")
    rates = (0.0, 1.0 - np.float64(highest).item(), float(highest))
    return Factor(f"logistic up to {highest:g}", f"{highest:g} σ(η)", LINK, fixed=rates)
