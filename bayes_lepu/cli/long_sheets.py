"""A file with one line per item and annotator, as one with one line per item."""

import pandas as pd

from bayes_lepu.cli.sheets import Sheet
from bayes_lepu.errors import DataError
from bayes_lepu.suggestions import some


def widened(sheet: Sheet, *, item: str, annotator: str, label: str) -> tuple[Sheet, list[str]]:
    """The items, named by their column, with a column of labels for every annotator.

    All other columns describe the item: they must be the same in all of its lines.
    """
    named = {"--item": item, "--annotator": annotator, "--label": label}
    for option, name in named.items():
        sheet.require(name, option)
    frame = sheet.frame
    for option in ("--item", "--annotator"):
        if (gaps := int(frame[named[option]].isna().sum())) > 0:
            raise DataError(
                f"{sheet.path}: {gaps} blank cell(s) in column {named[option]!r} ({option}); every "
                "line needs one. Fill them in, or remove these lines."
            )
    if (twice := frame.duplicated([item, annotator])).any():
        first = frame[twice].iloc[0]
        raise DataError(
            f"{sheet.path}: {int(twice.sum())} line(s) repeat an item and annotator, first "
            f"{first[item]!r} by {first[annotator]!r}; one line for each is expected. Remove the "
            "copies."
        )
    items = frame.drop(columns=[annotator, label]).drop_duplicates().set_index(item)
    if items.index.has_duplicates:
        torn = items.groupby(level=0).nunique(dropna=False).max()
        raise DataError(
            f"{sheet.path}: column(s) {some(list(torn.index[torn > 1]))} differ between lines of "
            f"one item ({item!r}); what describes an item must be the same in all of its lines. "
            "Correct them, or leave them out of the file."
        )
    by_both = frame.set_index([item, annotator])[label]
    marks = pd.DataFrame(
        {str(who): by_both.xs(who, level=annotator) for who in sorted(frame[annotator].unique())}
    )
    names = [str(name) for name in marks.columns]
    if clash := [name for name in names if name in items.columns or "," in name]:
        raise DataError(
            f"{sheet.path}: annotator(s) {some(clash)} have the name of a column, or a comma in "
            "it. Rename them."
        )
    return Sheet(sheet.path, pd.concat([items, marks.reindex(items.index)], axis=1)), names
