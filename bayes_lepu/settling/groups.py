"""Groups of the rows of a fit: by its own columns, by values brought along, or by a function."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayes_lepu.data.pu_data import PUData
from bayes_lepu.errors import DataError
from bayes_lepu.suggestions import some

type By = str | Sequence[str] | pd.Series | NDArray[Any] | Callable[[pd.DataFrame], Any]


@dataclass(frozen=True, eq=False)
class Groups:
    """The group of every row.

    Attributes
    ----------
    title : str
        What the groups are by.
    names : tuple
        Names of the groups.
    codes : (n,) array of int
        Place of every row's group among the names.
    """

    title: str
    names: tuple[Any, ...]
    codes: NDArray[np.intp]


def read_groups(data: PUData, by: By) -> Groups:
    """Groups by a column of the fit, several of them, one value per row, or a function of them."""
    title = "group"
    if callable(by):
        values = pd.Series(by(pd.DataFrame({c: _column(data, c) for c in data.terms})))
        title = str(values.name or title)
    elif isinstance(by, str):
        title, values = by, _column(data, by)
    elif isinstance(by, list | tuple) and all(isinstance(c, str) and c in data.terms for c in by):
        title = ", ".join(by)
        parts = [_column(data, c).map(_text) for c in by]
        values = parts[0].str.cat(parts[1:], sep=", ") if len(parts) > 1 else parts[0]
    else:
        values = by if isinstance(by, pd.Series) else pd.Series(np.asarray(by))
        title = str(values.name or title)
        if isinstance(by, pd.Series) and not by.index.equals(data.index):
            if not data.index.isin(by.index).all() or by.index.has_duplicates:
                raise DataError("by has no value for some rows of the fit; one each is expected.")
            values = by.loc[data.index]
    if len(values) != data.n:
        raise DataError(f"by has {len(values)} values; one for each of {data.n} rows is expected.")
    if values.isna().any():
        raise DataError(f"by has {int(values.isna().sum())} missing values; fill them first.")
    codes, names = pd.factorize(values, sort=True)
    if len(names) > data.n / 10:
        raise DataError(
            f"{title} has {len(names)} different values; groups of ten rows or more are expected. "
            f"Cut it first, for example by=pd.qcut(X[{title!r}], 4)."
        )
    return Groups(title, tuple(names), codes.astype(np.intp))


def _column(data: PUData, name: str) -> pd.Series:
    """A column of the user's, read back from the encoded ones."""
    terms = data.terms
    if name not in terms or data.encoding.design is not None:
        raise DataError(
            f"{name!r} is no column of this fit ({some(list(terms))}). Pass its values, one per "
            f"row: by=X[{name!r}]."
        )
    places = list(terms[name])
    cells = data.cells(places) * data.scale[places] + data.center[places]
    levels = next((c.levels for c in data.encoding.columns if c.name == name), None)
    if levels is None:
        return pd.Series(np.round(cells[:, 0], 10), name=name)
    found = np.where(cells.max(axis=1) > 0.5, cells.argmax(axis=1) + 1, 0)
    return pd.Series(np.array(levels, dtype=object)[found], name=name)


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
