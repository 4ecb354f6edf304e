"""Reading the user's file: every refusal names the file, the column and the row.

Rows are counted from 1, the first line below the headings, and named by ``--id`` where given.
"""

import csv
import re
import warnings
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bayes_lepu.errors import DataError

SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": "\t"}
MAX_NAMED = 20
PARQUET = (".parquet", ".pq")


@dataclass(frozen=True, eq=False)
class Sheet:
    """A table read from a file, with columns of numbers taken from it on request."""

    path: Path
    frame: pd.DataFrame

    def require(self, name: str, option: str) -> pd.Series:
        """A column by name, or an error that lists the columns."""
        if name not in self.frame.columns:
            known = ", ".join(map(str, self.frame.columns[:12]))
            hint = " Is the separator right (--separator)?" if self.frame.shape[1] == 1 else ""
            raise DataError(
                f"{self.path}: there is no column {name!r} ({option}). Columns: {known}.{hint}"
            )
        return self.frame[name]

    def numbers(self, names: list[str], *, remedy: str) -> pd.DataFrame:
        """Columns as numbers, none of them missing or infinite."""
        columns = {name: self._numeric(name, remedy) for name in names}
        table = pd.DataFrame(columns, index=self.frame.index)
        self._refuse(table.isna(), "no value", "Fill in or remove such rows first.")
        self._refuse(table.isin([np.inf, -np.inf]), "an infinite value", "Correct or remove them.")
        return table

    def labels(self, name: str) -> pd.Series:
        """The label column: 0 or 1 in every row."""
        return self._zero_one(name, "--label", blank=False).astype(np.int8)

    def classes(self, name: str, label: str) -> pd.Series:
        """The audited classes: 0, 1 or blank, and never 0 where the row is labelled."""
        classes = self._zero_one(name, "--audited", blank=True)
        against = (classes == 0) & (self.labels(label) == 1)
        if against.any():
            raise DataError(
                f"{self.path}: column {name!r} (--audited), {self._row(against)}: the class is 0, "
                f"but column {label!r} (--label) is 1. A labelled row is positive by assumption; "
                "correct one of the two."
            )
        return classes

    def _refuse(self, marked: pd.DataFrame, what: str, remedy: str) -> None:
        """Refuse the marked cells, every column at once."""
        counts = marked.sum()
        found = [
            f"column {name!r} {counts[name]} ({self._row(marked[name])})"
            for name in counts.index[counts > 0]
        ]
        if found:
            more = f" and {len(found) - MAX_NAMED} more columns" if len(found) > MAX_NAMED else ""
            raise DataError(
                f"{self.path}: {int(counts.sum())} cell(s) with {what}: "
                f"{', '.join(found[:MAX_NAMED])}{more}. {remedy}"
            )

    def _numeric(self, name: str, remedy: str) -> pd.Series:
        column = self.frame[name]
        values = _to_numbers(column)
        bad = values.isna() & ~_blank(column)
        if bad.any():
            raise DataError(
                f"{self.path}: column {name!r}, {self._row(bad)}: {_show(column[bad].iloc[0])} is "
                f"not a number. {remedy}"
            )
        return values

    def _zero_one(self, name: str, option: str, *, blank: bool) -> pd.Series:
        column = self.require(name, option)
        values = _to_numbers(column)
        bad = ~(values.isin([0, 1]) | (_blank(column) if blank else False))
        if bad.any():
            allowed = "0, 1 or nothing" if blank else "0 (unlabelled) or 1 (labelled)"
            raise DataError(
                f"{self.path}: column {name!r} ({option}), {self._row(bad)}: "
                f"{_show(column[bad].iloc[0])}; {allowed} is expected."
            )
        return values

    def _row(self, marked: pd.Series) -> str:
        positions = np.flatnonzero(marked.to_numpy())
        more = f" and {len(positions) - 1} more" if len(positions) > 1 else ""
        first, index = int(positions[0]), marked.index
        name = "" if index.name is None else f" ({index.name} {index[first]})"
        return f"row {first + 1}{name}{more}"


def read_sheet(
    path: str | Path, *, separator: str | None = None, id_column: str | None = None
) -> Sheet:
    """Read a CSV, TSV or Parquet file; rows are numbered from 1 or named by a column."""
    path = Path(path)
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise DataError(f"{path} {what}; a CSV or Parquet file is expected.")
    suffix = (
        path.suffixes[-2] if path.suffix in (".gz", ".zst") and path.suffixes[1:] else path.suffix
    )
    if suffix.lower() in PARQUET:
        frame = _read_parquet(path)
    elif suffix.lower() in SEPARATORS:
        frame = _read_text(path, separator or SEPARATORS[suffix.lower()], id_column)
    else:
        raise DataError(
            f"{path}: files ending in {path.suffix or 'nothing'} are not read; "
            f"{', '.join([*SEPARATORS, *PARQUET])} are."
        )
    if frame.empty:
        raise DataError(f"{path} holds headings but no rows.")
    frame.columns = frame.columns.astype(str)
    frame.index = pd.RangeIndex(1, len(frame) + 1)
    sheet = Sheet(path, frame)
    if id_column is not None:
        frame.index = pd.Index(sheet.require(id_column, "--id").astype(str), name=id_column)
    return sheet


def split_names(text: str | None) -> list[str] | None:
    """Names from ``a,b,"c, d"``."""
    if text is None:
        return None
    return [
        name.strip() for name in next(csv.reader([text], skipinitialspace=True)) if name.strip()
    ]


def _read_text(path: Path, separator: str, id_column: str | None) -> pd.DataFrame:
    options: dict[str, Any] = {"sep": separator, "encoding": "utf-8-sig"}
    try:
        heads = pd.read_csv(path, header=None, nrows=1, dtype=str, **options).iloc[0]
        _check_headings(path, heads)
        with warnings.catch_warnings():
            # More cells than headings would be cut off with a warning only.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            converters = {id_column: str} if id_column in set(heads) else None
            return pd.read_csv(
                path, index_col=False, low_memory=False, converters=converters, **options
            )
    except pd.errors.EmptyDataError:
        raise DataError(f"{path} is empty.") from None
    except (pd.errors.ParserError, pd.errors.ParserWarning) as error:
        raise DataError(f"{path}: {_parser_words(error)}") from None
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path} is not UTF-8 text (byte {error.start}). Save it as UTF-8, or as Parquet."
        ) from None


def _check_headings(path: Path, heads: pd.Series) -> None:
    empty = np.flatnonzero(heads.isna())
    if len(empty):
        raise DataError(f"{path}: column {empty[0] + 1} has no heading. Name every column.")
    twice = [name for name, count in Counter(heads).items() if count > 1]
    if twice:
        raise DataError(f"{path}: the heading {twice[0]!r} occurs twice. Rename one of them.")


def _parser_words(error: Exception) -> str:
    found = re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", str(error))
    if found:
        expected, line, saw = found.groups()
        return f"row {int(line) - 1} has {saw} cells where {expected} are expected."
    if isinstance(error, pd.errors.ParserWarning):
        return "rows have more cells than there are headings."
    return f"not readable as a table ({error})."


def _read_parquet(path: Path) -> pd.DataFrame:
    try:
        return pd.read_parquet(path)
    except ImportError:
        raise DataError(
            f"{path}: reading Parquet needs pyarrow. Install it (pip install "
            "'bayes-lepu[parquet]') or save the table as CSV."
        ) from None
    except (OSError, ValueError) as error:
        raise DataError(f"{path} is not a readable Parquet file ({error}).") from None


def _to_numbers(column: pd.Series) -> pd.Series:
    if pd.api.types.is_bool_dtype(column):
        return column.astype(float)
    if not pd.api.types.is_numeric_dtype(column):
        column = column.replace({"True": 1, "False": 0, "true": 1, "false": 0})
    return pd.to_numeric(column, errors="coerce").astype(float)


def _blank(column: pd.Series) -> pd.Series:
    return column.isna() | (column.astype(str).str.strip() == "")


def _show(value: Any) -> str:
    return "no value" if pd.isna(value) else repr(str(value))
