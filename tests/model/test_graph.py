"""The PyMC model as a user extends it: other rows, other terms, a potential."""

import numpy as np
import pymc as pm
import pytensor
import pytest

import bayes_lepu as lepu
from tests.tiny import tiny_table


def value_of(model, name, given):
    """A named variable at given values of others."""
    inputs = [model[k] for k in given]
    function = pytensor.function(inputs, model[name], mode="FAST_COMPILE", on_unused_input="ignore")
    return function(*given.values())


@pytest.mark.parametrize("name", ["spm", "panel"])
def test_predictors_follow_new_rows(name):
    X, l, L = tiny_table()
    model = lepu.build_model(X, L if name == "panel" else l, model="spm")
    new = np.random.default_rng(1).normal(size=(7, 2))
    labels = np.zeros((7, 3) if name == "panel" else 7, dtype=int)
    with model:
        pm.set_data({"X": new, "labels": labels}, coords={"obs": np.arange(7)})
    alpha = np.arange(6.0).reshape(3, 2) if name == "panel" else np.array([1.0, -1.0])
    beta = np.array([0.5, 0.0, 1.0]) if name == "panel" else 0.5
    given = {"a": np.array([2.0, 3.0]), "b": 1.0, "alpha": alpha, "beta": beta}
    tau, omega = (value_of(model, predictor, given) for predictor in ("tau", "omega"))
    np.testing.assert_allclose(tau, new @ [2, 3] + 1)
    np.testing.assert_allclose(omega, new @ alpha.T + beta)
    assert value_of(model, "pi", given) == pytest.approx(np.mean(1 / (1 + np.exp(-tau))))


def test_terms_are_added_to_the_predictors():
    X, l, _ = tiny_table()
    shop = np.arange(len(l)) % 4

    def by_shop():
        return pm.Normal("shop", 0.0, 1.0, shape=4)[shop]

    model = lepu.build_model(X, l, model="spm", terms={"omega": by_shop})
    assert [v.name for v in model.free_RVs][-1] == "shop"
    effects = np.array([0.0, 10.0, 20.0, 30.0])
    given = {"alpha": np.zeros(2), "beta": 1.0, "shop": effects}
    np.testing.assert_allclose(value_of(model, "omega", given), 1 + effects[shop])


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        ({"taw": lambda: 0.0}, r"Unknown predictor 'taw'.*tau"),
        ({"tau": 3.0}, r"terms\['tau'\] is float; a function"),
    ],
)
def test_terms_that_are_none_are_refused(terms, message):
    X, l, _ = tiny_table()
    with pytest.raises(lepu.ModelError, match=message):
        lepu.build_model(X, l, model="spm", terms=terms)
