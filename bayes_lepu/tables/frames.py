"""Any kind of data frame as a pandas one: polars, pyarrow, and whatever narwhals knows.

Names are kept, so that new rows are matched by name whichever library holds them.
"""

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import pandas as pd

from bayes_lepu.errors import DataError
from bayes_lepu.suggestions import did_you_mean, some


def as_frame(X: Any, *, without: Collection[str] = ()) -> pd.DataFrame | None:
    """A pandas frame with the columns of ``X`` but those in ``without``; None for an array.

    Index and values of a pandas frame are its own, not copies. Columns left out are not converted.
    """
    if isinstance(X, pd.DataFrame):
        return X.loc[:, [str(c) not in without for c in X.columns]] if without else X
    if not _may_be_a_frame(X):
        return None
    import narwhals.stable.v2 as nw

    frame = nw.from_native(X, pass_through=True)
    if isinstance(frame, nw.LazyFrame):
        raise DataError(
            f"X is a lazy frame ({type(X).__module__}.{type(X).__name__}); rows in memory are "
            "expected. Use X.collect() (polars, narwhals) or X.compute() (dask) first; lepu.fit "
            "and lepu.dask.predict_proba take Dask frames as they are."
        )
    if not isinstance(frame, nw.DataFrame):
        return None
    names = [name for name in frame.columns if name not in without]
    columns = {name: _column(frame[name]) for name in names}
    return pd.DataFrame(columns, index=pd.RangeIndex(len(frame)))


def column_names(X: Any) -> tuple[str, ...] | None:
    """The column names of a frame of any kind; None for an array."""
    if isinstance(X, pd.DataFrame):
        return tuple(str(c) for c in X.columns)
    if not _may_be_a_frame(X):
        return None
    import narwhals.stable.v2 as nw

    frame = nw.from_native(X, pass_through=True)
    return tuple(frame.columns) if isinstance(frame, nw.DataFrame) else None


def take_column(X: Any, name: str | Sequence[str], *, option: str) -> Any:
    """The column (or several) of a frame that an option names, such as ``l="marked"``."""
    known = column_names(X)
    if known is None:
        raise DataError(
            f"{option}={name!r} is the name of a column, but X is a {type(X).__name__} without "
            f"column names. Pass a DataFrame that holds the column, or the values of {option}."
        )
    for one in [name] if isinstance(name, str) else name:
        if one not in known:
            raise DataError(
                f"{option} names {one!r}, which is not a column of X.{did_you_mean(one, known)} "
                f"Columns: {some(known, most=12)}."
            )
    wanted = {name} if isinstance(name, str) else set(name)
    frame = as_frame(X, without=set(known) - wanted)
    assert frame is not None  # it has column names
    frame = frame.set_axis([str(c) for c in frame.columns], axis=1)
    return frame[name] if isinstance(name, str) else frame[list(name)]


def take_roles(
    X: Any, l: Any, y: Any, sample_weight: Any, exclude: Sequence[str]
) -> tuple[Any, Any, Any, tuple[str, ...]]:
    """Labels, audits and weights, from the columns of X they name; and what is no feature.

    Several names of labels, as a list, are several annotators.
    """
    aside: list[str] = []
    taken = []
    for option, value in (("l", l), ("y", y), ("sample_weight", sample_weight)):
        several = option == "l" and _are_names(value, X)
        names = [value] if isinstance(value, str) else value if several else []
        taken.append(take_column(X, value, option=option) if names else value)
        aside += names
    if isinstance(exclude, str):
        raise DataError(f"exclude={exclude!r} is a single value; pass a list: [{exclude!r}].")
    if len(exclude):
        take_column(X, [str(name) for name in exclude], option="exclude")
    return taken[0], taken[1], taken[2], (*aside, *map(str, exclude))


def row_count(X: Any) -> int:
    """Number of rows of a frame or array."""
    shape = X.shape if hasattr(X, "shape") else np.shape(X)
    return int(shape[0]) if shape else 0


def _are_names(value: Any, X: Any) -> bool:
    """Whether this is a list of column names rather than a list of labels in words."""
    return (
        isinstance(value, list | tuple)
        and 0 < len(value) < row_count(X)
        and all(isinstance(v, str) for v in value)
    )


def _may_be_a_frame(X: Any) -> bool:
    """Whether X could be a frame: narwhals is loaded only for what is no plain array."""
    return not isinstance(X, np.ndarray | list | tuple | pd.Series) and not np.isscalar(X)


def _column(series: Any) -> Any:
    """One column in pandas' own types, missing cells kept."""
    import narwhals.stable.v2 as nw

    kind = series.dtype
    if isinstance(kind, nw.Decimal):
        return series.cast(nw.Float64).to_numpy()
    if kind.is_numeric():
        return series.to_numpy()
    if isinstance(kind, nw.Boolean):
        return pd.array(series.to_list(), dtype="boolean")
    if isinstance(kind, nw.Enum):  # a Categorical of polars has no order of the user's
        return pd.Categorical(series.to_list(), categories=series.cat.get_categories().to_list())
    return pd.Series(series.to_list(), dtype=object)
