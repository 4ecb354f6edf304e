"""Public tables with known classes: CSV files of a folder, and those that scikit-learn brings.

A CSV file holds feature columns and a last column ``y`` (1 = positive). Text columns become one
0/1 column per level, as the literature does with the House votes (a missing vote is 0 in both);
missing numbers become the median, with a 0/1 column that says where.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

DEFAULT_FOLDER = Path(__file__).resolve().parents[3] / "shared" / "data" / "uci"


@dataclass(frozen=True, eq=False)
class Table:
    """Rows of numbers with their true classes.

    Attributes
    ----------
    name : str
    X : (n, p) array
    y : (n,) array of 0/1
    """

    name: str
    X: NDArray[np.float64]
    y: NDArray[np.int64]


def load_tables(folder: Path | None = None, *, wanted: tuple[str, ...] = ()) -> list[Table]:
    """Every table, or those named, by name."""
    folder = folder or DEFAULT_FOLDER
    if not folder.is_dir():
        raise SystemExit(f"No folder {folder}. Name the folder of the CSV tables with --tables.")
    readers: dict[str, Callable[[], Table]] = {
        path.stem: (lambda path=path: read_csv(path)) for path in sorted(folder.glob("*.csv"))
    }
    readers |= SCIKIT_LEARN
    if unknown := sorted(set(wanted) - set(readers)):
        raise SystemExit(f"No table named {', '.join(unknown)}; there are {', '.join(readers)}.")
    return [read() for name, read in readers.items() if not wanted or name in wanted]


def read_csv(path: Path) -> Table:
    """One CSV file."""
    frame = pd.read_csv(path)
    y = frame.pop("y").to_numpy(dtype=np.int64)
    return Table(path.stem, _numbers(frame), y)


def _numbers(frame: pd.DataFrame) -> NDArray[np.float64]:
    columns: list[pd.Series] = []
    for name in frame:
        column = frame[name]
        if not pd.api.types.is_numeric_dtype(column):
            columns += [
                (column == level).astype(float) for level in sorted(column.dropna().unique())
            ]
            continue
        missing = column.isna()
        columns.append(column.fillna(column.median()))
        if missing.any():
            columns.append(missing.astype(float))
    return np.column_stack(columns).astype(float)


def _scikit_learn(name: str, loader: str, positive: Callable[[NDArray], NDArray]) -> Table:
    import sklearn.datasets

    X, target = getattr(sklearn.datasets, loader)(return_X_y=True)
    return Table(name, np.asarray(X, dtype=float), positive(target).astype(np.int64))


SCIKIT_LEARN: dict[str, Callable[[], Table]] = {
    "wdbc": lambda: _scikit_learn("wdbc", "load_breast_cancer", lambda y: y == 0),
    "wine": lambda: _scikit_learn("wine", "load_wine", lambda y: y == 1),
    "digits-8": lambda: _scikit_learn("digits-8", "load_digits", lambda y: y == 8),
    "digits-even": lambda: _scikit_learn("digits-even", "load_digits", lambda y: y % 2 == 0),
    "diabetes": lambda: _scikit_learn("diabetes", "load_diabetes", lambda y: y > 150),
}
