"""Tables as plain values that the template lays out."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd


@dataclass(frozen=True)
class Cell:
    """What is shown, and the number it is sorted by (None for text)."""

    text: str
    value: float | None = None


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


def number(value: float, *, digits: int = 3) -> str:
    """A number as a reader wants it: three digits, no exponent where it can be avoided."""
    if not math.isfinite(value):
        return "–" if math.isnan(value) else ("∞" if value > 0 else "−∞")
    if value == int(value) and abs(value) < 1e7:
        return f"{int(value):,}".replace(",", "\u2009").replace("-", "−")
    size = abs(value)
    if size >= 1e6 or size < 1e-4:
        return f"{value:.2e}".replace("-", "−")
    places = (
        max(0, digits - 1 - math.floor(math.log10(size))) if size < 1 else 3 - len(str(int(size)))
    )
    return f"{value:.{max(places, 0)}f}".replace("-", "−")


def cell(value: Any) -> Cell:
    """A cell of any value of a DataFrame."""
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
    if index is not None:
        frame = frame.rename_axis(index).reset_index()
    return table([str(c) for c in frame.columns], frame.to_numpy(dtype=object).tolist(), note=note)
