r"""How the user's columns become columns of numbers: categories, flags and missing cells.

A category with levels :math:`v_0, v_1, \dots, v_k` becomes k columns ``name=v_1`` ... ``name=v_k``,
each 1 where the row has that level; :math:`v_0` is the reference, at which all are 0. The encoding
is learned once from the training rows, travels with the data and the saved fit, and is applied to
new rows as it is.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayes_lepu.data.formulas import Design, gap_name
from bayes_lepu.data.problems import Problem, ProblemKind, first_row
from bayes_lepu.errors import DataError
from bayes_lepu.links import Array
from bayes_lepu.suggestions import did_you_mean, some

MISSING = ("error", "drop", "indicator", "impute")
UNSEEN = ("error", "average", "reference")
NO_VALUE = "(missing)"  # the level of a category's missing cells


class Cells(NamedTuple):
    """One column as read: numbers with NaN, or levels as text with codes, -1 where missing."""

    numbers: Array
    levels: tuple[str, ...] | None = None

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Which cells have no value."""
        return np.isnan(self.numbers) if self.levels is None else self.numbers < 0


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

    def encode(
        self, cells: Cells, index: pd.Index, unseen: str
    ) -> tuple[list[Array], list[Problem]]:
        """The columns of numbers, and what stands in their way."""
        if problems := self._problems(cells, index, unseen):
            return [], problems
        if self.levels is None:
            values = self._filled(cells)
            return [values, cells.missing.astype(float)] if self.indicator else [values], []
        codes = self._codes(cells)
        out = [(codes == k).astype(float) for k in range(1, len(self.levels))]
        if unseen == "average":
            for column, share in zip(out, self.shares[1:], strict=True):
                column[codes < 0] = share
        return out, []

    def clean(
        self, cells: Cells, index: pd.Index, unseen: str
    ) -> tuple[pd.Series, NDArray[np.bool_], list[Problem]]:
        """The column as a formula needs it, which rows have an unseen level, and problems."""
        if self.levels is None:
            values = pd.Series(self._filled(cells), index=index)
            return values, np.zeros(len(index), dtype=bool), self._problems(cells, index, unseen)
        codes = self._codes(cells)
        levels = pd.Series(pd.Categorical.from_codes(codes, list(self.levels)), index=index)
        return levels, codes < 0, self._problems(cells, index, unseen)

    def _problems(self, cells: Cells, index: pd.Index, unseen: str) -> list[Problem]:
        gaps = int(cells.missing.sum())
        if gaps and self.fill is None:
            return [Problem(ProblemKind.MISSING, self.name, str(gaps))]
        if self.levels is None or unseen != "error" or not (new := self._codes(cells) < 0).any():
            return []
        got = sorted({(cells.levels or ())[int(c)] for c in np.unique(cells.numbers[new])})
        shown = ", ".join(repr(level) for level in got[:5])
        return [Problem(ProblemKind.UNSEEN, self.name, f"{shown} in {first_row(new, index)}")]

    def _filled(self, cells: Cells) -> Array:
        gaps = cells.missing
        return np.where(gaps, float(self.fill or 0.0), cells.numbers) if gaps.any() else cells[0]

    def _codes(self, cells: Cells) -> NDArray[np.int64]:
        """Places among the levels; -1 for a level that is none of them."""
        place = {level: k for k, level in enumerate(self.levels or ())}
        known = np.array([place.get(level, -1) for level in cells.levels or ()] + [-1])
        if self.fill is not None:
            known[-1] = place[str(self.fill)]  # the code -1 of a missing cell is the last place
        return known[cells.numbers.astype(np.int64)]


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

    The reference of a category is its first level: the user's own order for a pandas categorical,
    the most frequent one for text.
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
        listed = ", ".join(map(repr, known))
        raise DataError(
            f"{option}={value!r} is not known; one of {listed} is expected."
            f"{did_you_mean(value, known)}"
        )
    return value


def _deep(value: Any) -> Any:
    return tuple(_deep(v) for v in value) if isinstance(value, list) else value


def _tuples(stored: Mapping[str, Any], kind: type) -> dict[str, Any]:
    return {f.name: tuple(v) if isinstance(v := stored[f.name], list) else v for f in fields(kind)}
