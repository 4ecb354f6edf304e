"""Tables as plain values that the template lays out."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

MAX_WORD = 24
PROSE = 40
PROSE_WIDTH = 18
NOTHING = 1e-10


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

    @property
    def numeric(self) -> tuple[bool, ...]:
        """Whether each column holds numbers."""
        return tuple(
            any(row[j].value is not None for row in self.rows) for j in range(len(self.columns))
        )

    @property
    def widths(self) -> tuple[int, ...]:
        """Least width of each column in characters: whole words up to a limit, room for prose."""
        return tuple(self._width(j) for j in range(len(self.columns)))

    @property
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


def number(value: float, *, digits: int = 3) -> str:
    """A number as a reader wants it: three digits, no exponent where it can be avoided."""
    if not math.isfinite(value):
        return "–" if math.isnan(value) else ("∞" if value > 0 else "−∞")
    if value == int(value) and abs(value) < 1e7:
        return f"{int(value):,}".replace(",", "\u2009").replace("-", "−")
    size = abs(value)
    if size < NOTHING:
        return "0"  # rounding of numbers that cancel
    if size >= 1e6 or size < 1e-4:
        return f"{value:.2e}".replace("-", "−")
    places = max(0, digits - 1 - math.floor(math.log10(size)))
    return f"{value:.{places}f}".replace("-", "−")


def cell(value: Any) -> Cell:
    """A cell of any value of a DataFrame."""
    if isinstance(value, Cell):
        return value
    if isinstance(value, bool):
        return Cell("yes" if value else "no")
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
