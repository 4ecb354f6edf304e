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

from bayes_lepu.data.labels import Labels, as_numbers, read_several
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
    index: pd.Index | None,
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
    if not isinstance(visits, Mapping) or not visits:
        raise DataError(
            "visits is expected as {'hours': table}, each table with one row per row of X and one "
            "column per annotator. From a table with one line per row and annotator: "
            "table.pivot(index='row', columns='annotator', values='hours').reindex(X.index)."
        )
    names = tuple(map(str, visits))
    if len({*names}) < len(names):
        raise DataError(f"visits has names that are the same as text: {some(names)}. Rename one.")
    shown = labels.matrix != NOT_SHOWN
    if kept is not None:
        shown &= kept[:, None]
    counted = np.broadcast_to(weight[:, None], shown.shape)[shown]
    columns, centers, scales = [], [], []
    for name, table in zip(names, visits.values(), strict=True):
        name = f"visits[{name!r}]"
        cells = _cells(name, table, labels, index)[shown]
        if not np.isfinite(cells).all():
            raise DataError(
                f"{name} lacks {int(np.isnan(cells).sum())} value(s), or holds infinite ones, "
                "where the annotator saw the row; a number for every label is expected. Fill them "
                "in, or enter NaN as the label if the row was not shown."
            )
        (center,), (spread,), scaled = standardise(
            cells[:, None], (name,), counted, standardize=standardize
        )
        column = np.zeros(shown.shape)
        column[shown] = scaled[:, 0]
        columns.append(column)
        centers += [center] * J
        scales += [spread] * J
    return Visits(names, np.hstack(columns), np.array(centers), np.array(scales))


def visit_columns(seen: Visits, labels: Labels, taken: tuple[str, ...]) -> tuple[str, ...]:
    """Names of the columns of visits in X."""
    names = tuple(f"{name}[{who}]" for name in seen.names for who in labels.annotators)
    if both := sorted(set(names) & set(taken)):
        raise DataError(f"X has column(s) named {some(both)}, as visits would be. Rename them.")
    return names


def _cells(name: str, table: Any, labels: Labels, index: pd.Index | None) -> Array:
    """Numbers (n, J), annotators and rows in the order of the labels."""
    table = read_several(name, table, index)
    if isinstance(table, pd.DataFrame):
        who = [str(c) for c in table.columns]
        if sorted(who) != sorted(labels.annotators):
            raise DataError(
                f"{name} has the columns {some(who)}; the annotators {some(labels.annotators)} are "
                "expected."
            )
        table = table.set_axis(who, axis=1)[list(labels.annotators)].to_numpy(dtype=object)
    cells = np.asarray(table)
    if cells.shape != labels.matrix.shape:
        raise DataError(
            f"{name} has shape {cells.shape}; one row per row of X and one column per annotator, "
            f"{labels.matrix.shape}, is expected."
        )
    return as_numbers(name, cells.ravel(), "numbers are").reshape(cells.shape)
