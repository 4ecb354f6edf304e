"""Files that the commands read and write. Input is never overwritten, results only on request.

Row labels are 1, 2, ... from the first line below the headings, or those of the column ``--id``.
"""

import inspect
import re
import warnings
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pandas as pd

from bayes_lepu._fit import fit as fit_model
from bayes_lepu.data.frames import take_column
from bayes_lepu.data.problems import TableError
from bayes_lepu.errors import DataError, ModelError
from bayes_lepu.fitted import Fit
from bayes_lepu.runtime.files import new_file, replace_file
from bayes_lepu.suggestions import some

SEPARATORS = {".csv": ",;\t", ".tsv": "\t;,", ".txt": "\t;,"}  # the likeliest first
PARQUET = (".parquet", ".pq")
CODE = re.compile(r"\.\w+\(|==|\w\[|={")  # what only Python understands
OPTIONS = [name for name in inspect.signature(fit_model).parameters if name not in "Xly"]
NAMED = re.compile(  # an option with its value, or its name alone if that is no common word
    rf"\b({'|'.join(OPTIONS)}) ?= ?('[^']*'|\"[^\"]*\"|\[[^]]*\]|\([^)]*\)|[\w.-]*\w)"
    rf"|\b({'|'.join(name for name in OPTIONS if '_' in name)})\b"
)
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # spreadsheets execute cells that begin with these


def read_frame(
    path: Path,
    *,
    id_column: str | None = None,
    blanks: Sequence[str] = (),
    text_columns: Sequence[str] = (),
) -> pd.DataFrame:
    """The table of a CSV, TSV or Parquet file; row labels are 1, 2, ... or those of a column.

    Cells equal to one of the ``blanks`` are empty; ``text_columns`` stay text even where they look
    like numbers.
    """
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise DataError(f"{path} {what}; a CSV or Parquet file is expected.")
    suffix = Path(path.name.lower().removesuffix(".gz").removesuffix(".zst")).suffix
    if suffix not in (*SEPARATORS, *PARQUET):
        raise DataError(
            f"{path}: files ending in {suffix or 'nothing'} are not read; "
            f"{', '.join([*SEPARATORS, *PARQUET])} are."
        )
    try:
        if suffix in PARQUET:
            frame = pd.read_parquet(path).replace(list(blanks), None)
        else:
            frame = _read_text(path, SEPARATORS[suffix], id_column, blanks, text_columns)
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 text ({error}). Save it as UTF-8.") from None
    except (ValueError, pd.errors.ParserWarning, EOFError, OSError, ImportError, zlib.error) as e:
        raise DataError(f"{path} cannot be read as a table: {e}") from None
    frame.index = pd.RangeIndex(1, 1 + len(frame))
    if id_column is not None:
        names = take_column(frame, id_column, option="--id").astype(str)
        frame = frame.drop(columns=id_column).set_axis(pd.Index(names, name=id_column))
    return frame


def _read_text(
    path: Path,
    separators: str,
    id_column: str | None,
    blanks: Sequence[str],
    text_columns: Sequence[str],
) -> pd.DataFrame:
    """The table of a text file, read with the separator that gives the most headings.

    If the separator is no comma, numbers may have a decimal comma.
    """
    first = [
        pd.read_csv(path, sep=s, header=None, nrows=1, dtype=str, encoding="utf-8-sig").iloc[0]
        for s in separators
    ]
    heads = max(first, key=len)
    if (wrong := heads.isna() | heads.duplicated()).any():
        place = 1 + int(wrong.argmax())
        raise ValueError(f"column {place} has no heading, or that of another column.")
    separator, decimal = separators[[len(found) for found in first].index(len(heads))], "."
    if separator != ",":
        head = pd.read_csv(path, sep=separator, nrows=1000, dtype=str, encoding="utf-8-sig")
        cells = head.to_numpy(dtype=object).ravel()
        if any(re.fullmatch(r"\s*-?\d*,\d+\s*", str(cell)) for cell in cells):
            decimal = ","
    with warnings.catch_warnings():
        # Rows with more cells than headings are refused; pandas would truncate them with a warning.
        warnings.simplefilter("error", pd.errors.ParserWarning)
        return pd.read_csv(
            path,
            sep=separator,
            decimal=decimal,
            na_values=list(blanks),
            dtype={name: str for name in text_columns if name != id_column},
            converters={id_column: str} if id_column in set(heads) else None,
            encoding="utf-8-sig",
            index_col=False,
            low_memory=False,
        )


@contextmanager
def about(path: Path) -> Iterator[None]:
    """Context that adds the file, and the options of the command line that help, to data errors."""
    try:
        yield
    except TableError as error:
        error.besides = in_options(error.besides)
        raise DataError(error.describe(subject=str(path), shell=True)) from None
    except DataError as error:
        raise DataError(f"{path}: {in_options(str(error))}") from None
    except ModelError as error:
        raise ModelError(in_options(str(error))) from None


def in_options(text: str) -> str:
    """A message with options as the command line has them, without sentences of Python code."""
    sentences = re.split(r"(?<=\.) (?=[A-Z(])", text)
    text = " ".join(one for one in sentences if not CODE.search(one)) or text

    def option(found: re.Match[str]) -> str:
        value = re.sub("[][()'\" ]", "", found[2] or "")
        name = (found[1] or found[3]).replace("_", "-")
        return f"--{name}" + (f" {value}" if value not in ("", "True") else "")

    text = re.sub(r"^y\b", "--y", re.sub(r"^l\b", "--label", NAMED.sub(option, text)))
    if text.startswith(("--label holds", "--y holds")):
        text += " With --positive VALUE, 1 is where these columns hold VALUE."
    return text


def check_output(files: Sequence[Path], inputs: Iterable[Path] = (), *, overwrite: bool) -> None:
    """Refuse to overwrite input files, and existing files without ``--overwrite``."""
    for file in files:
        for path in inputs:
            same = file.exists() and path.exists() and file.samefile(path)
            if same or file.absolute() == path.absolute():
                raise DataError(f"--out {file} is an input of this command; choose another name.")
    if (there := [file for file in files if file.is_file()]) and not overwrite:
        raise DataError(
            f"These files exist already: {some(there)}. Choose another name (--out), or replace "
            "them with --overwrite."
        )


def write_table(table: pd.DataFrame, path: Path, *, index_label: str) -> Path:
    """Write a table as Parquet if the file name ends in .parquet, otherwise as CSV.

    Texts in a CSV file are escaped so that a spreadsheet does not execute them as formulas.
    """
    if path.suffix.lower() in PARQUET:
        with new_file(path) as file:
            table.reset_index(names=index_label).to_parquet(file)
        return path
    shown = table.rename(index=_inert, columns=_inert).map(_inert)
    text = shown.to_csv(index_label=_inert(index_label), float_format="%.6g", lineterminator="\n")
    return replace_file(path, text.encode())


def prediction_table(fit: Fit, X: pd.DataFrame) -> pd.DataFrame:
    """P(y=1 | x) and P(y=1 | x, l=0) with intervals, s(x) and P(l=1 | x), one row per row of X.

    With several annotators, s and P(l=1 | x) have one column for each.
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
    """Put an apostrophe before text that a spreadsheet would execute; other values stay."""
    if not isinstance(value, str) or not value.startswith(FORMULA):
        return value
    try:
        float(value)
    except ValueError:
        return f"'{value}"
    return value
