"""Priors by column and by sign: their densities, and what they do to a fit."""

import numpy as np
import pytest

import bayes_lepu as lepu
from bayes_lepu.data.reading import read_data
from bayes_lepu.model import get_model
from bayes_lepu.model.density import LogDensity
from bayes_lepu.options import choose_priors
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


def test_graph_of_mixed_columns():
    import pymc as pm  # noqa: F401 - its graph is built

    density = density_of(MIXED)
    z = np.array([0.05, -1.0, 0.2, 0.1, 0.3, -0.5])
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
    beyond = 0.0 if method == "map" else 0.1  # draws may cross the wall a little
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
