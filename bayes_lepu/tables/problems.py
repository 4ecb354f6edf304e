"""What can be wrong with a table, found in one pass and told in one message.

A `Problem` is one column with one thing wrong. Problems of a kind share a sentence and a remedy;
the command line has the same sentences with remedies of its own.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayes_lepu.errors import DataError
from bayes_lepu.suggestions import some

MAX_COLUMNS = 20

SENTENCES = {
    "missing": "Cells without a value (how many)",
    "infinite": "Infinite values (how many)",
    "date": "Dates or times",
    "duration": "Durations",
    "identifier": "Identifiers or free text: (almost) every row has a value of its own",
    "levels": "Categories with too many levels",
    "number as text": "Numbers written as text",
    "text among numbers": "Text among numbers",
    "empty": "Columns without any value",
    "constant": "Constant column(s)",
    "complex": "Complex numbers, where real numbers are expected",
    "other": "Values that are neither numbers nor categories",
    "unseen": "Levels that the fit has not seen",
}

REMEDIES = {
    "missing": 'Choose missing="drop" (keeps {kept} of {rows} rows), missing="indicator" (the '
    'mean, and a column that says so) or missing="impute" (the mean or the most frequent level).',
    "infinite": "Correct them, or make them missing cells: X.replace([np.inf, -np.inf], np.nan).",
    "date": "Turn a date into a number, for example (pd.to_datetime(X[{first}]) - "
    'pd.Timestamp("2020-01-01")).dt.days; or leave it out: exclude={columns}.',
    "duration": "Turn it into a number, for example X[{first}].dt.total_seconds().",
    "identifier": "They cannot be learned from. Leave them out: exclude={columns}; name the rows "
    "by them: X.set_index({first}); or make numbers of texts (scikit-learn's TfidfVectorizer).",
    "levels": "Join rare levels into one, for example X[{first}].where(X[{first}].map("
    'X[{first}].value_counts()) >= 100, "other"); or leave it out: exclude={columns}.',
    "number as text": "Use pd.to_numeric(X[{first}]), or X[{first}].astype('category') if they are "
    "codes.",
    "text among numbers": "Correct such cells, or make them missing: pd.to_numeric(X[{first}], "
    'errors="coerce").',
    "empty": "Leave them out: exclude={columns}.",
    "constant": "They carry no information and duplicate the intercept; drop them: "
    "exclude={columns}.",
    "complex": "Use X[{first}].abs(), or .real and .imag as two columns.",
    "other": "Make numbers or categories of them, or leave them out: exclude={columns}.",
    "unseen": "Drop or recode such rows, or choose what stands in for them: fit.accept_unseen("
    '"average") (an average row of this column) or fit.accept_unseen("reference").',
}

# What is said of new rows, where the fit can no longer be changed.
NEW_ROWS = REMEDIES | {
    "missing": 'Fill in or drop such rows, or fit again with missing="indicator" or "impute".',
    "number as text": "The fit has numbers here: use pd.to_numeric(X[{first}]).",
    "other": "The fit has numbers here; pass the column in the form it had then.",
    "date": "The fit has numbers here; pass the column in the form it had then.",
}


@dataclass(frozen=True)
class Problem:
    """One column with one thing wrong: a key of `SENTENCES`, the column, and what was found."""

    kind: str
    column: str
    found: str = ""


class TableError(DataError):
    """Everything that is wrong with a table, as records and as one message."""

    def __init__(
        self,
        problems: Sequence[Problem],
        *,
        facts: Mapping[str, object] | None = None,
        remedies: Mapping[str, str] = REMEDIES,
    ) -> None:
        self.problems = tuple(problems)
        self.facts = dict(facts or {})
        super().__init__(describe(self.problems, self.facts, remedies))


class JoinedError(DataError):
    """Errors of several arguments, told together."""

    def __init__(self, errors: Sequence[DataError]) -> None:
        self.errors = tuple(errors)
        super().__init__("\n".join(str(error) for error in errors))


def gather[A, B](first: Callable[[], A], second: Callable[[], B]) -> tuple[A, B]:
    """What two readers return, or one error with all that a table and the other cannot offer."""
    try:
        a = first()
    except TableError as error:
        try:
            second()
        except DataError as other:
            raise JoinedError([error, other]) from None
        raise
    return a, second()


def describe(
    problems: Sequence[Problem],
    facts: Mapping[str, object],
    remedies: Mapping[str, str],
    *,
    subject: str = "X",
) -> str:
    """One line per kind of problem: what was found where, and what to do."""
    kinds = [kind for kind in SENTENCES if any(p.kind == kind for p in problems)]
    lines = []
    for kind in kinds:
        of_kind = [p for p in problems if p.kind == kind]
        names = [p.column for p in of_kind]
        found = [f"{p.column} ({p.found})" if p.found else p.column for p in of_kind]
        remedy = remedies[kind].format(
            first=repr(names[0]), name=names[0], columns=names, names=",".join(names), **facts
        )
        lines.append(f"{SENTENCES[kind]}: {some(found, most=MAX_COLUMNS)}. {remedy}")
    if len(lines) == 1:
        return f"{subject} cannot be used as it is. {lines[0]}"
    return f"{subject} cannot be used as it is, for {len(lines)} reasons:\n" + "\n".join(
        f"- {line}" for line in lines
    )


def first_row(marked: NDArray[np.bool_], index: pd.Index) -> str:
    """The first marked row by its label, and how many more there are."""
    places = np.flatnonzero(marked)
    label = index[places[0]]
    name = f"{index.name} {label}" if index.name is not None else f"{label}"
    more = f" and {len(places) - 1} more" if len(places) > 1 else ""
    return f"row {name}{more}"
