r"""Columns that differ between the annotators of a row.

Such a column, the weather at a visit or hours of practice, becomes one column of X per annotator.
It enters that annotator's propensity alone, with a slope δ that all annotators share:

.. math:: \omega_{ij} = \alpha_j \cdot x_i + \beta_j + \sum_k \delta_k v_{ijk}
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayes_lepu.data.labels import Labels, as_numbers, named_table
from bayes_lepu.data.scaling import standardise
from bayes_lepu.errors import DataError
from bayes_lepu.links import Array
from bayes_lepu.rows import NOT_SHOWN
from bayes_lepu.suggestions import some


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
