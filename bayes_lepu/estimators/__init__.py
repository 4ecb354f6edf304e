"""scikit-learn classifiers over the MAP fits and the baselines, with cross-validation and scores.

Every class follows scikit-learn's contract: ``fit(X, l)``, ``predict``, ``predict_proba``,
``decision_function``, ``get_params``, `clone`, pipelines, searches, metadata routing. The second
argument of ``fit`` bears scikit-learn's name ``y`` but is the *visible label l* of the paper; true
classes of audited rows go to ``fit(X, l, audited=...)``.

``predict`` and ``predict_proba`` speak of the hidden class y, ``predict_label_proba`` of the
visible label l, ``predict_propensity`` of s(x) = P(l=1 | y=1, x).

The paper's "Real" classifier, trained on the true classes, is ``NaiveClassifierCV().fit(X, y)``:
logistic regression under the same cross-validation.

Needs the extra ``sklearn``; ``import bayes_lepu`` does not import this package. What (X, l) can and
cannot validate is set out in `bayes_lepu.estimators.scoring`.
"""

try:
    import sklearn  # noqa: F401
except ImportError as error:  # pragma: no cover - exercised in a subprocess without scikit-learn
    raise ImportError(
        "bayes_lepu.estimators needs scikit-learn, which is not installed. Install it with "
        "pip install 'bayes-lepu[sklearn]', or use bayes_lepu.fit, which does without."
    ) from error

from bayes_lepu.estimators.classifiers import (
    ElkanNotoClassifier,
    NaiveClassifier,
    PsychMClassifier,
    SCARClassifier,
    SPMClassifier,
)
from bayes_lepu.estimators.cv import (
    ElkanNotoClassifierCV,
    NaiveClassifierCV,
    PsychMClassifierCV,
    SCARClassifierCV,
    SPMClassifierCV,
)
from bayes_lepu.estimators.scoring import (
    Estimate,
    ipw_accuracy,
    ipw_auc,
    ipw_brier,
    ipw_class_prior,
    ipw_f1,
    ipw_precision,
    ipw_recall,
    ipw_scorer,
    label_brier,
    label_calibration_error,
    label_log_loss,
    label_scorer,
)

__all__ = [
    "ElkanNotoClassifier",
    "ElkanNotoClassifierCV",
    "Estimate",
    "NaiveClassifier",
    "NaiveClassifierCV",
    "PsychMClassifier",
    "PsychMClassifierCV",
    "SCARClassifier",
    "SCARClassifierCV",
    "SPMClassifier",
    "SPMClassifierCV",
    "ipw_accuracy",
    "ipw_auc",
    "ipw_brier",
    "ipw_class_prior",
    "ipw_f1",
    "ipw_precision",
    "ipw_recall",
    "ipw_scorer",
    "label_brier",
    "label_calibration_error",
    "label_log_loss",
    "label_scorer",
]
