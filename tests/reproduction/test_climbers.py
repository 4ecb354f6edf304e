"""The paper's optimisers and coordinates lead to the optima of the library's own."""

import numpy as np
import pytest

from bayes_lepu.data.reading import read_data
from bayes_lepu.inference.optimizers import optimise
from bayes_lepu.models import Parameters, get_model
from bayes_lepu.models.density import LogDensity
from bayes_lepu.priors.prior import penalty_priors
from reproduction.climbers import (
    PaperCoordinates,
    adam,
    adam_steps,
    in_paper_coordinates,
    nadam,
    nadam_steps,
)

TRUTH = Parameters.of(
    a=[3.0, -2.0, 0.5], b=0.5, alpha=[0.5, 1.5, -1.0], beta=0.5, gamma=0.15, lam=0.1
)
CLIMBERS = {
    "adam": adam,
    "nadam": nadam,
    "adam, paper": in_paper_coordinates(adam_steps),
    "nadam, paper": in_paper_coordinates(nadam_steps),
}


def density_of(model: str, point: Parameters, n: int, penalty: str, C: float) -> LogDensity:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, point.a.size))
    spec = get_model(model)
    priors = spec.complete_priors(penalty_priors(penalty, C), None)
    return LogDensity(spec, read_data(X, point.simulate(X, rng)[1]), priors)


@pytest.fixture(scope="module")
def density() -> LogDensity:
    return density_of("psychm", TRUTH, 1500, "l2", 0.1)


@pytest.mark.parametrize("model", ["psychm", "spm"])
@pytest.mark.parametrize("name", CLIMBERS)
def test_the_same_optimum(model, name):
    density = density_of(model, TRUTH, 1500, "l2", 0.1)
    usual = optimise(density, density.pack(TRUTH))
    paper = optimise(density, density.pack(TRUTH), optimizer=CLIMBERS[name])
    assert paper.converged
    assert paper.logp == pytest.approx(usual.logp, abs=1e-5)
    np.testing.assert_allclose(paper.z, usual.z, atol=2e-2)


def test_the_coordinates_are_the_papers(density):
    paper = PaperCoordinates(density)
    x = np.random.default_rng(1).normal(size=density.dim)
    x[-2:] = [-0.3, 0.7]  # gamma' may be negative: only |gamma'| counts
    point = density.unpack(paper.backward(x))
    assert float(point.gamma) == pytest.approx(0.3 / 2.0)
    assert float(point.lam) == pytest.approx(0.7 / 2.0)
    value, gradient = paper.logp_grad(x)
    assert value == pytest.approx(density.logp(paper.backward(x)))
    h = 1e-6
    wanted = [(paper.logp(x + e) - paper.logp(x - e)) / (2 * h) for e in h * np.eye(x.size)]
    np.testing.assert_allclose(gradient, wanted, rtol=1e-5, atol=1e-5)


def test_at_the_kink_the_slope_is_one_sided(density):
    paper = PaperCoordinates(density)
    x = paper.forward(density.pack(TRUTH))
    x[-1] = 0.0
    slope = paper.logp_grad(x)[1][-1]
    step = 1e-6
    ahead = x.copy()
    ahead[-1] = step
    assert slope == pytest.approx((paper.logp(ahead) - paper.logp(x)) / step, rel=1e-3)


def test_an_l1_penalty_ends_at_the_same_zeros():
    sparse = Parameters.of(
        a=np.r_[2.0, -1.0, np.zeros(6)],
        b=0.0,
        alpha=np.r_[0.0, 0.0, 1.0, -1.0, np.zeros(4)],
        beta=0.3,
        gamma=0.1,
        lam=0.1,
    )
    density = density_of("psychm", sparse, 1200, "l1", 2.0)
    usual = optimise(density, density.pack(sparse))
    paper = optimise(density, density.pack(sparse), optimizer=CLIMBERS["nadam, paper"])
    assert paper.logp == pytest.approx(usual.logp, abs=1e-4)
    assert (usual.z == 0).any()
