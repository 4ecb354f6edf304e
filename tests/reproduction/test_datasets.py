"""The paper's simulator and loaders: directions, counts, seeds, known faults, errors."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bayes_lepu.errors import DataError
from reproduction.datasets import (
    PAPER_SUBJECTS,
    SUBJECTS,
    load_animal_gonogo,
    load_animal_heldout,
    load_animal_trials,
    simulate_paper,
    usable_trials,
)

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
needs_animal = pytest.mark.skipif(
    not (SHARED / "animal_gonogo" / "trials.csv").is_file(),
    reason=f"the go/no-go tables are not in {SHARED / 'animal_gonogo'}",
)


@pytest.fixture(autouse=True)
def _no_data_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BAYES_LEPU_DATA", raising=False)


def within(rate: float, expected: float, n: int) -> bool:
    """Is an observed rate within 4 binomial standard errors of the expected one?"""
    return abs(rate - expected) <= 4 * np.sqrt(max(expected * (1 - expected), 1e-12) / n)


# --- the paper's generator ----------------------------------------------------------------------


def test_paper_same_seed_same_data_other_seed_other_data() -> None:
    one, two, other = (simulate_paper(200, random_seed=seed) for seed in (3, 3, 4))
    pd.testing.assert_frame_equal(one.X, two.X)
    np.testing.assert_array_equal(one.l, two.l)
    np.testing.assert_array_equal(one.truth["a"], two.truth["a"])
    assert not np.array_equal(one.truth["a"], other.truth["a"])
    assert not one.X.equals(other.X)


def test_paper_generator_object_advances() -> None:
    rng = np.random.default_rng(3)
    first, second = simulate_paper(20, random_seed=rng), simulate_paper(20, random_seed=rng)
    assert not np.array_equal(first.truth["a"], second.truth["a"])


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


@pytest.mark.parametrize(("gamma", "lam"), [(0.05, 0.05), (0.05, 0.0), (0.0, 0.05), (0.0, 0.0)])
def test_paper_propensity_lies_between_guess_and_lapse(gamma: float, lam: float) -> None:
    data = simulate_paper(2000, gamma=gamma, lam=lam, random_seed=2)
    assert data.s.min() >= gamma
    assert data.s.max() <= 1 - lam
    # Slopes of about 24 saturate the link, so both ends are reached.
    assert data.s.min() < gamma + 0.01
    assert data.s.max() > 1 - lam - 0.01


@pytest.mark.parametrize(
    ("distribution", "low", "high", "mean", "sd"),
    [
        ("uniform", -1, 1, 0.0, 1 / np.sqrt(3)),
        ("normal", -np.inf, np.inf, 0.0, 1.0),
        ("unit", 0, 1, 0.5, 1 / np.sqrt(12)),
    ],
)
def test_paper_distribution_of_features(
    distribution: str, low: float, high: float, mean: float, sd: float
) -> None:
    X = simulate_paper(4000, p=3, distribution=distribution, random_seed=5).X.to_numpy()
    assert X.shape == (4000, 3)
    assert X.min() >= low
    assert X.max() <= high
    assert abs(X.mean() - mean) < 4 * sd / np.sqrt(X.size)
    assert abs(X.std() - sd) < 4 * sd / np.sqrt(X.size)


def test_paper_scales_of_slopes_and_intercepts() -> None:
    truths = [simulate_paper(1, p=50, random_seed=seed).truth for seed in range(400)]
    slopes = np.concatenate([[t["a"], t["alpha"]] for t in truths]).ravel()
    intercepts = np.array([[t["b"], t["beta"]] for t in truths]).ravel()
    # A slope is N(0, 100) ± 5: mean 0, variance 125.
    assert abs(slopes.mean()) < 4 * np.sqrt(125 / slopes.size)
    assert slopes.var() == pytest.approx(125, rel=4 * np.sqrt(2 / slopes.size))
    assert intercepts.var() == pytest.approx(1, rel=4 * np.sqrt(2 / intercepts.size))


def test_paper_rademacher_vector_shared_or_not() -> None:
    shared = simulate_paper(5, p=40, rho1=0, K=3, shared_rademacher=True, random_seed=0).truth
    np.testing.assert_array_equal(shared["a"], shared["alpha"])
    np.testing.assert_array_equal(np.abs(shared["a"]), 3.0)
    own = simulate_paper(5, p=40, rho1=0, K=3, random_seed=0).truth
    agree = np.mean(own["a"] == own["alpha"])
    assert within(agree, 0.5, 40)


def test_paper_ordering() -> None:
    def steeper(ordering: str | None) -> np.ndarray:
        truths = [simulate_paper(1, ordering=ordering, random_seed=i).truth for i in range(200)]
        return np.array([np.linalg.norm(t["a"]) > np.linalg.norm(t["alpha"]) for t in truths])

    assert steeper("class-steeper").all()
    assert within(steeper(None).mean(), 0.5, 200)


def test_paper_class_balance_by_distribution() -> None:
    """Symmetric features keep the classes balanced; U(0, 1) lets them drift (maths of X2)."""

    def prior(distribution: str) -> np.ndarray:
        draws = [
            simulate_paper(500, distribution=distribution, random_seed=i).t.mean()
            for i in range(100)
        ]
        return np.array(draws)

    uniform, unit = prior("uniform"), prior("unit")
    assert uniform.mean() == pytest.approx(0.5, abs=4 * uniform.std() / 10)
    assert uniform.std() < 0.06
    assert unit.std() > 0.25


def test_paper_label_rate_is_that_of_the_stated_setting() -> None:
    rates = [simulate_paper(2500, random_seed=i).l.mean() for i in range(60)]
    assert np.median(rates) == pytest.approx(0.24, abs=0.02)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n": 0}, "n is 0"),
        ({"n": 2.5}, r"n is 2\.5"),
        ({"p": 0}, "p is 0"),
        ({"gamma": -0.1}, r"gamma is -0\.1"),
        ({"gamma": 0.6, "lam": 0.4}, "sum below 1"),
        ({"rho1": -1.0}, r"rho1 is -1\.0"),
        ({"rho2": np.nan}, "rho2 is nan"),
        ({"K": np.inf}, "K is inf"),
        ({"distribution": "cauchy"}, "'normal', 'uniform', 'unit'"),
        ({"ordering": "annotator-steeper"}, "class-steeper"),
    ],
)
def test_paper_refuses(options: dict, message: str) -> None:
    with pytest.raises(DataError, match=message):
        simulate_paper(**options, random_seed=0)


# --- the go/no-go experiment, prepared tables ---------------------------------------------------

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
    assert dict(zip(usable["code"], usable["subject"], strict=True)) == dict(SUBJECTS)


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
def test_animal_paper_subjects_are_the_least_sensitive() -> None:
    usable = usable_trials(load_animal_trials(SHARED))
    sensitivity = usable[usable["y_real"] == 1].groupby("code")["y_sub"].mean()
    assert set(sensitivity.nsmallest(5).index) == set(PAPER_SUBJECTS)


@needs_animal
def test_animal_subject_by_code_or_identifier_and_by_variable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    by_code = load_animal_gonogo(SHARED, subject="fsa")
    by_id = load_animal_gonogo(SHARED / "animal_gonogo", subject="sub-005")
    pd.testing.assert_frame_equal(by_code.X, by_id.X)
    np.testing.assert_array_equal(by_code.l, by_id.l)
    monkeypatch.setenv("BAYES_LEPU_DATA", str(SHARED))
    pd.testing.assert_frame_equal(load_animal_gonogo(subject="fsa").X, by_code.X)


@needs_animal
def test_animal_speeded_labels_are_the_faster_half_of_the_hits() -> None:
    plain, speeded = (load_animal_gonogo(SHARED, speeded=flag) for flag in (False, True))
    assert np.all(speeded.l <= plain.l)
    rows = speeded.rows.assign(l=speeded.l, hit=plain.l)
    for _, one in rows[rows["hit"] == 1].groupby("subject"):
        assert one.loc[one["l"] == 1, "rt_ms"].max() < one.loc[one["l"] == 0, "rt_ms"].min()
        assert one["l"].mean() == pytest.approx(0.5, abs=0.02)
    rate = rows["l"][speeded.y == 1].groupby(rows["subject"]).mean()
    assert rate.min() > 0.41
    assert rate.max() < 0.50


@needs_animal
def test_animal_features_belong_to_their_images() -> None:
    folder = SHARED / "animal_gonogo"
    with np.load(folder / "pca50_all.npz") as archive:
        Z = pd.DataFrame(archive["Z"], index=archive["image"]).astype(float)
    ten, fifty = (load_animal_gonogo(SHARED, features=f) for f in ("pca10", "pca50"))
    np.testing.assert_array_equal(fifty.X.to_numpy(), Z.loc[fifty.rows["image"]].to_numpy())
    pd.testing.assert_frame_equal(fifty.X.iloc[:, :10], ten.X)
    with np.load(folder / "features_categorised.npz") as archive:
        full = pd.DataFrame(archive["X"], index=archive["image"]).astype(float)
    one = load_animal_gonogo(SHARED, subject="mta", features="full")
    np.testing.assert_array_equal(one.X.to_numpy(), full.loc[one.rows["image"]].to_numpy())
    statistics = load_animal_gonogo(SHARED, subject="mta", features="statistics")
    assert list(statistics.X.columns[:2]) == ["lum_mean", "lum_sd"]
    assert statistics.X.shape == (500, 10)
    assert load_animal_gonogo(SHARED, subject="mta", features=None).X.shape == (500, 0)


@needs_animal
@pytest.mark.parametrize(("features", "width"), [("pca10", 10), ("full", 1280), (None, 0)])
def test_animal_heldout(features: str | None, width: int) -> None:
    test = load_animal_heldout(SHARED, features=features)
    assert test.X.shape == (518, width)
    assert int(test.y.sum()) == 84
    assert test.l is None
    judged = load_animal_gonogo(SHARED, subject="fsa", features=features)
    assert list(test.X.columns) == list(judged.X.columns)
    assert not set(test.rows["image"]) & set(judged.rows["image"])


@needs_animal
def test_animal_refuses_unknown_subject_and_features() -> None:
    with pytest.raises(DataError, match=r"subject is 'xyz'; choose one of cba = sub-002"):
        load_animal_gonogo(SHARED, subject="xyz")
    with pytest.raises(DataError, match="features is 'vgg16'; choose None or one of"):
        load_animal_gonogo(SHARED, features="vgg16")


def test_animal_missing_path_folder_file_and_columns(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="BAYES_LEPU_DATA is not set"):
        load_animal_gonogo()
    with pytest.raises(DataError, match=r"Found no trials\.csv in .*animal_gonogo"):
        load_animal_gonogo(tmp_path)
    with pytest.raises(DataError, match=r"Found no images\.csv"):
        load_animal_heldout(tmp_path)
    (tmp_path / "trials.csv").write_text("subject,image\nsub-002,1\n")
    with pytest.raises(DataError, match=r"missing are .*'y_real'"):
        load_animal_gonogo(tmp_path)
    row = "sub-002,cba,F,1,1,5.0,77,1,1,1,300,\n"
    header = "subject,code,gender,run,trial,onset_s,image,y_real,y_sub,l,rt_ms,flag\n"
    (tmp_path / "trials.csv").write_text(header + row)
    with pytest.raises(DataError, match=r"Found no pca50_all\.npz"):
        load_animal_gonogo(tmp_path)
    np.savez(tmp_path / "pca50_all.npz", image=np.array([78]), Z=np.zeros((1, 50)))
    with pytest.raises(DataError, match=r"1 images have no pca10 features \(first: \[77\]\)"):
        load_animal_gonogo(tmp_path)
