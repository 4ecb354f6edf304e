"""The cells of one column: numbers, or levels as text; or what is wrong with them."""

import re
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayes_lepu.data.problems import Problem, ProblemKind, first_row
from bayes_lepu.links import Array

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


class Cells(NamedTuple):
    """One column as read: numbers with NaN, or levels as text with codes, -1 where missing."""

    numbers: Array
    levels: tuple[str, ...] | None = None

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Which cells have no value."""
        return np.isnan(self.numbers) if self.levels is None else self.numbers < 0

    @property
    def constant(self) -> bool:
        """Whether all cells with a value have the same."""
        present = self.numbers[~self.missing]
        return bool(present.size) and bool((present == present[0]).all())

    def rows(self, kept: NDArray[np.bool_]) -> "Cells":
        """The cells of some rows without gaps, and the levels that they have."""
        values = self.numbers[kept]
        if self.levels is None:
            return Cells(values)
        used, codes = np.unique(values.astype(np.int64), return_inverse=True)
        return Cells(codes.astype(float), tuple(self.levels[k] for k in used))


def read_cells(
    column: pd.Series,
    name: str,
    *,
    training: bool = True,
    group: bool = False,
    weight: Array | None = None,
) -> Cells | Problem:
    """The cells of one column; of training rows also whether they can be learned from.

    A group has levels, however many and whatever their type. The most frequent level, which
    is the reference, counts rows by their weights.
    """
    if group:
        return _read_levels(column, name, training=False)
    if isinstance(column.dtype, pd.CategoricalDtype):
        return _read_levels(column.cat.remove_unused_categories(), name, weight, training=training)
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
        codes = column.cat.codes.to_numpy()
        texts = [level_text(value) for value in column.cat.categories]
        levels = tuple(dict.fromkeys(texts))
    else:
        codes, unique = pd.factorize(column)
        texts = [level_text(value) for value in unique]
        levels = tuple(sorted(set(texts)))
    if not levels:
        return Problem(ProblemKind.EMPTY, name) if training else Cells(codes.astype(float), ())
    codes = np.array([*(levels.index(t) for t in texts), -1])[codes]
    if training:
        n = len(column)
        if n > FEWEST_ROWS and len(levels) > n / 2:
            return Problem(ProblemKind.IDENTIFIER, name, f"for example {levels[0]!r}")
        if len(levels) > MAX_LEVELS:
            return Problem(ProblemKind.LEVELS, name, f"{len(levels)} levels in {n} rows")
        codes, levels = _most_frequent_first(codes, levels, weight)
    return Cells(codes.astype(float), levels)


def _most_frequent_first(
    codes: Any, levels: tuple[str, ...], weight: Array | None
) -> tuple[Any, tuple[str, ...]]:
    """The most frequent level is the reference; the others keep their order."""
    known = codes >= 0
    counted = None if weight is None or not weight.size else weight[known]
    first = int(np.argmax(np.bincount(codes[known], counted, minlength=len(levels))))
    order = [first, *(k for k in range(len(levels)) if k != first)]
    return np.append(np.argsort(order), -1)[codes], tuple(levels[k] for k in order)


def level_text(value: Any) -> str:
    """The name of a level that is no text."""
    whole = isinstance(value, float | np.floating) and float(value).is_integer()
    return str(int(value)) if whole else str(value).strip()


def _only_text_and_numbers(column: pd.Series) -> bool:
    return bool(column.dropna().map(lambda v: isinstance(v, str | int | float | np.number)).all())


def _example(column: pd.Series) -> str:
    present = column.dropna()
    return f"for example {present.iloc[0]}" if len(present) else ""


def like_training(
    cells: Cells, name: str, levels: tuple[str, ...] | None, index: pd.Index
) -> Cells | Problem:
    """Numbers where the fit has numbers, levels where it has levels."""
    if levels is None and cells.levels is not None:
        wrong = np.flatnonzero(pd.to_numeric(pd.Series(cells.levels), errors="coerce").isna())
        if wrong.size:
            where = first_row(cells.numbers == wrong[0], index)
            text = f"{cells.levels[wrong[0]]!r} in {where}"
            return Problem(ProblemKind.TEXT_AMONG_NUMBERS, name, text)
        return Problem(ProblemKind.NUMBER_AS_TEXT, name, repr(float(cells.levels[0])))
    if levels is not None and cells.levels is None:
        found, codes = np.unique(cells.numbers, return_inverse=True)
        gaps = np.isnan(found)
        texts = tuple(level_text(v) for v in found[~gaps])
        flags = {"0": "False", "1": "True"} if set(levels) <= {"False", "True"} else {}
        return Cells(
            np.where(gaps[codes], -1.0, codes.astype(float)), tuple(flags.get(t, t) for t in texts)
        )
    return cells
