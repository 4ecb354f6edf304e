"""Columns found by name: those of new rows, and those that options ask for."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayes_lepu.data.encoding import Encoding
from bayes_lepu.data.frames import column_names
from bayes_lepu.errors import DataError
from bayes_lepu.suggestions import did_you_mean, nearest, some

if TYPE_CHECKING:
    from bayes_lepu.data.user_table import Table


def frame_names(X: pd.DataFrame) -> tuple[str, ...]:
    """Names of the columns as text; each must be there once."""
    names = tuple(str(c) for c in X.columns)
    check_names(names)
    return names


def check_names(names: tuple[str, ...]) -> None:
    """Refuse names that occur twice, and those that are no text."""
    try:
        "".join(names).encode()
    except UnicodeEncodeError as error:
        start, stop = error.start, error.end
        raise DataError(
            f"A column name holds {error.object[start:stop]!a}, half of a character, which no file "
            "can hold. Rename the column."
        ) from None
    twice = sorted(c for c, count in Counter(names).items() if count > 1)
    if twice:
        raise DataError(
            f"X has duplicate column names: {some(twice)}. Every column needs its own name; "
            "rename or drop the copies."
        )


def match_columns(X: pd.DataFrame, names: tuple[str, ...]) -> pd.DataFrame:
    """The columns of these names in this order; missing and unknown ones are refused."""
    got = frame_names(X)
    position, known = {c: j for j, c in enumerate(got)}, set(names)
    missing = [c for c in names if c not in position]
    extra = [c for c in got if c not in known]
    if missing or extra:
        parts = [f"missing column(s) {some(missing)}"] if missing else []
        parts += [f"unknown column(s) {some(extra)}"] if extra else []
        near = nearest(missing[0], extra) if missing else None
        rename = f" Rename {near!r} to {missing[0]!r}?" if near else ""
        raise DataError(
            f"X does not match the fitted columns: {'; '.join(parts)}.{rename} "
            "Select them with X[list(fit.data.user_columns)]."
        )
    return X.iloc[:, [position[c] for c in names]]


def term_places(
    encoding: Encoding, feature_names: tuple[str, ...], X: Any
) -> dict[Any, tuple[int, ...]]:
    """Positions of the columns of numbers by every name a column of the user's may be asked for.

    A category is asked for by its own name or by that of one level (``country=DE``).
    """
    terms = encoding.terms(feature_names)
    places: dict[Any, tuple[int, ...]] = {
        name: (j,) for j, name in enumerate(feature_names)
    } | terms
    names = column_names(X) or tuple(terms)
    by_number = column_places(names, X)
    return places | {key: terms[names[j]] for key, j in by_number.items() if names[j] in terms}


def column_places(names: Sequence[str], X: Any) -> dict[Any, int]:
    """Positions of the columns by name and by number, whichever way they are asked for.

    In a table whose columns are labelled by numbers a number is a label, elsewhere a position.
    """
    places: dict[Any, int] = {name: j for j, name in enumerate(names)}
    labels = X.columns if isinstance(X, pd.DataFrame) else ()
    numbers = [c for c in labels if isinstance(c, int | np.integer)]
    return places | ({c: places[str(c)] for c in numbers} or {j: j for j in range(len(names))})


def check_width(got: int, wanted: Sequence[str]) -> None:
    """Refuse another number of columns than the fit has."""
    if got != len(wanted):
        raise DataError(
            f"X has {got} columns, but the model was fitted on {len(wanted)}: "
            f"{some(wanted)}. Pass the same columns in the same order."
        )


def read_mask(
    option: str, columns: Sequence[str | int] | None, table: "Table", X: Any
) -> NDArray[np.bool_]:
    """Which columns an option such as ``class_features`` names; all of them by default."""
    names = table.names
    if table.masks is not None:
        return table.masks[option == "selection_features"]
    if columns is None:
        return np.ones(len(names), dtype=bool)
    if isinstance(columns, str) or not isinstance(columns, Iterable):
        raise DataError(
            f"{option}={columns!r} is a single value; pass a list, [{columns!r}], or a formula, "
            f"'~ {columns}'."
        )
    position = term_places(table.encoding, names, X)
    known = table.encoding.terms(names)
    mask = np.zeros(len(names), dtype=bool)
    for column in columns:
        if isinstance(column, bool | np.bool_):
            raise DataError(
                f"{option} holds {column!r}; names or positions of columns are expected. From a "
                "boolean mask: X.columns[mask], or np.flatnonzero(mask) for an array."
            )
        if column not in position:
            raise DataError(
                f"{option} names {column!r}, which is not a column of X."
                f"{did_you_mean(column, known)} Columns: {some(tuple(known))}."
                + ("" if table.named else " Name them by pd.DataFrame(X, columns=[...]).")
            )
        mask[list(position[column])] = True
    if not mask.any():
        raise DataError(
            f"{option} is empty. Name at least one column, or use model='scar' for a constant "
            "propensity."
        )
    return mask
