"""The panel's log density: against PyMC, enumeration, one annotator, and in the far tails."""

import itertools

import numpy as np
import pytest
from panels import PICKY, make_density
from scipy.special import expit

from bayes_lepu import Prior, kernel
from bayes_lepu.links import LOG_W_SPM, RowKind
from bayes_lepu.panel import compiled
from bayes_lepu.panel.data import NOT_SHOWN
from bayes_lepu.panel.specification import build

OWN = {"a": Prior("normal", scale=0.8, loc=-1.0), "sigma_beta": Prior("halfnormal", scale=0.3)}
VARIANTS = [
    pytest.param(model, options, id=f"{model}-{name}")
    for model in ("spm", "scar")
    for name, options in {
        "plain": {},
        "audited": {"audited": True},
        "masks": {"masks": True, "audited": True},
        "priors": {"priors": OWN},
    }.items()
]


def points(density, count=3):
    return np.random.default_rng(8).normal(0, 0.8, (count, density.dim))


def pymc_point(density, model, z):
    point = {}
    for name, value in model.initial_point().items():
        block = density.blocks[name.removesuffix("_log__")]
        point[name] = z[block].reshape(np.shape(value))
    return point


@pytest.mark.parametrize(("model", "options"), VARIANTS)
def test_the_density_is_that_of_the_pymc_model(model, options):
    density = make_density(model, **options)
    graph = build(density.form, density.data, density.priors)
    logp = graph.compile_logp(mode="FAST_COMPILE")
    for z in points(density):
        expected = logp(pymc_point(density, graph, z))
        assert density.logp_grad(z)[0] == pytest.approx(expected, rel=0, abs=1e-9)


@pytest.mark.parametrize(("model", "options"), VARIANTS)
def test_the_gradient_is_that_of_finite_differences(model, options):
    density = make_density(model, **options)
    for z in points(density):
        _, gradient = density.logp_grad(z)
        for i, step in enumerate(1e-5 * np.eye(density.dim)):
            slope = (density.logp_grad(z + step)[0] - density.logp_grad(z - step)[0]) / 2e-5
            assert gradient[i] == pytest.approx(slope, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("model", ["spm", "scar"])
def test_centring_changes_the_coordinates_only(model):
    """log p(v) = log p(z) - Σ c log sigma, and its gradient; c = 1 is the own coefficient."""
    density = make_density(model)
    deviations = list(density.pooled_at)
    centring = np.zeros(density.dim)
    centring[deviations] = np.resize([0.0, 1.0, 0.4], len(deviations))
    for z in points(density):
        v = density.to_centred(z, centring)
        np.testing.assert_allclose(density.from_centred(v, centring), z, atol=1e-12)
        own = density.to_centred(z, np.ones(density.dim))[density.blocks["z_beta"]]
        np.testing.assert_allclose(own, density.unpack(z).beta, atol=1e-12)
        value, gradient = compiled.centred_logp_grad(v, centring, density.constants)
        scales = sum(centring[i] * z[scale] for i, (_, scale) in density.pooled_at.items())
        assert value == pytest.approx(density.logp_grad(z)[0] - scales, abs=1e-9)
        for i, step in enumerate(1e-5 * np.eye(density.dim)):
            up, down = (
                compiled.centred_logp_grad(v + s, centring, density.constants)[0]
                for s in (step, -step)
            )
            assert gradient[i] == pytest.approx((up - down) / 2e-5, rel=1e-5, abs=1e-5)


def test_row_likelihood_by_enumeration():
    """Every pattern of three cells (labelled, not labelled, not shown) and every audit."""
    rng = np.random.default_rng(2)
    patterns = list(itertools.product((1, 0, NOT_SHOWN), repeat=3))
    X = rng.normal(size=(len(patterns), 3))
    labels = np.array(patterns, dtype=np.int8)
    t, s = PICKY.t(X), np.column_stack([PICKY.s(X, j) for j in range(3)])
    labelled = (labels == 1).any(axis=1)

    def given_class(i, y):
        """P(labels | y, x), cell by cell; a negative is never labelled."""
        cells = 1.0
        for j in range(3):
            if labels[i, j] != NOT_SHOWN:
                p = y * s[i, j]
                cells *= p if labels[i, j] == 1 else 1 - p
        return cells

    for audit in (None, 1, 0):
        if audit is None:
            kind = np.where(labelled, RowKind.LABELLED, RowKind.UNLABELLED)
            rows, classes = np.arange(len(X)), (0, 1)
        else:
            kind = np.full(len(X), RowKind.MISSED if audit else RowKind.NEGATIVE)
            kind[labelled] = RowKind.LABELLED
            rows = np.arange(len(X)) if audit else np.flatnonzero(~labelled)
            classes = (audit,)
        ours = compiled.loglik_rows(
            PICKY.a, float(PICKY.b), PICKY.alpha, PICKY.beta, X, X, labels, kind.astype(np.int8)
        )
        for i in rows:
            total = sum((t[i] if y else 1 - t[i]) * given_class(i, y) for y in classes)
            assert np.exp(ours[i]) == pytest.approx(total, rel=1e-12)
        responsibility = PICKY.positive(X, labels, kind.astype(np.int8))
        if audit is None:
            for i in rows:
                joint = t[i] * given_class(i, 1)
                expected = joint / (joint + (1 - t[i]) * given_class(i, 0))
                assert responsibility[i] == pytest.approx(expected, rel=1e-12)


def test_one_annotator_per_row_is_the_model_of_one_annotator():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(60, 3))
    who = rng.integers(0, 3, 60)
    l = (rng.random(60) < 0.4).astype(np.int8)
    labels = np.full((60, 3), NOT_SHOWN, dtype=np.int8)
    labels[np.arange(60), who] = l
    kind = l.copy()
    kind[:8][kind[:8] == 0] = RowKind.MISSED
    kind[8:16][kind[8:16] == 0] = RowKind.NEGATIVE
    panel = compiled.loglik_rows(
        PICKY.a, float(PICKY.b), PICKY.alpha, PICKY.beta, X, X, labels, kind
    )
    for j in range(3):
        single = kernel.loglik_rows(
            X, kind, PICKY.a, float(PICKY.b), PICKY.alpha[j], float(PICKY.beta[j]), LOG_W_SPM
        )
        np.testing.assert_allclose(panel[who == j], single[who == j], rtol=1e-12)


def test_far_tails_are_finite_and_exact():
    """Predictors of ±750: logarithms come from sums of positive terms, gradients stay bounded."""
    one, X = np.ones(1), np.ones((1, 1))
    for tau, omega, marks in itertools.product((-750.0, 750.0), (-750.0, 750.0), [(0, 0), (1, 0)]):
        labels = np.array([marks], dtype=np.int8)
        kind = labels.max(axis=1)
        ours = compiled.loglik_rows(
            tau * one, 0.0, np.array([[omega], [omega]]), np.zeros(2), X, X, labels, kind
        )[0]
        log_t, log_not_t = -np.logaddexp(0, -tau), -np.logaddexp(0, tau)
        log_s, log_not_s = -np.logaddexp(0, -omega), -np.logaddexp(0, omega)
        if marks == (1, 0):
            expected = log_t + log_s + log_not_s
        else:
            expected = np.logaddexp(log_not_t, log_t + 2 * log_not_s)
        assert ours == pytest.approx(expected, rel=1e-12, abs=1e-300)
    density = make_density("spm", scale=300.0)
    for z in 3 * points(density):
        value, gradient = density.logp_grad(z)
        assert np.isfinite(value)
        assert np.isfinite(gradient).all()


def test_a_row_nobody_saw_says_nothing():
    density = make_density("spm")
    z = points(density, 1)[0]
    rows = density.loglik_rows(density.unpack(z))
    np.testing.assert_allclose(rows[:2], 0.0, atol=1e-15)
    assert density.data.unseen >= 2


def test_unpacked_parameters_are_those_of_the_graph():
    density = make_density("spm", masks=True)
    z = points(density, 1)[0]
    point = density.unpack(z)
    graph = build(density.form, density.data, density.priors)
    values = {v.name: v for v in graph.deterministics}
    names = ["alpha", "beta", "pi", "c"]
    outputs = graph.replace_rvs_by_values([values[n] for n in names])
    function = graph.compile_fn(
        outputs, inputs=graph.value_vars, mode="FAST_COMPILE", on_unused_input="ignore"
    )
    alpha, beta, pi, c = function(pymc_point(density, graph, z))
    X = density.data.table.X
    np.testing.assert_allclose(point.alpha[:, density.data.table.selection_mask], alpha)
    assert not point.alpha[:, 0].any()
    np.testing.assert_allclose(point.beta, beta)
    t = expit(X @ point.a + point.b)
    assert pi == pytest.approx(t.mean())
    np.testing.assert_allclose(c, [(t * point.s(X, j)).mean() / t.mean() for j in range(3)])


def test_the_graph_draws_labels_of_shown_cells_only():
    import pymc as pm
    import pytensor

    density = make_density("spm", audited=True)
    graph = build(density.form, density.data, density.priors)
    with pytensor.config.change_flags(mode="FAST_COMPILE", cxx=""):
        prior = pm.sample_prior_predictive(200, model=graph, random_seed=1)
    drawn = prior["prior_predictive"]["L"].to_numpy()
    shown, y = density.data.shown, density.data.table.y
    assert ((drawn == NOT_SHOWN) == ~shown).all()
    assert (drawn[:, :, y == 0][..., shown[y == 0]] == 0).all()
    assert drawn[:, :, y == 1][..., shown[y == 1]].mean() > 0.2
