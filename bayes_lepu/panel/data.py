"""Rows with several annotators: the same door as for one, and a matrix of labels behind it.

Conventions
-----------
``n`` rows, ``J`` annotators. ``labels`` is int8 of shape ``(n, J)``: 1 labelled, 0 seen and not
labelled, `NOT_SHOWN` where the annotator was not shown the row.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayes_lepu.data import PUData, read_data, read_vector
from bayes_lepu.errors import DataError
from bayes_lepu.labels import as_numbers
from bayes_lepu.links import Array
from bayes_lepu.suggestions import some
from bayes_lepu.tables import read_table

NOT_SHOWN = -1


@dataclass(frozen=True, eq=False)
class PanelData:
    """Validated data of several annotators.

    Attributes
    ----------
    table : PUData
        The rows on the internal scale; its ``l`` is 1 where anybody labelled the row.
    labels : (n, J) int8 array
        1, 0, or `NOT_SHOWN`.
    annotators : tuple of str
        Their names, in the order of the columns.
    """

    table: PUData
    labels: NDArray[np.int8]
    annotators: tuple[str, ...]

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.table.n

    @property
    def shown(self) -> NDArray[np.bool_]:
        """Which annotator saw which row, ``(n, J)``."""
        return self.labels != NOT_SHOWN

    @property
    def labelled(self) -> NDArray[np.bool_]:
        """Who labelled which row, ``(n, J)``."""
        return self.labels == 1

    @property
    def unseen(self) -> int:
        """Rows that nobody was shown."""
        return int((~self.shown.any(axis=1)).sum())

    @property
    def recaptures(self) -> int:
        """Rows labelled by two annotators or more."""
        return int((self.labelled.sum(axis=1) > 1).sum())


def read_panel(
    X: Any,
    L: Any,
    *,
    y: Any = None,
    class_features: Sequence[str | int] | None = None,
    selection_features: Sequence[str | int] | None = None,
    standardize: bool = True,
) -> PanelData:
    """Check and normalise everything the user hands in.

    Parameters
    ----------
    X : DataFrame or 2-d array
    L : DataFrame or 2-d array
        One column per annotator: 1 labelled, 0 seen and not labelled, NaN not shown.
    y, class_features, selection_features, standardize
        As in `bayes_lepu.data.read_data`.
    """
    if np.ndim(X) != 2:
        read_table(X)  # which refuses it
    numbers, annotators = _read_matrix(L, np.shape(X)[0], X)
    labels = np.where(np.isnan(numbers), NOT_SHOWN, numbers).astype(np.int8)
    _refuse_idle(labels, annotators)
    table = read_data(
        X,
        (labels == 1).any(axis=1),
        y=y,
        class_features=class_features,
        selection_features=selection_features,
        standardize=standardize,
    )
    _refuse_annotator_among_features(table, labels, annotators)
    return PanelData(table, np.ascontiguousarray(labels), annotators)


def _read_matrix(L: Any, n: int, X: Any) -> tuple[Array, tuple[str, ...]]:
    """Labels as numbers with NaN where not shown, and the annotators' names."""
    shape = np.shape(L)
    if len(shape) == 1 or (len(shape) == 2 and shape[1] == 1):
        raise DataError(
            f"L has shape {shape}: one annotator only. Use lepu.fit(X, l) for one; fit_panel "
            "needs two or more, one column each."
        )
    if len(shape) != 2 or shape[1] == 0:
        raise DataError(
            f"L has shape {shape}; one row per row of X and one column per annotator is expected."
        )
    if shape[0] != n:
        turned = " Its rows and columns look exchanged: use L.T." if shape[1] == n else ""
        raise DataError(f"X has {n} rows but L has {shape[0]}. Both need one row per item.{turned}")
    if isinstance(L, pd.DataFrame):
        names = _names(L)
        if isinstance(X, pd.DataFrame) and not L.index.equals(X.index):
            raise DataError(
                "The index of L differs from the index of X, so it is unclear which row is which. "
                "Use L = L.loc[X.index], or L.to_numpy() if the order is right."
            )
        columns = [L.iloc[:, j] for j in range(shape[1])]
    else:
        names = tuple(f"annotator_{j}" for j in range(shape[1]))
        columns = list(np.asarray(L).T)
    values = [_read_column(name, c, n, X) for name, c in zip(names, columns, strict=True)]
    return np.column_stack(values), names


def _names(L: pd.DataFrame) -> tuple[str, ...]:
    names = tuple(str(c) for c in L.columns)
    twice = sorted(c for c, count in Counter(names).items() if count > 1)
    if twice:
        raise DataError(
            f"L has duplicate annotator names: {some(twice)}. Every annotator is one column; "
            "rename them, or merge the columns if they are one person."
        )
    return names


def _read_column(name: str, column: Any, n: int, X: Any) -> Array:
    allowed = "0, 1 or NaN (not shown) is"
    numbers = as_numbers(f"L[{name!r}]", read_vector(f"L[{name!r}]", column, n, X), allowed)
    known = np.unique(numbers[~np.isnan(numbers)])
    if not np.isin(known, (0, 1)).all():
        raise DataError(
            f"L[{name!r}] holds the values {some(known.tolist())}; 1 (labelled), 0 (seen and not "
            "labelled) or NaN (not shown) is expected. Recode it first."
        )
    return numbers


def _refuse_idle(labels: NDArray[np.int8], annotators: tuple[str, ...]) -> None:
    """Annotators about whom nothing can be learned, and tables that confuse 0 with NaN."""

    def named(idle: NDArray[np.bool_]) -> list[str]:
        return [annotators[j] for j in np.flatnonzero(idle)]

    if blind := named((labels == NOT_SHOWN).all(axis=0)):
        raise DataError(
            f"Annotator(s) {some(blind)} saw no row (NaN everywhere). Leave them out: "
            f"L.drop(columns={blind!r})."
        )
    if silent := named(~(labels == 1).any(axis=0)):
        raise DataError(
            f"Annotator(s) {some(silent)} labelled none of the rows they saw, so nothing ties "
            f"them to the class. Leave them out: L.drop(columns={silent!r})."
        )
    if not (labels == 0).any():
        raise DataError(
            "L holds no 0: 0 means seen and not labelled, NaN means not shown. If NaN stands for "
            "not labelled, use L.fillna(0)."
        )


def _refuse_annotator_among_features(
    table: PUData, labels: NDArray[np.int8], annotators: tuple[str, ...]
) -> None:
    for j, who in enumerate(annotators):
        rows = labels[:, j] != NOT_SHOWN
        marks = labels[rows, j].astype(float)
        if marks.min() == marks.max():
            continue
        for k, column in enumerate(table.X[rows].T):
            low, high = column[marks == 0], column[marks == 1]
            if np.ptp(low) == 0 and np.ptp(high) == 0 and low[0] != high[0]:
                name = table.feature_names[k]
                raise DataError(
                    f"Column {name!r} tells the labels of annotator {who!r} exactly: it is a copy "
                    f"of them. Drop it from X, for example X.drop(columns=[{name!r}])."
                )
