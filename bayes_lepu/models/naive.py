r"""Naive: unlabelled means negative, :math:`s \equiv 1`, so :math:`h(x) = \sigma(a\cdot x + b)`."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from bayes_lepu.data import PUData
from bayes_lepu.links import LOG_W_NAIVE, Array
from bayes_lepu.models.graph import new_model, observe, predictor
from bayes_lepu.models.spec import ModelSpec
from bayes_lepu.priors import Priors

if TYPE_CHECKING:
    import pymc as pm


def log_w(u: ArrayLike, v: ArrayLike) -> Array:
    """Weights (1, 0, 0): every positive is labelled."""
    return np.broadcast_to(LOG_W_NAIVE, (*np.shape(u), 3))


def build(data: PUData, priors: Priors) -> "pm.Model":
    """Logistic regression of the label on the features."""
    import pytensor.tensor as pt

    with new_model(data) as model:
        tau = predictor(data, "a", "b", priors)
        zero = pt.zeros(data.n)
        observe(data, tau, zero, zero - float("inf"))
    return model


SPEC = ModelSpec(
    name="naive",
    mechanism="s(x) = 1: every positive is labelled",
    parameters=("a", "b"),
    log_w=log_w,
    n_weights=0,
    build=build,
)
