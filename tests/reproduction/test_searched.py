"""Penalties by cross-validation: what scikit-learn's own search finds."""

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.model_selection import GridSearchCV

from bayes_lepu.estimators import ElkanNotoClassifier
from bayes_lepu.links import sigmoid
from reproduction.experiments.searched import Searched


def test_the_penalty_is_that_of_a_grid_search():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4))
    l = ((rng.random(400) < sigmoid(2 * X[:, 0])) & (rng.random(400) < 0.5)).astype(int)
    grid = {"class_penalty": (0.01, 1.0, 100.0)}
    ours = Searched(ElkanNotoClassifier(random_state=5), grid).fit(X, l)
    peer = GridSearchCV(ElkanNotoClassifier(random_state=5), grid, cv=3).fit(X, l)
    assert ours.best_params_ == peer.best_params_
    np.testing.assert_array_equal(ours.predict_proba(X), peer.predict_proba(X))
