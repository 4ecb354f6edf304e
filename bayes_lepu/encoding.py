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

from bayes_lepu.errors import DataError
from bayes_lepu.links import Array
from bayes_lepu.problems import Problem, first_row
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
        return (self.name, f"{self.name} missing") if self.indicator else (self.name,)

    @property
    def plain(self) -> bool:
        """Whether the column is taken as it is."""
        return self.levels is None and self.fill is None

    def encode(
        self, cells: Cells, index: pd.Index, unseen: str
    ) -> tuple[list[Array], list[Problem]]:
        """The columns of numbers, and what stands in their way."""
        gaps = cells.missing
        if gaps.any() and self.fill is None:
            return [], [Problem("missing", self.name, str(int(gaps.sum())))]
        if self.levels is None:
            values = cells.numbers
            if gaps.any():
                values = np.where(gaps, float(self.fill or 0.0), values)
            return [values, gaps.astype(float)] if self.indicator else [values], []
        place = {level: k for k, level in enumerate(self.levels)}
        known = np.array([place.get(level, -1) for level in cells.levels or ()] + [-1])
        if self.fill is not None:
            known[-1] = place[str(self.fill)]  # the code -1 of a missing cell is the last place
        codes = known[cells.numbers.astype(np.int64)]
        new = codes < 0
        out = [(codes == k).astype(float) for k in range(1, len(self.levels))]
        if not new.any():
            return out, []
        if unseen == "error":
            got = sorted({(cells.levels or ())[int(c)] for c in np.unique(cells.numbers[new])})
            shown = ", ".join(repr(level) for level in got[:5])
            return [], [Problem("unseen", self.name, f"{shown} in {first_row(new, index)}")]
        if unseen == "average":
            for column, share in zip(out, self.shares[1:], strict=True):
                column[new] = share
        return out, []


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
    """

    columns: tuple[Column, ...] = ()
    missing: str = "error"
    unseen: str = "error"
    aside: tuple[str, ...] = ()
    dropped: int = 0

    def terms(self, feature_names: tuple[str, ...]) -> dict[str, tuple[int, ...]]:
        """Positions of the columns of numbers that belong to each column of the user's."""
        if not self.columns:
            return {name: (j,) for j, name in enumerate(feature_names)}
        place = {name: j for j, name in enumerate(feature_names)}
        found = {c.name: tuple(place[n] for n in c.names if n in place) for c in self.columns}
        return {name: places for name, places in found.items() if places}

    @property
    def missing_cells(self) -> dict[str, int]:
        """Missing cells among the training rows, for the columns that had any."""
        return {c.name: c.missing for c in self.columns if c.missing}

    def summary(self) -> str:
        """What was done to the table, in words; nothing where it was taken as it is."""
        parts = []
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
        return cls(**{**_tuples(stored, cls), "columns": columns})


def learn_column(name: str, cells: Cells, *, missing: str) -> Column:
    """The encoding of one column from its training cells.

    The reference of a category is its first level: the user's own order for a pandas categorical,
    the most frequent one for text.
    """
    gaps = cells.missing
    count = int(gaps.sum())
    filled = missing in ("indicator", "impute")
    if cells.levels is None:
        fill = float(cells.numbers[~gaps].mean()) if filled and not gaps.all() else None
        return Column(
            name, fill=fill, indicator=missing == "indicator" and count > 0, missing=count
        )
    levels, codes = cells.levels, cells.numbers.astype(np.int64)
    counts = np.bincount(codes[~gaps], minlength=len(levels))
    rows = len(codes) if missing == "indicator" else max(int((~gaps).sum()), 1)
    shares = [float(k) / rows for k in counts]
    fill_level = levels[int(counts.argmax())] if filled else None
    if missing == "indicator" and count:
        levels, fill_level = (*levels, NO_VALUE), NO_VALUE
        shares.append(count / rows)
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


def _tuples(stored: Mapping[str, Any], kind: type) -> dict[str, Any]:
    return {f.name: tuple(v) if isinstance(v := stored[f.name], list) else v for f in fields(kind)}
