"""Climbs under a restriction: many rows change the steps, not where they lead."""

import numpy as np
import pytest

from bayes_lepu.data.reading import read_data
from bayes_lepu.model import Parameters, get_model
from bayes_lepu.verdict import climbing
from bayes_lepu.verdict.climbing import weak_density

TRUTH = Parameters.of(a=[2.0, -1.0], b=0.3, alpha=[0.5, 1.0], beta=0.5)


@pytest.fixture(scope="module")
def density():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 2))
    weight = rng.uniform(0.5, 2, size=5000)
    return weak_density(
        get_model("spm"), read_data(X, TRUTH.simulate(X, rng)[1], sample_weight=weight)
    )


def test_a_curvature_from_some_rows_leads_to_the_same_maximum(density, monkeypatch):
    z = density.pack(TRUTH)
    target = climbing.logit_pi(density, z)[0] + 0.2
    there, value = climbing.climb(climbing.held(density, target, 1e4), z)
    monkeypatch.setattr(climbing, "CURVATURE_ROWS", 1000)
    sampled, sampled_value = climbing.climb(climbing.held(density, target, 1e4), z)
    assert sampled_value == pytest.approx(value, abs=climbing.ENOUGH**2)
    np.testing.assert_allclose(density.unpack(sampled).t(density.data.X),
                               density.unpack(there).t(density.data.X), atol=0.01)  # fmt: skip


def test_the_class_prior_counts_weights_and_has_the_right_gradient(density):
    z = density.pack(TRUTH)
    q, slope = climbing.logit_pi(density, z)
    pi = np.average(TRUTH.t(density.data.X), weights=density.data.weight)
    assert q == pytest.approx(np.log(pi / (1 - pi)))
    for j, e in enumerate(1e-6 * np.eye(z.size)):
        ahead, behind = (climbing.logit_pi(density, z + s * e)[0] for s in (1, -1))
        assert slope[j] == pytest.approx((ahead - behind) / 2e-6, abs=1e-6)
