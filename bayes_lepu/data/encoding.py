r"""How the user's columns become columns of numbers: categories, flags, missing cells, formulas.

A category with levels :math:`v_0, v_1, \dots, v_k` becomes k columns ``name=v_1`` ... ``name=v_k``,
each 1 where the row has that level; :math:`v_0` is the reference, at which all are 0. `read_table`
learns the encoding from training rows; it travels with data and saved fit, and `encode_rows`
applies it to new rows as it is.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayes_lepu.data.cells import Cells, like_training, read_cells
from bayes_lepu.data.formulas import Design, gap_name, learn_design
from bayes_lepu.data.frames import (
    SparseTable,
    as_frame,
    as_sparse,
    check_names,
    check_width,
    column_names,
    frame_names,
    match_columns,
    numeric_array,
    object_array,
)
from bayes_lepu.data.problems import Problem, ProblemKind, TableError, first_row
from bayes_lepu.data.scaling import NO_WEIGHT
from bayes_lepu.errors import DataError
from bayes_lepu.links import Array
from bayes_lepu.suggestions import did_you_mean, some, unknown

MISSING = ("error", "drop", "indicator", "impute")
UNSEEN = ("error", "average", "reference")
NO_VALUE = "(missing)"  # the level of a category's missing cells


@dataclass(frozen=True)
class Column:
    """How one column of the user's becomes columns of numbers.

    Attributes
    ----------
    name : str
    levels : tuple of str or None
        Levels of a category, the reference first; None for numbers.
    shares : tuple of float
        Share of the training rows at each level.
    fill : float, str or None
        What stands in for a missing cell; None where a missing cell is an error.
    indicator : bool
        Whether a further column says which cells had no value.
    missing : int
        Missing cells among the training rows.
    """

    name: str
    levels: tuple[str, ...] | None = None
    shares: tuple[float, ...] = ()
    fill: float | str | None = None
    indicator: bool = False
    missing: int = 0

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns of numbers."""
        if self.levels is not None:
            return tuple(f"{self.name}={level}" for level in self.levels[1:])
        return (self.name, gap_name(self.name)) if self.indicator else (self.name,)

    @property
    def plain(self) -> bool:
        """Whether the column is taken as it is."""
        return self.levels is None and self.fill is None

    def clean(
        self, cells: Cells, index: pd.Index, unseen: str
    ) -> tuple[Array, NDArray[np.bool_], list[Problem]]:
        """Numbers or codes of levels, in which rows the level is unseen, and problems.

        An unseen level has the code -1.
        """
        gaps = cells.missing
        if gaps.any() and self.fill is None:
            return (
                cells.numbers,
                gaps,
                [Problem(ProblemKind.MISSING, self.name, str(int(gaps.sum())))],
            )
        if self.levels is None:
            filled = np.where(gaps, float(self.fill or 0.0), cells.numbers)
            return filled, np.zeros(gaps.size, dtype=bool), []
        place = {level: k for k, level in enumerate(self.levels)}
        # The code -1 of a missing cell is the last place.
        stands_in = -1 if self.fill is None else place[str(self.fill)]
        known = np.array([*(place.get(level, -1) for level in cells.levels or ()), stands_in])
        codes = known[cells.numbers.astype(np.int64)]
        new = codes < 0
        if unseen != "error" or not new.any():
            return codes, new, []
        got = sorted({(cells.levels or ())[int(c)] for c in np.unique(cells.numbers[new])})
        said = f"{', '.join(map(repr, got[:5]))} in {first_row(new, index)}"
        return codes, new, [Problem(ProblemKind.UNSEEN, self.name, said)]

    def columns(self, values: Array, gaps: NDArray[np.bool_], unseen: str) -> list[Array]:
        """The columns of numbers of a list of columns, from what `clean` gave."""
        if self.levels is None:
            return [values, gaps.astype(float)] if self.indicator else [values]
        out = [(values == k).astype(float) for k in range(1, len(self.levels))]
        for column, share in zip(out, self.shares[1:], strict=True):
            if unseen == "average":
                column[values < 0] = share
        return out


@dataclass(frozen=True)
class Encoding:
    """How a table becomes columns of numbers; without ``columns``, as it is.

    Attributes
    ----------
    columns : tuple of Column
        One per column of the user's; empty where every column is a plain number.
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
    missing: str = "error"
    unseen: str = "error"
    aside: tuple[str, ...] = ()
    dropped: int = 0
    design: Design | None = None

    def terms(self, feature_names: tuple[str, ...]) -> dict[str, tuple[int, ...]]:
        """Positions of the columns of numbers that belong to each column of the user's."""
        if not self.columns:
            return {name: (j,) for j, name in enumerate(feature_names)}
        place = {name: j for j, name in enumerate(feature_names)}
        groups = [(c.name, c.names) for c in self.columns]
        if self.design is not None:
            groups = [(term, names) for term, names, _ in self.design.terms]
        found = {term: tuple(place[n] for n in names if n in place) for term, names in groups}
        return {name: places for name, places in found.items() if places}

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
        columns = tuple(Column(**_tuples(c, Column)) for c in stored["columns"])
        design = stored["design"] and Design(
            **{name: _deep(value) for name, value in stored["design"].items()}
        )
        if design and not design.variables:  # which reads the formulas: hostile ones end here
            raise ValueError("its formulas name no column")
        return cls(**{**_tuples(stored, cls), "columns": columns, "design": design})


def learn_column(name: str, cells: Cells, weight: Array, *, missing: str) -> Column:
    """The encoding of one column from its training cells.

    The reference is the first level, the most frequent one: priors of slopes depend on it.
    """
    gaps = cells.missing
    count = int(gaps.sum())
    filled = missing in ("indicator", "impute")
    counted = weight if weight.size else np.ones(gaps.size)
    if cells.levels is None:
        fill = None
        if filled and counted[~gaps].any():
            fill = float(np.average(cells.numbers[~gaps], weights=counted[~gaps]))
        return Column(
            name, fill=fill, indicator=missing == "indicator" and count > 0, missing=count
        )
    levels, codes = cells.levels, cells.numbers.astype(np.int64)
    counts = np.bincount(codes[~gaps], counted[~gaps], minlength=len(levels))
    rows = counted.sum() if missing == "indicator" else max(counts.sum(), 1e-300)
    shares = [float(k / rows) for k in counts]
    fill_level = levels[int(counts.argmax())] if filled else None
    if missing == "indicator" and count:
        levels, fill_level = (*levels, NO_VALUE), NO_VALUE
        shares.append(float(counted[gaps].sum() / rows))
    return Column(name, levels, tuple(shares), fill=fill_level, missing=count)


def check_choice(option: str, value: str, known: tuple[str, ...]) -> str:
    """The value, or an error that lists what is known."""
    if value not in known:
        raise DataError(unknown(option, value, known))
    return value


def _deep(value: Any) -> Any:
    return tuple(_deep(v) for v in value) if isinstance(value, list) else value


def _tuples(stored: Mapping[str, Any], kind: type) -> dict[str, Any]:
    return {f.name: tuple(v) if isinstance(v := stored[f.name], list) else v for f in fields(kind)}


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
        problems += [Problem(ProblemKind.CONSTANT, name) for name, c in cells.items() if c.constant]
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
        cells = {name: found.rows(kept) for name, found in cells.items()}
    weight = weight[kept] if kept is not None and weight.size else weight
    columns = [learn_column(name, found, weight, missing=missing) for name, found in cells.items()]
    index = frame.index if kept is None else frame.index[kept]
    masks = None
    problems += [Problem(ProblemKind.CONSTANT, c.name) for c in columns if not c.names]
    if problems:
        raise TableError(problems)
    pairs = list(zip(columns, cells.values(), strict=True))
    if design is None:
        encoded = tuple(name for c in columns for name in c.names)
    else:
        flagged = [column.name for column in columns if column.indicator]
        check_names((*names, *map(gap_name, flagged)))
        design, owned = learn_design(design, _clean(pairs, index, "error")[0], flagged)
        encoded = design.names
        masks = (np.array(owned[0]), np.array(owned[1]))
    values = _encode(pairs, index, "error", design)
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


def encode_rows(
    X: Any, encoding: Encoding, names: tuple[str, ...], *, named: bool
) -> tuple[Array, pd.Index]:
    """New rows as the columns of numbers ``names``, matched by name where names are known."""
    frame = as_frame(X, without=encoding.aside if named else ())
    design = encoding.design
    if design is not None and frame is not None:  # a formula takes what it needs
        frame = frame[[c for c in frame.columns if str(c) in design.variables]]
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
    usable: list[tuple[Column, Cells]] = []
    problems: list[Problem] = []
    for j, column in enumerate(encoding.columns or map(Column, names)):
        group = column.name in levels
        found = read_cells(frame.iloc[:, j], column.name, training=False, group=group)
        if isinstance(found, Cells):
            found = like_training(found, column.name, column.levels, frame.index)
        if isinstance(found, Cells):
            usable.append((column, found))
        else:
            problems.append(found)
    return _encode(usable, frame.index, encoding.unseen, design, problems), frame.index


def _clean(
    pairs: Sequence[tuple[Column, Cells]],
    index: pd.Index,
    unseen: str,
    groups: Collection[str] = (),
) -> tuple[pd.DataFrame, dict[str, NDArray[np.bool_]], list[Problem]]:
    """What formulas work on, the rows with unseen levels of every column, and problems.

    An unseen level of a group is no problem: all its columns are 0, an average group. For the
    others the reference stands in until their columns are there.
    """
    found: dict[str, Any] = {}
    new: dict[str, NDArray[np.bool_]] = {}
    problems: list[Problem] = []
    for column, cells in pairs:
        grouped = column.name in groups
        values, strange, wrong = column.clean(cells, index, "reference" if grouped else unseen)
        problems += wrong
        if not grouped and strange.any():
            new[column.name] = strange
        if column.levels is not None and not wrong:
            codes = values if grouped else np.maximum(values, 0)
            values = pd.Categorical.from_codes(codes, list(column.levels))
        found[column.name] = values
        if column.indicator:
            found[gap_name(column.name)] = cells.missing.astype(float)
    return pd.DataFrame(found, index=index), new, problems


def _encode(
    pairs: Sequence[tuple[Column, Cells]],
    index: pd.Index,
    unseen: str,
    design: Design | None,
    problems: Sequence[Problem] = (),
) -> Array:
    """The columns of numbers, or an error with all that stands in their way."""
    problems = list(problems)
    if design is None:
        values = np.empty((len(index), sum(len(c.names) for c, _ in pairs)))
        place = 0
        for column, cells in pairs:
            clean, _, wrong = column.clean(cells, index, unseen)
            problems += wrong
            for k, one in enumerate([] if wrong else column.columns(clean, cells.missing, unseen)):
                values[:, place + k] = one
            place += len(column.names)
    else:
        frame, new, wrong = _clean(pairs, index, unseen, {*design.groups[0], *design.groups[1]})
        problems += wrong
    if problems:
        raise TableError(problems, new_rows=True)
    if design is None:
        return values
    return design.evaluate(frame, new if unseen == "average" else {})


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


def _refuse_empty(shape: tuple[int, ...]) -> None:
    if min(shape) == 0:
        raise DataError(
            f"X is empty: its shape is {shape}. At least one row and one column are needed."
        )


def _positions(values: Array) -> pd.Index:
    return pd.RangeIndex(values.shape[0])


def term_places(
    encoding: Encoding, feature_names: tuple[str, ...], X: Any
) -> dict[Any, tuple[int, ...]]:
    """Positions of the columns of numbers by every name a column of the user's may be asked for.

    A category is asked for by its own name or by that of one level (``country=DE``).
    """
    terms = encoding.terms(feature_names)
    places: dict[Any, tuple[int, ...]] = {
        name: (j,) for j, name in enumerate(feature_names)
    } | terms
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


def read_mask(
    option: str, columns: Sequence[str | int] | None, table: Table, X: Any
) -> NDArray[np.bool_]:
    """Which columns an option such as ``class_features`` names; all of them by default."""
    names = table.names
    if table.masks is not None:
        return table.masks[option == "selection_features"]
    if columns is None:
        return np.ones(len(names), dtype=bool)
    if isinstance(columns, str) or not isinstance(columns, Iterable):
        raise DataError(
            f"{option}={columns!r} is a single value; pass a list, [{columns!r}], or a formula, "
            f"'~ {columns}'."
        )
    position = term_places(table.encoding, names, X)
    known = table.encoding.terms(names)
    mask = np.zeros(len(names), dtype=bool)
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
