"""A user's table as numbers, with its names and row labels, or one message with all that is wrong.

`read_table` learns the encoding from training rows, `encode_rows` applies it to new ones.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayes_lepu.data.encoding import (
    MISSING,
    Cells,
    Column,
    Encoding,
    check_choice,
    learn_column,
)
from bayes_lepu.data.formulas import Design, gap_name, learn_design
from bayes_lepu.data.frames import as_frame, column_names, numeric_array, object_array
from bayes_lepu.data.matching import check_names, check_width, frame_names, match_columns
from bayes_lepu.data.problems import Problem, ProblemKind, TableError, first_row
from bayes_lepu.data.scaling import NO_WEIGHT
from bayes_lepu.data.sparse_tables import SparseTable, as_sparse
from bayes_lepu.errors import DataError
from bayes_lepu.links import Array
from bayes_lepu.suggestions import did_you_mean, some


class Table(NamedTuple):
    """A table as numbers.

    Attributes
    ----------
    numbers : (n, p) array, or csr_array
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
    aside: Collection[str] = (),
    design: Design | None = None,
    weight: Array = NO_WEIGHT,
) -> Table:
    """Training rows as numbers, and how new rows become numbers in the same way."""
    check_choice("missing", missing, MISSING)
    if design is not None:
        aside = _outside(design, X)
    elif (sparse := as_sparse(X, without=aside)) is not None:
        _refuse_empty(sparse.matrix.shape)
        names = _numbered(sparse.matrix.shape[1]) if sparse.names is None else sparse.names
        check_names(names)
        plain = Encoding(missing=missing, aside=tuple(aside))
        named = sparse.names is not None
        return Table(sparse.matrix, names, named, sparse.index, plain, None, True)
    frame = as_frame(X, without=aside)
    if frame is None:
        values = numeric_array(X)
        names = _numbered(values.shape[1])
        _refuse_empty(values.shape)
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(values.sum()):  # one pass without a temporary settles the usual case
                plain = Encoding(missing=missing)
                return Table(values, names, False, _positions(values), plain, None, False)
        frame = pd.DataFrame(values, columns=list(names))
        return _learn(frame, names, False, missing, (), None, weight)
    _refuse_empty(frame.shape)
    return _learn(frame, frame_names(frame), True, missing, tuple(aside), design, weight)


def _numbered(width: int) -> tuple[str, ...]:
    """Names of the columns of a table that has none."""
    return tuple(f"x{j}" for j in range(width))


def match_sparse(
    table: SparseTable, names: tuple[str, ...], *, named: bool
) -> tuple[Any, pd.Index]:
    """New rows as the columns ``names``, matched by name where both have names."""
    matrix, own, index = table
    _refuse_empty(matrix.shape)
    if named and own is not None:
        order = match_columns(pd.DataFrame([range(len(own))], columns=list(own)), names)
        return matrix[:, order.to_numpy()[0]], index
    check_width(matrix.shape[1], names)
    return matrix, index


def _learn(
    frame: pd.DataFrame,
    names: tuple[str, ...],
    named: bool,
    missing: str,
    aside: tuple[str, ...],
    design: Design | None,
    weight: Array,
) -> Table:
    levels = () if design is None else design.by_level
    read = {
        name: read_cells(frame.iloc[:, j], name, group=name in levels, weight=weight)
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
        problems += [Problem(ProblemKind.MISSING, name, str(k)) for name, k in counts.items() if k]
    if problems:  # the constant ones are otherwise found when the columns are standardised
        problems += [
            Problem(ProblemKind.CONSTANT, name) for name, c in cells.items() if _constant(c)
        ]
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
    weight = weight[kept] if kept is not None and weight.size else weight
    columns = [learn_column(name, found, weight, missing=missing) for name, found in cells.items()]
    index = frame.index if kept is None else frame.index[kept]
    masks = None
    problems += [Problem(ProblemKind.CONSTANT, c.name) for c in columns if not c.names]
    pairs = list(zip(columns, cells.values(), strict=True))
    if problems:
        raise TableError(problems)
    if design is None:
        values, left = _encode(pairs, index, "error")
        assert not left  # training rows have no unseen level, and their gaps are dealt with
        encoded = tuple(name for c in columns for name in c.names)
    else:
        clean, _, _ = _clean(pairs, index, "error")
        flagged = [column.name for column in columns if column.indicator]
        check_names((*names, *map(gap_name, flagged)))
        design, owned = learn_design(design, clean, flagged)
        values, encoded = design.evaluate(clean), design.names
        masks = (np.array(owned[0]), np.array(owned[1]))
    # Of dropped rows the counts stay known, although the columns were learned without them.
    columns = [replace(c, missing=counts[c.name]) if counts[c.name] else c for c in columns]
    plain = design is None and all(c.plain and not c.missing for c in columns)
    encoding = Encoding(
        columns=() if plain else tuple(columns),
        missing=missing,
        aside=aside,
        dropped=0 if kept is None else int((~kept).sum()),
        design=design,
    )
    check_names(encoded)
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
    levels = () if design is None else design.by_level
    wanted = tuple(c.name for c in encoding.columns) or names
    if frame is None:
        array = numeric_array(X, like=wanted) if not encoding.columns else object_array(X, wanted)
        check_width(array.shape[1], wanted)
        with np.errstate(over="ignore", invalid="ignore"):
            if not encoding.columns and np.isfinite(array.sum()):
                return array, _positions(array)
        frame = pd.DataFrame(array, columns=list(wanted))
    elif named:
        _refuse_empty(frame.shape)
        frame = match_columns(frame, wanted)
    else:
        check_width(frame.shape[1], wanted)
    _refuse_empty(frame.shape)
    columns = encoding.columns or tuple(Column(name) for name in names)
    read = [
        read_cells(frame.iloc[:, j], column.name, training=False, group=column.name in levels)
        for j, column in enumerate(columns)
    ]
    cells = [
        found if isinstance(found, Problem) else _like_training(found, column, frame.index)
        for column, found in zip(columns, read, strict=True)
    ]
    problems = [found for found in cells if isinstance(found, Problem)]
    usable = [(c, f) for c, f in zip(columns, cells, strict=True) if isinstance(f, Cells)]
    if design is None:
        values, left = _encode(usable, frame.index, encoding.unseen)
    else:
        clean, new, left = _clean(usable, frame.index, encoding.unseen, groups)
    if problems or left:
        raise TableError([*problems, *left], new_rows=True)
    if design is not None:
        values = _evaluate(design, clean, new, encoding.unseen)
    return values, frame.index


def _like_training(cells: Cells, column: Column, index: pd.Index) -> Cells | Problem:
    """Numbers where the fit has numbers, levels where it has levels."""
    if column.levels is None and cells.levels is not None:
        wrong = np.flatnonzero(pd.to_numeric(pd.Series(cells.levels), errors="coerce").isna())
        if wrong.size:
            where = first_row(cells.numbers == wrong[0], index)
            text = f"{cells.levels[wrong[0]]!r} in {where}"
            return Problem(ProblemKind.TEXT_AMONG_NUMBERS, column.name, text)
        return Problem(ProblemKind.NUMBER_AS_TEXT, column.name, repr(float(cells.levels[0])))
    if column.levels is not None and cells.levels is None:
        found, codes = np.unique(cells.numbers, return_inverse=True)
        gaps = np.isnan(found)
        texts = tuple(level_text(v) for v in found[~gaps])
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
        if column.indicator:
            found[gap_name(column.name)] = cells.missing.astype(float)
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


def _outside(design: Design, X: Any) -> tuple[str, ...]:
    """The columns of X that no formula needs; those a formula needs must be there."""
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


def _positions(values: Array) -> pd.Index:
    return pd.RangeIndex(values.shape[0])


def as_coordinate(index: pd.Index) -> NDArray[Any]:
    """Row labels as xarray and files keep them: numbers as they are, anything else as text."""
    if index.dtype.kind in "iuf":
        return index.to_numpy()
    return np.array([str(row) for row in index])


# More levels than this make more columns than most tables have information for; a table of
# countries (about 200) still passes.
MAX_LEVELS = 200
# Fewer rows than this can all differ by chance in a column of names.
FEWEST_ROWS = 20
DATE = re.compile(r"\d{4}-\d{1,2}-\d{1,2}|\d{1,2}[./]\d{1,2}[./]\d{2,4}")
DECIMAL_COMMA = re.compile(r"[+-]?(\d+|\d{1,3}([. ]\d{3})+),\d+")
IDENTIFIER_NAME = re.compile(
    r"(^|[_\s.-])(id|uuid|guid|index|row|rownum)$|^(id|uuid|guid|unnamed: \d+)([_\s.-]|$)|[a-z]ID$",
    re.IGNORECASE,
)
KINDS_OF_NUMBERS = ("integer", "floating", "boolean", "decimal", "mixed-integer-float")
KINDS_OF_DATES = ("datetime64", "datetime", "date", "time", "period")


def read_cells(
    column: pd.Series,
    name: str,
    *,
    training: bool = True,
    group: bool = False,
    weight: Array | None = None,
) -> Cells | Problem:
    """The cells of one column; of training rows also whether they can be learned from.

    A group has levels, however many and whatever their type. The most frequent level of text, which
    is the reference, counts rows by their weights.
    """
    if group:
        return _read_levels(column, name, training=False)
    if isinstance(column.dtype, pd.CategoricalDtype):
        return _read_levels(column.cat.remove_unused_categories(), name, training=training)
    if isinstance(column.dtype, pd.PeriodDtype) or pd.api.types.is_datetime64_any_dtype(column):
        return Problem(ProblemKind.DATE, name, _example(column))
    if pd.api.types.is_timedelta64_dtype(column):
        return Problem(ProblemKind.DURATION, name, _example(column))
    if pd.api.types.is_complex_dtype(column):
        return Problem(ProblemKind.COMPLEX, name)
    if pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column):
        return _read_numbers(column, name, training=training)
    kind = pd.api.types.infer_dtype(column, skipna=True)
    if column.isna().all():
        return Problem(ProblemKind.EMPTY, name) if training else Cells(np.full(len(column), np.nan))
    if kind in KINDS_OF_NUMBERS:
        # A missing cell of an object column may be None, NaN or pandas.NA.
        return _read_numbers(pd.to_numeric(column.where(column.notna(), np.nan)), name)
    if kind in KINDS_OF_DATES:
        return Problem(ProblemKind.DATE, name, _example(column))
    if kind in ("timedelta", "timedelta64"):
        return Problem(ProblemKind.DURATION, name, _example(column))
    if kind == "complex":
        return Problem(ProblemKind.COMPLEX, name)
    if kind != "string" and not (kind == "mixed-integer" and _only_text_and_numbers(column)):
        return Problem(ProblemKind.OTHER, name, f"for example {column.dropna().iloc[0]!r}")
    return _read_text(column, name, weight, training=training)


def _read_numbers(column: pd.Series, name: str, *, training: bool = False) -> Cells | Problem:
    values = column.to_numpy(dtype=float, na_value=np.nan)
    with np.errstate(over="ignore", invalid="ignore"):
        settled = np.isfinite(values.sum())  # one pass without a temporary in the usual case
    if not settled and (infinite := np.isinf(values)).any():
        return Problem(ProblemKind.INFINITE, name, f"{int(infinite.sum())}")
    if (
        training
        and pd.api.types.is_integer_dtype(column)
        and IDENTIFIER_NAME.search(name)
        and len(column) > FEWEST_ROWS
        and column.is_unique
    ):
        return Problem(ProblemKind.IDENTIFIER, name, f"for example {column.iloc[0]}")
    return Cells(values)


def _read_text(
    column: pd.Series, name: str, weight: Array | None, *, training: bool
) -> Cells | Problem:
    text = column.astype(object).where(column.notna(), None)
    text = text.map(lambda v: (v.strip() or None) if isinstance(v, str) else v, na_action="ignore")
    if training:
        present = text.dropna().astype(str)
        if present.empty:
            return Problem(ProblemKind.EMPTY, name)
        first = present.head(1000)
        numeric = pd.to_numeric(first, errors="coerce").notna()
        commas = first.map(lambda v: DECIMAL_COMMA.fullmatch(v) is not None)
        if commas.any() and (numeric | commas).mean() > 0.5:
            return Problem(ProblemKind.COMMAS, name, f"for example {first[commas].iloc[0]!r}")
        if numeric.mean() > 0.5:  # most cells are numbers, so that is what the column is
            wrong = pd.to_numeric(text, errors="coerce").isna() & text.notna()
            if not wrong.any():
                return Problem(ProblemKind.NUMBER_AS_TEXT, name, f"for example {present.iloc[0]!r}")
            where = first_row(wrong.to_numpy(), column.index)
            return Problem(
                ProblemKind.TEXT_AMONG_NUMBERS, name, f"{text[wrong].iloc[0]!r} in {where}"
            )
        if first.map(lambda v: DATE.match(v) is not None).all():
            return Problem(ProblemKind.DATE, name, f"as text, for example {present.iloc[0]!r}")
    return _read_levels(text, name, weight, training=training)


def _read_levels(
    column: pd.Series, name: str, weight: Array | None = None, *, training: bool
) -> Cells | Problem:
    """Levels as text, so that 1, 1.0 and "1" in another file are the same level."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        codes, found = column.cat.codes.to_numpy(), list(column.cat.categories)
    else:
        codes, unique = pd.factorize(column)
        found = list(unique)
    texts = [level_text(value) for value in found]
    levels = tuple(dict.fromkeys(texts))
    if not levels:
        return Problem(ProblemKind.EMPTY, name) if training else Cells(codes.astype(float), ())
    if len(levels) < len(texts):
        place = {level: k for k, level in enumerate(levels)}
        codes = np.array([place[t] for t in texts] + [-1])[codes]
    if training:
        n = len(column)
        if n > FEWEST_ROWS and len(levels) > n / 2:
            return Problem(ProblemKind.IDENTIFIER, name, f"for example {levels[0]!r}")
        if len(levels) > MAX_LEVELS:
            return Problem(ProblemKind.LEVELS, name, f"{len(levels)} levels in {n} rows")
        if not isinstance(column.dtype, pd.CategoricalDtype):
            codes, levels = _by_frequency(codes, levels, weight)
    return Cells(codes.astype(float), levels)


def _by_frequency(
    codes: Any, levels: tuple[str, ...], weight: Array | None
) -> tuple[Any, tuple[str, ...]]:
    """The most frequent level first, the others in the order of their text."""
    known = codes >= 0
    counted = None if weight is None or not weight.size else weight[known]
    counts = np.bincount(codes[known], counted, minlength=len(levels))
    most = min(levels, key=lambda v: (-counts[levels.index(v)], v))
    order = [most, *sorted(level for level in levels if level != most)]
    place = np.array([order.index(level) for level in levels] + [-1])
    return place[codes], tuple(order)


def level_text(value: Any) -> str:
    """The name of a level that is no text."""
    whole = isinstance(value, float | np.floating) and float(value).is_integer()
    return str(int(value)) if whole else str(value).strip()


def _only_text_and_numbers(column: pd.Series) -> bool:
    return bool(column.dropna().map(lambda v: isinstance(v, str | int | float | np.number)).all())


def _example(column: pd.Series) -> str:
    present = column.dropna()
    return f"for example {present.iloc[0]}" if len(present) else ""
