"""scikit-learn classifiers over the MAP fits, with cross-validated penalties and scores.

`PUClassifier`, `PUClassifierCV` and `ElkanNotoClassifier` follow scikit-learn's contract:
``fit(X, l)``, ``predict``, ``predict_proba``, ``decision_function``, ``get_params``, `clone`,
pipelines, searches (over models too), metadata routing. The second argument of ``fit`` bears
scikit-learn's name ``y`` but is the *visible label l*; true classes of audited rows go to
``fit(X, l, audited=...)``.

``predict`` and ``predict_proba`` speak of the hidden class y, ``predict_label_proba`` of the
visible label l, ``predict_propensity`` of s(x) = P(l=1 | y=1, x). Tools of scikit-learn that learn
from the labels once more turn the answer into one about l: `CalibratedClassifierCV` fitted on
(X, l) returns P(l=1 | x), and a search by ``scoring="accuracy"`` rewards missing what the annotator
missed. The default score of these classifiers, and `label_scorer`, judge h(x) = P(l=1 | x) instead.

The paper's "Real" classifier, trained on the true classes, is
``PUClassifierCV(model="naive").fit(X, y)``: logistic regression under the same cross-validation.

A fitted classifier keeps its parameters and not the rows it was trained on: it is small to store
and to ship. ``save(path)`` and `load` keep it in a file of plain data; a pickle, scikit-learn's own
way, runs whatever its author put into it, so load none that comes from a stranger. For a report,
draws or a verdict give the same options to `bayes_lepu.fit`.

``import bayes_lepu`` does not import this package. What (X, l) can and
cannot validate is set out in `bayes_lepu.estimators.scoring`.
"""

from pathlib import Path

from bayes_lepu.estimators import saving
from bayes_lepu.estimators.classifier import PUClassifier
from bayes_lepu.estimators.elkan_noto import ElkanNotoClassifier
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
from bayes_lepu.estimators.searched import PUClassifierCV

__all__ = [
    "ElkanNotoClassifier",
    "Estimate",
    "PUClassifier",
    "PUClassifierCV",
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
    "load",
]

_CLASSES = {kind.__name__: kind for kind in (PUClassifier, PUClassifierCV, ElkanNotoClassifier)}


def load(path: str | Path) -> PUClassifier | PUClassifierCV | ElkanNotoClassifier:
    """A classifier that its ``save(path)`` wrote. Nothing in the file is run.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from bayes_lepu import load_demo
    >>> from bayes_lepu.estimators import PUClassifier, load
    >>> demo = load_demo()
    >>> with TemporaryDirectory() as folder:
    ...     path = PUClassifier(model="scar").fit(demo.X, demo.l).save(f"{folder}/scar.json")
    ...     load(path).predict_proba(demo.X).shape
    (2500, 2)
    """
    return saving.read(Path(path), _CLASSES)
