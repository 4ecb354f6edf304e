"""NUTS fits: seeds, agreement with other engines, convergence, priors, predictions, files."""

import json
import logging
from pathlib import Path

import numpy as np
import pytest

import bayes_lepu as lepu
from bayes_lepu import Prior
from bayes_lepu.engines import nuts
from tests.patience import slow
from tools.reference import reference_data

MODELS = Path(__file__).parents[2] / "models"
QUICK = {"draws": 200, "tune": 300, "chains": 2, "progressbar": False}


def simulate(seed, *, n=2500, p=5, norm_a=2.0, norm_alpha=1.0, gamma=0.05, lam=0.05):
    """X ~ N(0, I), a orthogonal to alpha, zero intercepts."""
    rng = np.random.default_rng(seed)
    X, a, alpha = rng.standard_normal((n, p)), rng.standard_normal(p), rng.standard_normal(p)
    a *= norm_a / np.linalg.norm(a)
    if p > 1:
        alpha -= a * (a @ alpha) / (a @ a)
    alpha *= norm_alpha / np.linalg.norm(alpha)
    truth = lepu.Parameters.of(a=a, b=0.0, alpha=alpha, beta=0.0, gamma=gamma, lam=lam)
    return X, truth.simulate(X, rng)[1], truth


def test_the_seed_decides_whatever_the_number_of_threads():
    X, l, _ = simulate(1, n=100, p=1)
    options = {**QUICK, "chains": 4, "draws": 50, "tune": 100}
    one, *others = (
        lepu.fit(X, l, model="scar", random_seed=1, cores=cores, **options).parameters.a
        for cores in (1, 4, 4, 4)
    )
    for other in others:
        np.testing.assert_array_equal(one, other)
    another = lepu.fit(X, l, model="scar", random_seed=2, **options).parameters.a
    assert not np.array_equal(one, another)


@pytest.mark.parametrize(
    "name", [slow("naive"), "scar", "spm", slow("psychm"), slow("false_marks")]
)
def test_means_agree_with_the_stan_reference(name):
    """Within four combined Monte-Carlo standard errors for every stored quantity."""
    import arviz as az

    reference = json.loads((MODELS / name / "reference.json").read_text())
    data = reference_data(name)
    options = {"model": name}
    if name in ("spm", "false_marks"):
        options |= {"model": "spm", "selection_features": [0, 1]}
    if name == "false_marks":  # kinds 4 and 5 are marks that an audit found false and right
        y = np.select([data.kind == 4, data.kind == 5], [0.0, 1.0], np.nan)
        options |= {"false_marks": True, "y": y}
    scales = {k: v for k, v in reference["priors"].items() if k.startswith("scale_")}
    priors = {k.removeprefix("scale_"): lepu.Prior("normal", scale=v) for k, v in scales.items()}
    fit = lepu.fit(
        data.X,
        (data.kind > 0).astype(int),
        priors=priors,
        random_seed=5,
        progressbar=False,
        **options,
    )
    summary = az.summary(fit.tree, round_to="none")
    stored = reference["posterior"]
    compared = 0
    for key, row in stored.items():
        ours = summary.loc[_our_name(key, fit)]
        error = np.hypot(float(ours["mcse_mean"]), row["mcse_mean"])
        assert abs(float(ours["mean"]) - row["mean"]) < 4 * error, key
        assert float(ours["sd"]) == pytest.approx(row["sd"], rel=0.1), key
        compared += 1
    assert compared == len(stored) >= 5


def _our_name(key, fit):
    if "[" not in key:
        return key
    name, index = key.rstrip("]").split("[")
    return f"{name}[{fit.feature_names[int(index)]}]"


@pytest.mark.slow
def test_pymc_sampler_agrees_with_the_compiled_one():
    import arviz as az

    X, l, _ = simulate(2, n=300, p=1, norm_a=3.0, gamma=0.0, lam=0.0)
    options = {"model": "scar", "draws": 500, "tune": 500, "progressbar": False, "random_seed": 1}
    ours = az.summary(lepu.fit(X, l, **options).tree, round_to="none")
    theirs = az.summary(
        lepu.fit(X, l, sampler="pymc", chains=2, cores=1, **options).tree, round_to="none"
    )
    for name in ("pi", "c", "a[x0]", "b"):
        error = np.hypot(ours.loc[name, "mcse_mean"], theirs.loc[name, "mcse_mean"])
        assert abs(ours.loc[name, "mean"] - theirs.loc[name, "mean"]) < 4 * error


@pytest.mark.parametrize("method", ["nuts", "laplace"])
def test_flat_priors_are_refused(method):
    X, l, _ = simulate(1, n=100, p=1)
    with pytest.raises(lepu.ModelError, match=r"Flat prior on b.*improper"):
        lepu.fit(X, l, model="spm", method=method, priors={"b": Prior("flat")})


def test_predicted_labels_have_the_mean_of_h():
    X, l, _ = simulate(7, n=400, p=2)
    fit = lepu.fit(X, l, model="psychm", random_seed=1, **QUICK)
    labels = fit.tree["posterior_predictive"]["l"].to_numpy()
    h = fit.label_probability(X)["mean"].to_numpy()
    error = 5 * np.sqrt(0.25 / labels[..., 0].size)
    assert np.abs(labels.mean(axis=(0, 1)) - h).max() < error


def test_nutpie_calls_the_density_as_a_c_function(monkeypatch):
    """By parts of nutpie that are not documented; without them Python gives the same draws."""
    X, l, _ = simulate(1, n=200, p=2)
    options = {**QUICK, "model": "spm", "draws": 50, "tune": 100, "random_seed": 1}
    made, make = [], nuts.model_of_pointers
    monkeypatch.setattr(
        nuts, "model_of_pointers", lambda *args: made.append(make(*args)) or made[-1]
    )
    fit = lepu.fit(X, l, **options)
    assert made
    assert None not in made
    monkeypatch.setattr(nuts, "model_of_pointers", lambda *args: None)
    np.testing.assert_array_equal(lepu.fit(X, l, **options).parameters.a, fit.parameters.a)


def test_a_sampler_reports(monkeypatch, caplog):
    monkeypatch.setattr(nuts, "FIRST", 0.0)
    caplog.set_level(logging.INFO, "bayes_lepu")
    X, l, _ = simulate(1, n=2500, p=3)
    lepu.fit(X, l, model="scar", draws=500, tune=200, chains=2, random_seed=1)
    lines = [r.getMessage() for r in caplog.records]
    assert "Sampling 2 chains of 200 warm-up and 500 draws" in lines
    assert any(line.startswith("Sampled ") and " of 1400 draws" in line for line in lines)
