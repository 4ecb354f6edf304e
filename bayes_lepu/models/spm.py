r"""SPM, the sigmoidal product model: :math:`h(x) = \sigma(\omega)\,\sigma(\tau)`.

Symmetric under exchange of the two factors: the data alone never say which one is the classifier.
"""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from bayes_lepu.data import PUData
from bayes_lepu.links import LOG_W_SPM, Array
from bayes_lepu.models.graph import log_sigmoid, new_model, observe, predictor
from bayes_lepu.models.spec import ModelSpec
from bayes_lepu.priors import Priors

if TYPE_CHECKING:
    import pymc as pm


def log_w(u: ArrayLike, v: ArrayLike) -> Array:
    """Weights (0, 0, 1): no guessing, no lapses."""
    return np.broadcast_to(LOG_W_SPM, (*np.shape(u), 3))


def build(data: PUData, priors: Priors) -> "pm.Model":
    """Product of two logistic functions."""
    with new_model(data) as model:
        tau = predictor(data, "a", "b", priors)
        omega = predictor(data, "alpha", "beta", priors)
        observe(data, tau, log_sigmoid(omega), log_sigmoid(-omega))
    return model


SPEC = ModelSpec(
    name="spm",
    mechanism="s(x) = σ(α·x + β): a logistic propensity",
    parameters=("a", "b", "alpha", "beta"),
    log_w=log_w,
    n_weights=0,
    build=build,
)
