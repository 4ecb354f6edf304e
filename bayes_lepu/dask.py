"""Fits and predictions over the partitions of a Dask collection.

The sums of `data.parts` are computed where the partitions are; what comes back from each is a
number, a gradient or an information matrix. The answer is that of one process to rounding, and a
plain `Fit` in this process.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from bayes_lepu._fit import fit_rows
from bayes_lepu.building import Rows
from bayes_lepu.errors import DataError
from bayes_lepu.fitted import Fit
from bayes_lepu.links import Array
from bayes_lepu.models.spec import ModelSpec
from bayes_lepu.priors.prior import GivenPriors, Prior
from bayes_lepu.propensities import Propensity
from bayes_lepu.result.origin import FitOptions

LABEL = "l"  # the column of the labels, where they come as an array
RETRIES = 3  # of a task that fails with its worker


class Partitions:
    """Parts that are held by the workers of a cluster, in order.

    Parameters
    ----------
    client : distributed.Client
    futures : list of Future
        One per partition. What a lost worker held is computed again from where it came from.
    """

    is_source = True

    def __init__(self, client: Any, futures: list[Any]) -> None:
        self._client, self._futures = client, futures

    def map(self, function: Callable[..., Any], *more: Iterable[Any]) -> "Partitions":
        """What a function makes of every partition, computed where the partition is."""
        each = self._client.map(function, self._futures, *more, pure=False, retries=RETRIES)
        return Partitions(self._client, each)

    def __iter__(self) -> Iterator[Any]:
        for future in self._futures:
            yield future.result()


def fit(
    X: Any,
    l: Any,
    *,
    client: Any = None,
    model: str | Propensity | ModelSpec = "psychm",
    method: str = "map",
    y: str | None = None,
    sample_weight: str | None = None,
    class_prior: tuple[float, float] | None = None,
    label_frequency: tuple[float, float] | None = None,
    false_marks: bool | Prior = False,
    class_features: Sequence[str | int] | None = None,
    selection_features: Sequence[str | int] | None = None,
    class_formula: str | None = None,
    selection_formula: str | None = None,
    exclude: Sequence[str] = (),
    missing: str = "error",
    unseen: str = "error",
    standardize: bool = True,
    penalty: str | Mapping[str, str] | None = None,
    C: float | Mapping[str, float] | None = None,
    priors: GivenPriors | None = None,
    orientation: str = "sigma-norm",
    draws: int = 1000,
    chains: int = 4,
    random_seed: int | None = None,
    progressbar: bool = True,
) -> Fit:
    """Fit the rows of a Dask DataFrame or array, each partition where it is.

    Options that are not listed here are those of `bayes_lepu.fit`. Few large partitions are best:
    every pass sends one task to each of them.

    Parameters
    ----------
    X : dask.dataframe.DataFrame or dask.array.Array of shape (n, p)
        An array is to be cut along its rows only.
    l : str or dask.array.Array
        Name of the column of the labels; for an array their array, cut as X is.
    client : distributed.Client, optional
        Where to compute; by default the active client.
    method : {"map", "laplace"}
        NUTS is refused: it would go over all partitions tens of thousands of times.
    y, sample_weight : str, optional
        Names of columns of X.

    Returns
    -------
    Fit
        As from `bayes_lepu.fit`. It holds a random sample of the rows, by which it is judged, and
        needs the cluster only for sums over all rows, such as ``missed(total=True)``.
    """
    given = locals()
    delayed, name = _delayed(X, l)
    client = _active_client() if client is None else client
    if not hasattr(client, "compute") or getattr(client, "asynchronous", False):
        raise DataError(
            f"client is a {type(client).__name__}; a distributed.Client that is not asynchronous "
            "is expected."
        )
    rows = Rows(Partitions(client, client.compute(delayed)), name, y, sample_weight=sample_weight)
    return fit_rows(rows, model, FitOptions.of(given | {"l": name}))


def predict_proba(fit: Fit, X: Any) -> Any:
    """P(y | x) of the rows of a Dask collection, as one: columns 0 and 1 of a DataFrame, or (n, 2).

    Nothing is computed until it is asked for.

    Parameters
    ----------
    fit : Fit
        From any method, with or without Dask.
    X : dask.dataframe.DataFrame or dask.array.Array
    """
    if hasattr(X, "map_partitions"):
        meta = pd.DataFrame({0: np.empty(0), 1: np.empty(0)})
        return X.map_partitions(_probabilities, _without_rows(fit), meta=meta)
    if hasattr(X, "map_blocks"):
        _one_block_of_columns(X)
        rate = _without_rows(fit).predict_proba
        return X.map_blocks(rate, dtype=float, chunks=(X.chunks[0], (2,)))
    raise DataError(
        f"X is a {type(X).__name__}; a Dask DataFrame or array is expected. For rows in memory use "
        "fit.predict_proba(X)."
    )


def _active_client() -> Any:
    try:
        from distributed import get_client

        return get_client()
    except ImportError as error:
        raise DataError(
            "Partitions are fitted by distributed, which is not installed. Use pip install "
            "'bayes-lepu[dask]'."
        ) from error
    except ValueError as error:
        raise DataError(
            "No Dask client is active. Start one: from distributed import Client; Client(), or "
            "pass client=."
        ) from error


def _probabilities(frame: pd.DataFrame, fit: Fit) -> pd.DataFrame:
    if not len(frame):
        return pd.DataFrame({0: np.empty(0), 1: np.empty(0)}, index=frame.index)
    return pd.DataFrame(fit.predict_proba(frame), index=frame.index)


def _without_rows(fit: Fit) -> Fit:
    """The same fit without its training rows, light enough to be sent to every worker."""
    if fit.remembered is not None:
        return fit
    return replace(fit, data=fit.data.rows(np.arange(0)), levels=(fit.pi_draws, fit.c_by_annotator))


def _delayed(X: Any, l: Any) -> tuple[list[Any], str]:
    """The partitions as data frames that hold their labels, and the name of the labels."""
    if hasattr(X, "to_delayed") and hasattr(X, "columns") and isinstance(l, str):
        return list(X.to_delayed()), l
    if not hasattr(X, "chunks") or not hasattr(l, "chunks"):
        raise DataError(
            f"X is a {type(X).__name__} and l a {type(l).__name__}; a Dask DataFrame and the name "
            "of its column of labels, or two Dask arrays, are expected."
        )
    from dask import delayed

    _one_block_of_columns(X)
    if np.isnan(X.chunks[0]).any() or np.isnan(l.chunks[0]).any():
        raise DataError(
            "The blocks of X or l have lengths that Dask does not know. Use "
            "X.compute_chunk_sizes() and l.compute_chunk_sizes()."
        )
    if l.ndim != 1 or X.chunks[0] != l.chunks[0]:
        raise DataError(
            f"X is cut into blocks of {X.chunks[0]} rows and l into {l.chunks}; both need the same "
            "rows in the same blocks. Use l.rechunk(X.chunks[0])."
        )
    blocks = zip(X.to_delayed()[:, 0], l.to_delayed(), strict=True)
    return [delayed(_frame)(rows, labels) for rows, labels in blocks], LABEL


def _frame(X: Array, l: Array) -> pd.DataFrame:
    return pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])]).assign(**{LABEL: l})


def _one_block_of_columns(X: Any) -> None:
    if X.ndim != 2:
        raise DataError(f"X has shape {X.shape}; rows and columns are expected.")
    if len(X.chunks[1]) > 1:
        raise DataError(
            f"X has chunks {X.chunks}; it is to be cut along its rows only. Use "
            "X.rechunk({1: -1})."
        )
