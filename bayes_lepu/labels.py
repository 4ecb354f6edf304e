"""The codings of labels that are understood: 0/1, False/True, and 1 or nothing.

"Positive or unknown" is how positive-unlabelled data are usually written down: 1 where somebody
marked the row, and no value elsewhere.
"""

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayes_lepu.errors import DataError
from bayes_lepu.links import Array
from bayes_lepu.suggestions import some


def zero_or_one(array: NDArray[Any]) -> NDArray[np.int8]:
    """Visible labels as 0 and 1; where 1 is the only value, a missing one is 0."""
    numbers = array if array.dtype.kind in "fiub" else as_numbers("l", array, "0/1 or bool is")
    values = np.unique(numbers)
    if np.isin(values, (0, 1)).all():
        return np.array(numbers, dtype=np.int8)  # a copy: the fit must not change with it
    known = values[~np.isnan(values)]
    if known.tolist() == [1]:
        return np.ascontiguousarray(numbers == 1, dtype=np.int8)
    if known.tolist() == [0, 1]:
        gaps = int(np.isnan(numbers).sum())
        raise DataError(
            f"l holds 0, 1 and {gaps} missing value(s) (nan); 0 and 1, or 1 and missing, are "
            "expected. If missing means unlabelled, use l.fillna(0); if nobody looked at these "
            "rows, leave them out: X[l.notna()], l[l.notna()]."
        )
    hint = ""
    if len(known) == 2:
        low, high = known.tolist()
        hint = f"Use (l == {high:g}).astype(int) if {high:g} marks the labelled rows, "
        hint += f"(l == {low:g}).astype(int) if {low:g} does."
    elif len(known) > 2:
        hint = (
            "If l is a score, the marked rows are those above a threshold: (l > 0.5).astype(int)."
        )
    raise DataError(
        f"l holds the values {some([f'{v:.6g}' for v in values])}; only 0 (unlabelled) and 1 "
        f"(labelled positive), or False and True, are expected. {hint}".rstrip()
    )


def as_numbers(name: str, array: NDArray[Any], allowed: str) -> Array:
    """Float64 values, NaN for None and pandas.NA; text is refused."""
    if array.dtype.kind in "fiub":
        return array.astype(float)
    values = array.tolist()  # plain Python values, which print without their NumPy type
    try:
        numbers = np.array([np.nan if v is None or v is pd.NA else float(v) for v in values])
    except (TypeError, ValueError):
        numbers = None
    if numbers is None or any(isinstance(v, str) for v in values):
        found = sorted({repr(v) for v in values if v is not None and v is not pd.NA})
        hint = f"({name} == {found[-1]}).astype(int)" if len(found) <= 2 else "(0 and 1)"
        raise DataError(
            f"{name} holds {some(found)}; {allowed} expected. Recode it first, for example {hint}."
        )
    return numbers
