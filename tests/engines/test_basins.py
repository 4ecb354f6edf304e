"""Separate basins: evidence by bridge sampling, and pooling in proportion."""

import numpy as np
import pytest

import bayes_lepu as lepu
from bayes_lepu.data.reading import read_data
from bayes_lepu.engines.laplace import gaussian_at
from bayes_lepu.engines.nuts import NutsOptions, Run, log_evidence, sample_nuts
from bayes_lepu.model import get_model
from bayes_lepu.model.density import LogDensity
from bayes_lepu.model.row_sums import row_terms
from bayes_lepu.priors.prior import weak_priors

OPTIONS = NutsOptions(500, 500, 4, None, 0.9, 3, False)


@pytest.mark.slow
def test_bridge_evidence_agrees_with_the_prior_average_of_the_likelihood():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 1))
    l = rng.random(30) < 0.4
    data, spec = read_data(X, l), get_model("scar")
    priors = spec.complete_priors(weak_priors(1, 1), None)
    density = LogDensity(spec, data, priors, jacobian=True)
    start = gaussian_at(density, np.zeros(density.dim))
    run = Run(start, *sample_nuts(density, start, options=OPTIONS))
    bridge = log_evidence(density, run, seed=1)

    density = LogDensity(spec, data, priors)
    prior = density.unpack(density.sample_prior(100_000, rng))
    loglik = row_terms(prior, data)[0].sum(axis=-1)
    top = loglik.max()
    average = np.exp(loglik - top)
    expected = np.log(average.mean()) + top
    error = average.std() / average.mean() / np.sqrt(average.size)
    # The density leaves out the normalising constants of the priors.
    constants = sum(prior.log_normalizer() for prior in priors.values())
    assert bridge + constants == pytest.approx(expected, abs=4 * error + 0.02)


def test_two_separate_answers_are_mixed_openly():
    """With a mask that hides nothing of weight, the mirror image stays a second answer."""
    rng = np.random.default_rng(4)
    X = rng.standard_normal((500, 3))
    truth = lepu.Parameters.of(a=[2.0, 1.0, 0.02], b=0.0, alpha=[-1.0, 2.0, 0.0], beta=0.3)
    _, l = truth.simulate(X, rng)
    with pytest.warns(lepu.IdentifiabilityWarning, match="2 separate modes"):
        fit = lepu.fit(
            X,
            l,
            model="spm",
            selection_features=[0, 1],
            priors=dict.fromkeys(("a", "b", "alpha", "beta"), lepu.Prior("normal", scale=2.5)),
            draws=300,
            tune=300,
            random_seed=1,
            progressbar=False,
        )
    shares = fit.quality.figures["mode_weights"]
    assert sum(shares) == pytest.approx(1)
    mode = fit.stats["mode"]
    assert mode.mean() == pytest.approx(shares[1], abs=0.1)
    by_mode = [fit.parameters.a[mode == m].mean(axis=0) for m in (0, 1)]
    assert np.linalg.norm(by_mode[0] - by_mode[1]) > 1
