r"""PsychM, the psychometric model: a logistic propensity with guesses and lapses.

.. math:: h(x) = [\gamma + (1-\gamma-\lambda)\,\sigma(\alpha\cdot x+\beta)]\;\sigma(a\cdot x+b)
"""

from typing import Any

from bayes_lepu.models.graph import log_sigmoid, logaddexp
from bayes_lepu.models.spec import ModelSpec


def log_psi(omega: Any, rates: Any) -> tuple[Any, Any]:
    """Logarithms of γ + ρ σ(ω) and of λ + ρ σ(-ω)."""
    import pytensor.tensor as pt

    log_gamma, log_lam, log_rho = (pt.log(rates[i]) for i in range(3))
    return (
        logaddexp(log_gamma, log_rho + log_sigmoid(omega)),
        logaddexp(log_lam, log_rho + log_sigmoid(-omega)),
    )


SPEC = ModelSpec(
    name="psychm",
    mechanism="s(x) = γ + (1-γ-λ) σ(α·x + β): logistic with guesses γ and lapses λ",
    has_selection=True,
    log_psi=log_psi,
    rates_name="rates",
    components=("gamma", "lambda", "rho"),
    coordinate_names=("log(gamma/rho)", "log(lambda/rho)"),
)
