r"""SCAR: labelled completely at random, :math:`s \equiv c`, so :math:`h(x) = c\,\sigma(\tau)`.

Elkan and Noto's assumption as a joint model (their two-step estimator is in `baselines`).
"""

from typing import Any

from bayes_lepu.models.spec import ModelSpec


def log_psi(omega: Any, rates: Any) -> tuple[Any, Any]:
    """Logarithms of c and of 1 - c."""
    import pytensor.tensor as pt

    return pt.log(rates), pt.log1p(-rates)


SPEC = ModelSpec(
    name="scar",
    mechanism="s(x) = c: labelled completely at random",
    has_selection=False,
    log_psi=log_psi,
    rates_name="c",
    components=("c",),
    coordinate_names=("logit c",),
)
