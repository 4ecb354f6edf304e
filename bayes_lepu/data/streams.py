"""Tables that are not in memory: files, data sets and batches, read part by part.

Three passes come before a fit: one counts the rows of every kind, one takes a random sample of
them, and one finds mean and spread of the columns. The sample teaches how columns become numbers
(levels of categories, knots of splines); it is what the search for modes begins with, and what is
judged and shown of single rows.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayes_lepu.data.annotators import ONE
from bayes_lepu.data.parts import Batches, Parts, Source, random_keys, refuse_other_rows
from bayes_lepu.data.pu_data import PUData
from bayes_lepu.data.reading import read_data
from bayes_lepu.errors import DataError
from bayes_lepu.links import Array, RowKind, row_kinds
from bayes_lepu.suggestions import some
from bayes_lepu.tables.frames import as_frame, take_column
from bayes_lepu.tables.labels import (
    as_numbers,
    check_weights,
    read_classes,
    read_vector,
    read_weights,
    zero_or_one,
)
from bayes_lepu.tables.matching import frame_names
from bayes_lepu.tables.scaling import too_extreme

BATCH_ROWS = 131_072  # of a file at a time; 20 columns of them take 20 MB
READ_AHEAD = 2  # batches of a file
# Rows held in memory: so many that 2,000 of them are labelled, within these limits.
FEWEST_HELD, MOST_HELD, LABELLED_HELD = 20_000, 60_000, 2_000
POOL_ROWS = 60_000  # of every kind
POOL_CELLS = 12_000_000  # of every kind: 100 MB
SUFFIXES = {".parquet": "parquet", ".pq": "parquet", ".feather": "feather", ".arrow": "feather"}
SUFFIXES |= {".csv": "csv"}


@dataclass(frozen=True)
class Roles:
    """Names of the columns that are no features.

    Attributes
    ----------
    l : str
    y, weight : str or None
    false_marks : bool
        Whether a marked row may be audited as negative.
    """

    l: str
    y: str | None
    weight: str | None
    false_marks: bool

    def read(self, frame: Any) -> tuple[NDArray[np.int8], Array, Array]:
        """Labels, audited classes and weights of one part."""
        labels = self.marks(frame)
        y = None if self.y is None else take_column(frame, self.y, option="y")
        weight = None
        if self.weight is not None:
            weight = take_column(frame, self.weight, option="sample_weight")
        n = len(labels)
        classes = read_classes(y, labels[:, None], None, false_marks=self.false_marks)
        return labels, classes, read_weights(weight, n, None, part=True)

    def marks(self, frame: Any) -> NDArray[np.int8]:
        """Labels of one part as 0 and 1."""
        return np.asarray(self.numbers(frame) == 1, dtype=np.int8)

    def numbers(self, frame: Any) -> Array:
        """Labels of one part as they are written."""
        column = take_column(frame, self.l, option="l")
        return as_numbers("l", read_vector("l", column, len(column), None), "0/1 or bool is")


def as_source(X: Any) -> Source | None:
    """What the parts of a table come from; None for a table in memory."""
    if isinstance(X, Batches) or hasattr(X, "is_source"):
        return X
    if isinstance(X, str | Path) or _are_files(X):
        return _from_dataset(_open(X))
    if hasattr(X, "to_batches") and hasattr(X, "scanner"):  # a data set of pyarrow
        return _from_dataset(X)
    if isinstance(X, list | tuple):
        frames = bool(X) and all(hasattr(part, "columns") for part in X)
        return Batches(lambda: iter(X)) if frames else None
    if isinstance(X, Mapping) or hasattr(X, "shape") or hasattr(X, "__array__"):
        return None
    if isinstance(X, Iterator):
        raise DataError(
            f"X is an iterator ({type(X).__name__}), which can be gone through once only. Pass "
            "what begins anew each time: a list, or a function that returns an iterator of batches."
        )
    if isinstance(X, Iterable):
        return Batches(lambda: iter(X))
    return Batches(partial(_begin, X)) if callable(X) else None


def _begin(make: Callable[[], Any]) -> Iterator[Any]:
    batches = make()
    if not isinstance(batches, Iterable):
        raise DataError(
            f"X is a function that returned a {type(batches).__name__}; an iterator of data frames "
            "is expected."
        )
    return iter(batches)


def _are_files(X: Any) -> bool:
    several = isinstance(X, list | tuple) and bool(X)
    return several and all(isinstance(part, str | Path) for part in X)


def _open(files: Any) -> Any:
    """A data set of pyarrow from the names of its files, or of a folder of them."""
    try:
        import pyarrow.dataset as ds
    except ImportError as error:
        raise DataError(
            "Files are read by pyarrow, which is not installed. Use pip install "
            "'bayes-lepu[parquet]', or pass a function that returns an iterator of batches."
        ) from error
    paths = [Path(f) for f in (files if isinstance(files, list | tuple) else [files])]
    if absent := [str(path) for path in paths if not path.exists()]:
        raise DataError(
            f"X names {absent[0]!r}, and there is no such file. A table, or the name of a file "
            "(Parquet, Feather, CSV) or folder, is expected."
        )
    suffix = paths[0].suffix if paths[0].is_file() else ".parquet"
    if suffix not in SUFFIXES:
        raise DataError(
            f"X names {str(paths[0])!r}; files that end in {', '.join(SUFFIXES)} are expected. "
            "Pass others as pyarrow.dataset.dataset(path, format=...)."
        )
    names = [str(path) for path in paths]
    with _readable():
        return ds.dataset(names if len(names) > 1 else names[0], format=SUFFIXES[suffix])


@contextmanager
def _readable() -> Iterator[None]:
    """An error of ours where pyarrow finds a file empty, cut short or damaged."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError) as error:
        raise DataError(
            f"X cannot be read: {' '.join(str(error).split())[:300]}. Take another copy of the "
            "file, or pass a table."
        ) from error


def _from_dataset(dataset: Any) -> Batches:
    import pyarrow.dataset as ds

    options: dict[str, Any] = {"batch_size": BATCH_ROWS, "batch_readahead": READ_AHEAD}
    if isinstance(getattr(dataset, "format", None), ds.ParquetFileFormat):
        # Whole row groups would otherwise be read ahead, several at a time. Pages that were written
        # with a checksum are held to it.
        options["fragment_scan_options"] = ds.ParquetFragmentScanOptions(
            pre_buffer=False, page_checksum_verification=True
        )

    before = _stamps(dataset)

    def begin() -> Iterator[pd.DataFrame]:
        with _readable():
            if _stamps(dataset) != before:
                raise DataError(
                    "A file of X was changed while it was being read, pass by pass. Fit a copy "
                    "that nobody changes."
                )
            for batch in dataset.to_batches(fragment_readahead=1, **options):
                if batch.num_rows:
                    yield batch.to_pandas()

    return Batches(begin)


def _stamps(dataset: Any) -> list[tuple[int, int]]:
    """Size and time of the last change of every file on this machine."""
    from pyarrow.fs import LocalFileSystem

    if not isinstance(getattr(dataset, "filesystem", None), LocalFileSystem):
        return []
    found = [Path(file).stat() for file in dataset.files]
    return [(file.st_size, file.st_mtime_ns) for file in found]


def read_parts(
    source: Source,
    l: Any,
    *,
    y: Any,
    sample_weight: Any,
    false_marks: bool,
    missing: str,
    standardize: bool,
    progressbar: bool,
    **options: Any,
) -> PUData:
    """The data of a table in parts; see `read_data` for the options."""
    for option, value in (("l", l), ("y", y), ("sample_weight", sample_weight)):
        if not (isinstance(value, str) or (value is None and option != "l")):
            raise DataError(
                f"{option} is a {type(value).__name__}; of a table that is not in memory the name "
                "of a column is expected"
                + (", of one annotator." if option == "l" and isinstance(value, list) else ".")
            )
    if missing == "drop":
        raise DataError(
            "missing='drop' needs the table in memory. Leave such rows out when reading, for "
            "example pyarrow.dataset.dataset(path).filter(...), or use missing='impute'."
        )
    roles = Roles(l, y, sample_weight, false_marks)
    sizes, counts, weights = _count(source, roles)
    pool, keys = _sample(source, roles, sizes, counts)
    taught = read_data(
        pool,
        l,
        y=y,
        sample_weight=sample_weight,
        false_marks=false_marks,
        missing=missing,
        standardize=False,
        **options,
    )
    if standardize:
        taught = _standardised(taught, source, roles)
    template = taught.rows(np.arange(0))
    parts = Parts(
        source.map(partial(read_part, template=template, roles=roles)),
        counts,
        weights,
        pool=taught,
        keys=keys,
        show=_progress(len(sizes)) if progressbar else iter,
    )
    wanted = int(np.clip(LABELLED_HELD / _rate(counts), FEWEST_HELD, MOST_HELD))
    held = np.sort(np.argsort(keys)[:wanted])
    return replace(taught.rows(held), parts=parts)


def read_part(frame: Any, template: PUData, roles: Roles) -> PUData:
    """The rows of one part, encoded as those of the template are."""
    table = _table(frame)
    X, index = _plain_numbers(table, template), table.index
    if X is None:
        X, index = template.transform(table)
    labels, y, weight = roles.read(frame)
    return replace(
        template, X=X, labels=labels[:, None], y=y, index=index, weight=weight, annotators=ONE
    )


def _table(frame: Any) -> pd.DataFrame:
    table = as_frame(frame)
    if table is None:
        raise DataError(f"A part of X is a {type(frame).__name__}; a data frame is expected.")
    return table


def _plain_numbers(table: pd.DataFrame, template: PUData) -> Array | None:
    """The rows on the internal scale where every column is a plain number; None elsewhere.

    The same as `PUData.transform`, which looks at each cell, in half the time.
    """
    names = template.feature_names
    if template.encoding.columns or template.encoding.design or not set(names) <= {*table.columns}:
        return None
    columns = [table[name] for name in names]
    if any(not isinstance(c.dtype, np.dtype) or c.dtype.kind not in "fiub" for c in columns):
        return None
    X = np.empty((len(table), len(names)))
    for j, column in enumerate(columns):
        X[:, j] = column.to_numpy()
    if not np.isfinite(X.sum()):
        return None
    X -= template.center
    X /= template.scale
    return X


def _count(source: Source, roles: Roles) -> tuple[list[int], NDArray[np.int64], Array]:
    """Rows of every part; rows of every kind, and their weights."""
    sizes, written = [], []
    counts, weights = np.zeros(len(RowKind), dtype=np.int64), np.zeros(len(RowKind))
    for size, values, of_kind, weight in source.map(partial(_count_part, roles=roles)):
        sizes.append(size)
        written.append(values)
        counts += of_kind
        weights += weight
    if not counts.sum():
        raise DataError("X is empty: no part of it has a row.")
    marks = zero_or_one(np.concatenate(written))  # refuses what labels cannot be
    if not marks.any() or not counts[[RowKind.UNLABELLED, RowKind.MISSED, RowKind.NEGATIVE]].any():
        everywhere = int(marks.any())
        raise DataError(f"l is {everywhere} everywhere; labelled and unlabelled rows are needed.")
    of_marked = weights[[RowKind.LABELLED, RowKind.FALSE_MARK]].sum()
    check_weights(float(of_marked), float(weights.sum() - of_marked))
    return sizes, counts, weights


def _count_part(frame: Any, roles: Roles) -> tuple[int, Array, NDArray[np.int64], Array]:
    labels, y, weight = roles.read(frame)
    kind = row_kinds(labels, y)
    of_kind = np.bincount(kind, minlength=len(RowKind)).astype(np.int64)
    weight = weight if weight.size else np.ones(len(kind))
    weights = np.bincount(kind, weights=weight, minlength=len(RowKind)).astype(float)
    return len(kind), np.unique(roles.numbers(frame)), of_kind, weights


def _sample(
    source: Source, roles: Roles, sizes: list[int], counts: NDArray[np.int64]
) -> tuple[pd.DataFrame, Array]:
    """Rows of every kind at random, and their random numbers."""
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).tolist()
    frames: list[pd.DataFrame] = []
    keys: list[Array] = []
    n = 0
    for size, frame, key in source.map(partial(_sample_part, roles=roles, counts=counts), starts):
        n += size
        frames.append(frame)
        keys.append(key)
    refuse_other_rows(n, sum(sizes))
    names = [frame_names(frame) for frame in frames]
    for part, found in enumerate(names):
        if {*found} != {*names[0]}:
            raise DataError(
                f"Part {part} of X has the columns {some(found, most=12)}; those of part 0, "
                f"{some(names[0], most=12)}, are expected."
            )
    return pd.concat(frames), np.concatenate(keys)


def _sample_part(
    frame: Any, start: int, roles: Roles, counts: NDArray[np.int64]
) -> tuple[int, pd.DataFrame, Array]:
    """How many rows one part has, and those whose random numbers are small enough."""
    table = _table(frame)
    wanted = min(POOL_ROWS, max(POOL_CELLS // table.shape[1], FEWEST_HELD))
    # As many as are wanted of each kind come out, give or take what chance does.
    bar = (wanted + 4 * np.sqrt(wanted)) / np.maximum(counts, 1)
    labels, y, _ = roles.read(frame)
    keys = random_keys(start, len(labels))
    keep = np.flatnonzero(keys < bar[row_kinds(labels, y)])
    places = pd.RangeIndex(start, start + len(keys))[keep]
    return len(keys), table.iloc[keep].set_axis(places), keys[keep]


def _standardised(pool: PUData, source: Source, roles: Roles) -> PUData:
    """The pool on the scale of all rows: mean 0 and standard deviation 1."""
    template = pool.rows(np.arange(0))
    W, mean, squares = 0.0, np.zeros(pool.p), np.zeros(pool.p)
    for w, m, q in source.map(partial(_moments, template=template, roles=roles)):
        if w == 0:
            continue  # no row of this part counts
        # Means and squares of two parts together (Chan, Golub and LeVeque, 1983).
        away = m - mean
        mean = mean + away * (w / (W + w))
        squares += q + away**2 * (W * w / (W + w))
        W += w
    scale = np.sqrt(squares / W)
    if (extreme := np.flatnonzero(~np.isfinite(mean + scale))).size:
        raise too_extreme([pool.feature_names[j] for j in extreme])
    scale[pool.encoding.unscaled(pool.feature_names)] = 1.0
    return pool.rescaled(mean, scale)


def _moments(frame: Any, template: PUData, roles: Roles) -> tuple[float, Array, Array]:
    """Sum of weights, means, and sums of squares about them, of one part."""
    part = read_part(frame, template, roles)
    weight = part.weight if part.weight.size else np.ones(part.n)
    W = float(weight.sum())
    mean = weight @ part.X / (W or 1.0)
    away = part.X - mean
    return W, mean, weight @ (away * away)


def _rate(counts: NDArray[np.int64]) -> float:
    return float((counts[RowKind.LABELLED] + counts[RowKind.FALSE_MARK]) / counts.sum())


def _progress(parts: int) -> Callable[[Iterable[Any]], Iterable[Any]]:
    """A bar for every pass, which disappears when the pass is over."""
    passes = 0

    def show(rows: Iterable[Any]) -> Iterable[Any]:
        nonlocal passes
        from rich.progress import track

        passes += 1
        return track(rows, description=f"pass {passes} over the rows", total=parts, transient=True)

    return show
