r"""SCAR: labelled completely at random, :math:`s \equiv c`, so :math:`h(x) = c\,\sigma(\tau)`.

Elkan and Noto's assumption as a joint model (their two-step estimator is in `baselines`).
"""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_expit

from bayes_lepu.data import PUData
from bayes_lepu.links import Array
from bayes_lepu.models.graph import new_model, observe, predictor, variable
from bayes_lepu.models.spec import ModelSpec
from bayes_lepu.priors import Priors

if TYPE_CHECKING:
    import pymc as pm


def log_w(u: ArrayLike, v: ArrayLike) -> Array:
    """Weights (c, 1 - c, 0) from u = logit c."""
    u = np.asarray(u, dtype=float)
    return np.stack([log_expit(u), log_expit(-u), np.full(u.shape, -np.inf)], axis=-1)


def build(data: PUData, priors: Priors) -> "pm.Model":
    """Logistic class probability times a constant label frequency c."""
    import pytensor.tensor as pt

    with new_model(data) as model:
        tau = predictor(data, "a", "b", priors)
        c = variable("c", priors["c"])
        observe(data, tau, pt.log(c), pt.log1p(-c))
    return model


SPEC = ModelSpec(
    name="scar",
    mechanism="s(x) = c: labelled completely at random",
    parameters=("a", "b", "c"),
    log_w=log_w,
    n_weights=1,
    build=build,
)
