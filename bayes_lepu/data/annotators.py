r"""Labels of one annotator or of several, and columns that differ between the annotators of a row.

Such a column, the weather at a visit or hours of practice, becomes one column of X per annotator.
It enters that annotator's propensity alone, with a slope δ that all annotators share:

.. math:: \omega_{ij} = \alpha_j \cdot x_i + \beta_j + \sum_k \delta_k v_{ijk}

Conventions
-----------
The matrix of labels is int8 of shape ``(n, J)``: 1 marked, 0 seen and not marked, `NOT_SHOWN`
where the annotator did not see the row.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayes_lepu.data.frames import as_frame, refuse_named
from bayes_lepu.data.labels import as_numbers, read_vector, zero_or_one
from bayes_lepu.data.scaling import standardise
from bayes_lepu.data.sparse_tables import tells
from bayes_lepu.errors import DataError
from bayes_lepu.links import Array
from bayes_lepu.rows import NOT_SHOWN
from bayes_lepu.rows.sparse_matrices import as_dense, is_sparse
from bayes_lepu.suggestions import some

ONE = ("annotator",)
COINCIDENCE = 20  # rows below which a column may equal the labels by chance


class Labels(NamedTuple):
    """The matrix of labels and the annotators' names."""

    matrix: NDArray[np.int8]
    annotators: tuple[str, ...]


def read_labels(l: Any, n: int, X: Any) -> Labels:
    """The labels of every row, in whichever of the two forms they come."""
    l = named_table("l", l, X)
    shape = np.shape(l)
    if len(shape) == 2 and shape[1] == 0:
        raise DataError(
            f"l has shape {shape}; one row per row of X and one column per annotator is expected."
        )
    if len(shape) != 2 or shape[1] == 1:
        return Labels(_one(l, n, X)[:, None], ONE)
    if shape[0] != n:
        if isinstance(l, pd.DataFrame):
            refuse_long(l, n)
        turned = " Its rows and columns look exchanged: use l.T." if shape[1] == n else ""
        raise DataError(f"X has {n} rows but l has {shape[0]}. Both need one row per item.{turned}")
    if isinstance(l, pd.DataFrame):
        names = _names(l)
        if isinstance(X, pd.DataFrame) and not l.index.equals(X.index):
            raise DataError(
                "The index of l differs from the index of X, so it is unclear which row is which. "
                "Use l = l.loc[X.index], or l.to_numpy() if the order is right."
            )
        columns = [l.iloc[:, j] for j in range(shape[1])]
    else:
        names = tuple(f"annotator_{j}" for j in range(shape[1]))
        columns = list(np.asarray(l).T)
    numbers = np.column_stack(
        [_column(name, c, n, X) for name, c in zip(names, columns, strict=True)]
    )
    matrix = np.where(np.isnan(numbers), NOT_SHOWN, numbers).astype(np.int8)
    refuse_idle(matrix, names)
    return Labels(np.ascontiguousarray(matrix), names)


def named_table(name: str, table: Any, X: Any) -> Any:
    """A frame of polars and others as a pandas one, its rows in the order of X; others as is."""
    frame = None if isinstance(table, pd.DataFrame) else as_frame(table)
    if frame is None:
        if not isinstance(table, pd.DataFrame):
            refuse_named(name, table)
        return table
    has_labels = isinstance(X, pd.DataFrame) and len(X) == len(frame)
    return frame.set_axis(X.index) if has_labels else frame


def _one(l: Any, n: int, X: Any) -> NDArray[np.int8]:
    """The labels of one annotator, who saw every row."""
    labels = zero_or_one(read_vector("l", l, n, X))
    refuse_idle(labels[:, None], ONE)
    return labels


def refuse_long(l: pd.DataFrame, n: int) -> None:
    """Refuse a table with one line per row and annotator, with the line that turns it.

    Recognised by a column of 0 and 1 and two others of which every pair occurs once.
    """
    marks = [c for c in l.columns if l[c].dropna().isin((0, 1)).all()]
    by_count = sorted(set(l.columns) - set(marks), key=lambda c: -l[c].nunique())
    if not marks or len(by_count) < 2 or l.duplicated(by_count[:2]).any():
        return
    item, annotator = by_count[:2]
    raise DataError(
        f"X has {n} rows and l has {len(l)} lines, one for every {item!r} and {annotator!r}; one "
        f"row per row of X and one column per annotator is expected. Use l.pivot(index={item!r}, "
        f"columns={annotator!r}, values={marks[0]!r}).reindex(X.index), with X.set_index({item!r}) "
        "where the index of X is another one."
    )


def _names(l: pd.DataFrame) -> tuple[str, ...]:
    names = tuple(str(c) for c in l.columns)
    twice = sorted(c for c, count in Counter(names).items() if count > 1)
    if twice:
        raise DataError(
            f"l has duplicate annotator names: {some(twice)}. Every annotator is one column; "
            "rename them, or merge the columns if they are one person."
        )
    return names


def _column(name: str, column: Any, n: int, X: Any) -> Array:
    allowed = "0, 1 or NaN (not shown) is"
    numbers = as_numbers(f"l[{name!r}]", read_vector(f"l[{name!r}]", column, n, X), allowed)
    known = np.unique(numbers[~np.isnan(numbers)])
    if not np.isin(known, (0, 1)).all():
        raise DataError(
            f"l[{name!r}] holds the values {some(known.tolist())}; 1 (labelled), 0 (seen and not "
            "labelled) or NaN (not shown) is expected. Recode it first."
        )
    return numbers


def refuse_idle(labels: NDArray[np.int8], annotators: tuple[str, ...]) -> None:
    """Annotators about whom nothing can be learned, and tables that confuse 0 with NaN."""
    if len(annotators) == 1:
        if not labels.any():
            raise DataError(
                "No row is labelled (l is 0 everywhere): there is nothing to learn from."
            )
        if labels.all():
            raise DataError(
                "Every row is labelled (l is 1 everywhere): unlabelled rows are needed. If these "
                "are positives only, add the background rows with l = 0."
            )
        return

    def named(idle: NDArray[np.bool_]) -> list[str]:
        return [annotators[j] for j in np.flatnonzero(idle)]

    if blind := named((labels == NOT_SHOWN).all(axis=0)):
        raise DataError(
            f"Annotator(s) {some(blind)} saw no row (NaN everywhere). Leave them out: "
            f"l.drop(columns={blind!r})."
        )
    if silent := named(~(labels == 1).any(axis=0)):
        raise DataError(
            f"Annotator(s) {some(silent)} labelled none of the rows they saw, so nothing ties "
            f"them to the class. Leave them out: l.drop(columns={silent!r})."
        )
    if not (labels == 0).any():
        raise DataError(
            "l holds no 0: 0 means seen and not labelled, NaN means not shown. If NaN stands for "
            "not labelled, use l.fillna(0)."
        )
    if (labels == 1).any(axis=1).all():
        raise DataError(
            "Every row is labelled by somebody: rows that nobody labelled are needed. If these are "
            "positives only, add the background rows with l = 0."
        )


def refuse_label_among_features(values: Any, names: tuple[str, ...], labels: Labels) -> None:
    """Columns that tell the labels of an annotator exactly (of a sparse matrix: of the one)."""
    if is_sparse(values):
        marks = labels.matrix[:, 0] == 1
        suspects = [*tells(values, marks), *tells(values, ~marks)]
        values, names = as_dense(values[:, suspects]), tuple(names[j] for j in suspects)
    for j, who in enumerate(labels.annotators):
        shown = labels.matrix[:, j] != NOT_SHOWN
        marks = labels.matrix[shown, j] == 1
        if marks.all() or not marks.any() or len(marks) < COINCIDENCE:
            continue
        first = int(np.argmax(marks)), int(np.argmin(marks))
        for k, name in enumerate(names):
            column = values[shown, k] if not shown.all() else values[:, k]
            high, low = column[first[0]], column[first[1]]
            if high == low or any(
                not np.array_equal(column[part], np.where(marks[part], high, low))
                for part in (slice(1000), slice(1000, None))  # most differ at once
            ):
                continue
            whose = "it equals l (or 1 - l)" if len(labels.annotators) == 1 else f"it tells {who}'s"
            raise DataError(
                f"Column {name!r} is the label itself: {whose} in every row. Drop it from X, for "
                f"example X.drop(columns=[{name!r}])."
            )


class Visits(NamedTuple):
    """Columns of visits as columns of X, those of one name side by side.

    Attributes
    ----------
    names : tuple of str
    columns : (n, q J) array
        On the internal scale, 0 where the annotator did not see the row.
    center, scale : (q J,) arrays
    """

    names: tuple[str, ...]
    columns: Array
    center: Array
    scale: Array


def read_visits(
    visits: Any,
    labels: Labels,
    X: Any,
    weight: Array,
    *,
    standardize: bool,
    kept: NDArray[np.bool_] | None = None,
) -> Visits:
    """The columns of visits, standardised over the cells that were shown in the rows kept."""
    n, J = labels.matrix.shape
    if visits is None:
        return Visits((), np.zeros((n, 0)), np.zeros(0), np.ones(0))
    if J == 1:
        raise DataError(
            "visits holds columns that differ between annotators, but there is one annotator. Put "
            "them into X and keep them out of the class: class_features=[...] without them."
        )
    tables = _tables(visits)
    shown = labels.matrix != NOT_SHOWN
    if kept is not None:
        shown &= kept[:, None]
    counted = np.broadcast_to(weight[:, None], shown.shape)[shown] if weight.size else weight
    columns, centers, scales = [], [], []
    for name, table in tables.items():
        values = _cells(name, table, labels, X)
        gaps = int(np.isnan(values[shown]).sum())
        if gaps or not np.isfinite(values[shown & ~np.isnan(values)]).all():
            raise DataError(
                f"visits[{name!r}] lacks {gaps} value(s), or holds infinite ones, where the "
                "annotator saw the row; a number for every label is expected. Fill them in, or "
                "enter NaN as the label if the row was not shown."
            )
        (center,), (spread,), cells = standardise(
            values[shown][:, None],
            (f"visits[{name!r}]",),
            counted,
            standardize=standardize,
            in_place=True,
        )
        column = np.zeros(shown.shape)
        column[shown] = cells[:, 0]
        columns.append(column)
        centers += [center] * J
        scales += [spread] * J
    return Visits(tuple(tables), np.hstack(columns), np.array(centers), np.array(scales))


def visit_columns(seen: Visits, labels: Labels, taken: tuple[str, ...]) -> tuple[str, ...]:
    """Names of the columns of visits in X."""
    names = tuple(f"{name}[{who}]" for name in seen.names for who in labels.annotators)
    if both := sorted(set(names) & set(taken)):
        raise DataError(f"X has column(s) named {some(both)}, as visits would be. Rename them.")
    return names


def _tables(visits: Any) -> dict[str, Any]:
    """One table (n, J) for every column of visits."""
    if not isinstance(visits, Mapping) or not visits:
        raise DataError(
            "visits is expected as {'hours': table}, each table with one row per row of X and one "
            "column per annotator. From a table with one line per row and annotator: "
            "table.pivot(index='row', columns='annotator', values='hours').reindex(X.index)."
        )
    names = [str(name) for name in visits]
    if len({*names}) < len(names):
        raise DataError(f"visits has names that are the same as text: {some(names)}. Rename one.")
    return dict(zip(names, visits.values(), strict=True))


def _cells(name: str, table: Any, labels: Labels, X: Any) -> Array:
    """Numbers (n, J), annotators and rows in the order of the labels."""
    table = named_table(f"visits[{name!r}]", table, X)
    if isinstance(table, pd.DataFrame):
        who = [str(c) for c in table.columns]
        if sorted(who) != sorted(labels.annotators):
            raise DataError(
                f"visits[{name!r}] has the columns {some(who)}; the annotators "
                f"{some(labels.annotators)} are expected."
            )
        if isinstance(X, pd.DataFrame) and not table.index.equals(X.index):
            raise DataError(
                f"The index of visits[{name!r}] differs from the index of X. Use .loc[X.index]."
            )
        table = table.set_axis(who, axis=1)[list(labels.annotators)].to_numpy(dtype=object)
    cells = np.asarray(table)
    if cells.shape != labels.matrix.shape:
        raise DataError(
            f"visits[{name!r}] has shape {cells.shape}; one row per row of X and one column per "
            f"annotator, {labels.matrix.shape}, is expected."
        )
    flat = as_numbers(f"visits[{name!r}]", cells.ravel(), "numbers are")
    return flat.reshape(cells.shape)
