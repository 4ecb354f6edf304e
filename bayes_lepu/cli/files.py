"""Files that the commands read and write: never over their input, never silently over results.

Rows are counted from 1, the first line below the headings, or named by ``--id``.
"""

import re
import warnings
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd

from bayes_lepu.data.frames import take_column
from bayes_lepu.data.problems import JoinedError, TableError
from bayes_lepu.errors import DataError
from bayes_lepu.fitted import Fit
from bayes_lepu.runtime.files import new_file, replace_file

SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": "\t"}
PARQUET = (".parquet", ".pq")
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # a cell that begins so is run by spreadsheets
OPTION = re.compile(r"(?<![\w.\[])([a-z]\w*)(?=( names|=True)\b)")  # as messages name them


def read_frame(
    path: Path,
    *,
    separator: str | None = None,
    id_column: str | None = None,
    blanks: Sequence[str] = (),
    text_columns: Sequence[str] = (),
) -> pd.DataFrame:
    """The table of a CSV, TSV or Parquet file; rows are numbered from 1 or named by a column.

    Cells that hold one of the ``blanks`` count as cells without a value; ``text_columns`` are text
    even where they look like numbers.
    """
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise DataError(f"{path} {what}; a CSV or Parquet file is expected.")
    separator = {"tab": "\t", "\\t": "\t"}.get(separator or "", separator)
    if separator is not None and len(separator) != 1:
        raise DataError(f"--separator {separator!r}; a single character, or tab, is expected.")
    packed = path.suffix in (".gz", ".zst") and len(path.suffixes) > 1
    suffix = path.suffixes[-2 if packed else -1].lower() if path.suffixes else ""
    if suffix in PARQUET:
        frame = _read_parquet(path, blanks)
    elif suffix in SEPARATORS:
        types = {name: str for name in text_columns if name != id_column}
        frame = _read_text(
            path,
            id_column,
            sep=separator or SEPARATORS[suffix],
            na_values=list(blanks),
            dtype=types,
        )
    else:
        raise DataError(
            f"{path}: files ending in {path.suffix or 'nothing'} are not read; "
            f"{', '.join([*SEPARATORS, *PARQUET])} are."
        )
    if isinstance(frame.columns, pd.MultiIndex):
        raise DataError(f"{path} has headings in several levels; one name per column is expected.")
    if frame.empty:
        raise DataError(f"{path} holds headings but no rows.")
    frame = frame.set_axis(frame.columns.astype(str), axis=1)
    frame.index = pd.RangeIndex(1, 1 + len(frame))
    if id_column is not None:
        names = take_column(frame, id_column, option="--id").astype(str)
        frame = frame.drop(columns=id_column).set_axis(pd.Index(names, name=id_column))
    return frame


@contextmanager
def about(path: Path) -> Iterator[None]:
    """Errors of the data name the file, and the options of the command line that help."""
    try:
        yield
    except DataError as error:
        raise DataError(_complaint(error, path)) from None


def _complaint(error: DataError, path: Path) -> str:
    if isinstance(error, JoinedError):
        each = [_complaint(one, path).split("\n") for one in error.errors]
        lines = [line.removeprefix("- ") for lines in each for line in lines]
        return f"{len(lines)} things are wrong:\n" + "\n".join(f"- {line}" for line in lines)
    if isinstance(error, TableError):
        return error.describe(subject=str(path), shell=True)
    said = OPTION.sub(lambda found: _flag(found[1]), str(error)).replace("=True", "")
    said = re.sub(r"\b(class|selection)_features\b", r"--\1-features", said)
    said = re.sub(r"^(l|y|sample_weight)(?= holds)", lambda found: _flag(found[1]), said)
    if said.startswith("--label holds"):
        said += " With --positive VALUE the labelled rows are those that hold VALUE."
    return f"{path}: {said}"


def _flag(option: str) -> str:
    return {"l": "--label"}.get(option, "--" + option.replace("_", "-"))


def _read_text(path: Path, id_column: str | None, **how: Any) -> pd.DataFrame:
    how |= {"encoding": "utf-8-sig"}
    try:
        first: Any = {"header": None, "nrows": 1, **how, "dtype": str, "na_values": None}
        heads = pd.read_csv(path, **first).iloc[0]
        if heads.isna().any():
            place = 1 + int(heads.isna().argmax())
            raise DataError(f"{path}: column {place} has no heading. Name every column.")
        if twice := [name for name, count in Counter(heads).items() if count > 1]:
            raise DataError(f"{path}: the heading {twice[0]!r} occurs twice. Rename one of them.")
        names_as_text = {id_column: str} if id_column in set(heads) else None
        with warnings.catch_warnings():
            # Rows with more cells than headings would be cut off with a warning only: refuse them.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            return pd.read_csv(
                path, converters=names_as_text, index_col=False, low_memory=False, **how
            )
    except DataError:
        raise
    except pd.errors.EmptyDataError:
        raise DataError(f"{path} is empty.") from None
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path} is not UTF-8 text (byte {error.start}). Save it as UTF-8, or as Parquet."
        ) from None
    except pd.errors.ParserWarning:
        raise DataError(f"{path}: rows have more cells than there are headings.") from None
    except ValueError as error:
        said = f"{path} is not readable as a table ({error})."
        if found := re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", str(error)):
            expected, line, saw = map(int, found.groups())
            said = f"{path}: row {line - 1} has {saw} cells where {expected} are expected."
        raise DataError(said) from None
    except (EOFError, OSError, ImportError, zlib.error) as error:  # of a compressed file
        raise DataError(f"{path} cannot be unpacked ({error}).") from None


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


def check_output(out: Path, inputs: Iterable[Path], *, overwrite: bool) -> Path:
    """The file to write: none of those that are read, and an earlier one only on request."""
    for path in inputs:
        same = out.exists() and path.exists() and out.samefile(path)
        if same or out.absolute() == path.absolute():
            raise DataError(f"--out {out} is an input of this command; choose another name.")
    if out.is_dir():
        raise DataError(f"--out {out} is a folder; the name of a file is expected.")
    if not out.absolute().parent.is_dir():
        raise DataError(f"--out {out}: there is no folder {out.parent}. Make it first.")
    if out.is_file() and not overwrite:
        raise DataError(
            f"{out} is there already. Choose another name (--out), or replace it with --overwrite."
        )
    return out


def check_folder(out: Path, names: Iterable[str], *, overwrite: bool) -> Path:
    """The folder to write to; results that are there are replaced only on request."""
    if out.exists() and not out.is_dir():
        raise DataError(f"--out {out} is a file; a folder is expected.")
    there = [name for name in names if (out / name).exists()]
    if there and not overwrite:
        raise DataError(
            f"{out} already holds {', '.join(there)}. Choose another folder (--out), or replace "
            "them with --overwrite."
        )
    return out


def write_table(table: pd.DataFrame, path: Path, *, index_label: str) -> Path:
    """Write a table as Parquet where the file ends so, or as CSV.

    A CSV file starts no formula in a spreadsheet, whatever its texts are.
    """
    if path.suffix.lower() in PARQUET:
        with new_file(path) as file:
            table.reset_index(names=index_label).to_parquet(file, write_page_checksum=True)
        return path
    shown = table.rename(index=_inert, columns=_inert).map(_inert)
    text = shown.to_csv(index_label=_inert(index_label), float_format="%.6g", lineterminator="\n")
    return replace_file(path, text.encode())


def prediction_table(fit: Fit, X: pd.DataFrame) -> pd.DataFrame:
    """P(y=1 | x) and P(y=1 | x, l=0) with intervals, s(x) and P(l=1 | x), one row per row of X.

    Several annotators have a column each of s and P(l=1 | x).
    """
    parts = {
        "class_probability": fit.class_probability(X),
        "missed_if_unlabelled": fit.missed(X),
        "propensity": _means(fit.propensity(X)),
        "label_probability": _means(fit.label_probability(X)),
    }
    return pd.concat(
        [
            table.rename(columns=lambda c, name=name: name if c == "mean" else f"{name}_{c}")
            for name, table in parts.items()
        ],
        axis=1,
    )


def _means(table: pd.DataFrame) -> pd.DataFrame:
    if table.index.nlevels == 1:
        return table[["mean"]]
    each = table["mean"].groupby("annotator", sort=False)
    return pd.DataFrame({name: means.droplevel("annotator") for name, means in each})


def _inert(value: object) -> object:
    """Text that a spreadsheet would run, with an apostrophe before it; all else as it is."""
    if not isinstance(value, str) or not value.startswith(FORMULA):
        return value
    try:
        float(value)
    except ValueError:
        return f"'{value}"
    return value
