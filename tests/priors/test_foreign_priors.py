"""Priors of pymc-extras and PreliZ: with small classes of their shape, and with the real ones."""

from dataclasses import dataclass, field

import pytest

import bayes_lepu as lepu
from bayes_lepu.priors.foreign_priors import read_priors
from tests.tiny import tiny_table

Prior = lepu.Prior


@dataclass
class Extras:
    """As much of `pymc_extras.prior.Prior` as is read."""

    distribution: str
    parameters: dict = field(default_factory=dict)
    transform: str | None = None


def extras(name, **parameters):
    return Extras(name, parameters)


def preliz(name, **parameters):
    """As much of a PreliZ distribution as is read."""
    shown = {"param_names": tuple(parameters), "params": tuple(parameters.values())}
    return type(name, (), shown)()


def real_extras(name, **parameters):
    return pytest.importorskip("pymc_extras.prior").Prior(name, **parameters)


def real_preliz(name, **parameters):
    return getattr(pytest.importorskip("preliz"), name)(**parameters)


@pytest.mark.parametrize("make", [extras, preliz, real_extras, real_preliz])
def test_a_prior_of_another_library_means_the_same(make):
    given = {
        "a": {
            "heat": make("Laplace", mu=0.5, b=2.0),
            "light": make("HalfNormal", sigma=3.0),
            "size": make("TruncatedNormal", mu=0.0, sigma=1.5, lower=-float("inf"), upper=0.0),
        },
        "alpha": make("StudentT", nu=4.0, mu=0.0, sigma=2.0),
        "b": make("Normal", mu=1.0, sigma=2.5),
        "sigma_alpha": make("HalfNormal", sigma=0.5),
        "c": make("Beta", alpha=2.0, beta=8.0),
        "rates": make("Dirichlet", **{"alpha" if "preliz" in make.__name__ else "a": [1, 2, 3]}),
    }
    assert read_priors(given) == {
        "a": {
            "heat": Prior("laplace", scale=2.0, loc=0.5),
            "light": Prior("positive", scale=3.0),
            "size": Prior("negative", scale=1.5),
        },
        "alpha": Prior("student-t", scale=2.0, nu=4.0),
        "b": Prior("normal", scale=2.5, loc=1.0),
        "sigma_alpha": Prior("halfnormal", scale=0.5),
        "c": Prior("beta", concentration=(2, 8)),
        "rates": Prior("dirichlet", concentration=(1, 2, 3)),
    }


@pytest.mark.parametrize("make", [extras, real_extras])
def test_unknown_scales_and_the_defaults_of_pymc(make):
    nested = make("Normal", sigma=make("HalfNormal", sigma=2))
    wanted = Prior("normal", scale=Prior("halfnormal", scale=2.0))
    assert read_priors({"a": nested, "b": make("Normal")}) == {
        "a": wanted,
        "b": Prior("normal", scale=1.0),
    }


@pytest.mark.parametrize(
    ("prior", "message"),
    [
        (extras("Cauchy", alpha=0, beta=1), r"prior of a is .*Cauchy.*: Normal, Laplace, StudentT"),
        (extras("TruncatedNormal", mu=1, lower=0), "none of those that are understood"),
        (extras("Normal", tau=1), "has tau; mu, sigma are expected"),
        (extras("Laplace", mu=0), "lacks b; mu, b are expected"),
        (extras("Normal", sigma=[1.0, 2.0]), r"has \[1.0, 2.0\] as a parameter; a number"),
        (Extras("Normal", {}, "exp"), "has a transform"),
        (type("Normal", (), {"param_names": ("mu", "sigma")})(), r"Normal\(\) has no parameters"),
        (3.0, r"priors\['a'\] is 3.0; a Prior is expected"),
    ],
)
def test_what_is_not_understood_is_refused(prior, message):
    X, l, _ = tiny_table()
    with pytest.raises(lepu.ModelError, match=message):
        lepu.fit(X, l, model="scar", method="map", priors={"a": prior})


def test_a_fit_takes_them():
    X, l, _ = tiny_table()
    given = {"a": {"heat": extras("Normal", sigma=0.5)}, "b": preliz("Normal", mu=0.0, sigma=3.0)}
    ours = {"a": {"heat": Prior("normal", scale=0.5)}, "b": Prior("normal", scale=3.0)}
    fits = [lepu.fit(X, l, model="scar", method="map", priors=priors) for priors in (given, ours)]
    assert fits[0].priors == fits[1].priors
    assert fits[0].class_prior().equals(fits[1].class_prior())
