"""models/<name>/<name>.py: the models as plain PyMC, equal to the compiled density and to Stan."""

import importlib.util
import inspect
import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytensor
import pytest
from pymc.model.transform.conditioning import remove_value_transforms
from pytensor.compile.mode import Mode
from scipy.special import expit

from bayes_lepu import Prior
from bayes_lepu.data.reading import read_data
from bayes_lepu.model import REGISTRY
from bayes_lepu.model.density import LogDensity
from bayes_lepu.model.variables import free_variables
from tests.densities import constant, extreme_points
from tools.reference import reference_data
from tools.reference_panel import reference_panel

MODELS = Path(__file__).resolve().parents[2] / "models"
NAMES = ("naive", "scar", "spm", "psychm", "false_marks", "panel")
SELECTION = {"spm": [0, 1], "false_marks": [0, 1], "panel": [1, 2]}


def module(name):
    """The file, loaded by its path."""
    spec = importlib.util.spec_from_file_location(name, MODELS / name / f"{name}.py")
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


@cache
def rows(name):
    """Columns and labels of the reference data, and audited classes (NaN where there are none)."""
    if name == "panel":
        data = reference_panel()
        return data.X, data.L, np.full(len(data.X), np.nan)
    data = reference_data(name)
    y = np.where(data.kind == 5, 1.0, np.where(data.kind == 4, 0.0, np.nan))
    return data.X, np.isin(data.kind, (1, 4, 5)).astype(int), y


def build(name):
    X, l, y = rows(name)
    options = {"selection": SELECTION[name]} if name in SELECTION else {}
    return module(name).build(X, l, **options, **({"y": y} if name == "false_marks" else {}))


@cache
def log_density(name):
    """The model's log density and gradient by named values, without any Jacobian."""
    model = remove_value_transforms(build(name))
    by = model.value_vars
    outputs, mode = [model.logp(), model.dlogp()], Mode(linker="py", optimizer="fast_run")
    with pytensor.config.change_flags(cxx=""):  # quick to make; the same rewrites
        f = model.compile_fn(outputs, inputs=by, mode=mode, point_fn=False)
    places = np.cumsum([0, *(np.size(v) for v in model.initial_point().values())])
    slices = {v.name: slice(*places[k : k + 2]) for k, v in enumerate(by)}
    return lambda values: f(**{v.name: values[v.name] for v in by}), slices


@cache
def compiled(name):
    X, l, y = rows(name)
    spec = REGISTRY[{"false_marks": "spm", "panel": "spm"}.get(name, name)]
    spec = replace(spec, false_marks=name == "false_marks")
    given = {"selection_features": SELECTION[name]} if name in SELECTION else {}
    l = np.where(l < 0, np.nan, l)
    data = read_data(X, l, y=y, standardize=False, false_marks=spec.false_marks, **given)
    q = np.sqrt(data.selection_mask.sum())
    priors = {
        "a": Prior("normal", scale=2.5 / np.sqrt(3)),
        "alpha": Prior("normal", scale=1.5 / q),
        "b": Prior("normal", scale=1.5),
        "beta": Prior("normal", scale=1.5),
        "c": Prior("beta", concentration=(1, 1)),
        "rates": Prior("dirichlet", concentration=(1, 1, 1)),
        "epsilon": Prior("beta", concentration=(1, 99)),
        "sigma_alpha": Prior("halfnormal", scale=1 / q),
        "sigma_beta": Prior("halfnormal", scale=1.0),
    }
    return LogDensity(spec, data, spec.complete_priors(priors, None, data))


def points(density):
    """Points near and far: slopes up to 60, levels up to 750."""
    rng = np.random.default_rng(3)
    yield from rng.normal(0, 1.5, (6, density.dim))
    for z in extreme_points(density, rng):
        z[density.blocks.a] *= 20
        yield z


@pytest.mark.parametrize("name", NAMES)
def test_equal_to_the_compiled_density(name):
    density, (logp, slices) = compiled(name), log_density(name)
    left_out = None  # PyMC takes 99.0 for a float32: its constants have seven digits
    for k, z in enumerate(points(density)):
        values = {n: v for n, (_, v) in free_variables(density, density.unpack(z)).items()}
        value, gradient = logp(values)
        wanted, slopes = density.logp_grad(z)
        if name == "panel":  # the coordinate log σ has its Jacobian always
            wanted -= np.log(values["sigma_alpha"]) + np.log(values["sigma_beta"])
        left_out = value - wanted if left_out is None else left_out
        assert value == pytest.approx(wanted + left_out, rel=1e-9)
        for block in {"a", "b", "alpha", "beta"} & set(slices) if k < 6 else ():
            ours = slopes[getattr(density.blocks, block)]
            np.testing.assert_allclose(gradient[slices[block]], ours, rtol=1e-8)
    assert left_out == pytest.approx(constant(density), abs=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_equal_to_the_stored_values_of_stan(name):
    stored = json.loads((MODELS / name / "reference.json").read_text("utf-8"))["log_density"]
    logp, _ = log_density(name)
    columns = SELECTION.get(name, slice(None))
    ours = []
    for point in stored["points"]:
        values = {("rates" if k == "w" else k): np.array(v) for k, v in point.items()}
        if "alpha" in values:
            values["alpha"] = values["alpha"][columns]
        ours.append(logp(values)[0])
    difference = np.array(ours) - stored["plain"]
    np.testing.assert_allclose(difference, difference[0], rtol=0, atol=1e-8)


@pytest.mark.parametrize("name", NAMES)
def test_simulated_labels_have_the_rates_of_the_model(name):
    """`truth` of the reference data made X and its labels, by code that is not this file's."""
    X, l, _ = rows(name)
    truth = json.loads((MODELS / name / "reference.json").read_text("utf-8"))["data"]["truth"]
    at = {("rates" if k == "w" else k): np.array(v) for k, v in truth.items()}
    if name == "panel":
        at["alpha"] = at["alpha_mean"] + at["sigma_alpha"] * at["z_alpha"]
        at["beta"] = at["beta_mean"] + at["sigma_beta"] * at["z_beta"]
    elif name in SELECTION:
        at["alpha"] = at["alpha"][SELECTION[name]]
    simulate, options = module(name).simulate, {"rng": np.random.default_rng(5)}
    options |= {"selection": SELECTION[name]} if name in SELECTION else {}
    given = {k: v for k, v in at.items() if k in inspect.signature(simulate).parameters}
    y, labels = simulate(np.tile(X, (40, 1)), **given, **options)
    assert y.mean() == pytest.approx(expit(X @ at["a"] + at["b"]).mean(), abs=0.01)
    shown = np.where(l < 0, np.nan, l)
    error = 4 / np.sqrt(len(X))
    np.testing.assert_allclose(labels.mean(axis=0), np.nanmean(shown, axis=0), atol=error / 2)


@pytest.mark.parametrize("name", NAMES)
def test_the_card_shows_the_model(name):
    card = (MODELS / name / "card.md").read_text(encoding="utf-8")
    assert inspect.getsource(module(name).build) in card, f"copy build of {name}.py into the card"
