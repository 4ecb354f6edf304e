"""The factors of a model with a predictor: what they are called, and which columns they have."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayes_lepu.data.pu_data import PUData
from bayes_lepu.likelihood.sparse_matrices import is_sparse, predict
from bayes_lepu.links import Array
from bayes_lepu.models.parameters import Parameters
from bayes_lepu.models.spec import ModelSpec
from bayes_lepu.priors.prior import INTERCEPTS, slope_masks

BLOCK_ROWS = 4096


class Factor(NamedTuple):
    """The names of a factor's slopes and intercept, and the columns it has."""

    slope: str
    intercept: str
    dim: str
    mask: NDArray[np.bool_]


def factors(spec: ModelSpec, data: PUData) -> list[Factor]:
    """The class, and s where it depends on x."""
    dims = data.class_dim, data.selection_dim
    every = zip(slope_masks(data).items(), INTERCEPTS, dims, strict=True)
    found = [Factor(slope, intercept, dim, mask) for (slope, mask), intercept, dim in every]
    return found if spec.has_selection else found[:1]


def sigma_norm(slope: Array, X: Array) -> Array:
    """Standard deviation of the linear predictor over the rows, ``(...)`` for ``(..., p)``."""
    if slope.ndim == 1 or is_sparse(X):
        return np.asarray(np.std(predict(slope, X), axis=-1))
    center, covariance = X.mean(axis=0), np.zeros((X.shape[1], X.shape[1]))
    for start in range(0, len(X), BLOCK_ROWS):  # no second copy of X
        block = X[start : start + BLOCK_ROWS] - center
        covariance += block.T @ block
    return np.sqrt(np.einsum("...i,ij,...j->...", slope, covariance / len(X), slope))


def scalars(spec: ModelSpec, data: PUData, draws: Parameters) -> dict[str, Array]:
    """Intercepts, sd of the linear predictors, and free rates, by name and annotator."""
    t, *selection = factors(spec, data)
    out = {t.intercept: draws.b, f"|{t.slope}|": sigma_norm(draws.a, data.X)}
    if data.n_annotators == 1:
        for s in selection:
            out[s.intercept] = draws.beta
            out[f"|{s.slope}|"] = sigma_norm(draws.alpha, data.X)
        return out | draws.rates(spec.shape_rates)
    rates = draws.rates(spec.propensity.free[:-1] if spec.n_rates else ())
    for j, name in enumerate(data.annotators):
        for s in selection:
            out[f"{s.intercept}[{name}]"] = draws.beta[..., j]
            out[f"|{s.slope}[{name}]|"] = sigma_norm(draws.alpha[..., j, :], data.X)
        out |= {f"{rate}[{name}]": values[..., j] for rate, values in rates.items()}
    return out
