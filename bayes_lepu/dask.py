r"""Rows of a Dask DataFrame: reading, sums over partitions, and predictions.

.. math:: \sum_i f(x_i) = \sum_k \sum_{i \in \text{partition } k} f(x_i)

Log-likelihood, gradient, information, π and c are such sums. Each is one task per partition, run by
the active client of Dask or by its local scheduler, and comes back as a few numbers.

Three passes precede a fit: one counts the rows of every kind, one draws a random sample of each
kind, one computes mean and sd of the columns. The sample determines the encoding of the columns
(levels of categories, knots of splines). The search for modes starts with it, and verdict and plots
use it. Whether a row is sampled depends only on its position, so the search starts with the same
rows as in memory. Small tables are read into memory as a whole.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayes_lepu.data.frames import take_column
from bayes_lepu.data.labels import (
    ONE,
    as_numbers,
    check_weights,
    read_classes,
    read_vector,
    read_weights,
    refuse_idle,
    zero_or_one,
)
from bayes_lepu.data.pu_data import PUData, Sums
from bayes_lepu.data.reading import read_data
from bayes_lepu.data.scaling import column_moments, too_extreme
from bayes_lepu.data.weights import random_keys
from bayes_lepu.errors import DataError
from bayes_lepu.links import Array, RowKind, row_kinds
from bayes_lepu.rows import Rows

if TYPE_CHECKING:
    from bayes_lepu.fitted import Fit

# Rows of every kind in the sample: enough for the search for modes (2,000 rows and 20 times as many
# in its second stage), fewer where these take more than 100 MB, but as many as a verdict wants.
POOL_ROWS, POOL_CELLS, FEWEST_POOLED = 60_000, 12_000_000, 20_000
# Rows for the verdict: so many that 2,000 are labelled, but not more than it handles in seconds.
FEWEST_JUDGED, MOST_JUDGED, LABELLED_JUDGED = 20_000, 60_000, 2_000


@dataclass(frozen=True, eq=False)
class PartitionedData(PUData):
    """Data with a random sample of rows in memory; sums over all rows are computed by partition."""

    # One `PUData` each, on the internal scale; None in a fit that was read from a file.
    partitions: tuple[Any, ...] | None = None
    # Number and weight of the rows of every `RowKind` in all partitions.
    kind_counts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(len(RowKind), int))
    kind_weights: Array = field(default_factory=lambda: np.zeros(len(RowKind)))
    by_kind: PUData | None = None  # rows of every kind at random, to take smaller samples from
    keys: Array = field(default_factory=lambda: np.zeros(0))  # their random numbers

    @classmethod
    def of(cls, sample: PUData, **rest: Any) -> Self:
        """The partitioned data with this sample in memory."""
        return cls(**_fields(sample), **rest)

    @property
    def in_memory(self) -> bool:
        """False: most rows are in the partitions."""
        return False

    @property
    def n_all(self) -> int:
        """Number of rows of all partitions."""
        return int(self.kind_counts.sum())

    @property
    def distinct(self) -> PUData:
        """These data: rows are not compared across partitions."""
        return self

    @property
    def held(self) -> PUData:
        """The sample in memory as a complete data set."""
        return PUData(**_fields(self))

    @property
    def pool(self) -> tuple[PUData, Array]:
        """Rows from which samples are drawn, and their random numbers."""
        assert self.by_kind is not None  # only a fit that was read from a file has none
        return self.by_kind, self.keys

    def rows(self, keep: NDArray[Any] | slice) -> PUData:
        """Some of the rows in memory."""
        return self.held.rows(keep)

    def total(self, function: Callable[[Rows], Sums]) -> Sums:
        """Sums over the rows of all partitions, in their order."""
        if self.partitions is None:
            raise DataError(
                f"The {self.n_all} rows of this fit are not here, only a sample of them. Fit them "
                "again, or ask for rows that you pass (X=)."
            )

        def sums(part: PUData) -> Sums:
            return part.n, *function(part.as_rows)

        n, *totals = map(sum, _computed(sums, self.partitions))
        _refuse_other_rows(n, self.n_all)
        return tuple(totals)


def _fields(data: PUData) -> dict[str, Any]:
    return {f.name: getattr(data, f.name) for f in fields(PUData)}


def is_dask(X: Any) -> bool:
    """Whether X is a collection of Dask."""
    return hasattr(X, "__dask_graph__")


def read_dask(
    X: Any,
    l: Any,
    *,
    y: Any = None,
    sample_weight: Any = None,
    false_marks: bool = False,
    exclude: Any = (),
    missing: str = "error",
    standardize: bool = True,
    **options: Any,
) -> PUData:
    """The data of a Dask collection; see `read_data` for the options."""
    frame, roles = _with_roles(X, l, y, sample_weight, false_marks=false_marks)
    raw = list(frame.to_delayed())
    sizes, counts, weights = _count(raw, roles)
    most = min(POOL_ROWS, max(POOL_CELLS // len(frame.columns), FEWEST_POOLED))
    how = {"false_marks": false_marks, "missing": missing, **options}
    named = {"y": roles.y, "exclude": exclude}
    if sum(sizes) <= most:
        named["sample_weight"] = roles.weight
        (whole,) = _computed(lambda frame: (frame,), raw)
        return read_data(pd.concat(whole), roles.l, standardize=standardize, **named, **how)
    table, keys = _sample(raw, roles, sizes, counts, most)
    labels, classes, weight = roles.read(table)
    kind = row_kinds(labels, classes)
    # Weights of the sampled rows by kind, so that means and most frequent levels are those of all.
    stands_for = (counts / np.maximum(np.bincount(kind, minlength=len(RowKind)), 1))[kind] * weight
    named["exclude"] = (*exclude, *([roles.weight] if roles.weight else []))
    taught = read_data(table, roles.l, sample_weight=stands_for, standardize=False, **named, **how)
    taught = replace(taught, weight=weight)
    if standardize:
        taught = _standardised(taught, raw, roles, stands_for)
    rate = (counts[RowKind.LABELLED] + counts[RowKind.FALSE_MARK]) / counts.sum()
    judged = int(np.clip(LABELLED_JUDGED / rate, FEWEST_JUDGED, MOST_JUDGED))
    held = taught.rows(np.sort(np.argsort(keys)[:judged]))
    encoded = _of_each(partial(_encode, template=taught.rows(np.arange(0)), roles=roles), raw)
    return PartitionedData.of(
        held,
        partitions=tuple(_kept_by_workers(encoded)),
        kind_counts=counts,
        kind_weights=weights,
        by_kind=taught,
        keys=keys,
    )


def predict_proba(fit: "Fit", X: Any) -> Any:
    """P(y | x) of the rows of a Dask DataFrame: columns "0" and "1" of a lazy one.

    Parameters
    ----------
    fit : Fit
        From any method, with or without Dask.
    X : dask.dataframe.DataFrame
    """
    if not hasattr(X, "map_partitions") or not hasattr(X, "columns"):
        raise DataError(
            f"X is a {type(X).__name__}; a Dask DataFrame is expected. For rows in memory use "
            "fit.predict_proba(X)."
        )
    if fit.has_rows:  # without its training rows it is light enough to be sent to every worker
        data, levels = fit.data.rows(np.arange(0)), (fit.pi_draws, fit.c_by_annotator)
        fit = replace(fit, data=data, levels=levels)
    return X.map_partitions(_rate, fit, meta=_rate(None, fit))


def _rate(frame: pd.DataFrame | None, fit: "Fit") -> pd.DataFrame:
    """Class probabilities of the rows of one partition; Parquet needs text as column names."""
    if frame is None or not len(frame):
        index = None if frame is None else frame.index
        return pd.DataFrame(np.empty((0, 2)), index=index, columns=["0", "1"])
    return pd.DataFrame(fit.predict_proba(frame), index=frame.index, columns=["0", "1"])


@dataclass(frozen=True)
class _Roles:
    """Names of the columns that are no features, and whether marks may be false."""

    l: str
    y: str | None
    weight: str | None
    false_marks: bool

    def read(self, frame: pd.DataFrame) -> tuple[NDArray[np.int8], Array, Array]:
        """Labels, audited classes and weights of one partition."""
        labels = np.asarray(self.marks(frame) == 1, dtype=np.int8)
        y = None if self.y is None else frame[self.y]
        weight = None if self.weight is None else frame[self.weight]
        classes = read_classes(y, labels[:, None], None, false_marks=self.false_marks)
        return labels, classes, read_weights(weight, len(labels), None, part=True)

    def marks(self, frame: pd.DataFrame) -> Array:
        """Labels of one partition as they are written."""
        return as_numbers("l", read_vector("l", frame[self.l], len(frame), None), "0/1 or bool is")


def _with_roles(
    X: Any, l: Any, y: Any, sample_weight: Any, *, false_marks: bool
) -> tuple[Any, _Roles]:
    """The collection with text for the names of its columns, and those that are no features."""
    import dask.dataframe as dd

    if not isinstance(X, dd.DataFrame):
        raise DataError(
            f"X is a {type(X).__name__} of Dask; a DataFrame is expected. Of an array: "
            "dask.dataframe.from_dask_array(X, columns=[...])."
        )
    X = X.rename(columns=str)
    for option, value in (("l", l), ("y", y), ("sample_weight", sample_weight)):
        if isinstance(value, str):
            take_column(pd.DataFrame(columns=X.columns), value, option=option)
        elif value is not None or option == "l":
            raise DataError(
                f"{option} is a {type(value).__name__}; of a Dask collection the name of a column "
                f"is expected{', of one annotator' if option == 'l' else ''}. Put it there first: "
                f"X.assign({option}={option}), then {option}={option!r}."
            )
    return X, _Roles(l, y, sample_weight, false_marks)


def _of_each(function: Callable[..., Any], parts: Any, *more: Any) -> list[Any]:
    """A task per partition."""
    from dask import delayed

    task = delayed(partial(_quietly, function), pure=False, traverse=False)
    return [task(*arguments) for arguments in zip(parts, *more, strict=True)]


@np.errstate(all="ignore")  # in any thread: a search meets infinities and leaves them
def _quietly(function: Callable[..., Any], *arguments: Any) -> Any:
    return function(*arguments)


def _computed(function: Callable[..., Any], parts: Any, *more: Any) -> list[tuple[Any, ...]]:
    """The values of a function for all partitions, one list for each of its outputs."""
    import dask

    return list(zip(*dask.compute(*_of_each(function, parts, *more)), strict=True))


def _kept_by_workers(tasks: list[Any]) -> list[Any]:
    """Tasks with results kept by the workers of a client; without a client they are recomputed.

    The local scheduler would keep the results in the memory of this process.
    """
    import dask

    try:
        from distributed import get_client

        get_client()
    except (ImportError, ValueError):
        return tasks
    return list(dask.persist(*tasks))


def _refuse_other_rows(got: int, n: int) -> None:
    if got != n:
        raise DataError(
            f"X had {n} rows in the first pass and {got} in a later one; the same rows are "
            "expected each time that Dask computes them. Fit a copy that nobody changes."
        )


def _encode(frame: pd.DataFrame, template: PUData, roles: _Roles) -> PUData:
    """The rows of one partition, encoded as those of the template are."""
    X, index = template.X, frame.index
    if len(frame):
        X, index = template.transform(frame)
    labels, y, weight = roles.read(frame)
    return replace(
        template, X=X, labels=labels[:, None], y=y, index=index, weight=weight, annotators=ONE
    )


def _count(raw: list[Any], roles: _Roles) -> tuple[list[int], NDArray[np.int64], Array]:
    """The number of rows of every partition, and of every kind with their weights."""

    def of_part(frame: pd.DataFrame) -> tuple[Any, ...]:
        labels, y, weight = roles.read(frame)
        kind, kinds = row_kinds(labels, y), len(RowKind)
        counts, weights = np.bincount(kind, minlength=kinds), np.bincount(kind, weight, kinds)
        return len(kind), np.unique(roles.marks(frame)), counts, weights

    sizes, written, counted, weighed = _computed(of_part, raw)
    counts, weights = sum(counted), sum(weighed)
    if not counts.sum():
        raise DataError("X is empty: no partition of it has a row.")
    refuse_idle(zero_or_one(np.concatenate(written))[:, None], ONE)
    of_marked = weights[[RowKind.LABELLED, RowKind.FALSE_MARK]].sum()
    check_weights(float(of_marked), float(weights.sum() - of_marked))
    return list(sizes), counts, weights


def _sample(
    raw: list[Any], roles: _Roles, sizes: list[int], counts: NDArray[np.int64], most: int
) -> tuple[pd.DataFrame, Array]:
    """A random sample of every kind, with positions as row labels, and the random numbers."""
    # The size of the sample of each kind varies slightly by chance.
    bar = (most + 4 * np.sqrt(most)) / np.maximum(counts, 1)

    def of_part(frame: pd.DataFrame, start: int) -> tuple[int, pd.DataFrame, Array]:
        labels, y, _ = roles.read(frame)
        keys = random_keys(start, len(labels))
        keep = np.flatnonzero(keys < bar[row_kinds(labels, y)])
        return len(keys), frame.iloc[keep].set_axis(start + keep), keys[keep]

    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).tolist()
    found, frames, keys = _computed(of_part, raw, starts)
    _refuse_other_rows(sum(found), sum(sizes))
    return pd.concat(frames), np.concatenate(keys)


def _standardised(taught: PUData, raw: list[Any], roles: _Roles, weight: Array) -> PUData:
    """The sample on the scale of all rows: mean 0 and standard deviation 1."""
    taught = _rescaled(taught, *column_moments(taught.X, weight))  # so that squares keep digits
    template = taught.rows(np.arange(0))

    def of_part(frame: pd.DataFrame) -> tuple[float, Array, Array]:
        part = _encode(frame, template, roles)
        return float(part.weight.sum()), part.weight @ part.X, part.weight @ part.X**2

    sums: Any = tuple(map(sum, _computed(of_part, raw)))
    W, first, second = sums
    mean = first / W
    return _rescaled(taught, mean, np.sqrt(second / W - mean**2))


def _rescaled(data: PUData, center: Array, scale: Array) -> PUData:
    """The same rows with every column centred, and scaled unless its term shares a scale."""
    if (extreme := np.flatnonzero(~np.isfinite(center + scale))).size:
        raise too_extreme([data.feature_names[j] for j in extreme])
    scale[[j for places in data.blocks.values() for j in places]] = 1.0
    return data.rescaled(center, scale)
