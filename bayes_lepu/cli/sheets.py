"""Reading the user's file: every refusal names the file, the column and the row.

Rows are counted from 1, the first line below the headings, and named by ``--id`` where given.
"""

import re
import shlex
import warnings
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bayes_lepu.data.problems import JoinedError, TableError, first_row
from bayes_lepu.errors import DataError
from bayes_lepu.suggestions import did_you_mean, some

SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": "\t"}
PARQUET = (".parquet", ".pq")


@dataclass(frozen=True, eq=False)
class Sheet:
    """A table read from a file, with columns of numbers taken from it on request."""

    path: Path
    frame: pd.DataFrame

    def require(self, name: str, option: str) -> pd.Series:
        """A column by name, or an error that lists the columns."""
        if name not in self.frame.columns:
            known = list(self.frame.columns)
            hint = " Is the separator right (--separator)?" if len(known) == 1 else ""
            raise DataError(
                f"{self.path}: there is no column {name!r} ({option})."
                f"{did_you_mean(name, known)} Columns: {some(known, most=12)}.{hint}"
            )
        return self.frame[name]

    def labels(self, name: str, *, positive: str | None = None) -> pd.Series:
        """The label column as 0 and 1: 1 where it holds the ``positive`` value, if that is given.

        Where 1 is its only value, a cell without one is 0.
        """
        column = self.require(name, "--label")
        if positive is not None:
            marked = column.map(_as_text, na_action="ignore") == positive
            if not marked.any():
                found = some(sorted(column.dropna().map(_as_text).unique()))
                raise DataError(
                    f"{self.path}: no cell of column {name!r} (--label) holds {positive!r} "
                    f"(--positive). It holds {found}."
                )
            return marked.astype(np.int8)
        values, blank = _to_numbers(column), _blank(column)
        if (values[~blank] == 1).all():
            return (values == 1).astype(np.int8)
        bad = ~values.isin([0, 1])
        if bad.any():
            texts = sorted(column[~blank].map(_as_text).unique())
            hint = ""
            if not (bad & ~blank).any():
                hint = " If blank means unlabelled, write 0 there, or use --positive 1."
            else:
                bad &= ~blank  # what is wrong with words is told by a word
                if len(texts) <= 2:
                    word = shlex.quote(texts[-1])
                    hint = f" If {texts[-1]!r} marks the labelled rows: --positive {word}."
            raise DataError(
                f"{self.path}: column {name!r} (--label), {first_row(bad.to_numpy(), bad.index)}: "
                f"{_show(column[bad].iloc[0])}; 0 (unlabelled) or 1 (labelled) is expected.{hint}"
            )
        return values.astype(np.int8)

    def annotators(self, names: Sequence[str]) -> pd.DataFrame:
        """The columns of several annotators: 0, 1, or nothing where a row was not shown."""
        return pd.DataFrame(
            {name: self._known(name, "--label", "nothing (not shown)") for name in names}
        )

    def classes(self, name: str, labels: pd.Series | None) -> pd.Series:
        """The audited classes: 0, 1 or blank, and never 0 where the row is labelled."""
        classes = self._known(name, "--y", "nothing")
        against = (classes == 0) & (False if labels is None else labels == 1)
        if against.any():
            raise DataError(
                f"{self.path}: column {name!r} (--y), "
                f"{first_row(against.to_numpy(), against.index)}: the class is 0, but the row is "
                "labelled (--label). A labelled row is positive by assumption; correct one of the "
                "two, or add --false-marks if negatives may be labelled."
            )
        return classes

    def _known(self, name: str, option: str, nothing: str) -> pd.Series:
        """A column of 0, 1 and blank cells as numbers."""
        column = self.require(name, option)
        numbers = _to_numbers(column)
        bad = ~(numbers.isin([0, 1]) | _blank(column))
        if bad.any():
            raise DataError(
                f"{self.path}: column {name!r} ({option}), "
                f"{first_row(bad.to_numpy(), bad.index)}: {_show(column[bad].iloc[0])}; 0, 1 or "
                f"{nothing} is expected."
            )
        return numbers


def read_sheet(
    path: Path,
    *,
    separator: str | None = None,
    id_column: str | None = None,
    blanks: Sequence[str] = (),
    text_columns: Sequence[str] = (),
) -> Sheet:
    """Read a CSV, TSV or Parquet file; rows are numbered from 1 or named by a column.

    Cells that hold one of the ``blanks`` count as cells without a value; ``text_columns`` are text
    even where they look like numbers.
    """
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise DataError(f"{path} {what}; a CSV or Parquet file is expected.")
    if separator is not None and len(separator) != 1:
        raise DataError(f"--separator {separator!r}; a single character, or tab, is expected.")
    suffix = (
        path.suffixes[-2] if path.suffix in (".gz", ".zst") and path.suffixes[1:] else path.suffix
    )
    if suffix.lower() in PARQUET:
        frame = _read_parquet(path, blanks)
    elif suffix.lower() in SEPARATORS:
        separator = separator or SEPARATORS[suffix.lower()]
        frame = _read_text(path, separator, id_column, blanks, text_columns)
    else:
        raise DataError(
            f"{path}: files ending in {path.suffix or 'nothing'} are not read; "
            f"{', '.join([*SEPARATORS, *PARQUET])} are."
        )
    if isinstance(frame.columns, pd.MultiIndex):
        raise DataError(f"{path} has headings in several levels; one name per column is expected.")
    if frame.empty:
        raise DataError(f"{path} holds headings but no rows.")
    frame.columns = frame.columns.astype(str)
    frame.index = pd.RangeIndex(1, 1 + len(frame))
    sheet = Sheet(path, frame)
    if id_column is not None:
        frame.index = pd.Index(sheet.require(id_column, "--id").astype(str), name=id_column)
    return sheet


def complaint(error: DataError, path: Path) -> str:
    """What is wrong with a file's table, with the options of the command line that help."""
    if isinstance(error, JoinedError):
        return "\n".join(complaint(e, path) for e in error.errors)
    if isinstance(error, TableError):
        return error.describe(subject=str(path), shell=True)
    said = re.sub(r"\b(class|selection)_features\b", r"--\1-features", str(error))
    return f"{path}: {said}"


def together(complaints: Sequence[str]) -> str:
    """Several complaints as a list, of which each is a line; a single one as it is."""
    if len(complaints) == 1:
        return complaints[0]
    lines = [line.removeprefix("- ") for text in complaints for line in text.split("\n")]
    return f"{len(complaints)} things are wrong:\n" + "\n".join(f"- {line}" for line in lines)


def _read_text(
    path: Path,
    separator: str,
    id_column: str | None,
    blanks: Sequence[str],
    texts: Sequence[str],
) -> pd.DataFrame:
    options: dict[str, Any] = {"sep": separator, "encoding": "utf-8-sig"}
    try:
        heads = pd.read_csv(path, header=None, nrows=1, dtype=str, **options).iloc[0]
        _check_headings(path, heads)
        with warnings.catch_warnings():
            # Rows with more cells than headings would be cut off with a warning only: refuse them.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            return pd.read_csv(
                path,
                converters={id_column: str} if id_column in set(heads) else None,
                dtype={name: str for name in texts if name != id_column},
                index_col=False,
                low_memory=False,
                na_values=list(blanks),
                **options,
            )
    except pd.errors.EmptyDataError:
        raise DataError(f"{path} is empty.") from None
    except (pd.errors.ParserError, pd.errors.ParserWarning) as error:
        raise DataError(f"{path}: {_parser_words(error)}") from None
    except (EOFError, OSError, ImportError, zlib.error) as error:  # of a compressed file
        raise DataError(f"{path} cannot be unpacked ({error}).") from None
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path} is not UTF-8 text (byte {error.start}). Save it as UTF-8, or as Parquet."
        ) from None
    except ValueError as error:
        raise DataError(f"{path} is not readable as a table ({error}).") from None


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


def _read_parquet(path: Path, blanks: Sequence[str]) -> pd.DataFrame:
    try:
        frame = pd.read_parquet(path, engine="pyarrow", page_checksum_verification=True)
        return frame.replace(list(blanks), None)
    except ImportError:
        raise DataError(
            f"{path}: reading Parquet needs pyarrow. Install it (pip install "
            "'bayes-lepu[parquet]') or save the table as CSV."
        ) from None
    except (OSError, ValueError) as error:
        raise DataError(f"{path} is not a readable Parquet file ({error}).") from None


def _as_text(value: Any) -> str:
    whole = isinstance(value, float) and value.is_integer()
    return str(int(value)) if whole else str(value).strip()


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
