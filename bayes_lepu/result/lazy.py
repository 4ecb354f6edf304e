"""Arrays over the draws that are computed when somebody looks at them, and then kept.

Draws times rows can be more than a memory holds, and most of those who open a tree look at the
parameters alone. xarray has such arrays for files; these come from a function instead.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from xarray.backends import BackendArray
from xarray.core import indexing

from bayes_lepu.data.frames import as_coordinate
from bayes_lepu.errors import ModelError
from bayes_lepu.links import Array
from bayes_lepu.model.parameters import Parameters

if TYPE_CHECKING:
    import xarray as xr

    from bayes_lepu.fitted import Fit

MAX_CELLS = 250_000_000  # 2 GB of numbers

# The entries of these chains, these draws and, where there are rows, these rows.
Entries = Callable[..., NDArray[Any]]


class _Computed(BackendArray):
    """An array (chain, draw), or (chain, draw, row, ...), behind a function of the first axes."""

    def __init__(self, entries: Entries, shape: tuple[int, ...], dtype: Any) -> None:
        self._entries = entries
        self.shape = shape
        self.dtype = np.dtype(dtype)

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        support = indexing.IndexingSupport.OUTER
        return indexing.explicit_indexing_adapter(key, self.shape, support, self._pick)

    def _pick(self, key: tuple[Any, ...]) -> Any:
        """Entries by one integer, slice or array per axis; only what is asked for is computed."""
        wanted = [np.arange(n)[at] for n, at in zip(self.shape[:3], key, strict=False)]
        asked = [np.atleast_1d(at) for at in wanted]
        cells = int(np.prod([*(at.size for at in asked), *self.shape[3:]]))
        if cells > MAX_CELLS:
            raise ModelError(
                f"These are {cells:.2g} numbers, more than the {MAX_CELLS:.2g} that are computed "
                "at once. Ask for some of the rows, such as "
                "tree['log_likelihood']['l'].isel(obs=slice(1000)); lepu.compare does so itself."
            )
        values = self._entries(*asked)
        at = [slice(None) if w.ndim else 0 for w in wanted] + list(key[3:])
        for axis in reversed(range(len(at))):  # from the last, so that axes keep their numbers
            values = values[(slice(None),) * axis + (at[axis],)]
        return values


def computed(
    dims: tuple[str, ...], shape: tuple[int, ...], dtype: Any, entries: Entries
) -> "xr.Variable":
    """A variable over the draws that is computed at first sight."""
    import xarray as xr

    data: Any = indexing.LazilyIndexedArray(_Computed(entries, shape, dtype))
    return xr.Variable(dims, indexing.MemoryCachedArray(indexing.CopyOnWriteArray(data)))


FUNCTIONS: dict[str, Callable[[Parameters, Array], Array]] = {
    "t": Parameters.t,
    "s": Parameters.s,
    "h": Parameters.h,
    "missed": Parameters.missed,
}


def extract_rows(fit: "Fit", X: Array, index: pd.Index) -> "xr.Dataset":
    """t, s, h and P(y=1 | x, l=0), computed when they are looked at.

    Dimensions (chain, draw, obs), of what every annotator has of his own (…, obs, annotator).
    """
    import xarray as xr

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
