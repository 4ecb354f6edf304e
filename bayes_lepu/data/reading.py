"""The one door for user input: tables and labels in, one frozen value out.

Everything downstream works on `PUData` and checks nothing again.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from bayes_lepu.data.encoding import columns_of_formulas, learn_table, read_mask
from bayes_lepu.data.formulas import read_design
from bayes_lepu.data.frames import read_frame, refuse_swapped, take_roles
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
    whole = read_frame(X)
    l, y, sample_weight, aside = take_roles(whole, l, y, sample_weight, exclude)
    design = read_design(class_features, selection_features)
    if design is not None:
        if both := sorted({*exclude} & {*design.variables}):
            raise DataError(
                f"exclude names {some(both)}, which a formula needs. Leave it out of one of them."
            )
        aside = columns_of_formulas(design, whole)
    n, rows = len(whole.index), X.index if isinstance(X, pd.DataFrame) else None
    weight = read_weights(sample_weight, n, rows)

    def read_marks() -> tuple[Labels, Array]:
        found = read_labels(l, n, rows)
        return found, read_classes(y, found.matrix, rows, false_marks=false_marks)

    table = whole.without(aside).sparse()
    (values, encoding, kept), (labels, audited) = gather(
        lambda: learn_table(table, missing=missing, aside=aside, design=design, weight=weight),
        read_marks,
    )
    seen = read_visits(visits, labels, rows, weight, standardize=standardize, kept=kept)
    index = table.index
    if kept is not None:
        labels = labels._replace(matrix=np.ascontiguousarray(labels.matrix[kept]))
        audited, index = audited[kept], index[kept]
        weight = weight[kept]
        seen = seen._replace(columns=seen.columns[kept])
        try:
            refuse_idle(labels.matrix, labels.annotators)
        except DataError as error:
            raise DataError(f"Of the rows that missing='drop' leaves: {error}") from None
    marked, unmarked = ((labels.matrix == value).any(axis=1) for value in (1, 0))
    check_weights(float(weight @ marked), float(weight @ unmarked))
    if table.is_sparse and len(labels.annotators) > 1:
        raise DataError(
            "X is a sparse matrix and l has several annotators; one annotator is expected there. "
            "Use X.toarray(), or reduce the columns first (for example TruncatedSVD)."
        )
    names = encoding.names or table.names
    refuse_label_among_features(values, names, labels)
    if table.is_sparse:
        center, scale, values = standardise_sparse(values, names, weight, standardize=standardize)
    else:
        unscaled = encoding.unscaled(names)
        center, scale, values = standardise(
            values, names, weight, standardize=standardize, unscaled=unscaled
        )
    class_mask, selection_mask = (
        read_mask(option, features, encoding, names, whole)
        for option, features in (
            ("class_features", class_features),
            ("selection_features", selection_features),
        )
    )
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
        named=whole.named,
        center=center,
        scale=scale,
        class_mask=class_mask,
        selection_mask=selection_mask,
        index=index,
        encoding=encoding,
        annotators=labels.annotators,
        weight=weight,
        outside=read_outside(class_prior, label_frequency),
        visit_names=seen.names,
    )
