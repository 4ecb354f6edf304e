"""Many columns: the search in few directions ends where the search over all columns ends."""

import numpy as np
import pytest

import bayes_lepu as lepu
from bayes_lepu.data.reading import read_data
from bayes_lepu.defaults import default_penalties
from bayes_lepu.inference import mode_search
from bayes_lepu.inference.few_directions import _directions
from bayes_lepu.inference.map import fit_map
from bayes_lepu.models import Parameters, get_model

N, P = 1500, 120


@pytest.fixture(scope="module")
def drawn():
    """Few informative columns among many."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(N, P))
    a, alpha = np.zeros(P), np.zeros(P)
    a[:4], alpha[3:6] = [3.0, -2.0, 1.5, 1.0], [1.0, -1.0, 0.8]
    return X, *Parameters.of(a=a, b=-0.5, alpha=alpha, beta=0.5).simulate(X, rng)


@pytest.mark.slow
def test_few_directions_end_at_the_same_optimum(drawn, monkeypatch):
    X, _, l = drawn
    data, spec = read_data(X, l), get_model("spm")
    priors = spec.complete_priors(default_penalties(data), None)
    tops = []
    for narrow in (True, False):
        with monkeypatch.context() as patch:
            if not narrow:
                patch.setattr(mode_search, "has_many_columns", lambda density: False)
            found = fit_map(spec, data, priors, rng=np.random.default_rng(0))
        assert found.modes[0].converged
        tops.append(max(mode.logp for mode in found.modes))
    assert tops[0] == pytest.approx(tops[1], abs=0.01)


def test_the_default_penalty_does_not_fit_the_noise_of_many_columns(drawn):
    """The class ranks new rows better than a regression on the labels."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score

    X, y, l = drawn
    half = N // 2
    fit = lepu.fit(X[:half], l[:half], model="spm", method="map", random_seed=0)
    assert fit.priors["a"].family == "laplace"
    ours = roc_auc_score(y[half:], fit.predict_proba(X[half:])[:, 1])
    plain = LogisticRegression().fit(X[:half], l[:half]).decision_function(X[half:])
    assert ours > roc_auc_score(y[half:], plain) + 0.03


def test_directions_are_orthonormal_and_hold_what_they_should():
    rng = np.random.default_rng(0)
    slope, toward = rng.normal(size=(2, 200))
    basis = _directions(slope, toward)
    np.testing.assert_allclose(basis.T @ basis, np.eye(basis.shape[1]), atol=1e-12)
    for vector in (slope, toward):
        np.testing.assert_allclose(basis @ (basis.T @ vector), vector, atol=1e-10)
