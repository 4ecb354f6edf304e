"""Laplace: evidence, mixture densities, Pareto k, and agreement with NUTS."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import expit, logsumexp

import bayes_lepu as lepu
from bayes_lepu.data.reading import read_data
from bayes_lepu.engines.folding import naming_log_odds
from bayes_lepu.engines.laplace import (
    Gaussian,
    Mixture,
    gaussian_at,
    importance,
    mixture_at,
    resample,
)
from bayes_lepu.model import get_model
from bayes_lepu.model.density import LogDensity
from bayes_lepu.priors.prior import weak_priors


def make(model, *, n=2000, p=2, seed=0, gamma=0.0, lam=0.0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    truth = lepu.Parameters.of(
        a=[3.0, -1.0][:p], b=0.0, alpha=[0.5, 2.0][:p], beta=0.5, gamma=gamma, lam=lam
    )
    _, l = truth.simulate(X, rng)
    data, spec = read_data(X, l), get_model(model)
    priors = spec.complete_priors(weak_priors(p, p), None)
    return X, l, LogDensity(spec, data, priors, jacobian=True)


def test_evidence_agrees_with_importance_sampling():
    _, _, d = make("naive", n=500)
    g = gaussian_at(d, np.zeros(d.dim))
    rng = np.random.default_rng(2)
    z = g.sample(rng, 4000)
    log_ratio = np.array([d.logp(point) for point in z]) - g.logpdf(z)
    estimate = logsumexp(log_ratio) - np.log(len(z))
    error = np.std(np.exp(log_ratio - estimate)) / np.sqrt(len(z))
    # The Gaussian is not exact: allow its own bias (of order 1/n) besides the sampling error.
    assert g.log_evidence == pytest.approx(estimate, abs=4 * error + 0.05)
    assert importance(d, Mixture((g,)), z)[1] < 0.5


class Target:
    """The standard normal density, of few rows."""

    data = SimpleNamespace(n_all=1)

    def logps(self, z):
        return -0.5 * z[:, 0] ** 2


@pytest.mark.parametrize(("scale", "trusted"), [(0.4, False), (1.5, True)])
def test_pareto_k_tells_too_narrow_from_too_wide(scale, trusted):
    """Drawn from N(0, scale²) for N(0, 1), the weights have the Pareto shape 1 - scale²."""

    mixture = Mixture((Gaussian(np.zeros(1), scale * np.eye(1), 0.0),))
    z = mixture.sample(np.random.default_rng(3), 4000)
    assert (importance(Target(), mixture, z)[1] < 0.7) == trusted


def test_heavy_tails_are_followed_by_heavy_tails():
    """A Student-t with 5 degrees of freedom, started from a Gaussian that is too narrow."""

    class Heavy(Target):
        def logps(self, z):
            return -3.0 * np.log1p(z[:, 0] ** 2 / 5)

    start = Mixture((Gaussian(np.zeros(1), 0.4 * np.eye(1), 0.0),))
    first = importance(Heavy(), start, start.sample(np.random.default_rng(3), 8000))[1]
    z, k = resample(Heavy(), start, np.random.default_rng(3), 4000)
    assert first > 0.6
    assert k < 0.5
    # 5 % of such a t lie beyond 2.571; about 2000 draws in effect.
    assert np.mean(np.abs(z) > 2.571) == pytest.approx(0.05, abs=4 * np.sqrt(0.05 / 2000))


def test_mixture_finds_the_mirror_mode_of_spm_with_the_right_weight():
    """Against the exact weight of each draw among itself and its mirror image."""
    _, _, d = make("spm")
    first = gaussian_at(d, np.array([3.0, -1.0, 0.0, 0.5, 2.0, 0.5]))
    mixture = mixture_at(d, [d.unpack(first.mean), d.unpack(d.swap(first.mean))])
    assert len(mixture.parts) == 2
    draws = mixture.parts[0].sample(np.random.default_rng(4), 400)
    weights = expit([naming_log_odds(d, z) for z in draws])
    assert mixture.weights[0] == pytest.approx(np.mean(weights), abs=0.05)


@pytest.mark.parametrize("method", ["laplace", pytest.param("nuts", marks=pytest.mark.slow)])
def test_priors_that_rule_out_the_steeper_class_overrule_the_rule(method):
    X, l, _ = make("spm", n=300)
    priors = {"a": lepu.Prior("normal", scale=0.3), "alpha": lepu.Prior("normal", scale=5.0)}
    with pytest.warns(lepu.IdentifiabilityWarning, match="priors contradict the rule"):
        fit = lepu.fit(
            X, l, model="spm", method=method, priors=priors, random_seed=1, progressbar=False
        )
    assert fit.orientation.settled_by == "density"
    assert fit.orientation.probability > 0.95
    assert len(np.unique(fit.draws.b)) > 3000
    assert fit.identifiability.level >= 2
