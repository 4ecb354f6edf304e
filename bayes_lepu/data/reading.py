r"""The one door for user input: tables and labels in, one frozen value out.

Everything downstream works on `PUData` and checks nothing again. A column of ``visits`` that
differs between the annotators of a row, such as the weather, becomes one column of X per annotator.
It enters that annotator's propensity alone, with a slope δ that all annotators share:

.. math:: \omega_{ij} = \alpha_j \cdot x_i + \beta_j + \sum_k \delta_k v_{ijk}
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from bayes_lepu.data.encoding import learn_table, read_mask
from bayes_lepu.data.formulas import read_design
from bayes_lepu.data.frames import read_frame, take_roles
from bayes_lepu.data.labels import (
    Labels,
    as_numbers,
    check_weights,
    read_classes,
    read_labels,
    read_outside,
    read_several,
    read_weights,
    refuse_label_among_features,
)
from bayes_lepu.data.problems import gather
from bayes_lepu.data.pu_data import PUData
from bayes_lepu.data.scaling import standardise
from bayes_lepu.errors import DataError
from bayes_lepu.links import Array
from bayes_lepu.rows import NOT_SHOWN
from bayes_lepu.suggestions import some


def read_data(
    X: Any,
    l: Any,
    *,
    y: Any = None,
    sample_weight: Any = None,
    visits: Any = None,
    class_prior: tuple[float, float] | None = None,
    label_frequency: tuple[float, float] | None = None,
    false_marks: bool = False,
    class_features: Sequence[str | int] | str | None = None,
    selection_features: Sequence[str | int] | str | None = None,
    exclude: Sequence[str] = (),
    missing: str = "error",
    standardize: bool = True,
) -> PUData:
    """Check and normalise everything the user hands in; one error tells all that is wrong.

    Arguments are those of `fit`.
    """
    if not isinstance(standardize, bool | np.bool_):
        raise DataError(f"standardize={standardize!r}; True or False is expected.")
    whole = read_frame(X)
    l, y, sample_weight, aside = take_roles(whole, l, y, sample_weight, exclude)
    design = read_design(class_features, selection_features)
    if design is not None:
        if both := sorted({*exclude} & {*design.variables}):
            raise DataError(
                f"exclude names {some(both)}, which a formula needs. Leave it out of one of them."
            )
        if not whole.named:
            raise DataError("Formulas name columns, but X has none. Pass a DataFrame.")
        whole.take(design.variables, option="A formula")
        aside = tuple(name for name in whole.names if name not in design.variables)
    n, rows = len(whole.index), X.index if isinstance(X, pd.DataFrame) else None
    weight = read_weights(sample_weight, n, rows)

    def read_marks() -> tuple[Labels, Array]:
        found = read_labels(l, n, rows)
        return found, read_classes(y, found.matrix, rows, false_marks=false_marks)

    table = whole.without(aside).sparse()
    (values, encoding), (labels, audited) = gather(
        lambda: learn_table(table, missing=missing, aside=aside, design=design, weight=weight),
        read_marks,
    )
    seen = _read_visits(visits, labels, rows, weight, standardize=standardize)
    marked, unmarked = ((labels.matrix == value).any(axis=1) for value in (1, 0))
    check_weights(float(weight @ marked), float(weight @ unmarked))
    if table.is_sparse and len(labels.annotators) > 1:
        raise DataError(
            "X is a sparse matrix and l has several annotators; one annotator is expected there. "
            "Use X.toarray(), or reduce the columns first (for example TruncatedSVD)."
        )
    names = encoding.names or table.names
    refuse_label_among_features(values, names, labels)
    unscaled = [j for places in encoding.blocks(names).values() for j in places]
    center, scale, values = standardise(
        values, names, weight, standardize=standardize, unscaled=unscaled
    )
    masks = [
        read_mask("class_features", class_features, encoding, names, whole),
        read_mask("selection_features", selection_features, encoding, names, whole),
    ]
    if seen.names:
        more = tuple(f"{name}[{who}]" for name in seen.names for who in labels.annotators)
        if both := sorted(set(names) & set(more)):
            raise DataError(f"X has column(s) named {some(both)}, as visits would be. Rename them.")
        values, names = np.hstack([values, seen.columns]), names + more
        center, scale = np.append(center, seen.center), np.append(scale, seen.scale)
        neither = np.zeros(len(more), dtype=bool)  # their slopes are parameters of their own
        masks = [np.append(mask, neither) for mask in masks]
    return PUData(
        X=values,
        labels=labels.matrix,
        y=audited,
        feature_names=names,
        named=whole.named,
        center=center,
        scale=scale,
        class_mask=masks[0],
        selection_mask=masks[1],
        index=table.index,
        encoding=encoding,
        annotators=labels.annotators,
        weight=weight,
        outside=read_outside(class_prior, label_frequency),
        visit_names=seen.names,
    )


class _Visits(NamedTuple):
    """Columns (n, q J) on the internal scale, those of one name side by side, 0 where not shown."""

    names: tuple[str, ...]
    columns: Array
    center: Array
    scale: Array


def _read_visits(
    visits: Any,
    labels: Labels,
    index: pd.Index | None,
    weight: Array,
    *,
    standardize: bool,
) -> _Visits:
    """The columns of visits, standardised over the cells that were shown."""
    n, J = labels.matrix.shape
    if visits is None:
        return _Visits((), np.zeros((n, 0)), np.zeros(0), np.ones(0))
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
    counted = np.broadcast_to(weight[:, None], shown.shape)[shown]
    columns, centers, scales = [], [], []
    for name, table in zip(names, visits.values(), strict=True):
        name = f"visits[{name!r}]"
        cells = _visit_cells(name, table, labels, index)[shown]
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
    return _Visits(names, np.hstack(columns), np.array(centers), np.array(scales))


def _visit_cells(name: str, table: Any, labels: Labels, index: pd.Index | None) -> Array:
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
