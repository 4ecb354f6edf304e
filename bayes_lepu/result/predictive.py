"""Draws of the prior and of predicted labels, and the log-likelihood of every row and draw."""

import numpy as np
from numpy.typing import NDArray

from bayes_lepu.data.pu_data import PUData
from bayes_lepu.errors import ModelError
from bayes_lepu.links import Array
from bayes_lepu.model.density import LogDensity
from bayes_lepu.model.parameters import Parameters
from bayes_lepu.model.row_sums import row_terms
from bayes_lepu.model.spec import ModelSpec
from bayes_lepu.priors.prior import Priors


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
    """Log-likelihood of every row, weights left out, ``(chain, draw, n)``."""
    return row_terms(parameters, data)[0]


def predictive_labels(
    parameters: Parameters,
    X: Array,
    rng: np.random.Generator,
    *,
    shown: NDArray[np.bool_] | None = None,
) -> NDArray[np.int8]:
    """Labels drawn from the model, ``(draws..., n)``, one draw of parameters at a time.

    Of several annotators ``(draws..., n, J)``; each is independent of the others given the class.
    """
    flat = parameters.take_flat()
    J = flat.beta.shape[1:]
    out = np.empty((flat.b.size, X.shape[0], *J), dtype=np.int8)
    for i in range(flat.b.size):
        point = flat.take(i)
        if J:
            out[i] = point.simulate(X, rng, shown=shown)[1]
        else:
            out[i] = rng.random(X.shape[0]) < point.h(X)
    return out.reshape(*parameters.b.shape, *out.shape[1:])


def marked_by_anybody(
    parameters: Parameters, data: PUData, rng: np.random.Generator
) -> NDArray[np.int8]:
    """Whether a row is marked in labels drawn from the model, ``(draws..., n)``."""
    if not parameters.several:
        return predictive_labels(parameters, data.X, rng)
    labels = predictive_labels(parameters, data.X, rng, shown=data.shown)
    return (labels == 1).any(axis=-1).astype(np.int8)
