r"""A classifier at given penalties, for every model of the library.

.. math::
    \min \; -\log L + C_a \lVert a\rVert + C_\alpha \lVert\alpha\rVert

with squared Euclidean norms ("l2") or sums of absolute values ("l1"), a sum over rows, and free
intercepts. Penalties refer to standardised columns unless ``standardize=False``.
"""

from typing import Any, Self

from sklearn.base import clone

from bayes_lepu.estimators.shared import Columns, LabelClassifier, fit_model_into, fit_of
from bayes_lepu.fitted import Fit


class PUClassifier(LabelClassifier):
    r"""Learn t(x) = P(y=1 | x) and the propensity s(x) = P(l=1 | y=1, x) from visible labels.

    .. math:: P(l=1 \mid x) = s(x)\,t(x), \qquad t(x) = \sigma(a \cdot x + b)

    Parameters
    ----------
    model : str
        The labelling mechanism, one of `bayes_lepu.list_models`: "naive" (logistic regression of
        the label), "scar" (s constant), "spm" (s logistic), "psychm" (with guesses and lapses).
        A search over it is a search over models.
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
        Of t, on the scale of X.
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
        All parameters on the scale of X.
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

    def __init__(
        self,
        *,
        model: str = "psychm",
        class_penalty: float | None = None,
        selection_penalty: float | None = None,
        class_norm: str | None = None,
        selection_norm: str | None = None,
        class_features: Columns = None,
        selection_features: Columns = None,
        class_prior: tuple[float, float] | None = None,
        label_frequency: tuple[float, float] | None = None,
        false_marks: Any = False,
        standardize: bool = True,
        orientation: str = "sigma-norm",
        random_state: Any = None,
    ) -> None:
        self.model = model
        self.class_penalty = class_penalty
        self.selection_penalty = selection_penalty
        self.class_norm = class_norm
        self.selection_norm = selection_norm
        self.class_features = class_features
        self.selection_features = selection_features
        self.class_prior = class_prior
        self.label_frequency = label_frequency
        self.false_marks = false_marks
        self.standardize = standardize
        self.orientation = orientation
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, audited: Any = None) -> Self:
        """Learn from rows X, visible labels y, and true classes where known (NaN elsewhere).

        ``sample_weight`` says how often every row counts; the same as repeating rows.
        """
        rows = self._read(X, y)
        return fit_model_into(self, rows, audited, self._penalties, sample_weight)

    def to_fit(self, X: Any, y: Any, sample_weight: Any = None, *, audited: Any = None) -> Fit:
        """The same call as a `bayes_lepu.Fit`, which keeps the rows: its verdict, answer, report.

        ``print(classifier.to_fit(X, y))`` says how far these labels carry the classifier.
        """
        rows = clone(self)._read(X, y)
        return fit_of(self, rows, audited, self._penalties, sample_weight)

    @property
    def _penalties(self) -> dict[str, float | None]:
        return {"a": self.class_penalty, "alpha": self.selection_penalty}
