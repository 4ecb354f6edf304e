"""The one door for user input: tables and labels in, one frozen value out.

Everything downstream works on `PUData` and checks nothing again.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from bayes_lepu.data.encoding import read_mask, read_table
from bayes_lepu.data.formulas import read_design
from bayes_lepu.data.frames import refuse_swapped, row_count, take_roles
from bayes_lepu.data.labels import (
    Labels,
    check_weights,
    read_classes,
    read_labels,
    read_outside,
    read_weights,
    refuse_idle,
    refuse_label_among_features,
)
from bayes_lepu.data.problems import gather
from bayes_lepu.data.pu_data import PUData
from bayes_lepu.data.scaling import standardise, standardise_sparse
from bayes_lepu.data.visits import read_visits, visit_columns
from bayes_lepu.errors import DataError
from bayes_lepu.links import Array
from bayes_lepu.rows.sparse_matrices import is_sparse
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

    Arguments are those of `fit`. Columns are centred and divided by their standard deviations (ddof
    = 0); those of a sparse matrix by their largest values, without centring.
    """
    if not isinstance(standardize, bool | np.bool_):
        raise DataError(f"standardize={standardize!r}; True or False is expected.")
    refuse_swapped(X, l)
    l, y, sample_weight, aside = take_roles(X, l, y, sample_weight, exclude)
    design = read_design(class_features, selection_features)
    if design is not None and (both := sorted({*exclude} & {*design.variables})):
        raise DataError(
            f"exclude names {some(both)}, which a formula needs. Leave it out of one of them."
        )
    n = row_count(X)
    weight = read_weights(sample_weight, n, X)

    def read_marks() -> tuple[Labels, Array]:
        found = read_labels(l, n, X)
        return found, read_classes(y, found.matrix, X, false_marks=false_marks)

    table, (labels, audited) = gather(
        lambda: read_table(X, missing=missing, aside=aside, design=design, weight=weight),
        read_marks,
    )
    seen = read_visits(visits, labels, X, weight, standardize=standardize, kept=table.kept)
    if table.kept is not None:
        labels = labels._replace(matrix=np.ascontiguousarray(labels.matrix[table.kept]))
        audited = audited[table.kept]
        weight = weight[table.kept] if weight.size else weight
        seen = seen._replace(columns=seen.columns[table.kept])
        try:
            refuse_idle(labels.matrix, labels.annotators)
        except DataError as error:
            raise DataError(f"Of the rows that missing='drop' leaves: {error}") from None
    if weight.size:
        marked, unmarked = ((labels.matrix == value).any(axis=1) for value in (1, 0))
        check_weights(float(weight @ marked), float(weight @ unmarked))
    values, names = table.numbers, table.names
    if is_sparse(values) and len(labels.annotators) > 1:
        raise DataError(
            "X is a sparse matrix and l has several annotators; one annotator is expected there. "
            "Use X.toarray(), or reduce the columns first (for example TruncatedSVD)."
        )
    refuse_label_among_features(values, names, labels)
    if is_sparse(values):
        center, scale, values = standardise_sparse(values, names, weight, standardize=standardize)
    else:
        center, scale, values = standardise(
            values,
            names,
            weight,
            standardize=standardize,
            in_place=table.owned,
            unscaled=table.encoding.unscaled(names),
        )
    class_mask = read_mask("class_features", class_features, table, X)
    selection_mask = read_mask("selection_features", selection_features, table, X)
    if seen.names:
        more = visit_columns(seen, labels, names)
        values, names = np.hstack([values, seen.columns]), names + more
        center, scale = np.append(center, seen.center), np.append(scale, seen.scale)
        neither = np.zeros(len(more), dtype=bool)  # their slopes are parameters of their own
        class_mask, selection_mask = (np.append(m, neither) for m in (class_mask, selection_mask))
    return PUData(
        X=values,
        labels=labels.matrix,
        y=audited,
        feature_names=names,
        named=table.named,
        center=center,
        scale=scale,
        class_mask=class_mask,
        selection_mask=selection_mask,
        index=table.index,
        encoding=table.encoding,
        annotators=labels.annotators,
        weight=weight,
        outside=read_outside(class_prior, label_frequency),
        visit_names=seen.names,
    )
