r"""Reading of user input: tables and labels become one frozen `PUData`.

All checks of input are here; other modules do not check `PUData` again. A column of ``visits``
differs between the annotators of a row, such as the weather. It becomes one column of X per
annotator, which enters only that annotator's propensity, with a slope δ that all annotators share:

.. math:: \omega_{ij} = \alpha_j \cdot x_i + \beta_j + \sum_k \delta_k v_{ijk}
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from bayes_lepu.data.encoding import learn_table, read_mask
from bayes_lepu.data.formulas import read_design
from bayes_lepu.data.frames import read_frame, take_roles, take_visits
from bayes_lepu.data.labels import (
    as_numbers,
    check_weights,
    read_classes,
    read_labels,
    read_outside,
    read_several,
    read_weights,
    refuse_label_among_features,
)
from bayes_lepu.data.problems import TableError
from bayes_lepu.data.pu_data import PUData
from bayes_lepu.data.scaling import standardise
from bayes_lepu.errors import DataError
from bayes_lepu.links import Array
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
    """Check and normalise all user input; one error lists all problems.

    Arguments are those of `fit`.
    """
    if not isinstance(standardize, bool | np.bool_):
        raise DataError(f"standardize={standardize!r}; True or False is expected.")
    whole = read_frame(X)
    l, y, sample_weight, aside = take_roles(whole, l, y, sample_weight, exclude)
    visits, of_visits = take_visits(whole, visits)
    aside = (*aside, *of_visits)
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
    table = whole.without(aside).sparse()
    try:
        values, encoding = learn_table(
            table, missing=missing, aside=aside, design=design, weight=weight
        )
    except TableError as error:  # one message for the labels, too
        try:
            read_classes(y, read_labels(l, n, rows).matrix, rows, false_marks=false_marks)
        except DataError as other:
            problems, facts = error.problems, error.facts
            raise TableError(problems, facts=facts, besides=str(other)) from None
        raise
    labels = read_labels(l, n, rows)
    audited = read_classes(y, labels.matrix, rows, false_marks=false_marks)
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
    if not masks[0].any():
        raise DataError("class_features has no column; name at least one, such as '~ log(amount)'.")
    if visits is None and not masks[1].any():
        raise DataError(
            "selection_features has no column, and there are no visits: the propensity is "
            "constant, which is model='scar'."
        )
    data = PUData(
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
    )
    return data if visits is None else _with_visits(data, visits, rows, standardize=standardize)


def _with_visits(data: PUData, visits: Any, index: pd.Index | None, *, standardize: bool) -> PUData:
    """The rows with the columns of visits, standardised over the cells that were shown.

    Columns of one name are adjacent, with 0 where a row was not shown. Their slopes are separate
    parameters, so the columns are in neither mask.
    """
    if data.n_annotators == 1:
        raise DataError(
            "visits holds columns that differ between annotators, but there is one annotator. Put "
            "them into X and keep them out of the class: class_features=[...] without them."
        )
    if not isinstance(visits, Mapping) or not visits:
        raise DataError(
            "visits is expected as {'hours': table}, each table with one row per row of X and one "
            "column per annotator, under the annotators' names, or {'hours': [columns of X]} in "
            "the order of the labels. From a table with one line per row and annotator: "
            "table.pivot(index='row', columns='annotator', values='hours').reindex(X.index)."
        )
    names, shown = tuple(map(str, visits)), data.shown
    if len({*names}) < len(names):
        raise DataError(f"visits has names that are the same as text: {some(names)}. Rename one.")
    more = tuple(f"{name}[{who}]" for name in names for who in data.annotators)
    if both := sorted({*data.feature_names} & {*more}):
        raise DataError(f"X has column(s) named {some(both)}, as visits would be. Rename them.")
    counted = np.broadcast_to(data.weight[:, None], shown.shape)[shown]
    columns, moments = [], []
    for name, table in visits.items():
        name = f"visits[{str(name)!r}]"
        cells = _visit_cells(name, table, data, index)[shown]
        if not np.isfinite(cells).all():
            raise DataError(
                f"{name} lacks {int(np.isnan(cells).sum())} value(s), or holds infinite ones, "
                "where the annotator saw the row; a number for every label is expected. Fill them "
                "in, or enter NaN as the label if the row was not shown."
            )
        *moment, scaled = standardise(cells[:, None], (name,), counted, standardize=standardize)
        column = np.zeros(shown.shape)
        column[shown] = scaled[:, 0]
        columns.append(column)
        moments.append(np.repeat(moment, data.n_annotators, axis=1))
    center, scale = np.hstack(moments)
    data = data.with_columns(more, np.hstack(columns), center, scale, of_class=False)
    return replace(data, visit_names=names)


def _visit_cells(name: str, table: Any, data: PUData, index: pd.Index | None) -> Array:
    """Numbers (n, J), annotators and rows in the order of the labels."""
    table = read_several(name, table, index)
    if isinstance(table, pd.DataFrame):
        who = [str(c) for c in table.columns]
        if sorted(who) != sorted(data.annotators):
            raise DataError(
                f"{name} has the columns {some(who)}; the annotators {some(data.annotators)} are "
                "expected."
            )
        table = table.set_axis(who, axis=1)[list(data.annotators)].to_numpy(dtype=object)
    cells = np.asarray(table)
    if cells.shape != data.labels.shape:
        raise DataError(
            f"{name} has shape {cells.shape}; one row per row of X and one column per annotator, "
            f"{data.labels.shape}, is expected."
        )
    return as_numbers(name, cells.ravel(), "numbers are").reshape(cells.shape)
