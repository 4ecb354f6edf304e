"""Draws of the prior and of predicted labels, and the log-likelihood of every row and draw."""

import numpy as np
from numpy.typing import NDArray

from bayes_lepu import kernel
from bayes_lepu.data import PUData
from bayes_lepu.errors import ModelError
from bayes_lepu.links import Array
from bayes_lepu.models.density import LogDensity
from bayes_lepu.models.parameters import Parameters
from bayes_lepu.models.spec import ModelSpec
from bayes_lepu.priors import Priors


def prior_parameters(
    spec: ModelSpec, data: PUData, priors: Priors, count: int, rng: np.random.Generator
) -> Parameters:
    """Draws of the prior, ``(count, ...)``, zeros in masked columns."""
    flat = [name for name, prior in priors.items() if not prior.proper]
    if flat:
        raise ModelError(
            f"The prior of {', '.join(flat)} is flat and cannot be sampled. Fit with "
            "method='nuts' or 'laplace', or pass proper priors."
        )
    density = LogDensity(spec, data, priors)
    return density.unpack(density.sample_prior(count, rng))


def log_likelihood(parameters: Parameters, data: PUData) -> Array:
    """Log-likelihood of every row, ``(chain, draw, n)``."""
    flat = parameters.take_flat()
    out = np.empty((flat.b.size, data.n))
    for i in range(flat.b.size):
        q = flat.take(i)
        log_w = np.ascontiguousarray(q.log_w)
        out[i] = kernel.loglik_rows(
            data.X, data.kind, q.a.copy(), float(q.b), q.alpha.copy(), float(q.beta), log_w
        )
    return out.reshape(*parameters.b.shape, data.n)


def predictive_labels(
    parameters: Parameters, X: Array, rng: np.random.Generator
) -> NDArray[np.int8]:
    """Labels drawn from h(x), ``(draws..., n)``, one draw of parameters at a time."""
    flat = parameters.take_flat()
    out = np.empty((flat.b.size, len(X)), dtype=np.int8)
    for i in range(flat.b.size):
        out[i] = rng.random(len(X)) < flat.take(i).h(X)
    return out.reshape(*parameters.b.shape, len(X))
