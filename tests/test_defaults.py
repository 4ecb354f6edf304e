"""What a point estimate assumes when nobody names penalties."""

import numpy as np
import pytest
from scipy.special import expit, log_expit, logsumexp
from scipy.stats import norm

import bayes_lepu as lepu
from bayes_lepu.data.reading import read_data
from bayes_lepu.defaults import (
    MANY_ROWS,
    SCALES,
    class_scale,
    default_penalties,
    default_priors,
    scale_by_count,
)
from bayes_lepu.engines.modes import artefact, point_figures
from bayes_lepu.model.parameters import Parameters


def data(alpha, beta, n=2000, p=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    truth = Parameters.of(a=[3.0, -2.0, *[0.0] * (p - 2)], b=-0.5, alpha=alpha, beta=beta)
    y, l = truth.simulate(X, rng)
    return X, l, y


def test_the_defaults_are_part_of_the_result_and_printed():
    X, l, _ = data([0.0] * 4, 0.0)
    fit = lepu.fit(X, l, model="spm", method="map", random_seed=0)
    assert l.sum() > 400  # a hundred for every column: as wide as they get
    assert fit.priors["a"] == lepu.Prior("normal", scale=10 / 2)
    assert fit.priors["alpha"] == lepu.Prior("normal", scale=l.sum() / 4 / 40 / 2)
    assert fit.priors["b"] == lepu.Prior("student-t", scale=2.5, nu=2)
    assert default_priors(fit.data)["rates"] == lepu.Prior("dirichlet", concentration=(1, 1, 1))
    for name in ("a ~ Normal(0, 5)", "b ~ Student-t(2, 0, 2.5)", "beta ~ Normal(-2.5, 2.5)"):
        assert name in repr(fit)


def test_the_fewer_labels_the_more_the_priors_say():
    """And a point estimate is the mode of the posterior."""
    X, l, _ = data([0.0] * 4, -2.0, n=200)
    few = default_priors(read_data(X, l))
    assert few == default_penalties(read_data(X, l))
    assert l.sum() < 25  # fewer than 6.25 for every column
    assert few["alpha"] == lepu.Prior("normal", scale=2.5 / 8 / 2)
    assert few["b"] == lepu.Prior("student-t", scale=0.625, nu=2)
    level = np.sqrt(l.sum() / 4) / 2.5
    assert 0.5 < level < 1
    assert few["beta"] == lepu.Prior("normal", loc=-2.5, scale=level)
    d = level**-2 - 0.16
    assert few["c"].concentration == pytest.approx((1 + d, 1 + 13 * d))
    assert few["rates"].concentration == pytest.approx((1, 1, 1 + 13 * d))


def test_a_rare_class_may_be_rare():
    """One positive in a hundred, half of them labelled: the heavy tails of b let go."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(6000, 4))
    truth = Parameters.of(a=[1.5, -1, 0.8, 0], b=-6.2, alpha=[0.3, 0.3, 0, -0.4], beta=0.0)
    y, l = truth.simulate(X, rng)
    options = {"model": "spm", "method": "map", "random_seed": 0}
    fit = lepu.fit(X, l, **options)
    tight = lepu.fit(X, l, priors={"b": lepu.Prior("normal", scale=0.7)}, **options)
    assert 0.005 < y.mean() < 0.015
    assert fit.pi_draws[0] < 0.06 < 0.15 < tight.pi_draws[0]


@pytest.mark.parametrize(
    ("labelled", "scale", "of_s"),
    [(20, 2.5, 2.5 / 8), (100, 5.0, 5 / 8), (800, 10.0, 5.0), (10_000, 10.0, 5.0)],
    ids=["few", "some", "many", "most"],
)
def test_with_very_many_rows_the_scale_follows_the_labels_for_a_column(labelled, scale, of_s):
    rows = MANY_ROWS + 4
    l = np.arange(rows) < labelled
    X = np.random.default_rng(0).normal(size=(rows, 4))
    priors = default_priors(read_data(X, l))
    assert priors["a"] == lepu.Prior("normal", scale=scale / 2)
    assert priors["alpha"] == lepu.Prior("normal", scale=of_s / 2)
    half = read_data(X, l, sample_weight=np.full(len(l), 0.25))  # four of them count as one
    assert scale_by_count(half) == scale_by_count(read_data(X[::4], l[::4]))


@pytest.mark.parametrize(("slope", "found"), [(3.0, 2.5), (8.0, 10.0)])
def test_the_scale_of_the_class_has_the_largest_evidence(slope, found):
    """Against the integral over c, b and the one slope on a grid; Laplace's is off by a little."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=150)
    l = (rng.random(150) < 0.7 * expit(slope * x)).astype(int)
    unit = norm.ppf((np.arange(100) + 0.5) / 100)
    exact = []
    for scale in SCALES:
        a, b = np.meshgrid(scale * unit, 0.6 * scale * unit)
        tau = a.reshape(-1, 1) * x + b.reshape(-1, 1)
        marked, t = log_expit(tau[:, l == 1]).sum(axis=1), expit(tau[:, l == 0])
        rates = np.linspace(0.02, 0.98, 30)
        logs = [marked + l.sum() * np.log(c) + np.log1p(-c * t).sum(axis=1) for c in rates]
        exact.append(logsumexp(logs))
    table = read_data(x[:, None], l, standardize=False)
    assert class_scale(table) == max(found, scale_by_count(table))
    assert exact[SCALES.index(found)] > max(exact) - 0.3
    assert min(exact) < max(exact) - 2


def test_the_scale_of_the_class_is_the_same_for_counted_rows_and_for_any_order_of_columns():
    X, l, _ = data([0.0] * 4, -1.0, n=200)
    scale = class_scale(read_data(X, l))
    assert scale < class_scale(read_data(X, (X[:, 0] > 0.3).astype(int)))  # separable: steeper
    assert class_scale(read_data(X[::-1, ::-1].copy(), l[::-1].copy())) == scale
    assert class_scale(read_data(np.repeat(X, 3, axis=0), np.repeat(l, 3))) == class_scale(
        read_data(X, l, sample_weight=np.full(len(l), 3.0))
    )


# Artefacts ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("point", "name"),
    [
        ((20.0, 60.0, 2.0, 0.0), "t is 1 on almost all rows and cuts"),
        ((2.0, 0.0, 0.1, 6.0), "s is 1 on almost all rows"),
        ((2.0, 0.0, 1.0, 0.0), ""),
        ((9.0, -25.0, 1.0, 0.0), ""),  # a rare class is no artefact
    ],
)
def test_a_factor_that_is_1_on_almost_all_rows_is_named(point, name):
    X = np.random.default_rng(0).normal(size=(4000, 1))
    a, b, alpha, beta = point
    truth = Parameters.of(a=[a], b=b, alpha=[alpha], beta=beta)
    data = read_data(X, np.arange(len(X)) % 2, standardize=False)
    found = artefact(point_figures(truth, data))
    assert found.startswith(name)
    assert bool(found) == bool(name)


def test_an_artefact_does_not_win_silently():
    """All positives labelled and free levels: s runs to 1, the naive reading, and is named."""
    X, _, y = data([0.0] * 4, 0.0, n=600)
    with pytest.warns(lepu.IdentifiabilityWarning, match="artefact: s is 1 on almost all rows"):
        fit = lepu.fit(X, y, model="spm", method="map", C={"a": 0.01, "alpha": 10.0}, random_seed=0)
    assert fit.mode_table()["artefact"][0].startswith("s is 1")
