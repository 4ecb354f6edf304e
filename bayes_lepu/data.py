"""The one door for user input: tables and labels in, one frozen value out.

Everything downstream works on `PUData` and checks nothing again.

Conventions
-----------
``n`` rows, ``p`` columns. ``X`` is C-contiguous float64 of shape ``(n, p)`` on the internal
scale ``(x - center) / scale``. ``y`` holds audited classes and NaN where the class is unknown.
"""

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayes_lepu.encoding import Encoding
from bayes_lepu.errors import OWN_CODE, DataError, DataWarning
from bayes_lepu.formulas import read_design
from bayes_lepu.frames import row_count, take_roles
from bayes_lepu.labels import as_numbers, zero_or_one
from bayes_lepu.links import Array, RowKind
from bayes_lepu.problems import gather
from bayes_lepu.suggestions import did_you_mean, some
from bayes_lepu.tables import Table, encode_rows, read_table, refuse_swapped, term_places

TINY = 1e-100  # standard deviations below it are computed in other units


@dataclass(frozen=True, eq=False)
class PUData:
    """Validated positive-unlabelled data on the internal scale.

    Attributes
    ----------
    X : (n, p) array
        Features on the internal scale.
    l : (n,) int8 array
        Visible labels.
    y : (n,) array
        Audited classes, NaN where unknown.
    kind : (n,) int8 array
        `RowKind` of each row.
    feature_names : tuple of str
    named : bool
        Whether the names came from the user, and so are matched in predictions.
    center, scale : (p,) arrays
        Internal scale is ``(x - center) / scale``.
    class_mask, selection_mask : (p,) bool arrays
        Columns that enter t and s.
    index : pandas.Index
        Row labels, carried into every table of results.
    encoding : Encoding
        How the user's columns became columns of numbers.
    """

    X: Array
    l: NDArray[np.int8]
    y: Array
    kind: NDArray[np.int8]
    feature_names: tuple[str, ...]
    named: bool
    center: Array
    scale: Array
    class_mask: NDArray[np.bool_]
    selection_mask: NDArray[np.bool_]
    index: pd.Index
    encoding: Encoding = field(default_factory=Encoding)

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.X.shape[0]

    @property
    def p(self) -> int:
        """Number of columns."""
        return self.X.shape[1]

    @property
    def terms(self) -> dict[str, tuple[int, ...]]:
        """Positions of the columns of X that belong to each column of the user's."""
        return self.encoding.terms(self.feature_names)

    @property
    def n_annotators(self) -> int:
        """Number of annotators."""
        return 1

    @property
    def annotators(self) -> tuple[str, ...]:
        """Names of the annotators."""
        return ("annotator",)

    @property
    def n_audited(self) -> int:
        """Number of unlabelled rows whose class is known."""
        return int(np.sum(self.kind >= RowKind.MISSED))

    @property
    def class_dim(self) -> str:
        """Name of the dimension of the classifier's slopes."""
        return "feature" if self.class_mask.all() else "class_feature"

    @property
    def selection_dim(self) -> str:
        """Name of the dimension of the propensity's slopes."""
        return "feature" if self.selection_mask.all() else "selection_feature"

    @property
    def swap_symmetric(self) -> bool:
        """Whether exchanging the two factors leaves the SPM likelihood as it is."""
        return self.n_audited == 0 and bool(np.array_equal(self.class_mask, self.selection_mask))

    def transform(self, X: Any) -> tuple[Array, pd.Index]:
        """New rows on the internal scale, columns matched by name where names are known."""
        values, index = encode_rows(X, self.encoding, self.feature_names, named=self.named)
        return (values - self.center) / self.scale, index

    def original_scale(self, slope: Array, intercept: Array) -> tuple[Array, Array]:
        """Coefficients on the user's own scale, from those on the internal scale.

        Works on any leading draw dimensions: ``slope`` is ``(..., p)``.
        """
        raw = slope / self.scale
        return raw, intercept - raw @ self.center


def read_data(
    X: Any,
    l: Any,
    *,
    y: Any = None,
    class_features: Sequence[str | int] | None = None,
    selection_features: Sequence[str | int] | None = None,
    class_formula: str | None = None,
    selection_formula: str | None = None,
    exclude: Sequence[str] = (),
    missing: str = "error",
    unseen: str = "error",
    standardize: bool = True,
) -> PUData:
    """Check and normalise everything the user hands in; one error tells all that is wrong.

    Parameters
    ----------
    X : data frame of any kind or 2-d array
        Features: numbers, flags and categories.
    l : sequence of 0/1 or bool, or the name of a column of X
        Visible labels, one per row.
    y : sequence or the name of a column of X, optional
        Audited classes: 0, 1, or NaN where unknown.
    class_formula, selection_formula : str, optional
        Terms of t and of s, such as ``"~ bs(amount, df=5) + country"``.
    exclude : sequence of names
        Columns of X that are no features.
    missing : {"error", "drop", "indicator", "impute"}
        What to do about missing cells of X.
    unseen : {"error", "average", "reference"}
        What stands in for levels of new rows that no row here has.
    class_features, selection_features : sequence of names or positions, optional
        Columns allowed in the classifier t and in the propensity s. All by default.
    standardize : bool
        Centre every column and divide it by its standard deviation (ddof = 0).
    """
    if not isinstance(standardize, bool | np.bool_):
        raise DataError(f"standardize={standardize!r}; True or False is expected.")
    refuse_swapped(X, l)
    l, y, aside = take_roles(X, l, y, exclude)
    design = None
    if class_formula is not None or selection_formula is not None:
        if class_features is not None or selection_features is not None:
            raise DataError(
                "Formulas and class_features or selection_features are given; formulas name the "
                "columns already. Leave the lists out."
            )
        design = read_design(class_formula, selection_formula)
    table, labels = gather(
        lambda: read_table(X, missing=missing, unseen=unseen, aside=aside, design=design),
        lambda: _read_labels(l, row_count(X), X),
    )
    audited = _read_classes(y, labels, X)
    if table.kept is not None:
        labels, audited = labels[table.kept], audited[table.kept]
    values, names = table.numbers, table.names
    _refuse_label_among_features(values, names, labels)
    center, scale, values = _standardise(
        values, names, standardize=standardize, in_place=table.owned
    )
    kind = labels.copy()
    kind[(labels == 0) & (audited == 1)] = RowKind.MISSED
    kind[(labels == 0) & (audited == 0)] = RowKind.NEGATIVE
    return PUData(
        X=values,
        l=labels,
        y=audited,
        kind=kind,
        feature_names=names,
        named=table.named,
        center=center,
        scale=scale,
        class_mask=_read_mask("class_features", class_features, table, X),
        selection_mask=_read_mask("selection_features", selection_features, table, X),
        index=table.index,
        encoding=table.encoding,
    )


def warn_if_small(data: PUData, n_parameters: int) -> None:
    """Warn when an unpenalised fit has more parameters than rows."""
    if data.n < n_parameters:
        warnings.warn(
            f"{data.n} rows for {n_parameters} unpenalised parameters: the estimate is not "
            "unique. Add a penalty (C > 0) or a proper prior, or use fewer columns.",
            DataWarning,
            skip_file_prefixes=OWN_CODE,
        )


def read_vector(name: str, values: Any, n: int, X: Any) -> NDArray[Any]:
    """A 1-d array of length n; pandas rows must already be in the order of X."""
    if values is None:
        raise DataError(f"{name} is None; one value per row, shape ({n},), is expected.")
    if isinstance(values, pd.DataFrame):
        values = values.squeeze("columns")
    if isinstance(values, np.ma.MaskedArray):
        values = np.ma.filled(values.astype(float), np.nan)  # a masked entry is a missing one
    if (
        isinstance(values, pd.Series)
        and isinstance(X, pd.DataFrame)
        and len(values) == len(X)
        and not values.index.equals(X.index)
    ):
        raise DataError(
            f"The index of {name} differs from the index of X, so it is unclear which row is "
            f"which. Use {name} = {name}.loc[X.index], or {name}.to_numpy() if the order is right."
        )
    if isinstance(values, pd.Series):
        is_object = values.dtype.kind not in "fiub"
        array = values.to_numpy(dtype=object) if is_object else values.to_numpy()
    else:
        array = np.asarray(values)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise DataError(
            f"{name} has shape {array.shape}; one value per row, shape ({n},), is expected."
        )
    if array.shape[0] != n:
        raise DataError(
            f"X has {n} rows but {name} has {array.shape[0]} values. Both need one entry per row."
        )
    return array


def _read_labels(l: Any, n: int, X: Any) -> NDArray[np.int8]:
    if np.ndim(l) == 2 and np.shape(l)[1] > 1:
        raise DataError(
            f"l has shape {np.shape(l)}; one value per row, shape ({n},), is expected. If its "
            "columns are several annotators of the same rows, use lepu.fit_panel(X, l)."
        )
    labels = zero_or_one(read_vector("l", l, n, X))
    if labels.sum() == 0:
        raise DataError("No row is labelled (l is 0 everywhere): there is nothing to learn from.")
    if labels.sum() == n:
        raise DataError(
            "Every row is labelled (l is 1 everywhere): unlabelled rows are needed. If these are "
            "positives only, add the background rows with l = 0."
        )
    return labels


def _refuse_label_among_features(
    values: Array, names: tuple[str, ...], labels: NDArray[np.int8]
) -> None:
    for j, name in enumerate(names):
        column = values[:, j]
        if column[0] in (labels[0], 1 - labels[0]) and (
            np.array_equal(column, labels) or np.array_equal(column, 1 - labels)
        ):
            raise DataError(
                f"Column {name!r} is the label itself: it equals l (or 1 - l) in every row. Drop "
                f"it from X, for example X.drop(columns=[{name!r}])."
            )


def _read_classes(y: Any, labels: NDArray[np.int8], X: Any) -> Array:
    n = labels.shape[0]
    if y is None:
        return np.full(n, np.nan)
    classes = as_numbers("y", read_vector("y", y, n, X), "0, 1 or NaN (unknown) is")
    known = classes[~np.isnan(classes)]
    if not np.isin(known, (0, 1)).all():
        raise DataError(
            f"y holds the values {some(np.unique(known).tolist())}; 0, 1 or NaN where the class "
            "is unknown is expected."
        )
    contradiction = np.flatnonzero((labels == 1) & (classes == 0))
    if contradiction.size:
        raise DataError(
            f"{contradiction.size} row(s) are labelled (l=1) but audited as negative (y=0), first "
            f"at position {contradiction[0]}. A labelled row is positive by assumption; correct "
            "l or y."
        )
    return classes


def is_constant(center: Array, spread: Array) -> NDArray[np.bool_]:
    """Columns that do not vary beyond rounding, by mean and standard deviation."""
    # Relative to the centre alone, so that the units of a column do not matter.
    return spread <= 1e-12 * np.abs(center)


def _standardise(
    values: Array, names: tuple[str, ...], *, standardize: bool, in_place: bool
) -> tuple[Array, Array, Array]:
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        center = values.mean(axis=0)
        centred = np.subtract(values, center, out=values if in_place and standardize else None)
        spread = np.sqrt(np.einsum("ij,ij->j", centred, centred) / values.shape[0])
        # Squares vanish or overflow where the numbers themselves do not.
        extreme = np.flatnonzero((spread < TINY) | ~np.isfinite(spread))
        for j in extreme:
            spread[j] = _spread(centred[:, j])
    constant = is_constant(center, spread) & np.isfinite(center)
    if constant.any():
        raise DataError(
            f"Constant column(s): {some([names[j] for j in np.flatnonzero(constant)])}. They "
            "carry no information and duplicate the intercept; drop them."
        )
    extreme = extreme if not standardize else np.flatnonzero(~np.isfinite(center + spread))
    if extreme.size:
        remedy = "Change the units." if standardize else "Change the units, or standardize=True."
        raise DataError(
            f"The values of column(s) {some([names[j] for j in extreme])} are too large or too "
            f"small: their variance cannot be computed. {remedy}"
        )
    if not standardize:
        # The fit must not change when the caller's array does.
        return np.zeros_like(center), np.ones_like(center), values if in_place else values.copy()
    centred /= spread
    return center, spread, centred


def _spread(centred: Array) -> float:
    """Standard deviation of a column in units of its largest deviation."""
    largest = float(np.max(np.abs(centred)))
    if largest == 0 or not np.isfinite(largest):
        return largest
    return largest * float(np.sqrt(np.mean((centred / largest) ** 2)))


def _read_mask(
    option: str, columns: Sequence[str | int] | None, table: Table, X: Any
) -> NDArray[np.bool_]:
    names = table.names
    if table.masks is not None:
        return table.masks[option == "selection_features"]
    if columns is None:
        return np.ones(len(names), dtype=bool)
    if isinstance(columns, str) or not isinstance(columns, Iterable):
        raise DataError(f"{option}={columns!r} is a single value; pass a list: [{columns!r}].")
    position = term_places(table, X)
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
            )
        mask[list(position[column])] = True
    if not mask.any():
        raise DataError(
            f"{option} is empty. Name at least one column, or use model='scar' for a constant "
            "propensity."
        )
    return mask
