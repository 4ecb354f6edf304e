"""Labels of one annotator or of several, audited classes, weights, and external figures of π and c.

Positive-unlabelled data are often recorded as 1 for a marked row and an empty cell otherwise. So
0/1, False/True, and 1/empty are accepted.

Conventions
-----------
The matrix of labels is int8 of shape ``(n, J)``: 1 marked, 0 seen and not marked, `NOT_SHOWN`
where the annotator did not see the row.
"""

import warnings
from collections.abc import Sequence
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayes_lepu.data.frames import by_narwhals, refuse_named
from bayes_lepu.data.problems import first_row
from bayes_lepu.errors import OWN_CODE, DataError, DataWarning
from bayes_lepu.links import Array
from bayes_lepu.rows import NOT_SHOWN
from bayes_lepu.rows.sparse_matrices import as_dense
from bayes_lepu.suggestions import some

ONE = ("annotator",)
# Sums over at most this total weight resolve differences of log densities of .001.
MOST_WEIGHT = 1e12
# With a smaller error the optimiser makes no progress along the constraint.
SMALLEST_ERROR = 1e-5
FEWEST_TOLD = 20  # rows; in a smaller table a column can equal the labels by chance


def zero_or_one(array: NDArray[Any]) -> NDArray[np.int8]:
    """Visible labels as 0 and 1; where 1 is the only value, a missing one is 0."""
    numbers = _zero_one_or_nothing("l", array, "0/1 or bool is")
    gaps = int(np.isnan(numbers).sum())
    if gaps and (numbers == 0).any():
        raise DataError(
            f"l holds 0, 1 and {gaps} missing value(s) (nan); 0 and 1, or 1 and missing, are "
            "expected. If missing means unlabelled, use l.fillna(0); if nobody looked at these "
            "rows, leave them out: X[l.notna()], l[l.notna()]."
        )
    return np.ascontiguousarray(numbers == 1, dtype=np.int8)


def _zero_one_or_nothing(name: str, array: NDArray[Any], allowed: str) -> Array:
    """Numbers 0 and 1, and NaN with a meaning."""
    numbers = as_numbers(name, array, allowed)
    known = np.unique(numbers[~np.isnan(numbers)])
    if np.isin(known, (0, 1)).all():
        return numbers
    ways = [f"({name} == {v:g}).astype(int) if {v:g} stands for 1" for v in known[::-1]]
    how = f"Use {' or '.join(ways)}."
    if len(known) > 2:
        how = f"If it is a score, 1 are the rows above a threshold: ({name} > 0.5).astype(int)."
    raise DataError(
        f"{name} holds the values {some([f'{v:.6g}' for v in known])}; {allowed} expected. "
        + ("Recode it first." if "NaN" in allowed else how)
    )


def as_numbers(name: str, array: NDArray[Any], allowed: str) -> Array:
    """Float64 values, NaN for None and pandas.NA; text is refused."""
    if array.dtype.kind in "fiub":
        return array.astype(float)
    values = array.tolist()  # plain Python values, which print without their NumPy type
    try:
        numbers = np.array([np.nan if v is None or v is pd.NA else float(v) for v in values])
    except (TypeError, ValueError):
        numbers = None
    if numbers is not None and not any(isinstance(v, str) for v in values):
        return numbers
    found = sorted({repr(v) for v in values if not (v is None or v is pd.NA or v != v)})
    how, one = "", found[-1] if found else ""
    if 1 <= len(found) <= 2:  # the word that becomes 1; what has no value keeps none, or becomes 0
        zero = f"{found[0]}: 0, " if len(found) == 2 else ""
        code = f"({name} == {one}).astype(int)"
        code = f"{name}.map({{{zero}{one}: 1}})" if "NaN" in allowed else code
        how = f", for example {code} if {one} stands for 1"
    raise DataError(f"{name} holds {some(found)}; {allowed} expected. Recode it first{how}.")


def read_vector(name: str, values: Any, n: int, index: pd.Index | None) -> NDArray[Any]:
    """A 1-d array of length n; pandas rows must already be in the order of X."""
    if values is None:
        raise DataError(f"{name} is None; one value per row, shape ({n},), is expected.")
    if isinstance(values, pd.DataFrame):
        values = values.squeeze("columns")
    if isinstance(values, np.ma.MaskedArray):
        values = np.ma.filled(values.astype(float), np.nan)  # a masked entry is a missing one
    if isinstance(values, pd.Series):
        refuse_other_rows(name, values, index)
        array = values.to_numpy(dtype=None if values.dtype.kind in "fiub" else object)
    else:
        array = np.asarray(values)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise DataError(
            f"{name} has shape {array.shape}; one value per row, shape ({n},), is expected."
        )
    if array.shape[0] != n:
        raise DataError(
            f"X has {n} rows but {name} has {array.shape[0]} values. Both need one entry per row."
        )
    return array


def read_several(name: str, table: Any, index: pd.Index | None) -> Any:
    """A frame of any library as a pandas frame with the rows of X; other values unchanged."""
    if isinstance(table, pd.DataFrame):
        refuse_other_rows(name, table, index)
        return table
    frame = by_narwhals(table, name)
    if frame is None:
        refuse_named(name, table)
        return table
    return frame if index is None or len(index) != len(frame) else frame.set_axis(index)


def refuse_other_rows(name: str, given: pd.Series | pd.DataFrame, index: pd.Index | None) -> None:
    """Refuse a pandas object with as many rows as X but in another order."""
    if index is not None and len(given) == len(index) and not given.index.equals(index):
        raise DataError(
            f"The index of {name} differs from the index of X, so it is unclear which row is "
            f"which. Use {name} = {name}.loc[X.index], or {name}.to_numpy() if the order is right."
        )


def read_weights(
    sample_weight: Any, n: int, index: pd.Index | None, *, part: bool = False
) -> Array:
    """How often every row counts, by default once. A ``part`` of a table may have weight 0."""
    if sample_weight is None:
        return np.ones(n)
    values = read_vector("sample_weight", sample_weight, n, index)
    weight = as_numbers("sample_weight", values, "numbers >= 0 are")
    if not (np.isfinite(weight).all() and weight.min() >= 0 and (part or weight.sum() > 0)):
        raise DataError(
            "sample_weight holds negative or missing values, or zeros only; one finite number >= 0 "
            "per row is expected."
        )
    # Beside the largest these vanish in every sum, but not in the spread of a column.
    return np.where(weight < np.finfo(float).eps * weight.max(initial=0.0), 0.0, weight)


def check_weights(marked: float, unmarked: float) -> None:
    """Refuse weights that leave no marked or no unmarked row, and sums out of range."""
    if not 1 / MOST_WEIGHT <= marked + unmarked <= MOST_WEIGHT:
        raise DataError(
            f"sample_weight sums to {marked + unmarked:.3g}; weights are how often rows count, and "
            f"{1 / MOST_WEIGHT:.0e} to {MOST_WEIGHT:.0e} in all is expected. Divide them, for "
            "example w / w.mean()."
        )
    if not (marked and unmarked):
        raise DataError(
            f"Every {'unmarked' if marked else 'marked'} row has sample_weight 0: one class "
            "of labels is left, and both are needed."
        )


def read_outside(
    class_prior: tuple[float, float] | None, label_frequency: tuple[float, float] | None
) -> Array:
    """External values and standard errors of π and c; NaN where none is given.

    A pair that looks like the ends of an interval is refused or gives a warning.
    """
    found = np.full((2, 2), np.nan)
    given = {"class_prior": class_prior, "label_frequency": label_frequency}
    for k, (option, known) in enumerate(given.items()):
        if known is None:
            continue
        pair = isinstance(known, Sequence) and len(known) == 2
        pair = pair and all(isinstance(value, Real) for value in known)
        if not pair or not (0 < known[0] < 1 and SMALLEST_ERROR <= known[1] < np.inf):
            raise DataError(
                f"{option} = {known!r}; a value between 0 and 1 and its standard error, of at "
                f"least {SMALLEST_ERROR:g}, are expected, for example {option}=(0.12, 0.02)."
            )
        value, error = found[k] = float(known[0]), float(known[1])
        no_knowledge = 12**-0.5  # the standard deviation of a share uniform between 0 and 1
        if error >= min(value, no_knowledge):
            said = f"{option} = ({value:g}, {error:g}) means a standard error of {error:g}."
            if value < error < 1:
                centred = f"({(value + error) / 2:.3g}, {(error - value) / 4:.2g})"
                said += f" Of a 95 % interval {value:g} to {error:g}, write {option}={centred}."
            if error >= no_knowledge:
                raise DataError(f"{said} As it is, it leaves all shares possible.")
            warnings.warn(said, DataWarning, skip_file_prefixes=OWN_CODE)
    return found


def read_classes(
    y: Any, labels: NDArray[np.int8], index: pd.Index | None, *, false_marks: bool = False
) -> Array:
    """Audited classes, NaN where unknown."""
    n = labels.shape[0]
    if y is None:
        return np.full(n, np.nan)
    vector = read_vector("y", y, n, index)
    classes = _zero_one_or_nothing("y", vector, "0, 1 or NaN (unknown) is")
    contradiction = (labels == 1).any(axis=1) & (classes == 0)
    if contradiction.any() and not false_marks:
        rows = pd.RangeIndex(n) if index is None else index
        raise DataError(
            f"{contradiction.sum()} row(s) are labelled (l=1) but audited as negative (y=0), first "
            f"in {first_row(contradiction, rows)}. A labelled row is positive by assumption; "
            "correct l or y, or use false_marks=True if negatives may be marked."
        )
    return classes


class Labels(NamedTuple):
    """The matrix of labels and the annotators' names."""

    matrix: NDArray[np.int8]
    annotators: tuple[str, ...]


def read_labels(l: Any, n: int, index: pd.Index | None) -> Labels:
    """The labels of every row by one annotator, or by several in a table."""
    shape = np.shape(l)
    if len(shape) == 2 and shape[1] == 0:
        raise DataError(f"l has shape {shape}; one column per annotator is expected.")
    l = read_several("l", l, index)
    if len(shape) != 2 or shape[1] == 1:
        found = Labels(zero_or_one(read_vector("l", l, n, index))[:, None], ONE)
        refuse_idle(*found)
        return found
    if shape[0] != n:
        if isinstance(l, pd.DataFrame):
            _refuse_long(l, n)
        turned = " Its rows and columns look swapped: use l.T." if shape[1] == n else ""
        raise DataError(f"X has {n} rows but l has {shape[0]}. Both need one row per item.{turned}")
    if not isinstance(l, pd.DataFrame):
        l = np.asarray(l)
        l = pd.DataFrame(l, columns=[f"annotator_{j}" for j in range(shape[1])])
    names = tuple(map(str, l.columns))
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise DataError(
            f"l has duplicate annotator names: {some(twice)}. Every annotator is one column; "
            "rename them, or merge the columns if they are one person."
        )
    allowed, columns = "0, 1 or NaN (not shown) is", []
    for j, name in enumerate(names):
        name = f"l[{name!r}]"
        vector = read_vector(name, l.iloc[:, j], n, None)
        columns.append(_zero_one_or_nothing(name, vector, allowed))
    numbers = np.column_stack(columns)
    matrix = np.where(np.isnan(numbers), NOT_SHOWN, numbers).astype(np.int8)
    refuse_idle(matrix, names)
    return Labels(np.ascontiguousarray(matrix), names)


def _refuse_long(l: pd.DataFrame, n: int) -> None:
    """Refuse a table with one line per row and annotator, with the code that reshapes it.

    It has a column of 0 and 1, and two others of which every pair of values occurs once.
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


def refuse_idle(labels: NDArray[np.int8], annotators: tuple[str, ...]) -> None:
    """Refuse annotators of whom nothing can be learned, and tables that confuse 0 with NaN."""
    marked = labels == 1
    if len(annotators) == 1 and not labels.any():
        raise DataError("No row is labelled (l is 0 everywhere): there is nothing to learn from.")
    if len(annotators) == 1 and labels.all():
        raise DataError(
            "Every row is labelled (l is 1 everywhere): unlabelled rows are needed. If these "
            "are positives only, add the background rows with l = 0."
        )
    if blind := [who for j, who in enumerate(annotators) if (labels[:, j] == NOT_SHOWN).all()]:
        raise DataError(
            f"Annotator(s) {some(blind)} saw no row (NaN everywhere). Leave them out: "
            f"l.drop(columns={blind!r})."
        )
    if silent := [who for j, who in enumerate(annotators) if not marked[:, j].any()]:
        raise DataError(
            f"Annotator(s) {some(silent)} labelled none of the rows they saw, so nothing ties "
            f"them to the class. Leave them out: l.drop(columns={silent!r})."
        )
    if not (labels == 0).any():
        raise DataError(
            "l holds no 0: 0 means seen and not labelled, NaN means not shown. If NaN stands for "
            "not labelled, use l.fillna(0)."
        )
    if marked.any(axis=1).all():
        raise DataError(
            "Every row is labelled by somebody: rows that nobody labelled are needed. If these are "
            "positives only, add the background rows with l = 0."
        )


def refuse_label_among_features(values: Any, names: tuple[str, ...], labels: Labels) -> None:
    """Refuse columns that determine the labels of an annotator exactly."""
    for j, who in enumerate(labels.annotators):
        shown = labels.matrix[:, j] != NOT_SHOWN
        marks, seen = labels.matrix[shown, j] == 1, values if shown.all() else values[shown]
        if marks.all() or not marks.any() or len(marks) < FEWEST_TOLD:
            continue
        for k in _columns_like(seen, marks):
            name = "l" if len(labels.annotators) == 1 else f"{who}'s label"
            whose = f"it equals {name} (or 1 - {name})"
            raise DataError(
                f"Column {names[k]!r} is the label itself: {whose} in every row. Drop it from X, "
                f"for example X.drop(columns=[{names[k]!r}])."
            )


def _columns_like(values: Any, marks: NDArray[np.bool_]) -> list[int]:
    """Columns with one value in all marked rows, and another one in all others."""
    suspects, ends = np.arange(values.shape[1]), np.zeros((2, values.shape[1]))
    for rows in (slice(1000), slice(None)):  # most columns differ at once
        for k, group in enumerate((marks[rows], ~marks[rows])):
            if group.any():
                cells = values[rows][group][:, suspects]
                ends[k, suspects] = as_dense(cells.max(axis=0))
                suspects = suspects[ends[k, suspects] == as_dense(cells.min(axis=0))]
    return [j for j in suspects if ends[0, j] != ends[1, j]]
