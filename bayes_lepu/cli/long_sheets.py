"""A file with one line per item and annotator, as one with one line per item."""

from collections.abc import Sequence
from typing import NamedTuple

import pandas as pd

from bayes_lepu.cli.sheets import Sheet, split_names
from bayes_lepu.data.annotators import LongFormat
from bayes_lepu.data.annotators import widened as one_row_per_item
from bayes_lepu.errors import DataError
from bayes_lepu.suggestions import some


class Widened(NamedTuple):
    """One line per item.

    Attributes
    ----------
    sheet : Sheet
        The items, named by their column, with a column of labels for every annotator.
    annotators : list of str
    visits : dict of str to DataFrame
        Columns that differ between the annotators of an item, each with a column per annotator.
    """

    sheet: Sheet
    annotators: list[str]
    visits: dict[str, pd.DataFrame]


def widened(
    sheet: Sheet, *, item: str, annotator: str, label: str, visits: Sequence[str] = ()
) -> Widened:
    """One line per item; but for ``visits``, other columns must be the same in all of its lines."""
    named = {"--item": item, "--annotator": annotator, "--label": label}
    for option, name in (*named.items(), *(("--visits", name) for name in visits)):
        sheet.require(name, option)
    if clash := [name for name in visits if name in named.values()]:
        raise DataError(f"Column {clash[0]!r} is named by --visits and by another option.")
    frame = sheet.frame
    for option in ("--item", "--annotator"):
        if (gaps := int(frame[named[option]].isna().sum())) > 0:
            raise DataError(
                f"{sheet.path}: {gaps} blank cell(s) in column {named[option]!r} ({option}); every "
                "line needs one. Fill them in, or remove these lines."
            )
    items = frame.drop(columns=[annotator, label, *visits]).drop_duplicates().set_index(item)
    if items.index.has_duplicates:
        torn = items.groupby(level=0).nunique(dropna=False).max()
        raise DataError(
            f"{sheet.path}: column(s) {some(list(torn.index[torn > 1]))} differ between lines of "
            f"one item ({item!r}); what describes an item must be the same in all of its lines. "
            "Correct them, or name them by --visits if they belong to who looked at the item."
        )

    def by_annotator(column: str) -> pd.DataFrame:
        long = LongFormat(item, annotator, column)
        try:
            return one_row_per_item(frame, items, len(items), long).rename(columns=str)
        except DataError as error:
            raise DataError(f"{sheet.path}: {error}") from None

    labels = by_annotator(label)
    names = list(labels.columns)
    if clash := [name for name in names if name in items.columns or "," in name]:
        raise DataError(
            f"{sheet.path}: annotator(s) {some(clash)} have the name of a column, or a comma in "
            "it. Rename them."
        )
    wide = Sheet(sheet.path, pd.concat([items, labels], axis=1))
    return Widened(wide, names, {name: by_annotator(name) for name in visits})


def read_visits(
    sheet: Sheet, texts: Sequence[str], annotators: Sequence[str]
) -> dict[str, pd.DataFrame]:
    """The same columns of visits from a file with one line per item: ``hours=hours_1,hours_2``."""
    tables = {}
    for text in texts:
        name, _, columns = text.partition("=")
        chosen = split_names(columns) or []
        if len(chosen) != len(annotators):
            raise DataError(
                f"--visits {text!r} names {len(chosen)} column(s) for {len(annotators)} "
                "annotator(s); a name and one column for each of them, in the order of --label, is "
                "expected, such as hours=hours_anna,hours_ben."
            )
        cells = (sheet.require(column, "--visits") for column in chosen)
        tables[name.strip()] = pd.DataFrame(dict(zip(annotators, cells, strict=True)))
    return tables
