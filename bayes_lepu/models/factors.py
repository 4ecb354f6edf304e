"""The factors of a model with a predictor: what they are called, and which columns they have."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayes_lepu.data import PUData
from bayes_lepu.links import Array
from bayes_lepu.models.parameters import Parameters
from bayes_lepu.models.spec import ModelSpec
from bayes_lepu.priors import INTERCEPTS, slope_masks


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


def scalars(
    spec: ModelSpec, data: PUData, draws: Parameters, size: Callable[[Array, Array], Array]
) -> dict[str, Array]:
    """Intercepts, the sizes of slopes over the rows, and the free rates of one annotator."""
    out: dict[str, Array] = {}
    for factor in factors(spec, data):
        out[factor.intercept] = getattr(draws, factor.intercept)
        out[f"|{factor.slope}|"] = size(getattr(draws, factor.slope), data.X)
    return out | draws.rates(spec.shape_rates)
