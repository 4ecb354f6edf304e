"""Arrays over the draws that are computed when somebody looks at them, and then kept.

Draws times rows can be more than a memory holds, and most of those who open a tree look at the
parameters alone. xarray has such arrays for files; these come from a function instead.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from xarray.backends import BackendArray
from xarray.core import indexing

from bayes_lepu.errors import ModelError

if TYPE_CHECKING:
    import xarray as xr

MAX_CELLS = 250_000_000  # 2 GB of numbers

# All entries (chain, draw, row, ...) of the rows at these positions.
OfRows = Callable[[NDArray[np.intp]], NDArray[Any]]


class _Computed(BackendArray):
    """An array (chain, draw), or (chain, draw, row, ...), behind a function of the rows."""

    def __init__(self, of_rows: OfRows, shape: tuple[int, ...], dtype: Any) -> None:
        self._of_rows = of_rows
        self.shape = shape
        self.dtype = np.dtype(dtype)

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        support = indexing.IndexingSupport.OUTER
        return indexing.explicit_indexing_adapter(key, self.shape, support, self._pick)

    def _pick(self, key: tuple[Any, ...]) -> Any:
        """Entries by one integer, slice or array per axis; only the rows asked for are computed."""
        at = list(key)
        rows = np.zeros(0, dtype=np.intp)
        if len(self.shape) > 2:
            wanted = np.arange(self.shape[2])[key[2]]
            rows, at[2] = np.atleast_1d(wanted), slice(None) if wanted.ndim else 0
            self._refuse_too_many(rows.size)
        values = self._of_rows(rows)
        for axis in reversed(range(len(at))):  # from the last, so that axes keep their numbers
            values = values[(slice(None),) * axis + (at[axis],)]
        return values

    def _refuse_too_many(self, rows: int) -> None:
        cells = rows * int(np.prod([*self.shape[:2], *self.shape[3:]]))
        if cells > MAX_CELLS:
            raise ModelError(
                f"All draws of {rows} rows are {cells:.2g} numbers, more than the {MAX_CELLS:.2g} "
                "that are computed at once. Ask for some of the rows, such as "
                "tree['log_likelihood']['l'].isel(obs=slice(1000)); lepu.compare does so itself."
            )


def computed(
    dims: tuple[str, ...], shape: tuple[int, ...], dtype: Any, of_rows: OfRows
) -> "xr.Variable":
    """A variable over the draws that is computed at first sight."""
    import xarray as xr

    data: Any = indexing.LazilyIndexedArray(_Computed(of_rows, shape, dtype))
    return xr.Variable(dims, indexing.MemoryCachedArray(indexing.CopyOnWriteArray(data)))
