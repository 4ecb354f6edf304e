r"""scikit-learn classifiers over the MAP fits: penalties given or cross-validated; Elkan and Noto.

.. math:: P(l=1 \mid x) = s(x)\,t(x), \qquad t(x) = \sigma(a \cdot x + b), \qquad
    \min \; -\log L + C_a \lVert a\rVert + C_\alpha \lVert\alpha\rVert

`PUClassifier`, `PUClassifierCV` and `ElkanNotoClassifier` follow scikit-learn's contract:
``fit(X, l)``, ``predict``, ``predict_proba``, ``decision_function``, ``get_params``, `clone`,
pipelines, searches (over models and learners too), metadata routing. The second argument of
``fit`` bears scikit-learn's name ``y`` but is the *visible label l*; true classes of audited rows
go to ``fit(X, l, audited=...)``.

``predict`` and ``predict_proba`` are about the hidden class y, ``predict_label_proba`` about the
visible label l, ``predict_propensity`` about s(x) = P(l=1 | y=1, x). Tools of scikit-learn that
learn from the labels once more turn the answer into one about l: `CalibratedClassifierCV` fitted on
(X, l) returns P(l=1 | x), and a search by ``scoring="accuracy"`` rewards missing what the annotator
missed. The default score of these classifiers is minus the Brier score of h(x) = P(l=1 | x), which
held-out labels can judge: they compare models and choose penalties. They cannot show which factor
of h = s t is the class, nor the class prior where two models with the same h differ in it, nor the
accuracy of t. A propensity s that is known from outside can, since a labelled row then stands for
1/s(x) positives: for calls d and w = l/s, the mean of 1 - d + w (2d - 1) is an unbiased estimate of
their accuracy. With the propensity of the same fit that figure checks nothing.

A fitted classifier keeps its parameters and not the rows it was trained on. Store it as any other
of scikit-learn's (pickle, skops); ``to_fit(X, l).save(path)`` writes a file of plain data, with
verdict and report.

Conventions
-----------
``coef_`` is (1, p) and ``intercept_`` (1,), as in scikit-learn's `LogisticRegression`, on the scale
of the user's columns. The greater of the two labels in ``classes_`` means "labelled positive".
``import bayes_lepu`` does not import this module.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix, issparse
from scipy.special import logit
from scipy.stats import rankdata
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, check_cv, cross_val_predict
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from bayes_lepu._fit import fit as fit_model
from bayes_lepu.data.encoding import column_places
from bayes_lepu.data.learned import FOLDS, read_learner
from bayes_lepu.data.reading import read_data
from bayes_lepu.data.scaling import column_moments, is_constant
from bayes_lepu.engines.paths import PenaltyGrid, Score, score_path
from bayes_lepu.errors import DataError, ModelError
from bayes_lepu.factors.logistic import FACTOR as LOGISTIC
from bayes_lepu.fitted import Fit
from bayes_lepu.links import Array, sigmoid
from bayes_lepu.model import AUTO, get_model
from bayes_lepu.model.spec import ModelSpec
from bayes_lepu.options import with_marks
from bayes_lepu.runtime.interruption import stops_at_once
from bayes_lepu.suggestions import some

__all__ = ["ElkanNotoClassifier", "PUClassifier", "PUClassifierCV"]

Columns = Sequence[str | int] | None
Known = tuple[float, float] | None
Fold = tuple[NDArray[np.intp], NDArray[np.intp]]
L2_RANGE = (-4.0, 2.0)  # powers of ten: from no shrinkage to no slopes, on standardised columns
L1_RANGE = (-3.5, -0.1)  # powers of ten, of the coefficient that leaves no slope
TIE = 1e-12  # of scores that differ by rounding alone


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

    def positions(self, option: str, columns: Columns, keep: NDArray[np.bool_]) -> list[int] | None:
        """Names or positions of columns as positions among the columns ``keep``."""
        if columns is None:
            return None
        place, found = np.cumsum(keep) - 1, []
        for column in [columns] if isinstance(columns, str) else columns:
            if isinstance(column, bool | np.bool_) or column not in self.places:
                names = [name for name in self.places if isinstance(name, str)]
                raise DataError(
                    f"{option} names {column!r}, which is not a column of X. Columns: "
                    f"{some(names)}."
                )
            if keep[self.places[column]]:
                found.append(int(place[self.places[column]]))
        return found


class LabelClassifier(ClassifierMixin, BaseEstimator):
    """Base of the classifiers: some t(x) and some propensity s(x)."""

    @property
    def _accept_sparse(self) -> str | bool:
        """Whether sparse rows are taken; learners need dense ones."""
        return False if read_learner(self._learner) else "csr"

    @property
    def _learner(self) -> Any:
        """The ``class_learner`` of `fit`."""
        return None

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
        return self.parameters_.t(X)

    def _decision(self, X: Array) -> Array:
        """Log-odds of t, which are its linear predictor where the curve is logistic."""
        found = self.parameters_
        return found.tau(X) if found.of_class.name == LOGISTIC.name else logit(found.t(X))

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

    def __sklearn_tags__(self) -> Any:
        """Two classes only: labelled and unlabelled."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.sparse = bool(self._accept_sparse)
        return tags

    def _rows(self, X: Any) -> Array:
        """Checked rows, with the scores of the learners beside them."""
        check_is_fitted(self)
        rows = validate_data(
            self, X, dtype=np.float64, accept_sparse=self._accept_sparse, reset=False
        )
        if getattr(self, "learned_", None) is None:
            return rows
        keep, fitted = self.learned_
        at = fitted.is_learned
        scores = fitted.transform(rows[:, keep])[0][:, at] * fitted.scale[at] + fitted.center[at]
        return np.hstack([rows, scores])

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
        places = column_places([str(c) for c in (table.columns if framed else known)])
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


@dataclass(eq=False, repr=False, kw_only=True)
class MapClassifier(LabelClassifier):
    """Options that the fits by ``method="map"`` share; see `PUClassifier`."""

    model: str = "psychm"
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

    def _fit(self, rows: LabelledRows, C: Mapping[str, float | None], **of_rows: Any) -> Self:
        """Fit, and set the fitted attributes."""
        return _set_fitted(self, self._fit_of(rows, C, **of_rows), usable_columns(rows.X))

    @stops_at_once
    def _fit_of(
        self,
        rows: LabelledRows,
        C: Mapping[str, float | None],
        *,
        audited: Any = None,
        sample_weight: Any = None,
    ) -> Fit:
        """MAP fit with the full search for modes.

        Penalties and norms that are None are left to `fit`, those of slopes the model has not are
        of no consequence.
        """
        keep = usable_columns(rows.X)
        norms = {"a": self.class_norm, "alpha": self.selection_norm}
        selection = rows.positions("selection_features", self.selection_features, keep)
        if self.model != AUTO and not get_model(self.model).has_selection:
            norms, C, selection = {"a": norms["a"]}, {"a": C["a"]}, None
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, rows.X, dtype=np.float64)
        return fit_model(
            rows.table(keep),
            rows.l,
            model=self.model,
            class_link=getattr(self, "class_link", None),
            class_learner=self._learner,
            method="map",
            y=None if audited is None else np.asarray(audited),
            sample_weight=sample_weight,
            class_prior=self.class_prior,
            label_frequency=self.label_frequency,
            false_marks=self.false_marks,
            class_features=rows.positions("class_features", self.class_features, keep),
            selection_features=selection,
            standardize=self.standardize,
            penalty=_given(norms),
            C=_given(C),
            orientation=self.orientation,
            random_seed=self._seed(),
        )


@dataclass(eq=False, repr=False, kw_only=True)
class PUClassifier(MapClassifier):
    r"""Learn t(x) = P(y=1 | x) and the propensity s(x) = P(l=1 | y=1, x) from visible labels.

    .. math:: P(l=1 \mid x) = s(x)\,t(x), \qquad
        t(x) = \sigma(a \cdot x + \textstyle\sum_k w_k z_k(x) + b)

    with no z(x) unless there is a ``class_learner``.

    Parameters
    ----------
    model : str
        The labelling mechanism, one of `bayes_lepu.list_models`: "naive" (logistic regression of
        the label), "scar" (s constant), "spm" (s logistic), "psychm" (with guesses and lapses).
        A search over it is a search over models. "auto": the labels choose, as in `bayes_lepu.fit`.
    class_link : {"logistic", "probit", "cloglog", "loglog", "cauchit"} or Factor, optional
        The curve of the class over its linear predictor, as in `bayes_lepu.fit`.
    class_learner : {"auto", "boosting", "kernel", "trees"}, list, classifier of scikit-learn, None
        How the class may bend, as in `bayes_lepu.fit`: the log-odds of such a classifier, trained
        on the labels, enter t as one more column. None: t is a straight line in the columns.
        "auto": the labels decide where ``model="auto"``; otherwise as None.
    estimator : classifier of scikit-learn, optional
        The same under scikit-learn's name, where it is a classifier: searches reach its settings
        as ``estimator__max_depth``.
    class_penalty, selection_penalty : float, optional
        Weight C_a, C_α of the penalty on the slopes of t and of s. *Larger is stronger*: the
        opposite of scikit-learn's ``C``, which for L2 is 1/(2 C_a). For SPM keep
        ``selection_penalty >= class_penalty``: the factor with the larger slopes is the class, and
        should not be the one that is shrunk more.
    class_norm, selection_norm : {"l2", "l1", "none"}, optional
        Norm of the slopes that is penalised. Where none of these four is given, the penalties are
        the defaults of `bayes_lepu.fit`, which keep the propensity smoother than the class; where
        some are, the others are "l2" and 0.01.
    class_features, selection_features : sequence of names or positions, optional
        Columns that may enter t and s.
    class_prior, label_frequency : (value, standard error), optional
        π or c known from elsewhere, as one more observation.
    false_marks : bool or Prior
        Whether negatives may be marked, at a rate ε.
    standardize : bool
        Penalise the slopes of standardised columns.
    orientation : {"sigma-norm", "norm", "energy", "correlation", "none"}
        How SPM's factors are told apart where the data cannot.
    random_state : int, RandomState or None

    Attributes
    ----------
    coef_, intercept_ : arrays of shape (1, p) and (1,)
        a and b of t, on the scale of X.
    learner_coef_ : array of shape (1, K)
        w, of the log-odds by every learner, with ``class_learner``.
    propensity_coef_, propensity_intercept_ : arrays of shape (1, p) and (1,)
        Of s, on the scale of X, where columns enter the propensity.
    guess_rate_, lapse_rate_ : float
        γ and λ, 0 in SPM.
    false_mark_rate_ : float
        ε, with ``false_marks``.
    class_prior_ : float
        π, the mean of t over the training rows.
    label_frequency_ : float
        c = P(l=1 | y=1), the mean of h over the mean of t.
    modes_ : DataFrame
        All local optima found, the answer first.
    parameters_ : Parameters
        All parameters on the scale of X; the columns of learners stand last.
    classes_, n_features_in_, feature_names_in_

    Notes
    -----
    A classifier keeps no rows, and so no verdict: `to_fit` gives the fit that has one.

    Models in which no column enters the propensity ("naive", "scar") make no use of the options
    ``selection_*``, so that one search can run over all models.

    `CalibratedClassifierCV` and other tools that are fitted on the labels again give P(l=1 | x),
    not P(y=1 | x).

    Examples
    --------
    >>> from bayes_lepu import load_demo
    >>> from bayes_lepu.estimators import PUClassifier
    >>> demo = load_demo()
    >>> PUClassifier(model="scar").fit(demo.X, demo.l).predict_proba(demo.X).shape
    (2500, 2)
    """

    class_link: Any = None
    class_learner: Any = "auto"
    estimator: Any = None
    class_penalty: float | None = None
    selection_penalty: float | None = None

    @property
    def _learner(self) -> Any:
        if self.estimator is None:
            return self.class_learner
        if not (isinstance(self.class_learner, str) and self.class_learner == "auto"):
            raise ModelError(
                f"estimator={self.estimator!r} and class_learner={self.class_learner!r} are given; "
                "both name the classifier that bends the class. Leave one of them out."
            )
        return self.estimator

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, audited: Any = None) -> Self:
        """Learn from rows X, visible labels y, and true classes where known (NaN elsewhere).

        ``sample_weight`` says how often every row counts; the same as repeating rows.
        """
        rows = self._read(X, y)
        return self._fit(rows, self._penalties, audited=audited, sample_weight=sample_weight)

    def to_fit(self, X: Any, y: Any, sample_weight: Any = None, *, audited: Any = None) -> Fit:
        """The same call as a `bayes_lepu.Fit`, which keeps the rows: its verdict, answer, report.

        ``print(classifier.to_fit(X, y))`` says how far these labels carry the classifier.
        """
        rows = clone(self)._read(X, y)
        return self._fit_of(rows, self._penalties, audited=audited, sample_weight=sample_weight)

    @property
    def _penalties(self) -> dict[str, float | None]:
        return {"a": self.class_penalty, "alpha": self.selection_penalty}


@dataclass(eq=False, repr=False, kw_only=True)
class PUClassifierCV(MapClassifier):
    r"""`PUClassifier` with penalties chosen by cross-validation on the visible labels.

    Parameters
    ----------
    model : str
        As in `PUClassifier`.
    class_penalties : int or sequence of float
        Weights C_a to try (*larger is stronger*), or how many of them: between 1e-4 and 1e2 for
        L2; for L1 from just below the weight that leaves no slope, down by a factor of 2500.
    selection_penalties : int or sequence of float, optional
        Weights C_α, likewise. Default: as ``class_penalties``.
    class_norm, selection_norm : {"l2", "l1"}
        Norm of the slopes that is penalised.
    cv : int, splitter or iterable
        Folds; an int is stratified by label.
    scoring : callable, optional
        Score ``f(l, h)`` of held-out labels, where greater is better; minus the Brier score by
        default.
    class_prior, label_frequency : (value, standard error), optional
        π or c known from elsewhere, for the fit on all rows; penalties are chosen by the labels.
    class_features, selection_features, false_marks, standardize, orientation, random_state
        As in `PUClassifier`.
    n_jobs : int, optional
        Folds in parallel, by joblib.

    Attributes
    ----------
    class_penalty_, selection_penalty_ : float
        The chosen weights; the second where columns enter the propensity.
    class_penalties_, selection_penalties_ : arrays
        Those that were tried.
    scores_ : array of shape (folds, C_α, C_a), or (folds, C_a)
        Of held-out labels: greater is better.
    cv_results_ : dict
        One row per candidate, as in `GridSearchCV`: ``pandas.DataFrame(clf.cv_results_)``.
    coef_, intercept_, propensity_coef_, propensity_intercept_, guess_rate_, lapse_rate_,
    false_mark_rate_, class_prior_, label_frequency_, modes_, parameters_, classes_, n_features_in_,
    feature_names_in_
        As in `PUClassifier`, of the fit on all rows.
    """

    class_penalties: int | ArrayLike = 5
    selection_penalties: int | ArrayLike | None = None
    class_norm: str = "l2"
    selection_norm: str = "l2"
    cv: Any = 3
    scoring: Score | None = None
    n_jobs: int | None = None

    def fit(self, X: Any, y: Any, *, audited: Any = None) -> Self:
        """Choose the penalties and learn from rows X, labels y, and true classes where known."""
        rows = self._read(X, y)
        return self._fit(rows, choose_penalties(self, rows, audited), audited=audited)

    def to_fit(self, X: Any, y: Any, *, audited: Any = None) -> Fit:
        """The fit with the chosen penalties as a `bayes_lepu.Fit`; see `PUClassifier.to_fit`."""
        check_is_fitted(self)
        chosen = {"a": self.class_penalty_, "alpha": getattr(self, "selection_penalty_", None)}
        return self._fit_of(clone(self)._read(X, y), chosen, audited=audited)


@dataclass(eq=False, repr=False, kw_only=True)
class ElkanNotoClassifier(LabelClassifier):
    r"""Elkan and Noto's two-step estimator: P(y=1 | x) = min(1, g(x)/c), g = P(l=1 | x).

    Parameters
    ----------
    estimator : classifier of scikit-learn, optional
        What learns g, such as ``HistGradientBoostingClassifier()``. By default a logistic
        regression with ``class_penalty`` on columns as ``standardize`` has them.
    class_penalty : float
        Weight of the penalty on the squared slopes of g, above 0. *Larger is stronger*: the
        opposite of scikit-learn's ``C``, which is 1/(2 ``class_penalty``).
    holdout : float in (0, 1) or None
        Share of the rows kept back to estimate c. None uses every row for both steps: the ranking
        is then exactly that of ``PUClassifier(model="naive")`` with the same penalty. Given an
        ``estimator``, which may know its own rows by heart, c is then the mean over the labelled
        rows of five-fold cross-fitted g.
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
        The fitted g, where an ``estimator`` is given.
    label_frequency_ : float
        c.
    class_prior_ : float
        Mean of min(1, g/c) over the training rows.
    classes_, n_features_in_, feature_names_in_

    References
    ----------
    Elkan and Noto (2008), doi 10.1145/1401890.1401920.
    """

    estimator: Any = None
    class_penalty: float = 0.01
    holdout: float | None = 0.2
    standardize: bool = True
    random_state: Any = None

    @stops_at_once
    def fit(self, X: Any, y: Any, *, held_out: Any = None) -> Self:
        """Learn from rows X and visible labels y.

        ``held_out`` (bool, one per row) names the rows kept back for c instead of ``holdout``.
        """
        rows, seed = self._read(X, y), self._seed()
        labelled = rows.l == 1
        kept = _kept_back(labelled, self.holdout, held_out, seed)
        everything = bool(kept.all())
        train = kept if everything else ~kept
        if self.estimator is None:
            keep = usable_columns(rows.X)
            data = read_data(rows.X[:, keep], rows.l, standardize=self.standardize)
            learner = self._logistic(data.X).fit(data.X[train], rows.l[train])
            slopes, intercept = data.original_scale(learner.coef_[0], learner.intercept_[0])
            self.coef_, self.intercept_ = _spread(slopes, keep)[None], np.atleast_1d(intercept)
        else:
            self.estimator_ = self._learner_of_labels(seed).fit(rows.X[train], rows.l[train])
        if everything and self.estimator is not None:
            folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
            unfitted = clone(self.estimator_)
            g = cross_val_predict(unfitted, rows.X, rows.l, cv=folds, method="predict_proba")[:, 1]
        else:
            g = self._g(rows.X)
        self.label_frequency_ = float(g[kept & labelled].mean())
        self.class_prior_ = float(self._class_probability(rows.X).mean())
        return self

    def _logistic(self, X: Any) -> Any:
        """A logistic regression with the penalty of the paper, which has no factor 1/2."""
        C = self.class_penalty
        if isinstance(C, bool) or not (np.isfinite(C) and C > 0):
            raise DataError(
                f"class_penalty is {C!r}; expected a finite number above 0. Without a penalty the "
                "optimum need not exist; take a small one, such as 1e-6."
            )
        few = not issparse(X) and X.shape[1] <= X.shape[0]
        solver = "newton-cholesky" if few else "lbfgs"
        return LogisticRegression(C=1 / (2 * C), solver=solver, tol=1e-8, max_iter=10_000)

    def _learner_of_labels(self, seed: int) -> Any:
        """The given classifier, unfitted and with a seed."""
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
        if self.estimator is None:
            return sigmoid(X @ self.coef_[0] + self.intercept_[0])
        return self.estimator_.predict_proba(X)[:, 1]

    def _propensity(self, X: Array) -> Array:
        return np.full(X.shape[0], self.label_frequency_)

    def _class_probability(self, X: Array) -> Array:
        return np.minimum(self._g(X) / self.label_frequency_, 1.0)

    def _decision(self, X: Array) -> Array:
        """Logit g - logit(c/2): the ranking of g, without the ties of clipping, zero at t = 1/2."""
        if self.estimator is None:
            log_odds = X @ self.coef_[0] + self.intercept_[0]
        else:
            rounding = np.finfo(float).eps  # log-odds of exactly 0 and 1 are infinite
            log_odds = logit(np.clip(self._g(X), rounding, 1 - rounding))
        return log_odds - logit(self.label_frequency_ / 2)


def _given[V](values: Mapping[str, V | None]) -> dict[str, V] | None:
    return {name: value for name, value in values.items() if value is not None} or None


def _set_fitted[E: MapClassifier](estimator: E, result: Fit, keep: NDArray[np.bool_]) -> E:
    """Fitted attributes from a point estimate on the columns ``keep``, without the rows."""
    point, data = result.draws.take(0), result.data
    a, b = data.original_scale(point.a, point.b)
    alpha, beta = data.original_scale(point.alpha, point.beta)
    learned = data.is_learned
    a = np.concatenate([_spread(a[~learned], keep), a[learned]])
    alpha = np.concatenate([_spread(alpha[~learned], keep), alpha[learned]])
    found = replace(point, a=a, b=b, alpha=alpha, beta=beta)
    estimator.parameters_ = found
    estimator.coef_, estimator.intercept_ = a[None, : keep.size], np.atleast_1d(b)
    estimator.learned_ = (keep, data.rows(np.arange(0))) if learned.any() else None
    if learned.any():
        estimator.learner_coef_ = a[None, keep.size :]
    estimator.class_prior_ = float(result.pi_draws[0])
    estimator.label_frequency_ = float(result.c_draws[0])
    estimator.modes_ = result.mode_table()
    if point.epsilon is not None:
        estimator.false_mark_rate_ = float(point.epsilon)
    if result.spec.has_selection:
        estimator.propensity_coef_ = alpha[None, : keep.size]
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


def _spread(slopes: Array, keep: NDArray[np.bool_]) -> Array:
    full = np.zeros(keep.size)
    full[keep] = slopes
    return full


@stops_at_once
def choose_penalties(
    estimator: PUClassifierCV, rows: LabelledRows, audited: Any
) -> dict[str, float]:
    """The weights with the best score; sets those tried, the choice and the table of scores."""
    if estimator.scoring is not None and not callable(estimator.scoring):
        raise ModelError(
            f"scoring = {estimator.scoring!r}; a function f(l, h), greater where h predicts the "
            "labels better, or None for minus the Brier score, is expected."
        )
    spec, others = with_marks(get_model(estimator.model), estimator.false_marks, None)
    top = _null_penalty(rows.X, rows.l, estimator.standardize)
    given, selects = estimator.selection_penalties, spec.has_selection
    wanted = estimator.class_penalties
    tried = {"class_penalty": _values("class_penalties", wanted, estimator.class_norm, top)}
    if selects:
        wanted = wanted if given is None else given
        found = _values("selection_penalties", wanted, estimator.selection_norm, top)
        tried = {"selection_penalty": found} | tried
    grid = PenaltyGrid(
        C_alpha=tried.get("selection_penalty", np.ones(1)),
        C_a=tried["class_penalty"],
        penalty_alpha=estimator.selection_norm,
        penalty_a=estimator.class_norm,
        others=others,
    )
    one = partial(score_fold, estimator, spec, rows, _classes(audited, rows.l), grid)
    folds = _folds(estimator.cv, rows.X, rows.l)
    each = Parallel(n_jobs=estimator.n_jobs)(delayed(one)(*fold) for fold in folds)
    return _record(estimator, tried, np.array(each) if selects else np.array(each)[:, 0])


def score_fold(
    estimator: PUClassifierCV,
    spec: ModelSpec,
    rows: LabelledRows,
    classes: Array,
    grid: PenaltyGrid,
    train: NDArray[np.intp],
    test: NDArray[np.intp],
) -> Array:
    """Scores (C_α, C_a) of the held-out rows of one fold, for every pair of penalties."""
    keep = usable_columns(rows.X[train])
    selection = estimator.selection_features if spec.has_selection else None
    data = read_data(
        rows.X[train][:, keep],
        rows.l[train],
        y=classes[train],
        class_features=rows.positions("class_features", estimator.class_features, keep),
        selection_features=rows.positions("selection_features", selection, keep),
        standardize=estimator.standardize,
        false_marks=spec.false_marks,
    )
    return score_path(
        spec,
        data,
        data.transform(rows.X[test][:, keep])[0],
        rows.l[test],
        grid,
        score=estimator.scoring or (lambda l, h: -float(np.mean((l - h) ** 2))),
        rule=estimator.orientation,
        rng=np.random.default_rng(estimator._seed()),
    )


def _folds(cv: Any, X: Array, l: NDArray[np.int8]) -> list[Fold]:
    """Training and held-out rows of every fold; each training part needs both labels."""
    splitter = check_cv(cv, l, classifier=True)
    rarest = int(min(l.sum(), len(l) - l.sum()))
    if isinstance(cv, int) and rarest < cv:
        raise DataError(
            f"{cv} folds need at least {cv} rows of each class; the rarer label has {rarest}. "
            "Use fewer folds (cv=), or a classifier with fixed penalties."
        )
    folds = list(splitter.split(X, l))
    for k, (train, _) in enumerate(folds):
        if l[train].min() == l[train].max():
            raise DataError(
                f"The training rows of fold {k} hold one class only. Stratify the folds by label, "
                "for example cv=3."
            )
    return folds


def _classes(audited: Any, l: NDArray[np.int8]) -> Array:
    if audited is None:
        return np.full(len(l), np.nan)
    classes = np.asarray(audited, dtype=float)
    if classes.shape != l.shape:
        raise DataError(
            f"audited has shape {classes.shape}; expected {l.shape}, NaN where unknown."
        )
    return classes


def _values(option: str, Cs: int | ArrayLike, penalty: str, top: float) -> Array:
    """Ascending coefficients: as given, or so many over the range that suits the penalty."""
    if isinstance(Cs, int | np.integer):
        if Cs < 1:
            raise ModelError(f"{option} = {Cs}; at least one coefficient is needed.")
        return (
            np.logspace(*L1_RANGE, int(Cs)) * top
            if penalty == "l1"
            else np.logspace(*L2_RANGE, int(Cs))
        )
    values = np.unique(np.asarray(Cs, dtype=float))
    if values.size == 0 or not (np.isfinite(values).all() and values[0] > 0):
        raise ModelError(f"{option} = {Cs!r}; finite numbers above 0 are expected.")
    return values


def _null_penalty(X: Array, l: NDArray[np.int8], standardize: bool) -> float:
    r"""The smallest L1 coefficient that leaves a lone factor without slopes: max |Σ (l - mean) x|.

    From there down runs the range of L1 coefficients. (The coefficient that empties α beside a
    fitted t is smaller, and zero where t explains l alone.)
    """
    used = usable_columns(X)
    toward = ((l - l.mean()) @ X)[used]
    return float(np.abs(toward / column_moments(X)[1][used] if standardize else toward).max())


def _record(
    estimator: PUClassifierCV, tried: Mapping[str, Array], scores: Array
) -> dict[str, float]:
    """The weights with the best mean score, of equals the strongest.

    Held-out labels cannot tell which factor is the class. So where pairs with C_α >= C_a, which
    leave the slopes to the class, do as well as the best (within the standard error of their
    difference over the folds), the choice is among them.
    """
    grid = dict(zip(tried, np.meshgrid(*tried.values(), indexing="ij"), strict=True))
    mean = scores.mean(axis=0)
    own = scores.reshape(len(scores), -1)[:, int(mean.argmax())]
    behind = own.reshape(-1, *(1,) * mean.ndim) - scores
    error = behind.std(axis=0, ddof=1) / np.sqrt(len(scores)) if len(scores) > 1 else 0.0
    to_class = np.logical_and.reduce([w >= grid["class_penalty"] for w in grid.values()])
    # A mean of folds of which one differs is its own standard error, but for rounding.
    among = to_class & (behind.mean(axis=0) <= 1.001 * error + TIE)
    eligible = np.where(among if among.any() else True, mean, -np.inf)
    strength = np.prod(list(grid.values()), axis=0)
    ties = map(tuple, np.argwhere(eligible >= eligible.max() - TIE))
    best = max(ties, key=lambda k: (float(strength[k]), k))
    chosen = {name: float(values[best]) for name, values in grid.items()}
    each = {name: values.ravel() for name, values in grid.items()}
    estimator.scores_ = scores
    # The keys of `GridSearchCV.cv_results_` that apply.
    estimator.cv_results_ = {
        **{f"param_{name}": values for name, values in each.items()},
        "params": pd.DataFrame(each).to_dict("records"),
        **{f"split{k}_test_score": one.ravel() for k, one in enumerate(scores)},
        "mean_test_score": mean.ravel(),
        "std_test_score": scores.std(axis=0).ravel(),
        "rank_test_score": rankdata(-mean.ravel(), method="min").astype(int),
    }
    for name, value in chosen.items():
        setattr(estimator, f"{name}_", value)
        setattr(estimator, f"{name.replace('penalty', 'penalties')}_", tried[name])
    short = {"class_penalty": "a", "selection_penalty": "alpha"}
    return {short[name]: value for name, value in chosen.items()}


def _kept_back(
    label: NDArray[np.bool_], holdout: float | None, held_out: Any, seed: int
) -> NDArray[np.bool_]:
    """Rows kept back for c: those given, or the same share of labelled and of unlabelled rows.

    All rows, which g learns from as well, where neither is given.
    """
    if held_out is not None:
        return _read_held_out(held_out, label)
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


def _read_held_out(held_out: ArrayLike, label: NDArray[np.bool_]) -> NDArray[np.bool_]:
    kept = np.asarray(held_out)
    if kept.shape != label.shape or kept.dtype != bool:
        raise DataError(
            f"held_out has shape {kept.shape} and type {kept.dtype}; expected one bool per row, "
            f"shape {label.shape}."
        )
    if not (kept & label).any():
        raise DataError("held_out holds no labelled row, so that c cannot be estimated from it.")
    if len(np.unique(label[~kept])) < 2:
        raise DataError("held_out leaves no labelled or no unlabelled row to learn from.")
    return kept
