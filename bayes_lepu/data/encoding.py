r"""Encoding of the user's columns as numbers: categories, flags, missing cells, formulas.

A category with levels :math:`v_0, v_1, \dots, v_k` becomes k columns ``name=v_1`` ... ``name=v_k``,
each 1 where the row has that level; :math:`v_0` is the reference, at which all are 0. `learn_table`
learns the encoding from training rows, and `encode_rows` applies it to new rows. Data and saved
fits keep it. Columns of formulas are made by formulaic, those of a table by `pandas.get_dummies`,
because formulaic takes five seconds for a table of 1,000 columns.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayes_lepu.data.formulas import Design, is_group, learn_design
from bayes_lepu.data.frames import Table, check_names, check_table, match_columns, numbers
from bayes_lepu.data.problems import Problem, ProblemKind, TableError, first_row
from bayes_lepu.data.weights import counted_rows
from bayes_lepu.errors import DataError
from bayes_lepu.links import Array
from bayes_lepu.suggestions import did_you_mean, some, unknown

MISSING = ("error", "indicator", "impute")
NO_VALUE = "(missing)"  # the level of a category's missing cells
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
# Kinds of cells by `pandas.api.types.infer_dtype`.
NUMBERS = ("integer", "floating", "boolean", "decimal", "mixed-integer-float", "empty")
DATES = ("datetime64", "datetime", "date", "time", "period")
DURATIONS = ("timedelta64", "timedelta")


def read_cells(column: pd.Series, name: str, *, by_level: bool = False) -> pd.Series | Problem:
    """The cells of one column: float64, or categories whose levels are text.

    ``by_level``: read numbers as levels too.
    """
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
    present = column.dropna()
    if kind in DATES or kind in DURATIONS:
        what = ProblemKind.DATE if kind in DATES else ProblemKind.DURATION
        return Problem(what, name, f"for example {present.iloc[0]}")
    words = present.map(lambda v: isinstance(v, str | int | float | np.number))
    if kind == "string" or (kind == "mixed-integer" and words.all()):
        text = column.astype(object).where(column.notna(), None)
        return _levels(text.map(lambda v: (v.strip() or None) if isinstance(v, str) else v))
    return Problem(ProblemKind.OTHER, name, f"for example {present.iloc[0]!r}")


def _levels(column: pd.Series) -> pd.Series:
    """Levels as text, so that 1, 1.0 and "1" in another file are the same level."""
    cells = pd.Categorical(column).remove_unused_categories()
    texts = [level_text(value) for value in cells.categories]
    levels = list(dict.fromkeys(texts) if has_levels(column) else sorted(set(texts)))
    values = np.array([*texts, None], dtype=object)[cells.codes]
    return pd.Series(pd.Categorical(values, levels), column.index)


def level_text(value: Any) -> str:
    """The name of a level that is no text."""
    whole = isinstance(value, float | np.floating) and float(value).is_integer()
    return str(int(value)) if whole else str(value).strip()


def has_levels(cells: pd.Series) -> bool:
    """Whether a column that was read has levels, not numbers."""
    return isinstance(cells.dtype, pd.CategoricalDtype)


def find_problem(column: pd.Series, cells: pd.Series, name: str) -> Problem | None:
    """Why a column of training rows cannot be used; None if it can."""
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
        commas = first.str.fullmatch(DECIMAL_COMMA)
        if commas.any() and (numeric | commas).mean() > 0.5:
            return Problem(ProblemKind.COMMAS, name, f"for example {first[commas].iloc[0]!r}")
        if numeric.mean() > 0.5:  # most cells are numbers, so that is what the column is
            return text_among_numbers(cells, name) or Problem(
                ProblemKind.NUMBER_AS_TEXT, name, f"for example {first.iloc[0]!r}"
            )
        if first.str.match(DATE).all():
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
    if not (wrong := cells.isin(words).to_numpy()).any():
        return None
    said = f"{cells[wrong].iloc[0]!r} in {first_row(wrong, cells.index)}"
    return Problem(ProblemKind.TEXT_AMONG_NUMBERS, name, said)


def gap_name(column: str) -> str:
    """Name of the column that shows which cells of another one had no value."""
    return f"{column} missing"


@dataclass(frozen=True)
class Column:
    """How one column of the user's table is encoded."""

    name: str
    levels: tuple[str, ...] | None = None  # of a category, the reference first
    fill: float | str | None = None  # stands in for a missing cell; None where that is an error
    indicator: bool = False  # whether a further column shows which cells had no value
    missing: int = 0  # cells among the training rows

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns of numbers."""
        if self.levels is not None:
            return tuple(f"{self.name}={level}" for level in self.levels[1:])
        return (self.name, gap_name(self.name)) if self.indicator else (self.name,)

    @classmethod
    def learn(cls, name: str, cells: pd.Series, weight: Array, missing: str) -> "Column":
        """Learn the encoding from training cells; the reference is the most frequent level."""
        gaps = cells.isna().to_numpy()
        count, filled = int(gaps.sum()), missing in ("indicator", "impute")
        marked = missing == "indicator" and count > 0
        if not has_levels(cells):
            some_there = filled and weight[~gaps].any()
            fill = float(np.average(cells[~gaps], weights=weight[~gaps])) if some_there else None
            return cls(name, fill=fill, indicator=marked, missing=count)
        levels = cells.cat.categories
        counts = np.bincount(cells.cat.codes[~gaps], weight[~gaps], minlength=len(levels))
        first = levels[int(counts.argmax())]
        ordered = (first, *(level for level in levels if level != first))
        if marked:
            return cls(name, (*ordered, NO_VALUE), NO_VALUE, missing=count)
        return cls(name, ordered, first if filled else None, missing=count)

    def read(self, column: pd.Series, *, by_level: bool) -> pd.Series | Problem:
        """The cells of new rows: numbers where the fit has numbers, levels where it has levels."""
        cells = read_cells(column, self.name, by_level=by_level)
        if isinstance(cells, Problem):
            return cells
        if has_levels(cells) == (self.levels is not None):
            gaps = int(cells.isna().sum()) if self.fill is None else 0
            return Problem(ProblemKind.MISSING, self.name, str(gaps)) if gaps else cells
        if self.levels is not None:  # numbers that stand for levels
            flags = {"0": "False", "1": "True"} if {*self.levels} <= {"False", "True"} else {}
            texts = cells.map(level_text, na_action="ignore").replace(flags)
            return self.read(pd.Series(pd.Categorical(texts), cells.index), by_level=True)
        return text_among_numbers(cells, self.name) or Problem(
            ProblemKind.NUMBER_AS_TEXT, self.name, repr(float(cells.dropna().iloc[0]))
        )


@dataclass(frozen=True)
class Encoding:
    """The encoding of a table as columns of numbers."""

    columns: tuple[Column, ...] = ()  # of the user's; empty where all are plain numbers
    missing: str = "error"  # one of `MISSING`
    # Whether the most frequent level stands in for one that no training row had.
    accepts_unseen: bool = False
    aside: tuple[str, ...] = ()  # the user's columns that are no features; new rows may have them
    design: Design | None = None  # the formulas, where the columns come from formulas

    @property
    def groups(self) -> list[tuple[str, tuple[str, ...], tuple[str, ...]]]:
        """Each term with its columns of numbers and the user's columns in it."""
        if self.design is not None:
            return list(self.design.terms)
        return [(c.name, c.names, (c.name,)) for c in self.columns]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns of numbers."""
        return tuple(name for _, names, _ in self.groups for name in names)

    def terms(self, feature_names: tuple[str, ...]) -> dict[str, tuple[int, ...]]:
        """Positions of the columns of numbers that belong to each column of the user's."""
        place = {name: j for j, name in enumerate(feature_names)}
        if not self.columns:
            return {name: (j,) for name, j in place.items()}
        found = {t: tuple(place[n] for n in names if n in place) for t, names, _ in self.groups}
        return {term: places for term, places in found.items() if places}

    def blocks(self, feature_names: tuple[str, ...]) -> dict[str, tuple[int, ...]]:
        """Positions of smooth terms and group intercepts, whose coefficients share a scale."""
        terms, blocks = self.terms(feature_names), self.design.blocks if self.design else ()
        return {term: terms[term] for term in blocks if term in terms}

    def summary(self) -> str:
        """How the table was encoded, in words; empty if it was used unchanged."""
        parts = []
        if self.design is not None:
            whole = zip(self.design.formulas, self.design.groups, strict=True)
            sums = [" + ".join([fixed, *(f"(1 | {g})" for g in own)]) for fixed, own in whole]
            parts.append("formulas " + ", ".join(map(repr, sums)))
        if levels := [f"{c.name} ({len(c.levels)} levels)" for c in self.columns if c.levels]:
            parts.append(f"categories {some(levels)}")
        if gaps := [f"{c.name} ({c.missing})" for c in self.columns if c.missing]:
            treated = {
                "indicator": "filled by the mean, with a column that marks them",
                "impute": "filled by the mean or the most frequent level",
            }
            parts.append(f"missing cells {some(gaps)}: {treated[self.missing]}")
        return "; ".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """A value that can be written as JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> "Encoding":
        """The encoding from what `to_dict` gave."""

        def deep(value: Any) -> Any:  # JSON made lists of tuples
            return tuple(map(deep, value)) if isinstance(value, list) else value

        def fields(part: Mapping[str, Any]) -> dict[str, Any]:
            return {name: deep(value) for name, value in part.items()}

        columns = tuple(Column(**fields(column)) for column in stored["columns"])
        design = stored["design"] and Design(**fields(stored["design"]))
        if design and not design.variables:  # which reads the formulas: hostile ones end here
            raise ValueError("its formulas name no column")
        return cls(**fields(stored) | {"columns": columns, "design": design})


def learn_table(
    table: Table,
    *,
    missing: str,
    aside: tuple[str, ...],
    design: Design | None,
    weight: Array,
) -> tuple[Any, Encoding]:
    """Training rows as numbers, and the encoding for new rows."""
    if missing not in MISSING:
        raise DataError(unknown("missing", missing, MISSING))
    if design is not None and missing == "indicator":
        raise DataError(
            "missing='indicator' adds columns, and formulas name theirs; missing='impute' is "
            "expected. Or add the column to the table: df.assign(no_age=df['age'].isna() * 1)."
        )
    check_table(table)
    encoding = Encoding(missing=missing, aside=aside, design=design)
    plain = table.cells if table.is_sparse else None if design else _floats(table)
    if plain is not None:
        return plain, encoding
    cells = _training_cells(table, design, missing)
    columns = tuple(Column.learn(name, own, weight, missing) for name, own in cells.items())
    if problems := [Problem(ProblemKind.CONSTANT, c.name) for c in columns if not c.names]:
        raise TableError(problems)
    frame = _clean(columns, cells)[0]
    if design is not None:
        design = learn_design(design, frame.iloc[counted_rows(weight, 1_000_000)])
    encoding = replace(encoding, columns=columns, design=design)
    check_names(encoding.names)
    values = _numbers(frame, encoding)
    if design is None and not any(c.levels or c.missing or c.fill is not None for c in columns):
        encoding = replace(encoding, columns=())
    return values, encoding


def _training_cells(table: Table, design: Design | None, missing: str) -> dict[str, pd.Series]:
    """The cells of every column, or an error that lists all problems."""
    by_level = () if design is None else design.by_level
    cells: dict[str, pd.Series] = {}
    problems: list[Problem] = []
    for name, column in table.cells.items():
        found = read_cells(column, name, by_level=name in by_level)
        if isinstance(found, pd.Series) and name not in by_level:
            found = find_problem(column, found, name) or found
        if isinstance(found, Problem):
            problems.append(found)
        else:
            cells[name] = found
    complete = np.ones(len(table.index), dtype=bool)
    for name, found in cells.items():
        gaps = found.isna().to_numpy()
        complete &= ~gaps
        if gaps.any() and missing == "error":
            problems.append(Problem(ProblemKind.MISSING, name, str(int(gaps.sum()))))
    if problems:  # the constant ones are otherwise found when the columns are standardised
        for name, found in cells.items():
            present = found.dropna().to_numpy()
            if len(present) and (present == present[0]).all():
                problems.append(Problem(ProblemKind.CONSTANT, name))
        raise TableError(problems, facts={"kept": int(complete.sum()), "rows": len(complete)})
    return cells


def _floats(table: Table) -> Array | None:
    """The values of a table of floats without gaps; None where every column has to be read."""
    if not table.named:
        numbers(table.cells.to_numpy())
    if {*table.cells.dtypes} != {np.dtype(float)}:
        return None
    values = table.cells.to_numpy()
    with np.errstate(over="ignore", invalid="ignore"):
        # One pass without a temporary is enough in the usual case.
        return values if np.isfinite(values.sum()) else None


def encode_rows(table: Table, encoding: Encoding, names: tuple[str, ...], *, named: bool) -> Array:
    """New rows as the columns of numbers ``names``, matched by name where names are known."""
    if table.is_sparse:
        raise DataError(
            "X is a sparse matrix, and the columns of this fit are centred or made from others; "
            "dense rows are expected. Use X.toarray()."
        )
    design, columns = encoding.design, encoding.columns or tuple(map(Column, names))
    if named:
        table = table.without(encoding.aside)
    if design is not None and table.named:  # a formula takes what it needs
        table = table.without({*table.names} - {*design.variables})
    frame = match_columns(table, [c.name for c in columns], named=named)
    if not encoding.columns and (plain := _floats(table._replace(cells=frame))) is not None:
        return plain
    by_level = () if design is None else design.by_level
    cells, problems = {}, []
    for j, column in enumerate(columns):
        found = column.read(frame.iloc[:, j], by_level=column.name in by_level)
        if isinstance(found, Problem):
            problems.append(found)
        else:
            cells[column.name] = found
    clean, new = _clean([c for c in columns if c.name in cells], cells)
    if not encoding.accepts_unseen:  # an unseen level of a group is an average group
        alone = {v for term, _, used in encoding.groups if not is_group(term) for v in used}
        for name in (name for name in new if name in alone):
            levels = sorted({str(level) for level in cells[name][new[name]]})
            said = f"{', '.join(map(repr, levels[:5]))} in {first_row(new[name], frame.index)}"
            problems.append(Problem(ProblemKind.UNSEEN, name, said))
    if problems:
        raise TableError(problems, new_rows=True)
    return _numbers(clean, encoding, new) if encoding.columns else clean.to_numpy(dtype=float)


def _clean(
    columns: Sequence[Column], cells: Mapping[str, pd.Series]
) -> tuple[pd.DataFrame, dict[str, NDArray[np.bool_]]]:
    """The columns with missing cells filled, and for each the rows with unseen levels.

    An unseen level becomes the reference.
    """
    found, new = {}, {}
    for column in columns:
        own = cells[column.name]
        if column.levels is None:
            found[column.name] = own if column.fill is None else own.fillna(column.fill)
        else:
            filled = own.astype(object).where(own.notna(), column.fill)
            codes = pd.Index(column.levels).get_indexer(filled)
            if (codes < 0).any():
                new[column.name] = codes < 0
            levels = pd.Categorical.from_codes(np.maximum(codes, 0), list(column.levels))
            found[column.name] = pd.Series(levels, own.index)
        if column.indicator:
            found[gap_name(column.name)] = own.isna().astype(float)
    return pd.DataFrame(found, copy=False), new


def _numbers(
    frame: pd.DataFrame, encoding: Encoding, new: Mapping[str, NDArray[np.bool_]] | None = None
) -> Array:
    """Encode columns without missing cells; ``new`` are the rows with unseen levels."""
    names, new = list(encoding.names), new or {}
    if encoding.design is not None:
        frame = encoding.design.evaluate(frame)
    elif any(c.levels for c in encoding.columns):
        frame = pd.get_dummies(frame, drop_first=True, prefix_sep="=", dtype=float)
    values = frame.loc[:, names].to_numpy(dtype=float, copy=bool(new))
    for term, own, variables in encoding.groups if new else ():
        if is_group(term) and variables[0] in new:
            values[np.ix_(new[variables[0]], [names.index(name) for name in own])] = 0.0
    return values


def column_places(names: Sequence[str]) -> dict[Any, int]:
    """Positions of columns by name and by number (a label if labels are numbers, else a place)."""
    labels = {int(name): j for j, name in enumerate(names) if name.isdecimal()}
    return {name: j for j, name in enumerate(names)} | (labels or {j: j for j in range(len(names))})


def read_mask(
    option: str, columns: Any, encoding: Encoding, names: tuple[str, ...], table: Table
) -> NDArray[np.bool_]:
    """Mask of the columns in an option such as ``class_features``; all columns by default.

    A category can be given by its own name, or one of its levels by ``country=DE``.
    """
    mask = np.zeros(len(names), dtype=bool)
    if encoding.design is not None:
        return np.isin(names, encoding.design.owned[option == "selection_features"])
    if columns is None:
        return ~mask
    if isinstance(columns, str) or not isinstance(columns, Iterable):
        raise DataError(
            f"{option}={columns!r} is a single value; pass a list, [{columns!r}], or a formula, "
            f"'~ {columns}'."
        )
    known = encoding.terms(names)
    position: dict[Any, tuple[int, ...]] = {name: (j,) for j, name in enumerate(names)} | known
    for key, j in column_places(table.names).items():
        if table.names[j] in known:
            position[key] = known[table.names[j]]
    for column in columns:
        if isinstance(column, bool | np.bool_):
            raise DataError(
                f"{option} holds {column!r}; names or positions of columns are expected. From a "
                "boolean mask: X.columns[mask], or np.flatnonzero(mask) for an array."
            )
        if column not in position:
            raise DataError(
                f"{option} names {column!r}, which is not a column of X."
                f"{did_you_mean(column, known)} Columns: {some(tuple(known))}."
                + ("" if table.named else " Name them by pd.DataFrame(X, columns=[...]).")
            )
        mask[list(position[column])] = True
    return mask
