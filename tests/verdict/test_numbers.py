"""The figures of the diagnosis against independent computations."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize

import bayes_lepu as lepu
from bayes_lepu.data.weights import total_and_error
from bayes_lepu.verdict import class_prior, labels
from bayes_lepu.verdict.evidence import Evidence
from tests.diagnosed import simulated_rows

pytestmark = pytest.mark.filterwarnings("ignore::bayes_lepu.LepuWarning")


@pytest.fixture(scope="module")
def rows():
    return simulated_rows()


@pytest.fixture(scope="module")
def spm(rows):
    return lepu.fit(*rows, model="spm", method="map", random_seed=1)


@pytest.fixture(scope="module")
def masked(rows):
    return lepu.fit(*rows, model="spm", method="map", random_seed=1, selection_features=["v", "w"])


def test_profile_against_constrained_optimisation(masked):
    subject = Evidence(masked)
    table = class_prior.trace_profile(subject)
    curve = table[table["branch"] == "as labelled"]
    density, best = subject.weak, subject.peaks[0]
    for _, row in curve.iloc[[0, len(curve) // 2, -1]].iterrows():
        target = np.log(row["pi"] / (1 - row["pi"]))
        result = minimize(
            lambda z: -density.logp(z),
            best.z,
            jac=lambda z: -density.logp_grad(z)[1],
            constraints={
                "type": "eq",
                "fun": lambda z, q=target: class_prior.logit_pi(density, z)[0] - q,
                "jac": lambda z: class_prior.logit_pi(density, z)[1],
            },
            method="SLSQP",
            options={"maxiter": 500, "ftol": 1e-12},
        )
        assert result.success
        assert row["delta"] == pytest.approx(-result.fun - best.logp, abs=0.01)


def test_the_likelihood_range_spans_all_curves_of_this_orientation():
    table = pd.DataFrame(
        {
            "pi": [0.1, 0.2, 0.3, 0.25, 0.35, 0.45, 0.8, 0.85, 0.9],
            "delta": [-5.0, 0.0, -1.0, -1.0, -0.5, -4.0, -4.0, -1.0, -4.0],
            "branch": ["as labelled"] * 6 + ["other"] * 3,
            "curve": [0, 0, 0, 1, 1, 1, 2, 2, 2],
        }
    )
    wanted = 0.1 + 0.1 * (5 - 1.92) / 5, 0.9 - 0.05 * (4 - 1.92) / 3
    np.testing.assert_allclose(class_prior.likelihood_range(table), wanted)
    wanted = wanted[0], 0.35 + 0.1 * (1.92 - 0.5) / 3.5
    table["branch"] = table["branch"].replace("other", "swapped")
    np.testing.assert_allclose(class_prior.likelihood_range(table), wanted)


def test_promised_audit_is_kept(rows, spm):
    """The sd of π promised for 50 audits against refits with 50 simulated audits (8 of them)."""
    promised = spm.identifiability.offer
    X, l = rows
    rng = np.random.default_rng(0)
    sds = []
    for _ in range(8):
        some = rng.choice(np.flatnonzero(l == 0), 50, replace=False)
        y = np.full(len(l), np.nan)
        y[some] = rng.random(50) < spm.draws.take(0).missed(spm.data.X[some])
        again = lepu.fit(X, l, y=y, model="spm", method="map", random_seed=1)
        sds.append(class_prior.sd_pi(Evidence(again)))
    assert np.mean(sds) == pytest.approx(promised.sd_after, rel=0.15)


@pytest.mark.slow
def test_rivals_against_leaving_rows_out(rows):
    """The plug-in elpd of SPM minus SCAR against PSIS-LOO of ArviZ on Laplace draws."""
    import arviz as az

    options = {"method": "laplace", "draws": 500, "random_seed": 1}
    fits = {m: lepu.fit(*rows, model=m, **options) for m in ("spm", "scar")}
    loo = {m: float(az.loo(f.tree, reff=1.0).elpd) for m, f in fits.items()}
    own, *others = fits["spm"].identifiability.evidence.rivals
    scar = next(r for r in others if r.name == "scar")
    ahead, se = total_and_error(own.rows - scar.rows, fits["spm"].data.weight)
    # Default priors against the weak ridge: the two agree far within the standard error.
    assert ahead == pytest.approx(loo["spm"] - loo["scar"], abs=0.25 * se)


def test_label_rates_add_up(spm):
    h, l = labels.scores(spm.draws, spm.data)
    table = labels.label_rates(h, l)
    assert (table["rows"] * table["observed"]).sum() == pytest.approx(spm.data.l.sum())
    assert table["expected"].is_monotonic_increasing


def test_wrong_form_of_h_is_seen():
    """Labels that follow x² cannot be fitted by a product of two logistic functions of x."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3000, 1))
    l = rng.random(3000) < 0.1 + 0.8 * np.exp(-8 * (np.abs(x[:, 0]) - 1) ** 2)
    fit = lepu.fit(x, l, model="spm", method="map", random_seed=0)
    status = {c.name: c.status for c in fit.identifiability.checks}
    assert status["label rate by score"] == "failed"
