"""The cells of one column: numbers, or levels as text; or what is wrong with them.

A column that was read is a Series of float64, or a categorical one whose levels are text.
"""

import re
from typing import Any

import numpy as np
import pandas as pd

from bayes_lepu.data.problems import Problem, ProblemKind, first_row

# More levels than this make more columns than most tables have information for; a table of
# countries (about 200) still passes.
MAX_LEVELS = 200
# Fewer rows than this can all differ by chance in a column of names, or agree with the labels.
FEWEST_ROWS = 20
DATE = re.compile(r"\d{4}-\d{1,2}-\d{1,2}|\d{1,2}[./]\d{1,2}[./]\d{2,4}")
DECIMAL_COMMA = re.compile(r"[+-]?(\d+|\d{1,3}([. ]\d{3})+),\d+")
IDENTIFIER_NAME = re.compile(
    r"(^|[_\s.-])(id|uuid|guid|index|row|rownum)$|^(id|uuid|guid|unnamed: \d+)([_\s.-]|$)|[a-z]ID$",
    re.IGNORECASE,
)
NUMBERS = ("integer", "floating", "boolean", "decimal", "mixed-integer-float", "empty")
NO_NUMBERS = {  # kinds of cells by `pandas.api.types.infer_dtype`
    **dict.fromkeys(("datetime64", "datetime", "date", "time", "period"), ProblemKind.DATE),
    **dict.fromkeys(("timedelta64", "timedelta"), ProblemKind.DURATION),
    "complex": ProblemKind.COMPLEX,
}


def read_cells(column: pd.Series, name: str, *, by_level: bool = False) -> pd.Series | Problem:
    """The cells of one column; ``by_level`` where even numbers stand for levels."""
    kind = pd.api.types.infer_dtype(column, skipna=True)
    if by_level or kind == "categorical":
        return _levels(column)
    if kind in NUMBERS:
        # A missing cell of an object column may be None, NaN or pandas.NA.
        if column.dtype == object:
            column = pd.to_numeric(column.where(column.notna(), np.nan))
        values = column.to_numpy(dtype=float, na_value=np.nan)
        if infinite := int(np.isinf(values).sum()):
            return Problem(ProblemKind.INFINITE, name, f"{infinite}")
        return pd.Series(values, column.index, copy=False)
    if kind in NO_NUMBERS:
        return Problem(NO_NUMBERS[kind], name, f"for example {column.dropna().iloc[0]}")
    if kind == "string" or (kind == "mixed-integer" and _only_text_and_numbers(column)):
        text = column.astype(object).where(column.notna(), None)
        return _levels(text.map(lambda v: (v.strip() or None) if isinstance(v, str) else v))
    return Problem(ProblemKind.OTHER, name, f"for example {column.dropna().iloc[0]!r}")


def _levels(column: pd.Series) -> pd.Series:
    """Levels as text, so that 1, 1.0 and "1" in another file are the same level."""
    found = column.array if isinstance(column.dtype, pd.CategoricalDtype) else None
    cells = pd.Categorical(column) if found is None else found.remove_unused_categories()
    texts = [level_text(value) for value in cells.categories]
    levels = sorted(set(texts)) if found is None else list(dict.fromkeys(texts))
    values = np.array([*texts, None], dtype=object)[cells.codes]
    return pd.Series(pd.Categorical(values, levels), column.index)


def level_text(value: Any) -> str:
    """The name of a level that is no text."""
    whole = isinstance(value, float | np.floating) and float(value).is_integer()
    return str(int(value)) if whole else str(value).strip()


def _only_text_and_numbers(column: pd.Series) -> bool:
    return bool(column.dropna().map(lambda v: isinstance(v, str | int | float | np.number)).all())


def has_levels(cells: pd.Series) -> bool:
    """Whether a column that was read has levels, not numbers."""
    return isinstance(cells.dtype, pd.CategoricalDtype)


def find_problem(column: pd.Series, cells: pd.Series, name: str) -> Problem | None:
    """Why nothing can be learned from the cells of a column of training rows."""
    n, present = len(column), cells.dropna()
    if present.empty:
        return Problem(ProblemKind.EMPTY, name)
    if not has_levels(cells):
        by_name = IDENTIFIER_NAME.search(name) and pd.api.types.is_integer_dtype(column)
        if by_name and n > FEWEST_ROWS and column.is_unique:
            return Problem(ProblemKind.IDENTIFIER, name, f"for example {column.iloc[0]}")
        return None
    levels = cells.cat.categories
    if not isinstance(column.dtype, pd.CategoricalDtype):
        first = present.head(1000).astype(str)
        numeric = pd.to_numeric(first, errors="coerce").notna()
        commas = first.map(lambda v: DECIMAL_COMMA.fullmatch(v) is not None)
        if commas.any() and (numeric | commas).mean() > 0.5:
            return Problem(ProblemKind.COMMAS, name, f"for example {first[commas].iloc[0]!r}")
        if numeric.mean() > 0.5:  # most cells are numbers, so that is what the column is
            return text_among_numbers(cells, name) or Problem(
                ProblemKind.NUMBER_AS_TEXT, name, f"for example {first.iloc[0]!r}"
            )
        if first.map(lambda v: DATE.match(v) is not None).all():
            return Problem(ProblemKind.DATE, name, f"as text, for example {first.iloc[0]!r}")
    if n > FEWEST_ROWS and len(levels) > n / 2:
        return Problem(ProblemKind.IDENTIFIER, name, f"for example {levels[0]!r}")
    if len(levels) > MAX_LEVELS:
        return Problem(ProblemKind.LEVELS, name, f"{len(levels)} levels in {n} rows")
    return None


def text_among_numbers(cells: pd.Series, name: str) -> Problem | None:
    """The first level that is no number."""
    levels = cells.cat.categories
    words = levels[pd.to_numeric(pd.Series(levels), errors="coerce").isna().to_numpy()]
    wrong = cells.isin(words).to_numpy()
    if not wrong.any():
        return None
    said = f"{cells[wrong].iloc[0]!r} in {first_row(wrong, cells.index)}"
    return Problem(ProblemKind.TEXT_AMONG_NUMBERS, name, said)
