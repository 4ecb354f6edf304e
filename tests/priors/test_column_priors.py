"""Priors by column and by sign: their densities, and what they do to a fit."""

import numpy as np
import pytest
from scipy.stats import skewnorm

import bayes_lepu as lepu
from bayes_lepu.data.reading import read_data
from bayes_lepu.models import get_model
from bayes_lepu.models.density import LogDensity
from bayes_lepu.options import choose_priors
from bayes_lepu.priors.signed_families import SHAPE
from tests.tiny import tiny_table

Prior = lepu.Prior
MIXED = {
    "a": {"heat": Prior("positive", scale=2.0), "light": Prior("laplace", scale=0.5)},
    "alpha": {"light": Prior("student-t", scale=1.0, nu=3.0)},
}


def density_of(priors, **options):
    X, l, _ = tiny_table()
    data = read_data(X, l)
    spec = get_model("spm")
    return LogDensity(spec, data, choose_priors(spec, data, priors=priors), **options)


@pytest.mark.parametrize("family", ["positive", "negative"])
def test_sign_is_a_skew_normal(family, rng):
    prior, sign = Prior(family, scale=1.7), 1 if family == "positive" else -1
    x = np.array([-3.0, -0.02, 0.0, 0.01, 0.5, 4.0])
    wanted = skewnorm(sign * SHAPE, scale=1.7)
    got = [prior.logpdf(np.array([v])) + prior.log_normalizer() for v in x]
    np.testing.assert_allclose(got, wanted.logpdf(x), rtol=1e-7)
    step = 1e-6
    above, below = ([prior.logpdf(np.array(v + h)) for v in x] for h in (step, -step))
    slope = np.subtract(above, below) / (2 * step)
    np.testing.assert_allclose(prior.grad(x), slope, rtol=1e-4, atol=1e-4)
    bend = (prior.grad(x - step) - prior.grad(x + step)) / (2 * step)
    np.testing.assert_allclose(prior.form.curvature(prior, x), bend, rtol=1e-3, atol=1e-3)
    drawn = prior.sample(rng, (100_000,))
    assert np.mean(sign * drawn < 0) == pytest.approx(np.arctan(1 / SHAPE) / np.pi, abs=1e-3)
    assert drawn.std() == pytest.approx(wanted.std(), rel=0.02)


def test_normal_and_laplace_columns_stay_compiled():
    priors = {"a": {"heat": Prior("normal", scale=0.3), "light": Prior("laplace", scale=2.0)}}
    density = density_of(priors)
    assert density.is_compiled
    z = np.array([0.4, -1.0, 0.2, 0.1, 0.3, -0.5])
    plain = density_of({"a": Prior("flat")})
    gap = density.logp(z) - plain.logp(z)
    assert gap == pytest.approx(-0.5 * (0.4 / 0.3) ** 2 - 1.0 / 2.0)


def test_gradient_and_graph_of_mixed_columns():
    import pymc as pm  # noqa: F401 - its graph is built

    density = density_of(MIXED)
    z = np.array([0.05, -1.0, 0.2, 0.1, 0.3, -0.5])
    steps = 1e-6 * np.eye(6)
    slope = [(density.logp(z + e) - density.logp(z - e)) / 2e-6 for e in steps]
    np.testing.assert_allclose(density.logp_grad(z)[1], slope, rtol=1e-4, atol=1e-5)
    model = density.spec.build(density.data, density.priors)
    logp = model.compile_logp(mode="FAST_COMPILE")
    points = [z, np.array([1.0, 0.5, -0.2, 0.0, 0.7, 0.3])]
    theirs = [float(logp({"a": p[:2], "b": p[2], "alpha": p[3:5], "beta": p[5]})) for p in points]
    assert theirs[1] - theirs[0] == pytest.approx(density.logp(points[1]) - density.logp(z))


@pytest.mark.parametrize("method", ["map", "laplace", "nuts"])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_fit_keeps_the_sign(method, tmp_path):
    X, l, _ = tiny_table()
    negative = {"heat": Prior("negative", scale=1.0)}
    priors = {"a": Prior("normal", scale=1.8), "alpha": negative}
    options = {} if method == "map" else {"draws": 50, "chains": 2, "tune": 200}
    fit = lepu.fit(
        X, l, model="spm", method=method, priors=priors, random_seed=1, progressbar=False, **options
    )
    beyond = {"map": 0.0, "laplace": 0.0, "nuts": 0.1}[method]  # NUTS may cross the wall a little
    assert fit.draws.alpha[:, 0].max() < beyond
    assert fit.quality.trusted is not False
    again = lepu.load(fit.save(tmp_path / "fit.nc"))
    assert again.priors == fit.priors
    assert eval(repr(fit.priors["alpha"])) == fit.priors["alpha"]


@pytest.mark.parametrize(
    ("priors", "message"),
    [
        ({"a": {"haet": Prior("normal", scale=1.0)}}, r"column in priors\['a'\] 'haet'.*'heat'"),
        ({"a": {"heat": 3.0}}, r"priors\['a'\]\['heat'\] is 3.0; a Prior"),
        ({"a": 3.0}, r"priors\['a'\] is 3.0; a Prior is expected"),
        (3.0, "priors = 3.0; a mapping of parameters to priors is expected"),
        ({"a": Prior("columns", parts=(Prior("flat"),))}, "has 1 parts; one for each of the 2"),
        ({"b": Prior("columns", parts=(Prior("flat"),))}, "b cannot have a prior for every column"),
    ],
)
def test_priors_that_are_none_of_a_column(priors, message):
    with pytest.raises(lepu.ModelError, match=message):
        density_of(priors)


def test_a_column_needs_a_prior_of_the_real_line():
    with pytest.raises(lepu.ModelError, match="cannot be the prior of a column"):
        Prior("columns", parts=(Prior("beta", concentration=(1, 1)),))
