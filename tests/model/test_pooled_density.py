"""The density of pooled annotators: against PyMC, enumeration, one annotator, far tails."""

from dataclasses import replace

import numpy as np
import pytest
from annotated import PICKY, make_density, simulate
from scipy.special import expit

from bayes_lepu import Prior
from bayes_lepu.data.reading import read_data
from bayes_lepu.model import get_model
from bayes_lepu.model.density import LogDensity, row_terms
from bayes_lepu.options import choose_priors
from bayes_lepu.rows import NOT_SHOWN
from tests.densities import graph_gaps
from tests.likelihoods import differences

OWN = {
    "a": Prior("normal", scale=0.8, loc=-1.0),
}
VARIANTS = [
    pytest.param(model, options, id=f"{model}-{name}")
    for model in ("spm", "scar", "psychm")
    for name, options in {
        "plain": {},
        "audited": {"audited": True},
        "masks": {"masks": True, "audited": True},
        "priors": {"priors": OWN},
    }.items()
]


def points(density, count=3):
    return np.random.default_rng(8).normal(0, 0.8, (count, density.dim))


@pytest.mark.parametrize(("model", "options"), VARIANTS)
def test_the_density_is_that_of_the_pymc_model(model, options):
    density = make_density(model, **options)
    np.testing.assert_allclose(graph_gaps(density, points(density)), 0, atol=1e-9)


@pytest.mark.parametrize("model", ["spm", "scar", "psychm"])
def test_curvature_is_that_of_finite_differences(model):
    density = make_density(model, audited=True)
    for z in points(density, 2):
        observed = -differences(lambda x: density.logp_grad(x)[1], z)
        np.testing.assert_allclose(density.observed_information(z), observed, rtol=1e-5, atol=1e-5)


def test_one_annotator_per_row_is_the_model_of_one_annotator():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(60, 3))
    who, l = rng.integers(0, 3, 60), (rng.random(60) < 0.4).astype(float)
    L = np.full((60, 3), np.nan)
    L[np.arange(60), who] = l
    y = np.where((l == 0) & (np.arange(60) < 16), np.arange(60) % 2, np.nan)
    several, single = (read_data(X, labels, y=y, standardize=False) for labels in (L, l))
    together = row_terms(PICKY, several)[0]
    for j in range(3):
        one = PICKY.of_annotator(j)
        np.testing.assert_allclose(
            together[who == j], row_terms(one, single)[0][who == j], rtol=1e-12
        )


@pytest.mark.parametrize("name", ["sigma_alpha", "sigma_beta", "sigma_rates"])
def test_a_known_scale_is_an_unknown_one_that_is_held(name):
    """The same parameters and slopes, and a density that differs by the scale's own prior."""
    free = make_density("psychm")
    held = make_density("psychm", priors={name: Prior("known", loc=0.6)})
    at = free.layout.slices[name].start
    gaps = []
    for z in points(free):
        z[at] = np.log(0.6)
        rest = np.delete(z, at)
        one, other = free.unpack(z), held.unpack(rest)
        for part in ("a", "b", "alpha", "beta", "log_w"):
            np.testing.assert_allclose(getattr(other, part), getattr(one, part), rtol=1e-12)
        value, slope = held.logp_grad(rest)
        np.testing.assert_allclose(slope, np.delete(free.logp_grad(z)[1], at), atol=1e-9)
        gaps.append(free.logp(z) - value)
        np.testing.assert_allclose(held.unpack(held.pack(other)).alpha, one.alpha, atol=1e-9)
    np.testing.assert_allclose(gaps, gaps[0], atol=1e-9)


@pytest.mark.parametrize("annotators", [1, 2, 3])
def test_every_annotator_makes_false_marks_of_their_own(annotators):
    X, _, L = simulate(30, seed=3)
    labels = L.iloc[:, :annotators] if annotators > 1 else L["anna"]
    data = read_data(X, labels, standardize=False, false_marks=True)
    spec = replace(get_model("spm"), false_marks=True)
    density = LogDensity(spec, data, choose_priors(spec, data), jacobian=True)
    at = density.layout.slices["epsilon"]
    assert at.stop - at.start == annotators
    z = points(density, 1)[0]
    epsilon = np.atleast_1d(density.unpack(z).epsilon)
    np.testing.assert_allclose(epsilon, expit(z[at]))
    np.testing.assert_allclose(density.pack(density.unpack(z))[at], z[at], rtol=1e-12)
    unsaid = density.unpack(density.pack(replace(density.unpack(z), epsilon=None))).epsilon
    assert ((unsaid > 0) & (unsaid < 0.05)).all()  # a search begins with few of them


def test_the_graph_draws_labels_of_shown_cells_only():
    import pymc as pm
    import pytensor

    density = make_density("spm", audited=True)
    graph = density.spec.build(density.data, density.priors)
    with pytensor.config.change_flags(mode="FAST_COMPILE", cxx=""):
        prior = pm.sample_prior_predictive(200, model=graph, random_seed=1)
    drawn = prior["prior_predictive"]["L"].to_numpy()
    shown, y = density.data.shown, density.data.y
    assert ((drawn == NOT_SHOWN) == ~shown).all()
    assert (drawn[:, :, y == 0][..., shown[y == 0]] == 0).all()
    assert drawn[:, :, y == 1][..., shown[y == 1]].mean() > 0.1
