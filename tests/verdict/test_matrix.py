"""Truths with a known degree of identifiability, and the verdict each must get."""

from dataclasses import dataclass

import numpy as np
import pytest

import bayes_lepu as lepu

pytestmark = pytest.mark.filterwarnings("ignore::bayes_lepu.LepuWarning")
P = 5
MASK = {"selection_features": [1, 2, 3, 4]}
SHORT = {"draws": 300, "tune": 300, "chains": 4, "progressbar": False}


@dataclass(frozen=True, eq=False)
class Case:
    X: np.ndarray
    l: np.ndarray
    truth: lepu.Parameters
    options: dict

    @property
    def pi(self):
        return float(self.truth.t(self.X).mean())

    def fit(self, method="map", seed=0, **options):
        sampling = SHORT if method != "map" else {}
        return lepu.fit(
            self.X, self.l, method=method, random_seed=seed, **self.options, **sampling, **options
        )


def directions(rng, *, masked=False):
    """Unit vectors: α ⟂ a, or α without the first column and a with a clear share of it."""
    a, alpha = rng.normal(size=P), rng.normal(size=P)
    a /= np.linalg.norm(a)
    if masked:
        a[0] = np.copysign(max(abs(a[0]), 0.5), a[0])
        a /= np.linalg.norm(a)
        alpha[0] = 0.0
    else:
        alpha -= a * (alpha @ a)
    return a, alpha / np.linalg.norm(alpha)


def simulate(kind, seed):
    """One data set of a named truth."""
    rng = np.random.default_rng([seed, *kind.encode()])
    n = 10_000 if kind == "psychm steep" else 2500
    X = rng.normal(size=(n, P))
    a, alpha = directions(rng, masked="mask" in kind)
    b, beta = rng.normal(0, 0.7, 2)
    point, model = {
        "spm steep, mask": lambda: ({"a": 5 * a, "b": b, "alpha": alpha, "beta": beta}, "spm"),
        "spm steep": lambda: ({"a": 5 * a, "b": b, "alpha": alpha, "beta": beta}, "spm"),
        "psychm steep": lambda: (
            {"a": 5 * a, "b": b, "alpha": 5 * alpha, "beta": beta, "gamma": 0.1, "lam": 0.05},
            "psychm",
        ),
        "scar as psychm": lambda: ({"a": 2 * a, "b": b, "gamma": 0.6, "lam": 0.4}, "psychm"),
        "scar as scar": lambda: ({"a": 3 * a, "b": b, "gamma": 0.6, "lam": 0.4}, "scar"),
        "spm as scar": lambda: ({"a": 3 * a, "b": b, "alpha": 2 * alpha, "beta": beta}, "scar"),
        "spm flat": lambda: ({"a": a, "b": 0, "alpha": 0.5 * alpha, "beta": 0}, "spm"),
        "spm flat, mask": lambda: ({"a": a, "b": 0, "alpha": 0.5 * alpha, "beta": 0}, "spm"),
        "psychm flat": lambda: (
            {"a": 2 * a, "b": 0, "alpha": alpha, "beta": 0, "gamma": 0.05, "lam": 0.05},
            "psychm",
        ),
        "a = alpha": lambda: (
            {"a": 3 * a, "b": 1, "alpha": 3 * a, "beta": 0, "gamma": 0.1, "lam": 0.05},
            "psychm",
        ),
        "a = -alpha": lambda: (
            {"a": 3 * a, "b": -0.8, "alpha": -3 * a, "beta": 0.3, "gamma": 0.2, "lam": 0.1},
            "psychm",
        ),
        "a = 0": lambda: (
            {"a": 0 * a, "b": 0, "alpha": 4 * a, "beta": 0.4, "gamma": 0.2, "lam": 0.2},
            "psychm",
        ),
        "s constant": lambda: ({"a": 4 * a, "b": b, "gamma": 0.6, "lam": 0.4}, "psychm"),
        "c = .99": lambda: ({"a": 2 * a, "b": 0, "gamma": 0.99, "lam": 0.01}, "spm"),
    }[kind]()
    truth = lepu.Parameters.of(**point)
    _, l = truth.simulate(X, rng)
    options = {"model": model, **(MASK if "mask" in kind else {})}
    return Case(X, l, truth, options)


def check(found, name):
    return next(c for c in found.checks if c.name == name)


def test_steep_spm_with_a_mask_is_separable():
    found = simulate("spm steep, mask", 1).fit().identifiability
    assert found.level == 1
    assert "orientation rule" not in found.carried_by
    assert "parametric form" in found.carried_by


def test_steep_psychm_is_separable():
    found = simulate("psychm steep", 1).fit().identifiability
    assert found.level == 1


def test_spm_without_masks_rests_on_the_rule():
    found = simulate("spm steep", 1).fit().identifiability
    assert found.level == 3
    assert "orientation rule" in found.carried_by
    assert "rule" in found.verdict
    assert check(found, "orientation").status == "failed"
    assert "By assumption only" in check(found, "orientation").text


def test_audited_rows_take_the_rule_away():
    case = simulate("spm steep", 1)
    rng = np.random.default_rng(0)
    y = np.full(len(case.l), np.nan)
    some = rng.choice(np.flatnonzero(case.l == 0), 100, replace=False)
    missed = case.truth.missed(case.X[some])
    y[some] = rng.random(100) < missed
    found = case.fit(y=y, audits="random").identifiability
    assert found.level == 1
    assert "orientation rule" not in found.carried_by
    assert "parametric form" not in found.carried_by


@pytest.mark.parametrize("seed", range(2))
def test_scar_fitted_with_psychm_is_sent_to_scar(seed):
    found = simulate("scar as psychm", seed).fit().identifiability
    assert found.level > 1
    constancy = check(found, "constancy of s")
    assert constancy.status == "failed"
    assert "model='scar'" in constancy.remedy
    assert "spm" in constancy.remedy


def test_scar_on_its_own_ground():
    found = simulate("scar as scar", 1).fit().identifiability
    assert found.level == 1
    assert "assumption that s is constant" in found.carried_by
    assert check(found, "constancy of s").status == "passed"


def test_scar_contradicted_by_a_varying_propensity():
    found = simulate("spm as scar", 1).fit().identifiability
    assert check(found, "constancy of s").status == "failed"
    assert found.level == 4
    assert "contradict" in found.verdict


def test_naive_identifies_h_only():
    case = simulate("spm steep", 1)
    found = lepu.fit(case.X, case.l, model="naive", method="map", random_seed=0).identifiability
    assert found.level == 4
    assert check(found, "constancy of s").status == "failed"


@pytest.mark.parametrize("seed", range(2))
def test_flat_spm_leaves_pi_open(seed):
    found = simulate("spm flat", seed).fit().identifiability
    assert found.level >= 3
    assert "level is open" in found.verdict or found.level == 4


EXCEPTIONAL = ["a = alpha", "a = -alpha", "a = 0", "s constant"]


@pytest.mark.parametrize("kind", EXCEPTIONAL, ids=lambda k: k.replace(" ", ""))
def test_where_h_has_a_second_solution_the_level_is_open(kind):
    assert simulate(kind, 1).fit().identifiability.level > 1


def test_one_hot_design_identifies_h_only():
    rng = np.random.default_rng(3)
    X = np.eye(5)[rng.integers(0, 5, 2500)]
    truth = lepu.Parameters.of(a=rng.normal(size=5), b=0, alpha=rng.normal(size=5), beta=0)
    _, l = truth.simulate(X, rng)
    for model in ("spm", "psychm"):
        found = lepu.fit(X, l, model=model, method="map", random_seed=0).identifiability
        assert found.level == 4
        assert check(found, "design").status == "failed"
        assert "data" not in found.carried_by


@pytest.mark.parametrize("seed", range(2))
def test_nearly_complete_labelling_is_not_level_one(seed):
    found = simulate("c = .99", seed).fit().identifiability
    assert found.level > 1


# Counts, printed by `make test-all` -----------------------------------------------------------

WELL = [("spm steep, mask", s) for s in range(10)] + [("psychm steep", s) for s in range(10)]
BADLY = [
    (kind, s)
    for kind in ("scar as psychm", "spm flat, mask", "a = alpha", "a = 0", "psychm flat")
    for s in range(4)
]


@pytest.mark.slow
@pytest.mark.parametrize("method", ["map", "nuts"])
def test_how_often_sets_get_level_one(method, capsys):
    shares = []
    for cases in (WELL, BADLY):
        levels = [simulate(*case).fit(method, seed=7).identifiability.level for case in cases]
        shares.append(sum(level == 1 for level in levels))
    with capsys.disabled():
        print(f"\n{method}: {shares[0]} of {len(WELL)} and {shares[1]} of {len(BADLY)}")
    assert shares[0] >= len(WELL) - 1
    assert shares[1] <= 1
