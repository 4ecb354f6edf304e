r"""PsychM, the psychometric model: a logistic propensity with guesses and lapses.

.. math:: h(x) = [\gamma + (1-\gamma-\lambda)\,\sigma(\alpha\cdot x+\beta)]\;\sigma(a\cdot x+b)
"""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from bayes_lepu.data import PUData
from bayes_lepu.links import Array
from bayes_lepu.models.graph import (
    log_sigmoid,
    logaddexp,
    new_model,
    observe,
    predictor,
    variable,
)
from bayes_lepu.models.spec import ModelSpec
from bayes_lepu.priors import Priors

if TYPE_CHECKING:
    import pymc as pm


def log_w(u: ArrayLike, v: ArrayLike) -> Array:
    """Log-softmax of (u, v, 0)."""
    z = np.stack([u, v, np.zeros_like(u)], axis=-1)
    return z - np.logaddexp.reduce(z, axis=-1, keepdims=True)


def build(data: PUData, priors: Priors) -> "pm.Model":
    """Psychometric propensity times a logistic class probability."""
    import pymc as pm
    import pytensor.tensor as pt

    with new_model(data) as model:
        model.add_coord("weight", ["gamma", "lambda", "rho"])
        tau = predictor(data, "a", "b", priors)
        omega = predictor(data, "alpha", "beta", priors)
        weights = variable("weights", priors["weights"], "weight")
        pm.Deterministic("gamma", weights[0])
        pm.Deterministic("lambda", weights[1])
        log_gamma, log_lam, log_rho = (pt.log(weights[i]) for i in range(3))
        log_psi = logaddexp(log_gamma, log_rho + log_sigmoid(omega))
        log_not_psi = logaddexp(log_lam, log_rho + log_sigmoid(-omega))
        observe(data, tau, log_psi, log_not_psi)
    return model


SPEC = ModelSpec(
    name="psychm",
    mechanism="s(x) = γ + (1-γ-λ) σ(α·x + β): logistic with guesses γ and lapses λ",
    parameters=("a", "b", "alpha", "beta", "weights"),
    log_w=log_w,
    n_weights=2,
    build=build,
)
