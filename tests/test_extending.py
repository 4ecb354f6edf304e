"""What comes from outside in one place each: propensity, engine, check, section."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit, ndtr

import bayes_lepu as lepu
from bayes_lepu.factors import Factor, Link, ceiling, get_factor
from bayes_lepu.report import sections
from bayes_lepu.report.sections import Section
from bayes_lepu.verdict import identifiability as checks
from bayes_lepu.verdict.records import Aspect, Check
from tests.densities import graph_gaps
from tests.patience import slow

QUICK = {"draws": 60, "tune": 100, "chains": 2, "cores": 1, "progressbar": False}


# A propensity: s(x) = F(ω) with the Gumbel distribution function, F = exp(-e^-ω). -----------------


def gumbel_logs(z):
    e = np.exp(-np.clip(z, -700, None))
    log_not = np.log(-np.expm1(-e))
    return -e, log_not, -z - e


def gumbel_scalar(z):
    e = math.exp(-max(z, -700.0))
    return -e, math.log(-math.expm1(-e)), -z - e


def gumbel_graph(z):
    import pytensor.tensor as pt

    e = pt.exp(-z)
    return -e, pt.log(-pt.expm1(-e))


GUMBEL = Factor(
    "gumbel",
    "exp(-exp(-(η)))",
    Link("gumbel", gumbel_logs, lambda z: np.exp(-z) - 1, gumbel_scalar, gumbel_graph),
)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(400, 2))
    y = rng.random(400) < 1 / (1 + np.exp(-3 * X[:, 0]))
    s = np.exp(-np.exp(-(1 + X[:, 1])))
    return X, (y & (rng.random(400) < s)).astype(int)


# A class with another curve: by the name of its link, with a ceiling, or with its own link. -------

CLASSES = {
    "probit": "probit",
    "ceiling": ceiling(0.9),
    "outside": Factor("gumbel class", GUMBEL.formula, GUMBEL.link),
}


@pytest.mark.filterwarnings("ignore::bayes_lepu.errors.LepuWarning")
@pytest.mark.parametrize("method", ["map", slow("laplace"), slow("nuts")])
@pytest.mark.parametrize("of_class", CLASSES)
def test_other_links_go_all_the_way(table, tmp_path, of_class, method):
    """Fitted, judged, reported, saved and read back; a new pair of links costs a compilation."""
    X, l = table
    model = GUMBEL if of_class == "outside" else "scar"
    options = {"model": model, "method": method, "class_link": CLASSES[of_class]}
    fit = lepu.fit(X, l, **options, random_seed=1, **QUICK)
    point, x = fit.draws.take(0), fit.data.X
    tau, s = point.tau(x), point.s(x)
    t, shown = {
        "probit": (ndtr(tau), "Φ(a·x + b)"),
        "ceiling": (0.9 * expit(tau), "0.9 σ(a·x + b)"),
        "outside": (np.exp(-np.exp(-tau)), "exp(-exp("),
    }[of_class]
    np.testing.assert_allclose(point.t(x), t, rtol=1e-9)
    np.testing.assert_allclose(point.missed(x), (t - s * t) / (1 - s * t), rtol=1e-7)
    assert fit.identifiability.level in (1, 2, 3, 4)
    assert shown in fit.report(tmp_path / "report.html").read_text(encoding="utf-8")
    path, given = fit.save(tmp_path / "fit.nc"), {}
    if of_class == "outside":
        np.testing.assert_allclose(s, np.exp(-np.exp(-point.omega(x))), rtol=1e-9)
        given = {"model": GUMBEL, "class_link": CLASSES["outside"]}
        with pytest.raises(lepu.FileFormatError, match=r"'gumbel'.*model="):
            lepu.load(path)
        with pytest.raises(lepu.FileFormatError, match="class_link"):
            lepu.load(path, model=GUMBEL)
    again = lepu.load(path, **given)
    np.testing.assert_array_equal(again.predict_proba(X), fit.predict_proba(X))
    assert again.spec.propensity is fit.spec.propensity
    updated = again.update(y=np.where((np.arange(400) < 5) & (l == 0), 0, np.nan))
    assert updated.spec.of_class.name == fit.spec.of_class.name


@pytest.mark.parametrize(
    ("model", "of_class"),
    [*((m, c) for m in ("spm", "psychm") for c in ("probit", "ceiling")), (GUMBEL, "outside")],
)
def test_the_graph_of_other_links(table, of_class, model):
    X, l = table
    options = {"model": model, "method": "laplace", "class_link": CLASSES[of_class]}
    fit = lepu.fit(X, l, **options, random_seed=1, **QUICK)
    density, rng = replace(fit.density, jacobian=True), np.random.default_rng(3)
    points = rng.normal(size=(3, density.dim))
    np.testing.assert_allclose(graph_gaps(density, points, fit.model), 0, atol=1e-9)
    for z, step in zip(points, 1e-6 * rng.normal(size=points.shape), strict=True):
        rise = density.logp(z + step) - density.logp(z - step)
        assert rise == pytest.approx(2 * density.logp_grad(z)[1] @ step, rel=1e-5)


def test_a_class_cannot_have_rates_to_estimate(table):
    X, l = table
    with pytest.raises(lepu.ModelError, match="rates are estimated"):
        lepu.fit(X, l, class_link=get_factor("psychometric"), method="map")
    with pytest.raises(lepu.ModelError, match=r"class_link.*logistic, probit"):
        lepu.fit(X, l, class_link="logit", method="map")


# A check and a section of the report. -------------------------------------------------------------


def check_coin(evidence):
    heads = float(evidence.data.l.mean())
    return [
        Check(
            "coin",
            "failed",
            heads,
            "never",
            "The coin fell on its edge.",
            bears_on=(Aspect.RANKING,),
            consequence="the coin cannot rank rows",
        )
    ]


def coin_section(page):
    return Section("coin", "What the coin says", f"Of {page.fit.data.n} rows it has seen none.")


def test_a_check_and_a_section_from_outside(tmp_path, monkeypatch):
    X = np.random.default_rng(3).normal(size=(3000, 2))
    l = np.random.default_rng(4).random(3000) < 0.6 / (1 + np.exp(-4 * X[:, 0]))
    fit = lepu.fit(X, l, model="scar", method="map", random_seed=1)
    before = fit.identifiability.level
    monkeypatch.setattr(checks, "CHECKS", [*checks.CHECKS, check_coin])
    monkeypatch.setattr(sections, "SECTIONS", [*sections.SECTIONS, coin_section])
    found = lepu.diagnose(fit)
    assert before < found.level == 4
    assert "the coin cannot rank rows" in found.verdict
    again = lepu.fit(X, l, model="scar", method="map", random_seed=1)
    page = again.report(tmp_path / "report.html").read_text(encoding="utf-8")
    assert "What the coin says" in page
    assert "fell on its edge" in page
