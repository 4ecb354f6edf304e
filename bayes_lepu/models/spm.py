r"""SPM, the sigmoidal product model: :math:`h(x) = \sigma(\omega)\,\sigma(\tau)`.

Symmetric under exchange of the two factors: the data alone never say which one is the classifier.
"""

from typing import Any

from bayes_lepu.models.graph import log_sigmoid
from bayes_lepu.models.spec import ModelSpec


def log_psi(omega: Any, rates: Any) -> tuple[Any, Any]:
    """Logarithms of σ(ω) and of σ(-ω)."""
    return log_sigmoid(omega), log_sigmoid(-omega)


SPEC = ModelSpec(
    name="spm",
    mechanism="s(x) = σ(α·x + β): a logistic propensity",
    has_selection=True,
    log_psi=log_psi,
)
