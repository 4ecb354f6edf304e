"""Case-control rows: marked ones drawn from p(x | l=1), the others from p(x)."""

import warnings

import numpy as np
import pytest

import bayes_lepu as lepu
from bayes_lepu.errors import ModelError
from bayes_lepu.likelihood import case_formula, loglik_grad, loglik_grad_pair, observed_information
from bayes_lepu.models.density import LogDensity
from bayes_lepu.models.row_sums import row_terms
from tests.patience import slow


def differences(f, z, step=1e-5):
    """Central differences of a function with one or more values, one line per coordinate."""
    moves = step * np.eye(len(z))
    return np.array([(np.asarray(f(z + d)) - np.asarray(f(z - d))) / (2 * step) for d in moves])


MASKS = {"class_features": [0, 1], "selection_features": [2]}
TRUTHS = {
    "scar": lepu.Parameters.of(a=[1.5, -1, 0.5], b=-1.5, gamma=0.4, lam=0.6),
    "spm": lepu.Parameters.of(a=[2, -1.5, 0], b=-1.0, alpha=[0, 0, 1.5], beta=0.3),
    "psychm": lepu.Parameters.of(a=[2, -1.5, 0], b=-1.0, alpha=[0, 0, 3], beta=0, gamma=0.2),
}


def drawn(truth, seed=1, cases=1500, background=6000, pool=200_000):
    """Two samples, the ratio C of their rates of drawing, and π."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(pool, 3))
    y, l = truth.simulate(X, rng)
    rows = np.r_[
        rng.choice(np.flatnonzero(l == 1), cases, replace=False),
        rng.choice(pool, background, replace=False),
    ]
    labels = np.repeat([1, 0], [cases, background])
    C = cases / background / float(truth.h(X).mean())
    return X[rows], labels, y[rows], C, float(truth.t(X).mean())


def fit(model, X, l, method="map", **options):
    masks = {} if model == "scar" else MASKS
    settings = {"random_seed": 1, "standardize": False, "sampling": "case-control"} | masks
    if method == "map":
        settings["penalty"] = "none"
    return lepu.fit(X, l, model=model, method=method, **settings | options)


def small(model, **options):
    X, l, y, _, _ = drawn(TRUTHS[model], cases=40, background=80, pool=20_000)
    audited = np.where(np.arange(120) % 7 == 0, y, np.nan)
    weight = np.random.default_rng(0).uniform(0.5, 2, 120)
    if "method" not in options:
        options = {"penalty": "l2", "C": 0.5} | options
    return fit(model, X, l, y=audited, sample_weight=weight, n_starts=1, **options)


@pytest.mark.parametrize("model", TRUTHS)
def test_kernel_formula_and_numbers_agree(model):
    """Gradient and information, compiled and in NumPy, against differences and enumeration."""
    density = LogDensity((f := small(model)).spec, f.data, f.priors)
    z = density.pack(f.draws.take(0)) + np.random.default_rng(1).normal(0, 0.3, density.dim)
    k, point, q = density.constants, density.point(z), density.unpack(z)
    value, grad = loglik_grad(k.rows, k.links, point)
    C = float(q.kappa / (1 - q.kappa))
    h = C * q.s(f.data.X) * q.t(f.data.X)
    p = np.where(f.data.l == 1, h, 1) / (1 + h)
    p *= np.where((f.data.l == 0) & (f.data.y == 1), q.t(f.data.X), 1)
    p *= np.where((f.data.l == 0) & (f.data.y == 0), 1 - q.t(f.data.X), 1)
    assert value == pytest.approx(f.data.weight @ np.log(p), rel=1e-9)
    rows, positive = row_terms(q, f.data)
    np.testing.assert_allclose(rows, np.log(p), rtol=1e-9)
    known = np.where(f.data.l == 1, 1.0, f.data.y)
    expected = np.where(np.isnan(known), q.t(f.data.X), known)
    np.testing.assert_allclose(positive, expected, rtol=1e-12)
    in_numpy = case_formula.loglik_grad(k.rows, k.links, point)
    np.testing.assert_allclose(grad, in_numpy[1], rtol=1e-10, atol=1e-10)
    assert value == pytest.approx(in_numpy[0], rel=1e-12)
    np.testing.assert_allclose(
        density.logp_grad(z)[1], differences(density.logp, z), rtol=1e-5, atol=1e-5
    )
    by_differences = -differences(lambda v: density.logp_grad(v)[1], z)
    np.testing.assert_allclose(
        density.observed_information(z), by_differences, rtol=1e-4, atol=1e-4
    )
    assert observed_information(k.rows, k.links, point).shape == (grad.size, grad.size)
    there = loglik_grad_pair(k.rows, k.links, point)
    assert there[0] == value


def test_far_tails_stay_finite():
    density = LogDensity((f := small("spm")).spec, f.data, f.priors)
    z = density.pack(f.draws.take(0))
    value, grad = density.logp_grad(700 * np.sign(z))
    assert np.isfinite(value)
    assert np.isfinite(grad).all()


def test_expected_information_is_the_mean_of_the_observed_one():
    f = small("psychm")
    density = LogDensity(f.spec, f.data, f.priors)
    k, q = density.constants, f.draws.take(0)
    point = density.point(density.pack(q))
    X, rng, total = f.data.X, np.random.default_rng(0), 0.0
    rows = k.rows._replace(known=np.full(f.data.n, -1, np.int8))
    for _ in range(400):
        _, l = q.simulate(X, rng)
        total = total + observed_information(rows._replace(labels=l[None]), k.links, point)
    expected = case_formula.loglik_grad_info(rows, k.links, point)[2]
    np.testing.assert_allclose(total / 400, expected, atol=0.02 * np.abs(expected).max())


@pytest.mark.parametrize("model", TRUTHS)
def test_the_graph_has_the_same_density(model):
    f = small(model, method="laplace", draws=10)
    density = LogDensity(f.spec, f.data, f.priors, jacobian=True)
    logp, rng, gaps = f.model.compile_logp(mode="FAST_COMPILE"), np.random.default_rng(9), []
    for _ in range(3):
        z = rng.normal(0, 0.5, density.dim)
        values = {
            name: z[density.layout.slices[name.removesuffix("_logodds__")]].reshape(np.shape(v))
            for name, v in f.model.initial_point().items()
        }
        gaps.append(float(logp(values)) - density.logp(z))
    np.testing.assert_allclose(gaps, gaps[0], atol=1e-9)  # normalising constants apart
    assert "c" not in f.model.named_vars


def test_scar_in_closed_form():
    """The joint form finds the same slopes; b is off by log(1 - c), and C c is the odds of c."""
    X, l, _, _, pi = drawn(TRUTHS["scar"])
    apart, joint = fit("scar", X, l), fit("scar", X, l, sampling="joint")
    here, there = apart.draws.take(0), joint.draws.take(0)
    c = float(there.gamma)
    np.testing.assert_allclose(here.a, there.a, atol=1e-4)
    assert here.b == pytest.approx(there.b + np.log(1 - c), abs=1e-3)
    assert here.kappa == pytest.approx(c, abs=1e-4)
    assert apart.pi_draws[0] == pytest.approx(pi, abs=0.03)
    assert joint.pi_draws[0] > pi + 0.1


@pytest.mark.parametrize("model", ["spm", slow("psychm")])
def test_slopes_and_intercept_are_recovered(model):
    truth = TRUTHS[model]
    X, l, _, C, pi = drawn(truth, cases=6000, background=24_000)
    apart, joint = fit(model, X, l), fit(model, X, l, sampling="joint")
    q = apart.draws.take(0)
    se = np.sqrt(np.diag(np.linalg.inv(apart.density.observed_information(apart.modes[0].z))))
    known = apart.density.pack(truth.__class__(**{**vars(truth), "kappa": np.asarray(C / (1 + C))}))
    assert np.all(np.abs(apart.modes[0].z - known) < 4 * se + 1e-6)
    assert q.kappa / (1 - q.kappa) == pytest.approx(C, rel=0.3)
    assert apart.pi_draws[0] == pytest.approx(pi, abs=0.04)
    assert abs(joint.pi_draws[0] - pi) > 0.08  # the form for one sample is biased


def test_a_known_class_prior_settles_the_level():
    X, l, _, _, pi = drawn(TRUTHS["spm"], cases=300, background=1200)
    free = fit("spm", X, l, method="laplace", draws=200)
    known = fit("spm", X, l, method="laplace", draws=200, class_prior=(pi, 0.01))
    assert known.pi_draws.std() < 0.011
    assert free.pi_draws.std() > 2 * known.pi_draws.std()


def test_background_rows_alone_are_the_population(tmp_path):
    X, l, y, _, _ = drawn(TRUTHS["spm"], cases=300, background=1200)
    f = fit("spm", X, l, method="laplace", draws=50)
    background = f.data.X[l == 0]
    np.testing.assert_allclose(f.pi_draws, f.draws.t(background).mean(axis=1))
    np.testing.assert_allclose(f.draws.missed(background), f.draws.t(background))
    assert list(f.class_prior().index) == ["pi", "prior of pi"]
    assert np.isnan(f.c_draws).all()
    again = lepu.load(f.save(tmp_path / "fit.nc"))
    assert again.spec.cases
    np.testing.assert_array_equal(again.pi_draws, f.pi_draws)
    new = f.update(y=np.where(np.arange(len(l)) > 1490, y, np.nan))
    assert new.spec.cases
    assert new.data.n_audited > 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert f.identifiability.level in (1, 2, 3, 4)
        assert "case-control" in str(f)
        f.report(tmp_path / "report.html")
        assert len(f.decide(budget=20).rows) == 20


def test_what_cannot_be_told_is_refused():
    X, l, _, _, _ = drawn(TRUTHS["spm"], cases=40, background=80, pool=20_000)
    for options, message in (
        ({"model": "naive"}, "no negative"),
        ({"model": "spm", "false_marks": True}, "false marks cannot be told"),
        ({"model": "spm", "label_frequency": (0.3, 0.1)}, "up to a factor"),
        ({"model": "spm", "sampling": "cases"}, "case-control"),
    ):
        with pytest.raises(ModelError, match=message):
            lepu.fit(X, l, method="map", **{"sampling": "case-control"} | options)
    with pytest.raises(ModelError, match="one column of labels"):
        lepu.fit(X, np.column_stack([l, l]), model="spm", method="map", sampling="case-control")
