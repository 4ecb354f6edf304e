"""What the commands write: never over their input, never silently over earlier results."""

from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

import pandas as pd

from bayes_lepu.cli.sheets import PARQUET
from bayes_lepu.errors import DataError
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
    return replace_file(path, _csv(table, index_label))


def write_batches(tables: Iterable[pd.DataFrame], path: Path, *, index_label: str) -> Path:
    """Write tables below each other as they come: Parquet by the ending of the file, or CSV."""
    with new_file(path) as file:
        if path.suffix.lower() in PARQUET:
            _write_parquet(tables, file, index_label)
        else:
            for number, table in enumerate(tables):
                file.write(_csv(table, index_label, headings=number == 0))
    return path


def _csv(table: pd.DataFrame, index_label: str, *, headings: bool = True) -> bytes:
    shown = table.rename(index=_inert, columns=_inert).map(_inert)
    text = shown.to_csv(
        index_label=_inert(index_label),
        header=headings,
        float_format="%.6g",
        lineterminator="\n",
    )
    return text.encode()


def _write_parquet(tables: Iterable[pd.DataFrame], file: BinaryIO, index_label: str) -> None:
    import pyarrow as pa
    from pyarrow.parquet import ParquetWriter

    writer = None
    try:
        for table in tables:
            rows = pa.Table.from_pandas(table.reset_index(names=index_label), preserve_index=False)
            writer = writer or ParquetWriter(file, rows.schema, write_page_checksum=True)
            writer.write_table(rows)
    finally:
        if writer is not None:
            writer.close()


def _inert(value: object) -> object:
    """Text that a spreadsheet would run, with an apostrophe before it; all else as it is."""
    if not isinstance(value, str) or not value.startswith(FORMULA):
        return value
    try:
        float(value)
    except ValueError:
        return f"'{value}"
    return value
