"""A fit saved without its rows answers as the whole one does, or says why it cannot."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

import bayes_lepu as lepu
from bayes_lepu.errors import ModelError
from tests.tiny import tiny_fit, tiny_table

NEEDS_ROWS = {
    "verdict": lambda fit: fit.identifiability,
    "report": lambda fit: fit.report("report.html"),
    "update": lambda fit: fit.update(random_seed=2),
    "tree": lambda fit: fit.tree,
    "rows of the fit": lambda fit: fit.missed(),
    "open rows": lambda fit: fit.decide(budget=3),
    "model": lambda fit: fit.model,
    "audits": lambda fit: fit.suggest_audit(3),
}


@pytest.fixture(scope="module", params=["psychm", "panel"])
def pair(request, tmp_path_factory):
    """A fit, and what is left of it in a file without rows."""
    fit = tiny_fit(request.param)
    path = tmp_path_factory.mktemp("shipped") / "fit.nc"
    return fit, lepu.load(fit.save(path, data=False)), path


def test_predictions_are_the_same(pair):
    fit, shipped, _ = pair
    X = tiny_table()[0].head(7)
    np.testing.assert_array_equal(shipped.predict_proba(X), fit.predict_proba(X))
    for ask in ("class_probability", "propensity", "label_probability", "missed"):
        found, expected = (getattr(each, ask)(X) for each in (shipped, fit))
        assert found.equals(expected), ask


def test_it_says_what_the_fit_said(pair):
    fit, shipped, _ = pair
    assert str(shipped) == repr(shipped) == str(fit)
    assert "verdict" in str(shipped)
    assert shipped.class_prior().equals(fit.class_prior())
    assert shipped.coefficients().equals(fit.coefficients())
    assert fit.feature_names[0] in repr(shipped.data)


def test_it_can_be_saved_again_still_without_rows(pair, tmp_path):
    fit, shipped, path = pair
    again = shipped.save(tmp_path / "again.nc", data=True)
    assert again.stat().st_size == path.stat().st_size
    assert str(lepu.load(again)) == str(fit)


def test_no_row_is_in_the_file(pair, tmp_path):
    fit, _, path = pair
    whole = fit.save(tmp_path / "fit.nc").read_bytes()
    for found, there in ((whole, True), (path.read_bytes(), False)):
        assert (str(fit.data.index[5]).encode() in found) is there
        assert (fit.data.X[5].tobytes() in found) is there


@pytest.mark.parametrize("what", NEEDS_ROWS)
def test_what_needs_the_rows_says_so(pair, what, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelError, match=r"saved without its rows \(data=False\)"):
        NEEDS_ROWS[what](pair[1])
    assert not list(tmp_path.iterdir())


def test_it_can_be_pickled_and_accept_levels(pair):
    fit, shipped, _ = pair
    X = tiny_table()[0]
    again = pickle.loads(pickle.dumps(shipped)).accept_unseen()
    np.testing.assert_array_equal(again.predict_proba(X), fit.predict_proba(X))
    assert str(again) == str(fit)


def test_a_printed_fit_prints_the_same_after_load_and_computes_nothing(tmp_path, monkeypatch):
    fit = replace(tiny_fit("psychm"))  # which nobody has printed yet
    assert lepu.load(fit.save(tmp_path / "before.nc")).remembered is None
    said = str(fit)
    loaded = lepu.load(fit.save(tmp_path / "after.nc"))
    again = lepu.load(loaded.save(tmp_path / "again.nc"))
    with monkeypatch.context() as patch:
        patch.setattr("bayes_lepu.fitted.diagnose", None)
        assert str(loaded) == repr(again) == said
        assert again.class_prior().equals(fit.class_prior())
        assert len(again.decide(budget=3).rows) == 3
    assert again.identifiability.level == fit.identifiability.level
    assert str(again) == said
