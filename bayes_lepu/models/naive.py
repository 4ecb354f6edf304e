r"""Naive: unlabelled means negative, :math:`s \equiv 1`, so :math:`h(x) = \sigma(a\cdot x + b)`."""

from typing import Any

import numpy as np

from bayes_lepu.models.spec import ModelSpec


def log_psi(omega: Any, rates: Any) -> tuple[Any, Any]:
    """Logarithms of 1 and of 0."""
    return 0.0 * omega, 0.0 * omega - float("inf")


SPEC = ModelSpec(
    name="naive",
    mechanism="s(x) = 1: every positive is labelled",
    has_selection=False,
    log_psi=log_psi,
    fixed_log_w=(0.0, -np.inf, -np.inf),
)
