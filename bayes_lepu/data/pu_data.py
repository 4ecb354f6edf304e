"""`PUData`: validated positive-unlabelled data, made by `reading` and used by all other modules."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayes_lepu.data.encoding import Encoding, encode_rows
from bayes_lepu.data.frames import match_columns, read_frame, take_visits
from bayes_lepu.data.labels import ONE
from bayes_lepu.data.learned import Learned
from bayes_lepu.data.scaling import column_moments, scaled
from bayes_lepu.data.weights import counted_rows, evenly_spaced, find_repeats, random_keys
from bayes_lepu.errors import DataError
from bayes_lepu.links import Array, RowKind, row_kinds
from bayes_lepu.rows import NOT_SHOWN, UNKNOWN, Rows, make_rows
from bayes_lepu.rows.sparse_matrices import as_dense, is_sparse
from bayes_lepu.suggestions import unknown

Sums = tuple[Any, ...]  # numbers and arrays, which add up over the rows


@dataclass(frozen=True, eq=False)
class PUData:
    """Validated positive-unlabelled data: n rows, p columns, J annotators."""

    X: Array  # (n, p), ``(x - center) / scale``, by rows; or a csr_array, with a center of 0
    labels: NDArray[np.int8]  # (n, J): 1 marked, 0 seen and not marked, -1 not shown
    y: Array  # (n,): audited classes, NaN where unknown
    feature_names: tuple[str, ...]
    named: bool  # whether names are the user's, and so are matched in predictions
    center: Array  # (p,)
    scale: Array  # (p,)
    class_mask: NDArray[np.bool_]  # (p,): columns that enter t
    selection_mask: NDArray[np.bool_]  # (p,): columns that enter s
    index: pd.Index  # row labels, carried into every table of results
    weight: Array  # (n,): how often every row counts
    encoding: Encoding = field(default_factory=Encoding)
    annotators: tuple[str, ...] = ONE
    # Value and standard error of π and of c known from outside; NaN where nothing is.
    outside: Array = field(default_factory=lambda: np.full((2, 2), np.nan))
    # (n, 2): round in which every row was audited (0: never) and the probability with which it was
    # drawn (1: chosen); of length 0 where the audits were not planned.
    drawn: Array = field(default_factory=lambda: np.zeros((0, 2)))
    # Columns that differ between annotators: the last of X, J for every name.
    visit_names: tuple[str, ...] = ()
    learned: Learned | None = None  # its columns stand before those of visits

    @property
    def n(self) -> int:
        """Number of rows in memory."""
        return self.X.shape[0]

    @property
    def n_all(self) -> int:
        """Number of rows in all, wherever they are."""
        return self.n

    @property
    def p(self) -> int:
        """Number of columns."""
        return len(self.feature_names)

    @property
    def n_annotators(self) -> int:
        """Number of annotators."""
        return len(self.annotators)

    @property
    def is_sparse(self) -> bool:
        """Whether X is a sparse matrix; then only products with it are computed."""
        return is_sparse(self.X)

    @property
    def in_memory(self) -> bool:
        """Whether all rows are in memory, not only a sample (see `bayes_lepu.dask`)."""
        return True

    @property
    def in_kernel(self) -> bool:
        """Whether compiled code alone can evaluate the density: rows in memory and dense."""
        return self.in_memory and not self.is_sparse

    @property
    def terms(self) -> dict[str, tuple[int, ...]]:
        """Positions of the columns of X that belong to each column of the user's."""
        return self.encoding.terms(self._own_names)

    @property
    def blocks(self) -> dict[str, tuple[int, ...]]:
        """Positions of smooth terms and group intercepts, whose coefficients share a scale."""
        return self.encoding.blocks(self._own_names)

    @property
    def given_width(self) -> int:
        """Number of columns of X that do not differ between annotators; these come first."""
        return self.p - self.visit_places.size

    @property
    def _own_names(self) -> tuple[str, ...]:
        names, learned = self.feature_names[: self.given_width], self.is_learned
        return tuple(name for name, other in zip(names, learned, strict=False) if not other)

    @property
    def user_columns(self) -> tuple[str, ...]:
        """The user's columns, which new rows need."""
        return tuple(c.name for c in self.encoding.columns) or self._own_names

    @cached_property
    def is_learned(self) -> NDArray[np.bool_]:
        """Which columns of X are scores of a classifier; see `data.learned`."""
        names = () if self.learned is None else self.learned.names
        return np.array([name in names for name in self.feature_names], dtype=bool)

    @property
    def visit_places(self) -> NDArray[np.intp]:
        """Positions ``(q, J)`` of the columns of visits in X."""
        shape = len(self.visit_names), self.n_annotators
        return np.arange(self.p - shape[0] * shape[1], self.p).reshape(shape)

    @cached_property
    def l(self) -> NDArray[np.int8]:
        """Whether anybody marked the row."""
        return self.marked.any(axis=1).astype(np.int8)

    @cached_property
    def kind(self) -> NDArray[np.int8]:
        """`RowKind` of each row."""
        return row_kinds(self.l, self.y)

    @cached_property
    def kind_counts(self) -> NDArray[np.int64]:
        """Number of rows of every kind, in all."""
        return np.bincount(self.kind, minlength=len(RowKind))

    @cached_property
    def kind_weights(self) -> Array:
        """Sum of the weights of the rows of every kind, in all."""
        return np.bincount(self.kind, weights=self.weight, minlength=len(RowKind))

    @property
    def n_audited(self) -> int:
        """Number of rows whose class was checked, in all."""
        return int(self.kind_counts[RowKind.MISSED :].sum())

    @property
    def shown(self) -> NDArray[np.bool_]:
        """Which annotator saw which row, ``(n, J)``."""
        return self.labels != NOT_SHOWN

    @property
    def marked(self) -> NDArray[np.bool_]:
        """Who marked which row, ``(n, J)``."""
        return self.labels == 1

    @property
    def weighted(self) -> bool:
        """Whether some row counts more or less than once."""
        return bool((self.weight != 1).any())

    def as_counted(self, most: int) -> "PUData":
        """Unweighted data of at most ``most`` rows, in which a row of weight w occurs w times.

        If the weights are not whole numbers, every row with a positive weight occurs once.
        """
        if not self.weighted:
            return self.evenly(most)
        keep = np.flatnonzero(self.weight > 0)
        keep = keep[evenly_spaced(keep.size, most)]
        if np.all(self.weight == np.round(self.weight)):
            keep = counted_rows(self.weight, most)
        return replace(self.rows(keep), weight=np.ones(len(keep)))

    @cached_property
    def distinct(self) -> "PUData":
        """The data with identical rows merged into one with their weight, if many are identical."""
        return self.counted(few=False)

    def counted(self, *, few: bool = True) -> "PUData":
        """The data with identical rows merged into one with their weight, however few they are."""
        found = None if self.is_sparse else find_repeats(self.X, self.labels, self.y, few=few)
        if found is None:
            return self
        first, kind = found
        return replace(self.rows(first), weight=np.bincount(kind, weights=self.weight))

    @cached_property
    def as_rows(self) -> Rows:
        """The data as arguments of the row formula."""
        known = np.where(np.isnan(self.y), UNKNOWN, self.y).astype(np.int8)
        return make_rows(self.X, self.labels, known=known, weight=self.weight)

    @property
    def held(self) -> "PUData":
        """The rows in memory as a complete data set."""
        return self

    def some(self, count: int) -> "PUData":
        """A random sample of the rows in memory, of at most this size and always the same."""
        if self.n <= count:
            return self.held
        return self.rows(np.sort(np.argpartition(random_keys(0, self.n), count)[:count]))

    def evenly(self, most: int) -> "PUData":
        """Evenly spaced rows in memory, at most this many."""
        return self.held if self.n <= most else self.rows(evenly_spaced(self.n, most))

    @property
    def pool(self) -> tuple["PUData", Array]:
        """Rows from which samples are drawn, and their random numbers (see `weights`)."""
        return self, random_keys(0, self.n)

    def total(self, function: Callable[[Rows], Sums]) -> Sums:
        """Sums over all rows."""
        return function(self.as_rows)

    def rows(self, keep: NDArray[Any] | slice) -> "PUData":
        """Some of the rows in memory, by position, by a slice or by a boolean mask."""
        return replace(
            self,
            X=_in_row_order(self.X[keep]),
            labels=np.ascontiguousarray(self.labels[keep]),
            y=self.y[keep],
            index=self.index[keep],
            weight=self.weight[keep],
            drawn=self.drawn[keep] if self.drawn.size else self.drawn,
        )

    def with_columns(
        self, names: Sequence[str], X: Array, center: Array, scale: Array, *, of_class: bool
    ) -> "PUData":
        """The data with more columns (before those of visits), in the class or in no factor."""
        at, none = self.given_width, np.zeros(len(names), dtype=bool)

        def between(old: Any, new: Any) -> Any:
            return np.concatenate([old[..., :at], new, old[..., at:]], axis=-1)

        return replace(
            self,
            X=between(self.X, X),
            feature_names=(*self.feature_names[:at], *names, *self.feature_names[at:]),
            center=between(self.center, center),
            scale=between(self.scale, scale),
            class_mask=between(self.class_mask, none | of_class),
            selection_mask=between(self.selection_mask, none),
        )

    def columns(self, keep: NDArray[np.bool_]) -> "PUData":
        """Some of the columns, with their masks."""
        return replace(
            self,
            X=_in_row_order(self.X[:, keep]),
            feature_names=tuple(np.array(self.feature_names)[keep].tolist()),
            center=self.center[keep],
            scale=self.scale[keep],
            class_mask=self.class_mask[keep],
            selection_mask=self.selection_mask[keep],
        )

    def cells(self, columns: Sequence[int] | NDArray[np.intp], rows: Any = slice(None)) -> Array:
        """Some columns of some rows, dense."""
        return as_dense(self.X[rows][:, list(columns)])

    def rescaled(self, center: Array, scale: Array) -> "PUData":
        """The same rows with every column centred and scaled again."""
        X, center = _in_row_order((self.X - center) / scale), self.center + self.scale * center
        return replace(self, X=X, center=center, scale=self.scale * scale)

    @cached_property
    def column_moments(self) -> tuple[Array, Array]:
        """Mean and standard deviation of the columns of X."""
        return column_moments(self.X, self.weight)

    @property
    def class_dim(self) -> str:
        """Name of the dimension of the classifier's slopes."""
        return "feature" if self.class_mask.all() else "class_feature"

    @property
    def selection_dim(self) -> str:
        """Name of the dimension of the propensity's slopes."""
        return "feature" if self.selection_mask.all() else "selection_feature"

    @property
    def swap_symmetric(self) -> bool:
        """Whether the SPM likelihood is unchanged by swapping t and s."""
        same = bool(np.array_equal(self.class_mask, self.selection_mask))
        return same and self.n_audited == 0 and self.n_annotators == 1 and self.is_closed

    @property
    def is_closed(self) -> bool:
        """Whether there are no external figures of π or c."""
        return bool(np.isnan(self.outside[:, 0]).all())

    def transform(self, X: Any, visits: Any = None) -> tuple[Array, pd.Index]:
        """New rows on the internal scale, with the average values of the columns of visits.

        ``visits`` gives other values by name: a number, one per row, or one per row and annotator.
        With the data themselves as X, their own rows are returned.
        """
        if X is self:
            return self.X, self.index
        table = read_frame(X, like=self.user_columns)
        dense = self.center.all() or self.encoding.columns or self.visit_names
        if not dense and (sparse := table.without(self.encoding.aside).sparse()).is_sparse:
            matrix = match_columns(sparse, self.feature_names, named=self.named)
            return scaled(matrix, 1 / self.scale, self.center), table.index
        values = encode_rows(table, self.encoding, self._own_names, named=self.named)
        out = np.zeros((len(values), self.p))
        k = values.shape[1]
        out[:, :k] = (values - self.center[:k]) / self.scale[:k]
        for name, cells in (take_visits(table, visits)[0] or {}).items():
            if name not in self.visit_names:
                raise DataError(unknown("column of visits", name, self.visit_names))
            at = self.visit_places[self.visit_names.index(name)]
            found = np.asarray(cells, dtype=float)
            found = found[:, None] if found.ndim == 1 else found
            if found.shape not in ((), (len(out), 1), (len(out), self.n_annotators)):
                raise DataError(
                    f"visits[{name!r}] has shape {np.shape(cells)}; a number, one for each of "
                    f"{len(out)} rows, or a table with one column per annotator is expected."
                )
            out[:, at] = (found - self.center[at]) / self.scale[at]
        return self.rated(out), table.index

    def rated(self, X: Array) -> Array:
        """Rows on the internal scale with their learned columns, if there are any, computed."""
        if self.learned is not None:
            at = self.is_learned
            X[:, at] = (self.learned.log_odds(X) - self.center[at]) / self.scale[at]
        return X

    def original_scale(self, slope: Array, intercept: Array) -> tuple[Array, Array]:
        """Coefficients (..., p) and (...) on the user's own scale, from the internal scale."""
        raw = slope / self.scale
        return raw, intercept - raw @ self.center


def _in_row_order(X: Any) -> Any:
    """A table stored by rows, the order in which all computations read it."""
    return X if is_sparse(X) else np.ascontiguousarray(X)
