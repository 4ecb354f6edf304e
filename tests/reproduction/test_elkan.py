"""Elkan and Noto with a searched penalty: what scikit-learn's own search finds."""

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.model_selection import GridSearchCV

from bayes_lepu.errors import DataError
from bayes_lepu.estimators import ElkanNotoClassifier
from bayes_lepu.links import sigmoid
from reproduction.experiments.elkan import SearchedElkanNoto


def test_the_penalty_is_that_of_a_grid_search():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4))
    l = ((rng.random(400) < sigmoid(2 * X[:, 0])) & (rng.random(400) < 0.5)).astype(int)
    penalties = (0.01, 1.0, 100.0)
    ours = SearchedElkanNoto(penalties, 3, seed=5).fit(X, l)
    peer = GridSearchCV(
        ElkanNotoClassifier(random_state=5), {"class_penalty": penalties}, cv=3
    ).fit(X, l)
    assert ours.classifier.class_penalty == peer.best_params_["class_penalty"]
    np.testing.assert_array_equal(ours.predict_proba(X), peer.predict_proba(X))
    np.testing.assert_array_equal(ours.decision_function(X), peer.decision_function(X))


def test_too_few_labels_for_the_folds():
    with pytest.raises(DataError, match="3 folds need at least 3 rows of each label; got 2"):
        SearchedElkanNoto((1.0,), 3, seed=0).fit(np.eye(20), np.arange(20) < 2)
