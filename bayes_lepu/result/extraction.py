"""Class probability, propensity, label probability, missed positives: every draw of every row."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayes_lepu.links import Array
from bayes_lepu.models.parameters import Parameters
from bayes_lepu.result.fitted_model import FittedModel
from bayes_lepu.tables.user_table import as_coordinate

if TYPE_CHECKING:
    import xarray as xr

FUNCTIONS: dict[str, Callable[[Parameters, Array], Array]] = {
    "t": Parameters.t,
    "s": Parameters.s,
    "h": Parameters.h,
    "missed": Parameters.missed,
}


def extract_rows(fit: FittedModel, X: Array, index: pd.Index) -> "xr.Dataset":
    """t, s, h and P(y=1 | x, l=0), computed when they are looked at.

    Dimensions (chain, draw, obs), of what every annotator has of his own (…, obs, annotator).
    """
    import xarray as xr

    from bayes_lepu.result.lazy import computed

    p, several = fit.parameters, fit.data.n_annotators > 1
    chains, draws = p.b.shape

    def variable(function: Callable[[Parameters, Array], Array], own: bool) -> "xr.Variable":
        def of(chain: NDArray[Any], draw: NDArray[Any], rows: NDArray[Any]) -> Array:
            values = function(p.take(np.ix_(chain, draw)), X[rows])
            return np.moveaxis(values, 2, 3) if own else values

        dims: tuple[str, ...] = ("chain", "draw", "obs")
        shape: tuple[int, ...] = (chains, draws, X.shape[0])
        if own:
            dims, shape = (*dims, "annotator"), (*shape, fit.data.n_annotators)
        return computed(dims, shape, float, of)

    coords: dict[str, Any] = {"chain": np.arange(chains), "draw": np.arange(draws)}
    coords["obs"] = as_coordinate(index)
    if several:
        coords["annotator"] = list(fit.data.annotators)
    return xr.Dataset(
        {name: variable(f, several and name in ("s", "h")) for name, f in FUNCTIONS.items()},
        coords=coords,
    )
