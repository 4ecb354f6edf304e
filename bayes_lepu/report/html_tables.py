"""Tables as plain values that the template lays out."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd

from bayes_lepu.result.numbers_in_words import number

MAX_WORD = 24
PROSE = 40
PROSE_WIDTH = 18


@dataclass(frozen=True)
class Cell:
    """What is shown, the number it is sorted by (None for text), and a style class."""

    text: str
    value: float | None = None
    style: str = ""


@dataclass(frozen=True)
class Table:
    """Headings and rows of cells."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""

    @cached_property
    def numeric(self) -> tuple[bool, ...]:
        """Whether each column holds numbers."""
        return tuple(
            any(row[j].value is not None for row in self.rows) for j in range(len(self.columns))
        )

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """Least width of each column in characters: whole words up to a limit, room for prose."""
        return tuple(self._width(j) for j in range(len(self.columns)))

    @cached_property
    def prose(self) -> bool:
        """Whether cells hold sentences: on narrow screens each row is then a card of its own."""
        sentences = sum(self._is_prose(j) for j in range(len(self.columns)))
        return len(self.columns) > 2 and sentences > 0

    def _is_prose(self, j: int) -> bool:
        return any(len(row[j].text) > PROSE for row in self.rows if row[j].value is None)

    def _width(self, j: int) -> int:
        texts = [row[j].text for row in self.rows if row[j].value is None]
        longest = max((len(word) for text in texts for word in text.split()), default=0)
        most = PROSE_WIDTH if self.prose else MAX_WORD
        return max(min(longest + 1, most), PROSE_WIDTH if self._is_prose(j) else 0)


def cell(value: Any) -> Cell:
    """A cell of any value of a DataFrame."""
    if isinstance(value, Cell):
        return value
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, bool):
        return Cell("yes" if value else "no")
    if isinstance(value, int | float):
        return Cell(number(value), None if math.isnan(value) else float(value))
    return Cell("" if value is None else str(value))


def table(columns: Sequence[str], rows: Sequence[Sequence[Any]], *, note: str = "") -> Table:
    """A table from plain values."""
    return Table(tuple(columns), tuple(tuple(cell(v) for v in row) for row in rows), note)


def from_frame(frame: pd.DataFrame, *, index: str | None = None, note: str = "") -> Table:
    """A table from a DataFrame, with its index as the first column if it is named."""
    columns, rows = [str(c) for c in frame.columns], frame.to_numpy(dtype=object).tolist()
    if index is not None:
        columns = [index, *columns]
        rows = [[_row_label(name), *row] for name, row in zip(frame.index, rows, strict=True)]
    return table(columns, rows, note=note)


def _row_label(name: Any) -> Cell:
    """A row's own name, never rounded or spaced as a number would be."""
    value = cell(name).value
    return Cell(str(name), value)
