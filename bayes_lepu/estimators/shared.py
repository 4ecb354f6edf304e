r"""What every classifier here shares: reading input, predictions, fitted attributes.

.. math:: P(l=1 \mid x) = s(x)\,t(x), \qquad t(x) = \sigma(a \cdot x + b)

Conventions
-----------
``coef_`` is (1, p) and ``intercept_`` (1,), as in scikit-learn's `LogisticRegression`, on the scale
of the user's columns. The greater of the two labels in ``classes_`` means "labelled positive".
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, issparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from bayes_lepu._fit import fit as fit_model
from bayes_lepu.errors import DataError
from bayes_lepu.estimators import saving
from bayes_lepu.fitted import Fit
from bayes_lepu.links import Array, sigmoid
from bayes_lepu.models import get_model
from bayes_lepu.runtime.interruption import stops_at_once
from bayes_lepu.suggestions import some
from bayes_lepu.tables.matching import column_places
from bayes_lepu.tables.scaling import column_moments, is_constant

Columns = Sequence[str | int] | None
LEARNED = ("class_prior", "label_frequency", "false_marks")  # options of `fit`


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """Checked input of ``fit``.

    Attributes
    ----------
    X : (n, p) array or sparse matrix
    l : (n,) array of 0/1
    names : array of str or None
        The columns' names, where there are any.
    places : dict
        Position of every column by its name, and by its label where labels are numbers.
    """

    X: Array
    l: NDArray[np.int8]
    names: NDArray[Any] | None
    places: Mapping[Any, int]

    def table(self, keep: NDArray[np.bool_]) -> Any:
        """The columns ``keep`` under the user's names, as `fit` takes them."""
        if self.names is None and keep.all():
            return self.X
        names = (unnamed(self.X.shape[1]) if self.names is None else self.names)[keep]
        if issparse(self.X):
            matrix = csr_matrix(self.X[:, keep])
            return pd.DataFrame.sparse.from_spmatrix(matrix, columns=names)
        return pd.DataFrame(self.X[:, keep], columns=names)

    def positions(self, option: str, columns: Columns) -> list[int] | None:
        """Names or positions of columns as positions."""
        if columns is None:
            return None
        found = []
        for column in [columns] if isinstance(columns, str) else columns:
            if isinstance(column, bool | np.bool_) or column not in self.places:
                names = [name for name in self.places if isinstance(name, str)]
                raise DataError(
                    f"{option} names {column!r}, which is not a column of X. Columns: "
                    f"{some(names)}."
                )
            found.append(self.places[column])
        return found


class LabelClassifier(ClassifierMixin, BaseEstimator):
    """Base of the classifiers: a logistic t(x) and some propensity s(x)."""

    _accept_sparse: str | bool = "csr"

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from rows X and visible labels y."""
        raise NotImplementedError

    def _propensity(self, X: Array) -> Array:
        """s(x) of checked rows; γ + ρ may exceed 1 by rounding."""
        return np.minimum(self.parameters_.s(X), 1.0)

    @property
    def _otherwise(self) -> bool:
        """Whether h is more than s t: false marks."""
        found = getattr(self, "parameters_", None)
        return found is not None and found.epsilon is not None

    def _class_probability(self, X: Array) -> Array:
        """t(x) of checked rows."""
        return sigmoid(self._decision(X))

    def _decision(self, X: Array) -> Array:
        return X @ self.coef_[0] + self.intercept_[0]

    def decision_function(self, X: Any) -> Array:
        """Log-odds of y=1, shape (n,): positive where `predict` says positive."""
        return self._decision(self._rows(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """The more probable class of every row, as one of ``classes_``."""
        positive = self.decision_function(X) > 0
        return self.classes_[positive.astype(int)]

    def predict_proba(self, X: Any) -> Array:
        """P(y | x), shape (n, 2)."""
        t = self._class_probability(self._rows(X))
        return np.column_stack([1.0 - t, t])

    def predict_propensity(self, X: Any) -> Array:
        """s(x) = P(l=1 | y=1, x), shape (n,)."""
        return self._propensity(self._rows(X))

    def predict_label_proba(self, X: Any) -> Array:
        """h(x) = P(l=1 | x), s(x) t(x) unless there are false marks, shape (n,)."""
        rows = self._rows(X)
        if self._otherwise:
            return self.parameters_.h(rows)
        return self._propensity(rows) * self._class_probability(rows)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Minus the Brier score of h(x) against the visible labels: greater is better.

        Accuracy against l would punish every missed positive that is found; h is what l can judge.
        """
        h = self.predict_label_proba(X)
        labelled = np.asarray(y) == self.classes_[1]
        return -float(np.average((labelled - h) ** 2, weights=sample_weight))

    def save(self, path: str | Path) -> Path:
        """Write the fitted classifier to a file of plain data, which `load` reads.

        Unlike a pickle the file can be taken from a stranger: reading it runs nothing.
        """
        check_is_fitted(self)
        return saving.write(self, Path(path))

    def __sklearn_tags__(self) -> Any:
        """Two classes only: labelled and unlabelled."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.sparse = bool(self._accept_sparse)
        return tags

    def _rows(self, X: Any) -> Array:
        check_is_fitted(self)
        return validate_data(
            self, X, dtype=np.float64, accept_sparse=self._accept_sparse, reset=False
        )

    def _read(self, X: Any, y: Any) -> LabelledRows:
        """Checked rows and labels; sets ``classes_``, ``n_features_in_`` and the names."""
        table = X
        X, y = validate_data(
            self,
            X,
            y,
            dtype=np.float64,
            accept_sparse=self._accept_sparse,
            ensure_min_samples=2,
        )
        names = getattr(self, "feature_names_in_", None)
        # scikit-learn forgets labels that are numbers, and options may name columns by these.
        framed = isinstance(table, pd.DataFrame)
        known = names if names is not None else unnamed(X.shape[1])
        places = column_places([str(c) for c in (table.columns if framed else known)], table)
        check_classification_targets(y)
        kind = type_of_target(y, input_name="y", raise_unknown=True)
        self.classes_, l = np.unique(y, return_inverse=True)
        if kind != "binary":
            raise DataError(
                f"Only binary classification is supported. The type of the target is {kind}. "
                "Expected two labels, the greater one for the labelled positives."
            )
        if self.classes_.size < 2:
            raise DataError(
                f"The labels hold one class only ({self.classes_[0]!r}); both labelled and "
                "unlabelled rows are needed."
            )
        return LabelledRows(X, l.astype(np.int8), names, places)

    def _seed(self) -> int:
        return int(check_random_state(self.random_state).randint(2**31 - 1))


def fit_model_into[E: LabelClassifier](
    estimator: E,
    rows: LabelledRows,
    audited: Any,
    penalties: Mapping[str, float | None],
    sample_weight: Any = None,
) -> E:
    """Fit, and set the fitted attributes."""
    result = fit_of(estimator, rows, audited, penalties, sample_weight)
    return _set_fitted(estimator, result, usable_columns(rows.X))


@stops_at_once
def fit_of(
    estimator: LabelClassifier,
    rows: LabelledRows,
    audited: Any,
    penalties: Mapping[str, float | None],
    sample_weight: Any = None,
) -> Fit:
    """MAP fit with the full search for modes.

    Penalties and norms that are None are left to `fit`, those of slopes the model has not are of
    no consequence.
    """
    keep = usable_columns(rows.X)
    norms = {"a": estimator.class_norm, "alpha": estimator.selection_norm}
    selection = rows.positions("selection_features", estimator.selection_features)
    if not get_model(estimator.model).has_selection:
        norms, penalties, selection = {"a": norms["a"]}, {"a": penalties["a"]}, None
    if sample_weight is not None:
        sample_weight = _check_sample_weight(sample_weight, rows.X, dtype=np.float64)
    return fit_model(
        rows.table(keep),
        rows.l,
        model=estimator.model,
        method="map",
        y=None if audited is None else np.asarray(audited),
        sample_weight=sample_weight,
        **{name: getattr(estimator, name) for name in LEARNED},
        class_features=among(rows.positions("class_features", estimator.class_features), keep),
        selection_features=among(selection, keep),
        standardize=estimator.standardize,
        penalty=_given(norms),
        C=_given(penalties),
        orientation=estimator.orientation,
        random_seed=estimator._seed(),
    )


def _given[V](values: Mapping[str, V | None]) -> dict[str, V] | None:
    return {name: value for name, value in values.items() if value is not None} or None


def _set_fitted[E: LabelClassifier](estimator: E, result: Fit, keep: NDArray[np.bool_]) -> E:
    """Fitted attributes from a point estimate on the columns ``keep``, without the rows."""
    point, data = result.draws.take(0), result.data
    a, b = data.original_scale(point.a, point.b)
    alpha, beta = data.original_scale(point.alpha, point.beta)
    found = replace(point, a=_spread(a, keep), b=b, alpha=_spread(alpha, keep), beta=beta)
    estimator.parameters_ = found
    estimator.coef_, estimator.intercept_ = found.a[None], np.atleast_1d(b)
    estimator.class_prior_ = float(result.pi_draws[0])
    estimator.label_frequency_ = float(result.c_draws[0])
    estimator.modes_ = result.mode_table()
    if point.epsilon is not None:
        estimator.false_mark_rate_ = float(point.epsilon)
    if result.spec.has_selection:
        estimator.propensity_coef_ = found.alpha[None]
        estimator.propensity_intercept_ = np.atleast_1d(beta)
        estimator.guess_rate_, estimator.lapse_rate_ = float(found.gamma), float(found.lam)
    return estimator


def usable_columns(X: Array) -> NDArray[np.bool_]:
    """Columns that are not constant; the others say nothing beyond the intercept."""
    keep = ~is_constant(*column_moments(X))
    if not keep.any():
        raise DataError(f"All {X.shape[1]} column(s) of X are constant; at least one must vary.")
    return keep


def unnamed(p: int) -> NDArray[Any]:
    """The names x0, x1, ... of columns without names."""
    return np.array([f"x{j}" for j in range(p)], dtype=object)


def among(columns: list[int] | None, keep: NDArray[np.bool_]) -> list[int] | None:
    """Positions among the columns that are kept."""
    if columns is None:
        return None
    place = np.cumsum(keep) - 1
    return [int(place[j]) for j in columns if keep[j]]


def _spread(slopes: Array, keep: NDArray[np.bool_]) -> Array:
    full = np.zeros(keep.size)
    full[keep] = slopes
    return full
