"""What holds without any form: against the truth, against closed forms, and refusals."""

import numpy as np
import pytest

import bayes_lepu as lepu

pytestmark = pytest.mark.filterwarnings("ignore::bayes_lepu.LepuWarning")
A = np.array([2.0, -1.0])


@pytest.fixture(scope="module")
def rows():
    """A class with a cauchit link, and s between .3 and .7: no fitted form is right."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(4000, 2))
    t = 0.5 + np.arctan(2 * X @ A) / np.pi
    s = 0.3 + 0.4 / (1 + np.exp(-X[:, 0]))
    y = rng.random(4000) < t
    return X, y & (rng.random(4000) < s), y, float(t.mean())


@pytest.fixture(scope="module")
def fit(rows):
    X, l, _, _ = rows
    return lepu.fit(X, l, model="spm", method="laplace", draws=100, random_seed=1)


def test_bounds_hold_the_truth_where_the_form_is_wrong(rows, fit):
    pi = rows[-1]
    table = fit.bounds(s_min=0.3, s_max=0.7, gamma=6.0)
    assert len(table) == 3
    assert np.all((table["lowest"] <= pi) & (pi <= table["highest"]))
    assert np.all(table["lowest"] <= table["lower"])
    assert np.all(table["lower"] <= table["upper"])


def test_ends_by_hand(fit):
    h = fit.draws.take(slice(None)).h(fit.data.X)
    table = fit.bounds(s_min=0.4, s_max=0.9)
    assert table["lower"].iloc[0] == pytest.approx(h.mean())
    assert table["upper"].iloc[0] == 1.0
    assert table["lower"].iloc[1] == pytest.approx(np.minimum(h / 0.9, 1).mean())
    assert table["upper"].iloc[1] == pytest.approx(np.minimum(h / 0.4, 1).mean())


def test_selectivity_opens_from_a_constant_s_to_all_that_h_allows(fit):
    bands = [fit.bounds(gamma=g).iloc[-1] for g in (1.0, 2.0, 8.0, 1e9)]
    widths = [b["upper"] - b["lower"] for b in bands]
    assert widths[0] == pytest.approx(0.0, abs=1e-9)
    assert widths == sorted(widths)
    none = fit.bounds().iloc[0]
    assert bands[-1]["lower"] == pytest.approx(none["lower"], abs=1e-6)
    assert bands[-1]["upper"] == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"s_min": 1.5}, "between 0 and 1"),
        ({"s_min": 0.8, "s_max": 0.3}, "s_min < s_max"),
        ({"gamma": 0.5}, "at least 1"),
    ],
)
def test_senseless_assumptions_are_refused(fit, options, words):
    with pytest.raises(lepu.ModelError, match=words):
        fit.bounds(**options)
