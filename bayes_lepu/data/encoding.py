r"""How the user's columns become columns of numbers: categories, flags, missing cells, formulas.

A category with levels :math:`v_0, v_1, \dots, v_k` becomes k columns ``name=v_1`` ... ``name=v_k``,
each 1 where the row has that level; :math:`v_0` is the reference, at which all are 0. `learn_table`
learns the encoding from training rows; it travels with data and saved fit, and `encode_rows`
applies it to new rows as it is.

Columns of formulas are made by formulaic (`formulas`), those of a table by `pandas.get_dummies`:
formulaic takes five seconds for a table of 1,000 columns, and more than one for a new row of it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayes_lepu.data.cells import (
    find_problem,
    has_levels,
    level_text,
    read_cells,
    text_among_numbers,
)
from bayes_lepu.data.formulas import Design, gap_name, is_group, learn_design
from bayes_lepu.data.frames import Table, check_names, match_columns, numbers, refuse_empty
from bayes_lepu.data.problems import Problem, ProblemKind, TableError, first_row
from bayes_lepu.data.weights import counted_rows
from bayes_lepu.errors import DataError
from bayes_lepu.links import Array
from bayes_lepu.suggestions import did_you_mean, some, unknown

MISSING = ("error", "drop", "indicator", "impute")
UNSEEN = ("error", "average", "reference")
NO_VALUE = "(missing)"  # the level of a category's missing cells


@dataclass(frozen=True)
class Column:
    """How one column of the user's is read, before it becomes columns of numbers.

    Attributes
    ----------
    name : str
    levels : tuple of str or None
        Levels of a category, the reference first; None for numbers.
    fill : float, str or None
        What stands in for a missing cell; None where a missing cell is an error.
    indicator : bool
        Whether a further column says which cells had no value.
    missing : int
        Missing cells among the training rows.
    """

    name: str
    levels: tuple[str, ...] | None = None
    fill: float | str | None = None
    indicator: bool = False
    missing: int = 0

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns of numbers."""
        if self.levels is not None:
            return tuple(f"{self.name}={level}" for level in self.levels[1:])
        return (self.name, gap_name(self.name)) if self.indicator else (self.name,)

    def read(self, column: pd.Series, *, by_level: bool) -> pd.Series | Problem:
        """The cells of new rows: numbers where the fit has numbers, levels where it has levels."""
        cells = read_cells(column, self.name, by_level=by_level)
        if isinstance(cells, Problem) or has_levels(cells) == (self.levels is not None):
            return cells
        if self.levels is not None:  # numbers that stand for levels
            flags = {"0": "False", "1": "True"} if {*self.levels} <= {"False", "True"} else {}
            texts = cells.map(level_text, na_action="ignore")
            return pd.Series(pd.Categorical(texts.replace(flags)), cells.index)
        return text_among_numbers(cells, self.name) or Problem(
            ProblemKind.NUMBER_AS_TEXT, self.name, repr(float(cells.dropna().iloc[0]))
        )

    def clean(self, cells: pd.Series) -> tuple[pd.Series, NDArray[np.bool_]]:
        """The cells with missing ones filled, and which levels are unseen: the reference there."""
        if self.levels is None:
            filled = cells if self.fill is None else cells.fillna(self.fill)
            return filled, np.zeros(len(cells), dtype=bool)
        filled = cells.astype(object).where(cells.notna(), self.fill)
        codes = pd.Index(self.levels).get_indexer(filled)
        levels = pd.Categorical.from_codes(np.maximum(codes, 0), list(self.levels))
        return pd.Series(levels, cells.index), codes < 0


@dataclass(frozen=True)
class Encoding:
    """How a table becomes columns of numbers; without ``columns``, as it is.

    Attributes
    ----------
    columns : tuple of Column
        One per column of the user's; empty where every column is a plain number.
    means : tuple of float
        Means of the columns of numbers over the training rows, which stand in for unseen levels;
        empty where no column has levels.
    missing : {"error", "drop", "indicator", "impute"}
        What is done about missing cells.
    unseen : {"error", "average", "reference"}
        What stands in for a level that no training row had.
    aside : tuple of str
        Columns of the user's table that are no features: labels, audits, those excluded. New rows
        may bring them along.
    dropped : int
        Training rows left out for their missing cells.
    design : Design or None
        The formulas and what they learned, where the columns come from formulas.
    """

    columns: tuple[Column, ...] = ()
    means: tuple[float, ...] = ()
    missing: str = "error"
    unseen: str = "error"
    aside: tuple[str, ...] = ()
    dropped: int = 0
    design: Design | None = None

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
        if not self.columns:
            return {name: (j,) for j, name in enumerate(feature_names)}
        place = {name: j for j, name in enumerate(feature_names)}
        found = {t: tuple(place[n] for n in names if n in place) for t, names, _ in self.groups}
        return {term: places for term, places in found.items() if places}

    def unscaled(self, feature_names: tuple[str, ...]) -> list[int]:
        """Columns of terms whose coefficients share a scale, and so keep their units."""
        if self.design is None:
            return []
        terms = self.terms(feature_names)
        return [j for term in self.design.blocks for j in terms.get(term, ())]

    @property
    def missing_cells(self) -> dict[str, int]:
        """Missing cells among the training rows, for the columns that had any."""
        return {c.name: c.missing for c in self.columns if c.missing}

    def summary(self) -> str:
        """What was done to the table, in words; nothing where it was taken as it is."""
        parts = []
        if self.design is not None:
            parts.append("formulas " + ", ".join(repr(f) for f in self.design.formulas))
        categories = [f"{c.name} ({len(c.levels)} levels)" for c in self.columns if c.levels]
        if categories:
            parts.append(f"categories {some(categories)}")
        if gaps := [f"{name} ({k})" for name, k in self.missing_cells.items()]:
            treated = {
                "indicator": "filled by the mean, with a column that says so",
                "impute": "filled by the mean or the most frequent level",
                "drop": f"{self.dropped} rows left out",
            }
            parts.append(f"missing cells {some(gaps)}: {treated[self.missing]}")
        return "; ".join(parts)

    def accept_unseen(self, how: str) -> "Encoding":
        """The same encoding with another choice for levels that no training row had."""
        return replace(self, unseen=check_choice("unseen", how, UNSEEN))

    def to_dict(self) -> dict[str, Any]:
        """A value that JSON knows."""
        return asdict(self)

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> "Encoding":
        """The encoding from what `to_dict` gave."""
        columns = tuple(Column(**_tuples(column)) for column in stored["columns"])
        design = stored["design"] and Design(**_tuples(stored["design"]))
        if design and not design.variables:  # which reads the formulas: hostile ones end here
            raise ValueError("its formulas name no column")
        return cls(**_tuples(stored) | {"columns": columns, "design": design})


def learn_column(name: str, cells: pd.Series, weight: Array, *, missing: str) -> Column:
    """How one column is read, from its training cells.

    The reference is the most frequent level: priors of slopes depend on it.
    """
    gaps = cells.isna().to_numpy()
    count, filled = int(gaps.sum()), missing in ("indicator", "impute")
    if not has_levels(cells):
        fill = None
        if filled and weight[~gaps].any():
            fill = float(np.average(cells[~gaps], weights=weight[~gaps]))
        return Column(
            name, fill=fill, indicator=missing == "indicator" and count > 0, missing=count
        )
    levels = cells.cat.categories
    counts = np.bincount(cells.cat.codes[~gaps], weight[~gaps], minlength=len(levels))
    first = levels[int(counts.argmax())]
    ordered = (first, *(level for level in levels if level != first))
    if missing == "indicator" and count:
        return Column(name, (*ordered, NO_VALUE), NO_VALUE, missing=count)
    return Column(name, ordered, first if filled else None, missing=count)


def check_choice(option: str, value: str, known: tuple[str, ...]) -> str:
    """The value, or an error that lists what is known."""
    if value not in known:
        raise DataError(unknown(option, value, known))
    return value


def _tuples(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Fields as they were before JSON made lists of them."""

    def deep(value: Any) -> Any:
        return tuple(map(deep, value)) if isinstance(value, list) else value

    return {name: deep(value) for name, value in stored.items()}


def learn_table(
    table: Table,
    *,
    missing: str,
    aside: tuple[str, ...],
    design: Design | None,
    weight: Array,
) -> tuple[Any, Encoding, NDArray[np.bool_] | None]:
    """Training rows as numbers, how new rows become numbers, and which rows were kept.

    All rows are kept where there is no mask of them.
    """
    check_choice("missing", missing, MISSING)
    refuse_empty(table)
    check_names(table.names)
    if table.is_sparse:
        return table.cells, Encoding(missing=missing, aside=aside), None
    if not table.named:
        numbers(table.cells.to_numpy())
    if design is None and (plain := _floats(table.cells)) is not None:
        return plain, Encoding(missing=missing, aside=aside), None
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
    counts = {name: int(found.isna().sum()) for name, found in cells.items()}
    complete = np.ones(len(table.index), dtype=bool)
    for name in (name for name, count in counts.items() if count):
        complete &= cells[name].notna().to_numpy()
    if missing == "error":
        problems += [Problem(ProblemKind.MISSING, name, str(k)) for name, k in counts.items() if k]
    if problems:  # the constant ones are otherwise found when the columns are standardised
        for name, found in cells.items():
            present = found.dropna()
            if len(present) and (present == present.iloc[0]).all():
                problems.append(Problem(ProblemKind.CONSTANT, name))
        raise TableError(problems, facts={"kept": int(complete.sum()), "rows": len(complete)})
    kept = None
    if missing == "drop" and not complete.all():
        if not complete.any():
            raise DataError(
                f"Every one of the {len(complete)} rows has a missing cell, so missing='drop' "
                f"leaves none. Columns: {some([f'{n} ({k})' for n, k in counts.items() if k])}. "
                "Use missing='indicator' or 'impute', or leave out the emptiest columns."
            )
        kept = complete
        weight = weight[kept]
        cells = {name: read_cells(found[kept], name) for name, found in cells.items()}
    columns = [learn_column(name, found, weight, missing=missing) for name, found in cells.items()]
    if problems := [Problem(ProblemKind.CONSTANT, c.name) for c in columns if not c.names]:
        raise TableError(problems)
    check_names([*table.names, *(gap_name(c.name) for c in columns if c.indicator)])
    frame = _clean(columns, cells)[0]
    if design is not None:
        counted = (
            frame.iloc[counted_rows(weight, 1_000_000)]
            if weight.any() and (weight != 1).any()
            else None
        )
        design = learn_design(design, frame, [c.name for c in columns if c.indicator], counted)
    # Of dropped rows the counts stay known, although the columns were learned without them.
    columns = [replace(c, missing=counts[c.name]) for c in columns]
    encoding = Encoding(
        columns=tuple(columns),
        missing=missing,
        aside=aside,
        dropped=0 if kept is None else int((~kept).sum()),
        design=design,
    )
    check_names(encoding.names)
    values = _numbers(frame, encoding)
    if any(c.levels for c in columns):
        with np.errstate(over="ignore", invalid="ignore"):
            means = weight @ values / max(float(weight.sum()), 1e-300)
        encoding = replace(encoding, means=tuple(means.tolist()))
    elif design is None and not any(c.missing or c.fill is not None for c in columns):
        encoding = replace(encoding, columns=())
    return values, encoding, kept


def _floats(frame: pd.DataFrame) -> Array | None:
    """The values of a table of floats without gaps; None where every column has to be read."""
    if {*frame.dtypes} != {np.dtype(float)}:
        return None
    values = frame.to_numpy()
    with np.errstate(over="ignore", invalid="ignore"):
        # One pass without a temporary settles the usual case.
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
    if not encoding.columns:
        if not table.named:
            numbers(frame.to_numpy())
        if (plain := _floats(frame)) is not None:
            return plain
    by_level = () if design is None else design.by_level
    cells, problems = {}, []
    for j, column in enumerate(columns):
        found = column.read(frame.iloc[:, j], by_level=column.name in by_level)
        if isinstance(found, Problem):
            problems.append(found)
        else:
            cells[column.name] = found
            gaps = int(found.isna().sum())
            if gaps and column.fill is None:
                problems.append(Problem(ProblemKind.MISSING, column.name, str(gaps)))
    usable = [c for c in columns if c.name in cells]
    clean, new = _clean(usable, cells)
    if encoding.unseen == "error":  # an unseen level of a group is an average group
        alone = {
            v for term, _, variables in encoding.groups if not is_group(term) for v in variables
        }
        wrong = {p.column for p in problems}
        for name in (name for name in new if name in alone - wrong):
            levels = sorted({str(level) for level in cells[name][new[name]]})
            said = f"{', '.join(map(repr, levels[:5]))} in {first_row(new[name], frame.index)}"
            problems.append(Problem(ProblemKind.UNSEEN, name, said))
    if problems:
        raise TableError(problems, new_rows=True)
    return _numbers(clean, encoding, new) if encoding.columns else clean.to_numpy(dtype=float)


def _clean(
    columns: Sequence[Column], cells: Mapping[str, pd.Series]
) -> tuple[pd.DataFrame, dict[str, NDArray[np.bool_]]]:
    """The columns without missing cells, and the rows with unseen levels of each."""
    found, new = {}, {}
    for column in columns:
        own = cells[column.name]
        found[column.name], unseen = column.clean(own)
        if unseen.any():
            new[column.name] = unseen
        if column.indicator:
            found[gap_name(column.name)] = own.isna().astype(float)
    return pd.DataFrame(found, copy=False), new


def _numbers(
    frame: pd.DataFrame, encoding: Encoding, new: Mapping[str, NDArray[np.bool_]] | None = None
) -> Array:
    """The columns of numbers of clean columns, in some rows of which levels are ``new``."""
    names = list(encoding.names)
    if encoding.design is not None:
        made = encoding.design.evaluate(frame)
    elif any(c.levels for c in encoding.columns):
        made = pd.get_dummies(frame, drop_first=True, prefix_sep="=", dtype=float)
    else:
        made = frame
    values = made.loc[:, names].to_numpy(dtype=float, copy=bool(new))
    for term, own, variables in encoding.groups if new else ():
        rows = [new[v] for v in variables if new and v in new]
        if rows and (is_group(term) or encoding.unseen == "average"):
            at = [names.index(name) for name in own]
            stands_in = 0.0 if is_group(term) else [encoding.means[j] for j in at]
            values[np.ix_(np.any(rows, axis=0), at)] = stands_in
    return values


def columns_of_formulas(design: Design, table: Table) -> tuple[str, ...]:
    """The columns of X that no formula needs; those a formula needs must be there."""
    if not table.named:
        raise DataError("Formulas name columns, but X has none. Pass a DataFrame.")
    for variable in design.variables:
        if variable not in table.names:
            raise DataError(
                f"A formula names {variable!r}, which is not a column of X."
                f"{did_you_mean(variable, table.names)} Columns: {some(table.names, most=12)}."
            )
    return tuple(name for name in table.names if name not in design.variables)


def column_places(names: Sequence[str]) -> dict[Any, int]:
    """Positions of the columns by name and by number, whichever way they are asked for.

    In a table whose columns are labelled by numbers a number is a label, elsewhere a position.
    """
    labels = {int(name): j for j, name in enumerate(names) if name.isdecimal()}
    return {name: j for j, name in enumerate(names)} | (labels or {j: j for j in range(len(names))})


def read_mask(
    option: str, columns: Any, encoding: Encoding, names: tuple[str, ...], table: Table
) -> NDArray[np.bool_]:
    """Which columns an option such as ``class_features`` names; all of them by default.

    A category is asked for by its own name or by that of one level (``country=DE``).
    """
    mask = np.zeros(len(names), dtype=bool)
    if encoding.design is not None:
        owned = encoding.design.owned[option == "selection_features"]
        return np.isin(names, owned)
    if columns is None:
        return ~mask
    if isinstance(columns, str) or not isinstance(columns, Iterable):
        raise DataError(
            f"{option}={columns!r} is a single value; pass a list, [{columns!r}], or a formula, "
            f"'~ {columns}'."
        )
    known = encoding.terms(names)
    position: dict[Any, tuple[int, ...]] = {name: (j,) for j, name in enumerate(names)} | known
    by_number = column_places(table.names)
    position |= {
        key: known[table.names[j]] for key, j in by_number.items() if table.names[j] in known
    }
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
    if not mask.any():
        raise DataError(
            f"{option} is empty. Name at least one column, or use model='scar' for a constant "
            "propensity."
        )
    return mask
