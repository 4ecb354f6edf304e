r"""A classifier whose penalties (C_α, C_a) are chosen by cross-validation.

.. math:: \mathrm{Brier}(C_\alpha, C_a) = \frac1m \sum_{i \in \text{held out}} (l_i - h(x_i))^2

averaged over folds stratified by l. The score depends on h = s·t alone, so it cannot see which
factor is the class; where pairs with C_α >= C_a do as well (SPM: every pair and its mirror image),
they go first. The chosen pair is fitted again on all rows with the full search for modes.
"""

from collections.abc import Callable
from typing import Any, Self

from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from bayes_lepu.estimators.search import choose_penalties
from bayes_lepu.estimators.shared import Columns, LabelClassifier, fit_model_into, fit_of
from bayes_lepu.fitted import Fit


class PUClassifierCV(LabelClassifier):
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
    scoring : {"brier", "log_loss"} or callable
        Score of h on held-out labels; a callable ``f(l, h)`` where greater is better.
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
        Minus the Brier score (or log-loss): greater is better.
    cv_results_ : dict
        One row per candidate, as in `GridSearchCV`: ``pandas.DataFrame(clf.cv_results_)``.
    coef_, intercept_, propensity_coef_, propensity_intercept_, guess_rate_, lapse_rate_,
    false_mark_rate_, class_prior_, label_frequency_, modes_, parameters_, classes_, n_features_in_,
    feature_names_in_
        As in `PUClassifier`, of the fit on all rows.
    """

    def __init__(
        self,
        *,
        model: str = "psychm",
        class_penalties: int | ArrayLike = 5,
        selection_penalties: int | ArrayLike | None = None,
        class_norm: str = "l2",
        selection_norm: str = "l2",
        cv: Any = 3,
        scoring: str | Callable = "brier",
        class_features: Columns = None,
        selection_features: Columns = None,
        class_prior: tuple[float, float] | None = None,
        label_frequency: tuple[float, float] | None = None,
        false_marks: Any = False,
        standardize: bool = True,
        orientation: str = "sigma-norm",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.model = model
        self.class_penalties = class_penalties
        self.selection_penalties = selection_penalties
        self.class_norm = class_norm
        self.selection_norm = selection_norm
        self.cv = cv
        self.scoring = scoring
        self.class_features = class_features
        self.selection_features = selection_features
        self.class_prior = class_prior
        self.label_frequency = label_frequency
        self.false_marks = false_marks
        self.standardize = standardize
        self.orientation = orientation
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any, *, audited: Any = None) -> Self:
        """Choose the penalties and learn from rows X, labels y, and true classes where known."""
        rows = self._read(X, y)
        return fit_model_into(self, rows, audited, choose_penalties(self, rows, audited))

    def to_fit(self, X: Any, y: Any, *, audited: Any = None) -> Fit:
        """The fit with the chosen penalties as a `bayes_lepu.Fit`; see `PUClassifier.to_fit`."""
        check_is_fitted(self)
        chosen = {"a": self.class_penalty_, "alpha": getattr(self, "selection_penalty_", None)}
        return fit_of(self, clone(self)._read(X, y), audited, chosen)
