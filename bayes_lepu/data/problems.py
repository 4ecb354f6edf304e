"""Problems of a table, found in one pass and reported in one message.

A `Problem` is one fault of one column. Problems of the same kind share a sentence and a remedy.
"""

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayes_lepu.errors import DataError
from bayes_lepu.suggestions import some


class ProblemKind(Enum):
    """A fault that a column can have, in the order of the message.

    It has a sentence and three remedies: in Python, at the command line (if that differs), and for
    new rows, when the fit can no longer be changed. ``{leave_out}`` is the option that leaves the
    column out.
    """

    MISSING = (
        "Cells without a value (how many)",
        'Choose missing="indicator" (the mean, and a column for it) or missing="impute" (the '
        "mean or the most frequent level); or leave out their rows ({kept} of {rows} stay) where "
        "df holds the labels, too: df = df.dropna(subset={columns}).",
        "Choose --missing indicator (the mean, and a column for it) or --missing impute (the "
        "mean or the most frequent level); or leave out their lines ({kept} of {rows} stay).",
        'Fill in or leave out such rows, or fit again with missing="indicator" or "impute".',
    )
    INFINITE = (
        "Infinite values (how many)",
        "Correct them, or make them missing cells: X.replace([np.inf, -np.inf], np.nan).",
        "Correct them, read them as blank with --blank inf, or leave the column out: {leave_out}.",
        "Correct them.",
    )
    DATE = (
        "Dates or times",
        "Turn a date into a number, for example (pd.to_datetime(X[{first}]) - "
        'pd.Timestamp("2020-01-01")).dt.days; or leave it out: {leave_out}.',
        "Add a column with the number that matters (days since, hour, month), and leave the date "
        "out: {leave_out}.",
    )
    DURATION = (
        "Durations",
        "Turn it into a number, for example X[{first}].dt.total_seconds().",
        "Write them as numbers, or leave them out: {leave_out}.",
    )
    IDENTIFIER = (
        "Identifiers or free text: (almost) every row has a value of its own",
        "They cannot be learned from. Leave them out: {leave_out}; name the rows by them: "
        "X.set_index({first}); or make numbers of texts (scikit-learn's TfidfVectorizer).",
        "Name the rows by one of them with --id {name}, and leave the others out: {leave_out}.",
    )
    LEVELS = (
        "Categories with too many levels",
        "Join rare levels into one, for example X[{first}].where(X[{first}].map("
        'X[{first}].value_counts()) >= 100, "other"); or leave it out: {leave_out}.',
        "Join rare levels into one in the file, or leave it out: {leave_out}.",
    )
    NUMBER_AS_TEXT = (
        "Numbers written as text",
        "Use pd.to_numeric(X[{first}]), or X[{first}].astype('category') if they are codes.",
        "Store them as numbers, or leave them out: {leave_out}.",
    )
    COMMAS = (
        "Numbers with a decimal comma",
        "Use pd.read_csv(..., decimal=','), or X[{first}].str.replace(',', '.').astype(float).",
        "Store them with a decimal point, or leave them out: {leave_out}.",
    )
    TEXT_AMONG_NUMBERS = (
        "Text among numbers",
        'Correct such cells, or make them missing: pd.to_numeric(X[{first}], errors="coerce").',
        "Correct such cells, read them as blank with --blank TEXT, or leave the column out: "
        "{leave_out}.",
    )
    EMPTY = "Columns without any value", "Leave them out: {leave_out}."
    CONSTANT = (
        "Constant column(s)",
        "They carry no information and duplicate the intercept; drop them: {leave_out}.",
    )
    OTHER = (
        "Values that are neither numbers nor categories",
        "Make numbers or categories of them, or leave them out: {leave_out}.",
    )
    UNSEEN = (
        "Levels that the fit has not seen",
        "Drop or recode such rows, or let the most frequent level stand in for them: "
        "fit.accept_unseen().",
        "Let the most frequent level stand in for them: --accept-unseen.",
        "",
    )

    def __init__(
        self,
        sentence: str,
        python: str,
        shell: str = "",
        new: str = "The fit has numbers here; pd.to_numeric makes them of text.",
    ) -> None:
        self.sentence = sentence
        self.python, self.shell, self.new = python, shell or python, new


class Problem(NamedTuple):
    """One fault of one column: its kind, the column, and what was found."""

    kind: ProblemKind
    column: str
    found: str = ""


class TableError(DataError):
    """All problems of a table, as records and as one message."""

    def __init__(
        self,
        problems: Sequence[Problem],
        *,
        facts: Mapping[str, object] | None = None,
        new_rows: bool = False,
        besides: str = "",
    ) -> None:
        self.problems, self.facts, self.new_rows = tuple(problems), dict(facts or {}), new_rows
        self.besides = besides  # what is wrong with the labels
        super().__init__(self.describe())

    def describe(self, *, subject: str = "X", shell: bool = False) -> str:
        """One line per kind of problem: what was found where, and what to do."""
        lines = []
        for kind in ProblemKind:
            if not (own := [p for p in self.problems if p.kind is kind]):
                continue
            names = [p.column for p in own]
            short = 120  # characters of a cell, which may be a whole text
            cells = [f"{p.found[:short]} …" if p.found[short:] else p.found for p in own]
            columns = zip(names, cells, strict=True)
            found = some([f"{name} ({cell})" if cell else name for name, cell in columns], most=20)
            remedy = (self.new_rows and kind.new) or (kind.shell if shell else kind.python)
            remedy = remedy.format(
                first=repr(names[0]),
                name=names[0],
                columns=names,
                leave_out=f"--exclude {','.join(names)}" if shell else f"exclude={names}",
                **self.facts,
            )
            lines.append(f"{kind.sentence}: {found}. {remedy}")
        lines += [self.besides] if self.besides else []
        if len(lines) == 1:
            return f"{subject} cannot be used as it is. {lines[0]}"
        reasons = "\n".join(f"- {line}" for line in lines)
        return f"{subject} cannot be used as it is, for {len(lines)} reasons:\n{reasons}"


def first_row(marked: NDArray[np.bool_], index: pd.Index) -> str:
    """The first marked row by its label, and how many more there are."""
    places = np.flatnonzero(marked)
    name = f"{index.name} {index[places[0]]}" if index.name is not None else f"{index[places[0]]}"
    return f"row {name}" + (f" and {len(places) - 1} more" if len(places) > 1 else "")
