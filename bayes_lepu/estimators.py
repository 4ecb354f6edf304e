r"""Classifiers for scikit-learn: MAP fits, and Elkan and Noto's estimator.

.. math:: P(l=1 \mid x) = s(x)\,t(x), \qquad t(x) = \sigma(a \cdot x + b), \qquad
    \min \; -\log L + C_a \lVert a\rVert + C_\alpha \lVert\alpha\rVert

`PUClassifier` and `ElkanNotoClassifier` work in pipelines and searches, with metadata routing and
sparse rows. The second argument of ``fit`` has scikit-learn's name ``y`` but is the *visible label
l*; true classes of audited rows are given as ``fit(X, l, audited=...)``.

``predict`` and ``predict_proba`` are about the hidden class y, ``predict_label_proba`` about the
visible label l, ``predict_propensity`` about s(x) = P(l=1 | y=1, x). Tools of scikit-learn that use
the labels are about l: `CalibratedClassifierCV` fitted to (X, l) returns P(l=1 | x), and
``scoring="accuracy"`` rewards classifiers that miss the same positives as the annotator. The score
of these classifiers is minus the Brier score of h(x) = P(l=1 | x). It compares models and
penalties, but cannot show which factor of h = s t is the class, nor the accuracy of t.

A fitted classifier keeps its parameters, not its training rows. Store it like any classifier of
scikit-learn (pickle, skops); ``to_fit(X, l).save(path)`` writes a file of plain data.

Conventions
-----------
``coef_`` is (1, p) and ``intercept_`` (1,), as in scikit-learn's `LogisticRegression`, on the scale
of the user's columns. The greater of the two labels in ``classes_`` means "labelled positive".
``import bayes_lepu`` does not import this module.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, issparse
from scipy.special import logit
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from bayes_lepu._fit import fit as fit_model
from bayes_lepu.data.encoding import column_places
from bayes_lepu.data.learned import FOLDS, read_learner
from bayes_lepu.data.scaling import column_moments, is_constant
from bayes_lepu.errors import DataError, ModelError
from bayes_lepu.factors.curves import LOGISTIC_FACTOR as LOGISTIC
from bayes_lepu.fitted import Fit
from bayes_lepu.links import Array
from bayes_lepu.model import AUTO, get_model
from bayes_lepu.runtime.interruption import stops_at_once
from bayes_lepu.suggestions import some

__all__ = ["ElkanNotoClassifier", "PUClassifier"]

Columns = Sequence[str | int] | None
Known = tuple[float, float] | None


class LabelClassifier(ClassifierMixin, BaseEstimator):
    """Base of both classifiers: predictions from a class t(x) and a propensity s(x)."""

    class_learner: Any = None  # for a class that is not linear; it needs dense rows

    def _class_probability(self, X: Array) -> Array:
        """t(x) of validated rows."""
        raise NotImplementedError

    def _propensity(self, X: Array) -> Array:
        """s(x) of validated rows."""
        raise NotImplementedError

    def _decision(self, X: Array) -> Array:
        """Decision function of validated rows: increasing in t(x), above 0 where t(x) > 1/2."""
        raise NotImplementedError

    def _label_probability(self, X: Array) -> Array:
        return self._propensity(X) * self._class_probability(X)

    def decision_function(self, X: Any) -> Array:
        """Log-odds of y=1, shape (n,): above 0 where `predict` returns the positive class."""
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
        return self._label_probability(self._rows(X))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Minus the Brier score of h(x) against the visible labels: greater is better."""
        labelled = np.asarray(y) == self.classes_[1]
        error = (labelled - self.predict_label_proba(X)) ** 2
        return -float(np.average(error, weights=sample_weight))

    def __sklearn_tags__(self) -> Any:
        """Two classes only: labelled and unlabelled."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.sparse = not read_learner(self.class_learner)
        return tags

    def _checked(self, *tables: Any, **how: Any) -> Any:
        sparse = False if read_learner(self.class_learner) else "csr"
        return validate_data(self, *tables, dtype=np.float64, accept_sparse=sparse, **how)

    def _rows(self, X: Any) -> Array:
        """Validated rows."""
        check_is_fitted(self)
        return self._checked(X, reset=False)

    def _read(self, X: Any, y: Any) -> tuple[Array, NDArray[np.int8]]:
        """Validated rows and labels 0/1; sets ``classes_``, ``n_features_in_`` and the names."""
        X, y = self._checked(X, y, ensure_min_samples=2)
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
                f"The labels have one class only ({self.classes_[0]!r}); both labelled and "
                "unlabelled rows are needed."
            )
        return X, l.astype(np.int8)

    def _seed(self) -> int:
        return int(check_random_state(self.random_state).randint(2**31 - 1))


@dataclass(eq=False, repr=False, kw_only=True)
class PUClassifier(LabelClassifier):
    r"""Learn t(x) = P(y=1 | x) and the propensity s(x) = P(l=1 | y=1, x) from visible labels.

    .. math:: P(l=1 \mid x) = s(x)\,t(x), \qquad
        t(x) = \sigma(a \cdot x + \textstyle\sum_k w_k z_k(x) + b)

    with no z(x) unless there is a ``class_learner``.

    Parameters
    ----------
    model, class_link, class_learner
        As in `bayes_lepu.fit`, except that the default is "psychm". Searches set parameters of a
        learner as ``class_learner__max_depth``. "naive" and "scar" ignore the options
        ``selection_*``, so that one search can run over all models.
    class_prior, label_frequency, false_marks, standardize, orientation
        As in `bayes_lepu.fit`.
    class_penalty, selection_penalty : float, optional
        Weights C_a and C_α of the penalty on the slopes of t and of s. *Larger is stronger*: the
        opposite of scikit-learn's ``C``, which for L2 is 1/(2 C_a). For SPM keep
        ``selection_penalty >= class_penalty``: the class is the factor with the larger slopes, so
        its slopes should not be shrunk more.
    class_norm, selection_norm : {"l2", "l1", "none"}, optional
        Norm of the slopes that is penalised. Without these four options the penalties are the
        defaults of `bayes_lepu.fit`, which keep the propensity smoother than the class. If some of
        them are given, the others are "l2" and 0.01.
    class_features, selection_features : sequence of names or positions, optional
        Columns that may enter t and s.
    random_state : int, RandomState or None

    Attributes
    ----------
    coef_, intercept_ : arrays of shape (1, p) and (1,)
        a and b of t, on the scale of X.
    learner_coef_ : array of shape (1, K)
        w, of the log-odds by every learner, with ``class_learner``.
    propensity_coef_, propensity_intercept_ : arrays of shape (1, p) and (1,)
        Of s, on the scale of X, where columns enter the propensity.
    guess_rate_, lapse_rate_, false_mark_rate_ : float
        γ and λ, 0 in SPM; ε, with ``false_marks``.
    class_prior_, label_frequency_ : float
        π, the mean of t over the training rows, and c, the mean of h over that of t.
    modes_ : DataFrame
        All local optima found, the answer first.
    parameters_ : Parameters
        All parameters on the scale of X; the columns of learners stand last.
    classes_, n_features_in_, feature_names_in_

    Examples
    --------
    >>> from bayes_lepu import load_demo
    >>> from bayes_lepu.estimators import PUClassifier
    >>> demo = load_demo()
    >>> PUClassifier(model="scar").fit(demo.X, demo.l).predict_proba(demo.X).shape
    (2500, 2)
    """

    model: str = "psychm"
    class_link: Any = None
    class_learner: Any = "auto"
    class_penalty: float | None = None
    selection_penalty: float | None = None
    class_norm: str | None = None
    selection_norm: str | None = None
    class_features: Columns = None
    selection_features: Columns = None
    class_prior: Known = None
    label_frequency: Known = None
    false_marks: Any = False
    standardize: bool = True
    orientation: str = "sigma-norm"
    random_state: Any = None

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, audited: Any = None) -> Self:
        """Learn from rows X, visible labels y, and true classes where known (NaN elsewhere).

        ``sample_weight`` is how often every row counts; the same as repeating rows.
        """
        return self._keep(*self._fitted(X, y, sample_weight, audited))

    def to_fit(self, X: Any, y: Any, sample_weight: Any = None, *, audited: Any = None) -> Fit:
        """The same fit as a `bayes_lepu.Fit`, which keeps the rows and has verdict and report.

        ``print(classifier.to_fit(X, y))`` shows what these labels identify.
        """
        return clone(self)._fitted(X, y, sample_weight, audited)[0]

    @stops_at_once
    def _fitted(self, X: Any, y: Any, weight: Any, audited: Any) -> tuple[Fit, NDArray[np.bool_]]:
        """MAP fit with the full search for modes, and the mask of the columns used.

        For penalties and norms that are None, `bayes_lepu.fit` has the defaults.
        """
        # scikit-learn forgets labels that are numbers, and options may name columns by these.
        labels = [str(c) for c in X.columns] if isinstance(X, pd.DataFrame) else []
        rows, l = self._read(X, y)
        keep, names = usable_columns(rows), getattr(self, "feature_names_in_", [])
        places = column_places(labels or [*names] or [f"x{j}" for j in range(rows.shape[1])])
        options = self.get_params(deep=False)
        del options["random_state"]
        norms = {"a": options.pop("class_norm"), "alpha": options.pop("selection_norm")}
        C = {"a": options.pop("class_penalty"), "alpha": options.pop("selection_penalty")}
        for name in ("class_features", "selection_features"):
            options[name] = _positions(name, options[name], places, keep)
        if self.model != AUTO and not get_model(self.model).has_selection:
            options["selection_features"] = norms["alpha"] = C["alpha"] = None
        if weight is not None:
            weight = _check_sample_weight(weight, rows, dtype=np.float64)
        found = fit_model(
            _table(rows, keep, names),
            l,
            method="map",
            y=None if audited is None else np.asarray(audited),
            sample_weight=weight,
            penalty=_given(norms),
            C=_given(C),
            random_seed=self._seed(),
            **options,
        )
        return found, keep

    def _keep(self, found: Fit, keep: NDArray[np.bool_]) -> Self:
        """Set the fitted attributes, from a fit to the columns ``keep``."""
        point, data = found.draws.take(0), found.data
        a, b = data.original_scale(point.a, point.b)
        alpha, beta = data.original_scale(point.alpha, point.beta)
        learned = data.is_learned
        a, alpha = (
            np.concatenate([_spread(slopes[~learned], keep), slopes[learned]])
            for slopes in (a, alpha)
        )
        self.parameters_ = replace(point, a=a, b=b, alpha=alpha, beta=beta)
        self.coef_, self.intercept_ = a[None, : keep.size], np.atleast_1d(b)
        self.learned_ = (keep, data.rows(np.arange(0))) if learned.any() else None
        if learned.any():
            self.learner_coef_ = a[None, keep.size :]
        self.class_prior_ = float(found.pi_draws[0])
        self.label_frequency_ = float(found.c_draws[0])
        self.modes_ = found.mode_table()
        if point.epsilon is not None:
            self.false_mark_rate_ = float(point.epsilon)
        if found.spec.has_selection:
            self.propensity_coef_ = alpha[None, : keep.size]
            self.propensity_intercept_ = np.atleast_1d(beta)
            self.guess_rate_, self.lapse_rate_ = float(point.gamma), float(point.lam)
        return self

    def _rows(self, X: Any) -> Array:
        """Checked rows, with the log-odds of the learners beside them."""
        rows = super()._rows(X)
        if self.learned_ is None:
            return rows
        keep, data = self.learned_
        at = data.is_learned
        scores = data.transform(rows[:, keep])[0][:, at] * data.scale[at] + data.center[at]
        return np.hstack([rows, scores])

    def _class_probability(self, X: Array) -> Array:
        return self.parameters_.t(X)

    def _propensity(self, X: Array) -> Array:
        return np.minimum(self.parameters_.s(X), 1.0)  # γ + ρ may exceed 1 by rounding

    def _label_probability(self, X: Array) -> Array:
        if self.parameters_.epsilon is not None:
            return self.parameters_.h(X)
        return super()._label_probability(X)

    def _decision(self, X: Array) -> Array:
        found = self.parameters_
        return found.tau(X) if found.of_class.name == LOGISTIC.name else logit(found.t(X))


@dataclass(eq=False, repr=False, kw_only=True)
class ElkanNotoClassifier(LabelClassifier):
    r"""Elkan and Noto's two-step estimator: P(y=1 | x) = min(1, g(x)/c), g = P(l=1 | x).

    Parameters
    ----------
    estimator : classifier of scikit-learn, optional
        The classifier for g, such as ``HistGradientBoostingClassifier()``. By default a logistic
        regression, ``PUClassifier(model="naive")`` with the same penalty.
    class_penalty : float
        Weight of the penalty on the squared slopes of g. *Larger is stronger*: the opposite of
        scikit-learn's ``C``, which is 1/(2 ``class_penalty``).
    holdout : float in (0, 1) or None
        Share of the rows kept back to estimate c. None uses every row for both steps: the ranking
        is then exactly that of ``PUClassifier(model="naive")``. An ``estimator`` may overfit its
        training rows; c is then the mean of five-fold cross-fitted g over the labelled rows.
    standardize : bool
        Penalise the slopes of standardised columns.
    random_state : int, RandomState or None
        Seed of the split.

    Attributes
    ----------
    coef_, intercept_ : arrays of shape (1, p) and (1,)
        Of the logistic g, which is no classifier of y; `decision_function` is zero where
        g(x) = c/2.
    estimator_ : classifier
        The fitted g.
    label_frequency_, class_prior_ : float
        c, and the mean of min(1, g/c) over the training rows.
    classes_, n_features_in_, feature_names_in_

    References
    ----------
    Elkan and Noto (2008), doi 10.1145/1401890.1401920.

    Examples
    --------
    >>> import bayes_lepu as lepu
    >>> from bayes_lepu.estimators import ElkanNotoClassifier
    >>> demo = lepu.load_demo()
    >>> ElkanNotoClassifier(random_state=0).fit(demo.X, demo.l).predict_proba(demo.X).shape
    (2500, 2)
    """

    estimator: Any = None
    class_penalty: float = 0.01
    holdout: float | None = 0.2
    standardize: bool = True
    random_state: Any = None

    @stops_at_once
    def fit(self, X: Any, y: Any, *, held_out: Any = None) -> Self:
        """Learn from rows X and visible labels y.

        ``held_out`` (bool, one per row) marks the rows kept back for c, instead of ``holdout``.
        """
        X, l = self._read(X, y)
        seed = self._seed()
        kept = _kept_back(l == 1, self.holdout, held_out, seed)
        train = kept if kept.all() else ~kept
        self.estimator_ = self._learner_of_labels(seed).fit(X[train], l[train])
        if self.estimator is None:
            self.coef_, self.intercept_ = self.estimator_.coef_, self.estimator_.intercept_
        if kept.all() and self.estimator is not None:
            folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
            unfitted = clone(self.estimator_)
            g = cross_val_predict(unfitted, X, l, cv=folds, method="predict_proba")[:, 1]
        else:
            g = self._g(X)
        self.label_frequency_ = float(g[kept & (l == 1)].mean())
        self.class_prior_ = float(self._class_probability(X).mean())
        return self

    def _learner_of_labels(self, seed: int) -> Any:
        """The classifier for g, unfitted and with a seed."""
        if self.estimator is None:
            return PUClassifier(
                model="naive",
                class_penalty=self.class_penalty,
                standardize=self.standardize,
                random_state=seed,
            )
        if not (hasattr(self.estimator, "fit") and hasattr(self.estimator, "predict_proba")):
            raise ModelError(
                f"estimator is {self.estimator!r}; a classifier of scikit-learn with fit and "
                "predict_proba is expected, for example HistGradientBoostingClassifier()."
            )
        learner = clone(self.estimator)
        if learner.get_params().get("random_state", 0) is None:
            learner.set_params(random_state=seed)
        return learner

    def _g(self, X: Array) -> Array:
        """P(l=1 | x)."""
        return self.estimator_.predict_proba(X)[:, 1]

    def _propensity(self, X: Array) -> Array:
        return np.full(X.shape[0], self.label_frequency_)

    def _class_probability(self, X: Array) -> Array:
        return np.minimum(self._g(X) / self.label_frequency_, 1.0)

    def _decision(self, X: Array) -> Array:
        """Logit g - logit(c/2): the ranking of g, without the ties of clipping, zero at t = 1/2."""
        rounding = np.finfo(float).eps  # log-odds of exactly 0 and 1 are infinite
        g = np.clip(self._g(X), rounding, 1 - rounding)
        return logit(g) - logit(self.label_frequency_ / 2)


def _given[V](values: Mapping[str, V | None]) -> dict[str, V] | None:
    return {name: value for name, value in values.items() if value is not None} or None


def usable_columns(X: Array) -> NDArray[np.bool_]:
    """Columns that are not constant; a constant column equals the intercept."""
    keep = ~is_constant(*column_moments(X))
    if not keep.any():
        raise DataError(f"All {X.shape[1]} column(s) of X are constant; at least one must vary.")
    return keep


def _table(X: Array, keep: NDArray[np.bool_], names: Sequence[str]) -> Any:
    """The columns ``keep`` as `bayes_lepu.fit` takes them, under the names of all columns."""
    if not len(names):
        if keep.all():
            return X
        names = [f"x{j}" for j in range(X.shape[1])]
    kept = np.asarray(names, dtype=object)[keep]
    if issparse(X):
        return pd.DataFrame.sparse.from_spmatrix(csr_matrix(X[:, keep]), columns=kept)
    return pd.DataFrame(X[:, keep], columns=kept)


def _positions(
    option: str, columns: Columns, places: Mapping[Any, int], keep: NDArray[np.bool_]
) -> list[int] | None:
    """Names or positions of columns as positions among the columns ``keep``."""
    if columns is None:
        return None
    chosen = [columns] if isinstance(columns, str) else columns
    for column in chosen:
        if isinstance(column, bool | np.bool_) or column not in places:
            names = [name for name in places if isinstance(name, str)]
            raise DataError(
                f"{option} names {column!r}, which is not a column of X. Columns: {some(names)}."
            )
    place = np.cumsum(keep) - 1
    return [int(place[places[c]]) for c in chosen if keep[places[c]]]


def _spread(slopes: Array, keep: NDArray[np.bool_]) -> Array:
    """Slopes of all columns, from those of the columns ``keep`` and 0 for the others."""
    full = np.zeros(keep.size)
    full[keep] = slopes
    return full


def _kept_back(
    label: NDArray[np.bool_], holdout: float | None, held_out: Any, seed: int
) -> NDArray[np.bool_]:
    """Rows kept back for c: those given, or the same share of labelled and of unlabelled rows.

    If neither is given, all rows, on which g is trained as well.
    """
    if held_out is not None:
        kept = np.asarray(held_out)
        if kept.shape != label.shape or kept.dtype != bool:
            raise DataError(
                f"held_out has shape {kept.shape} and type {kept.dtype}; expected one bool per "
                f"row, shape {label.shape}."
            )
        if not (kept & label).any():
            raise DataError("held_out has no labelled row, so c cannot be estimated from it.")
        if len(np.unique(label[~kept])) < 2:
            raise DataError("held_out leaves no labelled or no unlabelled row to learn from.")
        return kept
    if holdout is None:
        return np.ones(len(label), dtype=bool)
    if not (isinstance(holdout, float | int) and 0 < holdout < 1):
        raise DataError(f"holdout is {holdout!r}; expected a share between 0 and 1, or None.")
    kept, rng = np.zeros(len(label), dtype=bool), np.random.default_rng(seed)
    for kind, word in ((True, "labelled"), (False, "unlabelled")):
        rows = np.flatnonzero(label == kind)
        if len(rows) < 2:
            raise DataError(
                f"There is {len(rows)} {word} row; holding rows back needs at least 2 (one to "
                "learn from, one to keep). Pass holdout=None."
            )
        number = min(max(round(holdout * len(rows)), 1), len(rows) - 1)
        kept[rng.permutation(rows)[:number]] = True
    return kept
