"""A user's table as numbers, with its names and row labels, or one message with all that is wrong.

`read_table` learns the encoding from training rows, `encode_rows` applies it to new ones.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayes_lepu.cells import read_cells
from bayes_lepu.encoding import MISSING, UNSEEN, Cells, Column, Encoding, check_choice, learn_column
from bayes_lepu.errors import DataError
from bayes_lepu.formulas import Design, learn_design
from bayes_lepu.frames import as_frame, column_names
from bayes_lepu.links import Array
from bayes_lepu.problems import NEW_ROWS, Problem, TableError
from bayes_lepu.suggestions import did_you_mean, nearest, some


class Table(NamedTuple):
    """A table as numbers.

    Attributes
    ----------
    numbers : (n, p) array
        C-contiguous float64, without missing or infinite values.
    names : tuple of str
        One per column of numbers.
    named : bool
        Whether the names are the user's, and so are matched in predictions.
    index : pandas.Index
        Labels of the rows.
    encoding : Encoding
    kept : (rows of the user,) bool array or None
        Which rows of the user's table are here; None for all of them.
    owned : bool
        Whether the values may be changed in place, being no memory of the user's.
    masks : pair of (p,) bool arrays or None
        Columns of the class and of the propensity, where formulas say so.
    """

    numbers: Array
    names: tuple[str, ...]
    named: bool
    index: pd.Index
    encoding: Encoding
    kept: NDArray[np.bool_] | None
    owned: bool
    masks: tuple[NDArray[np.bool_], NDArray[np.bool_]] | None = None


def read_table(
    X: Any,
    *,
    missing: str = "error",
    unseen: str = "error",
    aside: Collection[str] = (),
    design: Design | None = None,
) -> Table:
    """Training rows as numbers, and how new rows become numbers in the same way."""
    check_choice("missing", missing, MISSING)
    check_choice("unseen", unseen, UNSEEN)
    if design is not None:
        aside = _outside(design, X, missing)
    frame = as_frame(X, without=aside)
    if frame is None:
        values = _numeric_array(X)
        names: tuple[str, ...] = tuple(f"x{j}" for j in range(values.shape[1]))
        _refuse_empty(values.shape)
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(values.sum()):  # one pass without a temporary settles the usual case
                plain = Encoding(missing=missing, unseen=unseen)
                return Table(values, names, False, _positions(values), plain, None, False)
        frame = pd.DataFrame(values, columns=list(names))
        return _learn(frame, names, False, missing, unseen, (), None)
    _refuse_empty(frame.shape)
    names = _frame_names(frame)
    return _learn(frame, names, True, missing, unseen, tuple(aside), design)


def refuse_swapped(X: Any, l: Any) -> None:
    """Refuse a vector where the table belongs and a table where the labels belong."""
    first: tuple[int, ...] = getattr(X, "shape", ())
    second: tuple[int, ...] = getattr(l, "shape", ())
    if len(first) == 1 and len(second) == 2 and second[-1] > 1:
        raise DataError(
            f"X has shape {first} and l has shape {second}: the two seem to be swapped. "
            "The table comes first: fit(X, l)."
        )


def _learn(
    frame: pd.DataFrame,
    names: tuple[str, ...],
    named: bool,
    missing: str,
    unseen: str,
    aside: tuple[str, ...],
    design: Design | None,
) -> Table:
    groups = () if design is None else {*design.groups[0], *design.groups[1]}
    read = {
        name: read_cells(frame.iloc[:, j], name, group=name in groups)
        for j, name in enumerate(names)
    }
    cells = {name: found for name, found in read.items() if isinstance(found, Cells)}
    problems = [found for found in read.values() if isinstance(found, Problem)]
    gaps = {name: found.missing for name, found in cells.items()}
    counts = {name: int(gap.sum()) for name, gap in gaps.items()}
    complete = np.ones(len(frame), dtype=bool)
    for name, gap in gaps.items():
        if counts[name]:
            complete &= ~gap
    if missing == "error":
        problems += [Problem("missing", name, str(k)) for name, k in counts.items() if k]
    if problems:  # the constant ones are otherwise found when the columns are standardised
        problems += [Problem("constant", name) for name, c in cells.items() if _constant(c)]
        raise TableError(problems, facts={"kept": int(complete.sum()), "rows": len(frame)})
    kept = None
    if missing == "drop" and not complete.all():
        if not complete.any():
            raise DataError(
                f"Every one of the {len(frame)} rows has a missing cell, so missing='drop' leaves "
                f"none. Columns: {some([f'{n} ({k})' for n, k in counts.items() if k])}. Use "
                "missing='indicator' or 'impute', or leave out the emptiest columns."
            )
        kept = complete
        cells = {name: _rows(found, kept) for name, found in cells.items()}
    columns = [learn_column(name, found, missing=missing) for name, found in cells.items()]
    index = frame.index if kept is None else frame.index[kept]
    masks = None
    problems += [Problem("constant", c.name) for c in columns if not c.names]
    pairs = list(zip(columns, cells.values(), strict=True))
    if problems:
        raise TableError(problems)
    if design is None:
        values, left = _encode(pairs, index, unseen)
        assert not left  # training rows have no unseen level, and their gaps are dealt with
        encoded = tuple(name for c in columns for name in c.names)
    else:
        clean, _, _ = _clean(pairs, index, unseen)
        design, owned = learn_design(design, clean)
        values, encoded = design.evaluate(clean), design.names
        masks = (np.array(owned[0]), np.array(owned[1]))
    # Of dropped rows the counts stay known, although the columns were learned without them.
    columns = [replace(c, missing=counts[c.name]) if counts[c.name] else c for c in columns]
    plain = design is None and all(c.plain and not c.missing for c in columns)
    encoding = Encoding(
        columns=() if plain else tuple(columns),
        missing=missing,
        unseen=unseen,
        aside=aside,
        dropped=0 if kept is None else int((~kept).sum()),
        design=design,
    )
    _refuse_twins(encoded)
    return Table(values, encoded, named, index, encoding, kept, True, masks)


def complete_rows(X: pd.DataFrame) -> NDArray[np.bool_]:
    """Which rows have a value in every cell, as ``missing="drop"`` counts them."""
    read = [read_cells(X.iloc[:, j], str(name)) for j, name in enumerate(X.columns)]
    gaps = [found.missing for found in read if isinstance(found, Cells)]
    return ~np.any(gaps, axis=0)


def encode_rows(
    X: Any, encoding: Encoding, names: tuple[str, ...], *, named: bool
) -> tuple[Array, pd.Index]:
    """New rows as the columns of numbers ``names``, matched by name where names are known."""
    frame = as_frame(X, without=encoding.aside if named else ())
    design = encoding.design
    if design is not None and frame is not None:  # a formula takes what it needs
        frame = frame[[c for c in frame.columns if str(c) in design.variables]]
    groups = () if design is None else {*design.groups[0], *design.groups[1]}
    wanted = tuple(c.name for c in encoding.columns) or names
    if frame is None:
        array = _numeric_array(X, like=wanted) if not encoding.columns else _object_array(X, wanted)
        _check_width(array.shape[1], wanted)
        with np.errstate(over="ignore", invalid="ignore"):
            if not encoding.columns and np.isfinite(array.sum()):
                return array, _positions(array)
        frame = pd.DataFrame(array, columns=list(wanted))
    elif named:
        _refuse_empty(frame.shape)
        frame = match_columns(frame, wanted)
    else:
        _check_width(frame.shape[1], wanted)
    _refuse_empty(frame.shape)
    columns = encoding.columns or tuple(Column(name) for name in names)
    read = [
        read_cells(frame.iloc[:, j], column.name, training=False, group=column.name in groups)
        for j, column in enumerate(columns)
    ]
    cells = [
        found if isinstance(found, Problem) else _like_training(found, column)
        for column, found in zip(columns, read, strict=True)
    ]
    problems = [found for found in cells if isinstance(found, Problem)]
    usable = [(c, f) for c, f in zip(columns, cells, strict=True) if isinstance(f, Cells)]
    if design is None:
        values, left = _encode(usable, frame.index, encoding.unseen)
    else:
        clean, new, left = _clean(usable, frame.index, encoding.unseen, groups)
    if problems or left:
        raise TableError([*problems, *left], remedies=NEW_ROWS)
    if design is not None:
        values = _evaluate(design, clean, new, encoding.unseen)
    return values, frame.index


def _like_training(cells: Cells, column: Column) -> Cells | Problem:
    """Numbers where the fit has numbers, levels where it has levels."""
    if column.levels is None and cells.levels is not None:
        try:
            numbers = np.array([*map(float, cells.levels), np.nan])
        except ValueError:
            wrong = next(v for v in cells.levels if not _is_number(v))
            return Problem("text among numbers", column.name, repr(wrong))
        return Problem("number as text", column.name, repr(numbers[0]))
    if column.levels is not None and cells.levels is None:
        found, codes = np.unique(cells.numbers, return_inverse=True)
        gaps = np.isnan(found)
        texts = tuple(f"{v:g}" if not float(v).is_integer() else str(int(v)) for v in found[~gaps])
        flags = {"0": "False", "1": "True"} if set(column.levels) <= {"False", "True"} else {}
        return Cells(
            np.where(gaps[codes], -1.0, codes.astype(float)), tuple(flags.get(t, t) for t in texts)
        )
    return cells


def _encode(
    columns: Sequence[tuple[Column, Cells]], index: pd.Index, unseen: str
) -> tuple[Array, list[Problem]]:
    values = np.empty((len(index), sum(len(c.names) for c, _ in columns)))
    problems: list[Problem] = []
    place = 0
    for column, found in columns:
        encoded, wrong = column.encode(found, index, unseen)
        problems += wrong
        for k, one in enumerate(encoded):
            values[:, place + k] = one
        place += len(column.names)
    return values, problems


def _clean(
    columns: Sequence[tuple[Column, Cells]],
    index: pd.Index,
    unseen: str,
    groups: Collection[str] = (),
) -> tuple[pd.DataFrame, dict[str, NDArray[np.bool_]], list[Problem]]:
    """The columns a formula works on, rows with unseen levels, and problems.

    An unseen level of a group is no problem: all its columns are 0, an average group.
    """
    found, new, problems = {}, {}, []
    for column, cells in columns:
        grouped = column.name in groups
        series, strange, wrong = column.clean(cells, index, "reference" if grouped else unseen)
        problems += wrong
        if strange.any() and not grouped:
            new[column.name] = strange
            series = series.where(~strange, series.cat.categories[0])
        found[column.name] = series
    return pd.DataFrame(found, index=index), new, problems


def _evaluate(
    design: Design, clean: pd.DataFrame, new: dict[str, NDArray[np.bool_]], unseen: str
) -> Array:
    values = design.evaluate(clean)
    if unseen == "average":
        place = 0
        for _, names, variables in design.terms:
            of_term = slice(place, place + len(names))
            for variable in variables:
                if variable in new:
                    values[new[variable], of_term] = design.means[of_term]
            place += len(names)
    return values


def _outside(design: Design, X: Any, missing: str) -> tuple[str, ...]:
    """The columns of X that no formula needs; those a formula needs must be there."""
    if missing == "indicator":
        raise DataError(
            "missing='indicator' adds columns, which formulas do not have. Use 'impute' or 'drop'."
        )
    names = column_names(X)
    if names is None:
        raise DataError("Formulas name columns, but X has none. Pass a DataFrame.")
    for variable in design.variables:
        if variable not in names:
            raise DataError(
                f"A formula names {variable!r}, which is not a column of X."
                f"{did_you_mean(variable, names)} Columns: {some(names, most=12)}."
            )
    return tuple(name for name in names if name not in design.variables)


def _rows(cells: Cells, kept: NDArray[np.bool_]) -> Cells:
    """The cells of some rows, without the levels that none of them has."""
    values = cells.numbers[kept]
    if cells.levels is None:
        return Cells(values)
    used = np.unique(values.astype(np.int64))
    place = np.zeros(len(cells.levels))
    place[used] = np.arange(len(used))
    return Cells(place[values.astype(np.int64)], tuple(cells.levels[k] for k in used))


def _constant(cells: Cells) -> bool:
    present = cells.numbers[~cells.missing]
    return bool(present.size) and bool((present == present[0]).all())


def _refuse_empty(shape: tuple[int, ...]) -> None:
    if min(shape) == 0:
        raise DataError(
            f"X is empty: its shape is {shape}. At least one row and one column are needed."
        )


def _frame_names(X: pd.DataFrame) -> tuple[str, ...]:
    names = tuple(str(c) for c in X.columns)
    _refuse_twins(names)
    return names


def _refuse_twins(names: tuple[str, ...]) -> None:
    twice = sorted(c for c, count in Counter(names).items() if count > 1)
    if twice:
        raise DataError(
            f"X has duplicate column names: {some(twice)}. Every column needs its own name; "
            "rename or drop the copies."
        )


def _numeric_array(X: Any, *, like: Sequence[str] = ()) -> Array:
    if hasattr(X, "tocsr"):
        raise DataError(
            f"X is a sparse matrix ({type(X).__name__}); dense columns are expected. "
            "Use X.toarray(), or reduce the columns first (for example TruncatedSVD)."
        )
    array = _two_dimensions(X, like)
    if array.dtype.kind not in "fiub":
        raise DataError(
            f"X holds {array.dtype} values; numbers are expected. Convert with X.astype(float), "
            "or pass a DataFrame, whose columns of text become categories."
        )
    return np.ascontiguousarray(array, dtype=float)


def _object_array(X: Any, like: Sequence[str]) -> NDArray[Any]:
    return _two_dimensions(X, like).astype(object)


def _two_dimensions(X: Any, like: Sequence[str]) -> NDArray[Any]:
    """An array of two dimensions, or advice that depends on what it has instead."""
    if isinstance(X, np.ma.MaskedArray):
        X = np.ma.filled(X.astype(float), np.nan)  # a masked cell is a missing one
    if isinstance(X, str):
        raise DataError(f"X is the text {X!r}; a table is expected. Use pd.read_csv({X!r}) first.")
    if isinstance(X, dict):
        raise DataError("X is a dict; a table is expected. Use pd.DataFrame(X).")
    array = np.asarray(X)
    if array.ndim == 2:
        return array
    if array.ndim == 0:
        hint = "Pass a DataFrame or a 2-d array."
    elif array.ndim > 2:
        hint = "Use X.reshape(len(X), -1) to make one row of each entry."
    elif isinstance(X, pd.Series) and len(like) == len(X) > 1:
        hint = "Use X.to_frame().T for a single row."
    elif len(like) == len(array) > 1:
        hint = "Use X.reshape(1, -1) for a single row."
    elif isinstance(X, pd.Series):
        hint = "Use X.to_frame() for a single column."
    else:
        hint = "Use X.reshape(-1, 1) for a single column."
    raise DataError(
        f"X has {array.ndim} dimension(s), shape {array.shape}; a table of shape (rows, "
        f"columns) is expected. {hint}"
    )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _positions(values: Array) -> pd.Index:
    return pd.RangeIndex(values.shape[0])


def _check_width(got: int, wanted: Sequence[str]) -> None:
    if got != len(wanted):
        raise DataError(
            f"X has {got} columns, but the model was fitted on {len(wanted)}: "
            f"{some(wanted)}. Pass the same columns in the same order."
        )


def match_columns(X: pd.DataFrame, names: tuple[str, ...]) -> pd.DataFrame:
    """The columns of these names in this order; missing and unknown ones are refused."""
    got = _frame_names(X)
    position, known = {c: j for j, c in enumerate(got)}, set(names)
    missing = [c for c in names if c not in position]
    extra = [c for c in got if c not in known]
    if missing or extra:
        parts = [f"missing column(s) {some(missing)}"] if missing else []
        parts += [f"unknown column(s) {some(extra)}"] if extra else []
        near = nearest(missing[0], extra) if missing else None
        rename = f" Rename {near!r} to {missing[0]!r}?" if near else ""
        raise DataError(
            f"X does not match the fitted columns: {'; '.join(parts)}.{rename} "
            "Select them with X[list(fit.data.terms)]."
        )
    return X.iloc[:, [position[c] for c in names]]


def term_places(table: Table, X: Any) -> dict[Any, tuple[int, ...]]:
    """Positions of the columns of numbers by every name a column of the user's may be asked for.

    A category is asked for by its own name or by that of one level (``country=DE``).
    """
    terms = table.encoding.terms(table.names)
    places: dict[Any, tuple[int, ...]] = {name: (j,) for j, name in enumerate(table.names)} | terms
    names = column_names(X) or tuple(terms)
    by_number = column_places(names, X)
    return places | {key: terms[names[j]] for key, j in by_number.items() if names[j] in terms}


def column_places(names: Sequence[str], X: Any) -> dict[Any, int]:
    """Positions of the columns by name and by number, whichever way they are asked for.

    In a table whose columns are labelled by numbers a number is a label, elsewhere a position.
    """
    places: dict[Any, int] = {name: j for j, name in enumerate(names)}
    labels = X.columns if isinstance(X, pd.DataFrame) else ()
    numbers = [c for c in labels if isinstance(c, int | np.integer)]
    return places | ({c: places[str(c)] for c in numbers} or {j: j for j in range(len(names))})
