"""The paper's simulator and loaders: directions, counts, known rates."""

from pathlib import Path

import numpy as np
import pytest

from reproduction.datasets import (
    PAPER_SUBJECTS,
    load_animal_gonogo,
    load_animal_trials,
    simulate_paper,
    usable_trials,
)

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
needs_animal = pytest.mark.skipif(
    not (SHARED / "animal_gonogo" / "trials.csv").is_file(),
    reason=f"the go/no-go tables are not in {SHARED / 'animal_gonogo'}",
)


def within(rate: float, expected: float, n: int) -> bool:
    """Is an observed rate within 4 binomial standard errors of the expected one?"""
    return abs(rate - expected) <= 4 * np.sqrt(max(expected * (1 - expected), 1e-12) / n)


def test_paper_probabilities_follow_from_the_truth() -> None:
    data = simulate_paper(4000, gamma=0.2, lam=0.1, rho1=1.0, K=0.5, random_seed=1)
    truth, X = data.truth, data.X.to_numpy()
    t = 1 / (1 + np.exp(-(X @ truth["a"] + truth["b"])))
    s = 0.2 + 0.7 / (1 + np.exp(-(X @ truth["alpha"] + truth["beta"])))
    np.testing.assert_allclose(data.t, t, rtol=1e-12)
    np.testing.assert_allclose(data.s, s, rtol=1e-12)
    assert np.all(data.l <= data.y)
    assert within(data.y.mean(), t.mean(), 4000)
    assert within(data.l.mean(), (s * t).mean(), 4000)
    # In the direction of t and of s, not merely at their mean.
    assert within(data.y[t > 0.5].mean(), t[t > 0.5].mean(), int((t > 0.5).sum()))
    high = (s > np.median(s)) & (data.y == 1)
    assert within(data.l[high].mean(), s[high].mean(), int(high.sum()))


def test_paper_ordering() -> None:
    def steeper(ordering: str | None) -> np.ndarray:
        truths = [simulate_paper(1, ordering=ordering, random_seed=i).truth for i in range(200)]
        return np.array([np.linalg.norm(t["a"]) > np.linalg.norm(t["alpha"]) for t in truths])

    assert steeper("class-steeper").all()
    assert within(steeper(None).mean(), 0.5, 200)


# Sensitivity and false-positive rate of the data's own documentation.
REFERENCE = {
    "fsa": (0.836, 0.012),
    "hth": (0.868, 0.044),
    "mta": (0.872, 0.040),
    "sph": (0.900, 0.040),
    "mba": (0.904, 0.020),
}


@needs_animal
def test_animal_trials_counts() -> None:
    trials = load_animal_trials(SHARED)
    assert len(trials) == 6999
    usable = usable_trials(trials)
    assert len(usable) == 6799
    assert not usable.duplicated(["subject", "image"]).any()
    assert (usable["flag"] == "anticipation").sum() == 6


@needs_animal
@pytest.mark.parametrize("code", PAPER_SUBJECTS)
def test_animal_reference_rates(code: str) -> None:
    data = load_animal_gonogo(SHARED, subject=code)
    sensitivity, false_positives = REFERENCE[code]
    y_sub = data.rows["y_sub"].to_numpy()
    assert round(float(y_sub[data.y == 1].mean()), 3) == sensitivity
    assert round(float(y_sub[data.y == 0].mean()), 3) == false_positives
    np.testing.assert_array_equal(data.l, data.y * y_sub)
    assert data.y.mean() == 0.5
    assert data.X.shape == (500, 10)


@needs_animal
def test_animal_speeded_labels_are_the_faster_half_of_the_hits() -> None:
    plain, speeded = (load_animal_gonogo(SHARED, speeded=flag) for flag in (False, True))
    assert np.all(speeded.l <= plain.l)
    rows = speeded.rows.assign(l=speeded.l, hit=plain.l)
    for _, one in rows[rows["hit"] == 1].groupby("subject"):
        assert one.loc[one["l"] == 1, "rt_ms"].max() < one.loc[one["l"] == 0, "rt_ms"].min()
        assert one["l"].mean() == pytest.approx(0.5, abs=0.02)
