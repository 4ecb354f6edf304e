"""What the commands write: never over their input, never silently over earlier results."""

from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from bayes_lepu.cli.sheets import PARQUET
from bayes_lepu.errors import DataError
from bayes_lepu.fitted import Fit
from bayes_lepu.runtime.files import new_file, replace_file

FORMULA = ("=", "+", "-", "@", "\t", "\r")  # a cell that begins so is run by spreadsheets


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


def write_csv(table: pd.DataFrame, path: Path, *, index_label: str) -> Path:
    """Write a table that starts no formula in a spreadsheet, whatever its texts are."""
    shown = table.rename(index=_inert, columns=_inert).map(_inert)
    text = shown.to_csv(index_label=_inert(index_label), float_format="%.6g", lineterminator="\n")
    return replace_file(path, text.encode())


def write_table(table: pd.DataFrame, path: Path, *, index_label: str) -> Path:
    """Write a table as Parquet where the file ends so, or as CSV."""
    if path.suffix.lower() not in PARQUET:
        return write_csv(table, path, index_label=index_label)
    with new_file(path) as file:
        table.reset_index(names=index_label).to_parquet(file, write_page_checksum=True)
    return path


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
