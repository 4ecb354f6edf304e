"""MAP: the paper's penalised MLE, its modes, and what does not change it."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression

import bayes_lepu as lepu
from bayes_lepu import IdentifiabilityWarning
from bayes_lepu.data.reading import read_data
from bayes_lepu.engines.map import fit_map
from bayes_lepu.engines.optimizers import kkt_residual
from bayes_lepu.engines.search import PAIR_STARTS, RATES_STARTS
from bayes_lepu.model import REGISTRY, Parameters, get_model
from bayes_lepu.model.density import LogDensity
from bayes_lepu.priors.prior import penalty_priors

MODELS = list(REGISTRY)
TRUTH = Parameters.of(
    a=[3.0, -2.0, 0.5], b=0.5, alpha=[0.5, 1.5, -1.0], beta=0.5, gamma=0.15, lam=0.1
)


def simulated(point, n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, point.a.size))
    return X, point.simulate(X, rng)[1]


@pytest.fixture(scope="module")
def table():
    X, l = simulated(TRUTH, 1200)
    return pd.DataFrame(X * [1.0, 3.0, 0.2] + [0.0, 5.0, -1.0], columns=["u", "v", "w"]), l


def quick(X, l, model, **options):
    return lepu.fit(X, l, model=model, method="map", random_seed=1, **options)


# The paper's loss ---------------------------------------------------------------------------------


def paper_loss(theta, X, l, model, penalty, C):
    """-log L + C_alpha |alpha| + C_a |a| from the paper's equations, sums and not means.

    theta = (a, b) for naive, with c for scar, with (alpha, beta) for spm, and with the paper's
    (gamma', lambda') for psychm.
    """
    p = X.shape[1]
    a, b = theta[:p], theta[p]
    t = 1 / (1 + np.exp(-(X @ a + b)))
    alpha, s = np.zeros(p), 1.0
    if model == "scar":
        s = theta[p + 1]
    if model in ("spm", "psychm"):
        alpha, beta = theta[p + 1 : 2 * p + 1], theta[2 * p + 1]
        s = 1 / (1 + np.exp(-(X @ alpha + beta)))
    if model == "psychm":
        g, lm = np.abs(theta[-2:])
        gamma, lam = g / (1 + g + lm), lm / (1 + g + lm)
        s = gamma + (1 - gamma - lam) * s
    h = s * t
    loss = -np.sum(l * np.log(h) + (1 - l) * np.log(1 - h))
    for name, slope in (("a", a), ("alpha", alpha)):
        size = slope @ slope if penalty[name] == "l2" else np.abs(slope).sum()
        loss += C[name] * size
    return float(loss)


def theta_of(fit):
    point, model = fit.draws.take(0), fit.spec.name
    parts = [point.a, [point.b]]
    if model == "scar":
        parts.append([point.gamma])
    if model in ("spm", "psychm"):
        parts += [point.alpha, [point.beta]]
    if model == "psychm":
        parts.append(np.exp(point.log_w[:2] - point.log_w[2]))
    return np.concatenate(parts)


PENALTIES = {
    "l2": {"a": "l2", "alpha": "l2"},
    "l1": {"a": "l1", "alpha": "l1"},
    "mixed": {"a": "l2", "alpha": "l1"},
}


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("model", MODELS)
def test_map_is_the_papers_penalised_mle(table, model, penalty):
    X, l = table
    penalty, C = PENALTIES[penalty], {"a": 0.4, "alpha": 1.5}
    fit = quick(X, l, model, penalty=penalty, C=C)
    theta, Xs = theta_of(fit), fit.data.X
    loss = paper_loss(theta, Xs, l, model, penalty, C)
    assert fit.modes[0].logp == pytest.approx(-loss, rel=1e-8)
    assert fit.quality.figures["kkt_residual"] < 1e-2
    # No direction lowers it.
    rng = np.random.default_rng(2)
    for _ in range(40):
        for size in (1e-1, 1e-2, 1e-3):
            moved = theta + size * rng.normal(size=theta.size)
            if model == "scar":
                moved[-1] = np.clip(moved[-1], 1e-3, 1 - 1e-3)
            assert paper_loss(moved, Xs, l, model, penalty, C) > loss - 1e-6


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("C", [0.01, 5.0])
def test_naive_is_scikit_learns_logistic_regression(table, standardize, C):
    X, l = table
    fit = quick(X, l, "naive", C=C, standardize=standardize)
    other = LogisticRegression(C=1 / (2 * C), tol=1e-12, solver="newton-cholesky")
    other.fit(fit.data.X, l)
    np.testing.assert_allclose(fit.draws.a[0], other.coef_[0], atol=1e-5)
    assert fit.draws.b[0] == pytest.approx(other.intercept_[0], abs=1e-5)
    np.testing.assert_allclose(fit.predict_proba(X), other.predict_proba(fit.data.X), atol=1e-6)


# More columns than rows ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def wide():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 200)) @ np.diag(rng.uniform(0.5, 2, 200))
    a, alpha = rng.normal(size=(2, 200)) / 5
    return read_data(X, Parameters.of(a=a, b=0.5, alpha=alpha, beta=1.0).simulate(X, rng)[1])


@pytest.mark.parametrize("model", MODELS)
def test_more_columns_than_rows(wide, model):
    """Against SciPy's optimiser in all 400 coordinates."""
    spec = get_model(model)
    priors = spec.complete_priors(penalty_priors("l2", {"a": 0.5, "alpha": 0.7}), None)
    full = LogDensity(spec, wide, priors)
    best = fit_map(spec, wide, priors, rng=np.random.default_rng(0)).modes[0]
    assert kkt_residual(full, best.z) < 1e-3
    direct = minimize(
        lambda z: tuple(-np.asarray(v) for v in full.logp_grad(z)),
        best.z + 0.01 * np.random.default_rng(1).normal(size=full.dim),
        jac=True,
        method="L-BFGS-B",
        options={"ftol": 1e-15, "gtol": 1e-8, "maxiter": 5000, "maxfun": 20_000},
    )
    assert -direct.fun == pytest.approx(best.logp, abs=1e-6)
    np.testing.assert_allclose(full.unpack(direct.x).a, best.point.a, atol=1e-3)
    np.testing.assert_allclose(full.unpack(direct.x).alpha, best.point.alpha, atol=1e-3)


# Modes --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS)
def test_mode_table(table, model):
    fit = quick(*table, model, C=0.01)
    modes = fit.mode_table()
    names = "role logp gap hits rms_h rms_t pi c norm_a norm_alpha gamma lambda converged artefact"
    assert list(modes.columns) == names.split()
    assert modes["role"].iloc[0] == "best"
    starts = {"naive": 1, "scar": 2, "spm": PAIR_STARTS, "psychm": RATES_STARTS}[model]
    # The exchange of the best mode is one start more, where no climb ended there.
    assert modes["hits"].sum() - starts in (0, 1)
    assert (modes["gap"] >= 0).all()
    assert (modes["logp"] + modes["gap"]).to_numpy() == pytest.approx(modes["logp"].iloc[0])
    for i, mode in enumerate(fit.modes):
        row, X = modes.iloc[i], fit.data.X
        best = fit.modes[0].point
        assert fit.density.logp(mode.z) == pytest.approx(mode.logp, rel=1e-10)
        assert row["pi"] == pytest.approx(mode.point.t(X).mean())
        assert row["c"] == pytest.approx(mode.point.h(X).mean() / mode.point.t(X).mean())
        assert row["norm_a"] == pytest.approx(np.std(X @ mode.point.a))
        assert row["norm_alpha"] == pytest.approx(np.std(X @ mode.point.alpha))
        assert row["rms_t"] == pytest.approx(np.sqrt(np.mean((mode.point.t(X) - best.t(X)) ** 2)))
        assert row["rms_h"] == pytest.approx(np.sqrt(np.mean((mode.point.h(X) - best.h(X)) ** 2)))


# Unequal penalties --------------------------------------------------------------------------------


def test_unequal_penalties_are_refitted_after_relabelling():
    X, l = simulated(Parameters.of(a=[4.0, 1.0, 0.0], b=0.5, alpha=[0.0, 0.5, 1.2], beta=0.5), 3000)
    C = {"a": 3.0, "alpha": 0.3}  # the heavy penalty on t: the best mode calls the steep factor s
    fit = quick(X, l, "spm", C=C)
    best = quick(X, l, "spm", C=C, orientation="none")
    assert best.modes[0].norm_alpha > best.modes[0].norm_a
    assert fit.modes[0].norm_a > fit.modes[0].norm_alpha
    # An optimum of its own loss, not merely the other one renamed.
    assert kkt_residual(fit.density, fit.modes[0].z) < 0.05
    renamed = fit.density.swap(best.modes[0].z)
    assert kkt_residual(fit.density, renamed) > 1.0
    assert fit.density.logp(renamed) < fit.modes[0].logp
    assert fit.modes[0].gap == pytest.approx(best.modes[0].logp - fit.modes[0].logp, abs=1e-4)
    assert fit.modes[0].gap > 0
    assert fit.modes[0].role == "swapped"
    assert "best" in [m.role for m in fit.modes[1:]]


def test_penalties_that_leave_no_steeper_class_overrule_the_rule():
    X, l = simulated(Parameters.of(a=[4.0, 1.0, 0.0], b=0.5, alpha=[0.0, 0.5, 1.2], beta=0.5), 3000)
    with pytest.warns(IdentifiabilityWarning, match="penalties contradict the rule"):
        fit = quick(X, l, "spm", C={"a": 100.0, "alpha": 0.001})
    assert fit.orientation.settled_by == "density"
    assert fit.modes[0].gap == 0


# Options ------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::bayes_lepu.IdentifiabilityWarning")
@pytest.mark.parametrize("model", MODELS)
def test_slopes_that_run_off_to_infinity_warn(model):
    X = np.linspace(-1, 1, 40)[:, None]
    l = (X[:, 0] > 0).astype(int)
    with pytest.warns(lepu.ConvergenceWarning, match=r"tend to infinity.*penalty") as caught:
        lepu.fit(X, l, model=model, method="map", penalty="none", orientation="none", random_seed=0)
    assert {w.filename for w in caught} == {__file__}
