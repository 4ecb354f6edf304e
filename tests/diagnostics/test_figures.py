"""The figures that single checks report, each computed once more in another way."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import minimize

import bayes_lepu as lepu
from bayes_lepu.diagnostics import (
    climbing,
    data_information,
    exceptional,
    levels,
    profile,
    remedies,
)
from bayes_lepu.diagnostics.exceptional import Nearest
from bayes_lepu.diagnostics.records import Aspect
from bayes_lepu.diagnostics.subject import Peak, Role, Subject
from bayes_lepu.result.numbers_in_words import share
from tests import annotated
from tests.diagnosed import simulated_rows

pytestmark = pytest.mark.filterwarnings("ignore::bayes_lepu.LepuWarning")


@pytest.fixture(scope="module")
def subject():
    X, l = simulated_rows()
    return Subject(
        lepu.fit(X[:600], l[:600], model="psychm", method="laplace", draws=200, random_seed=1)
    )


@pytest.fixture(scope="module")
def spm():
    X, l = simulated_rows()
    return Subject(lepu.fit(X[:600], l[:600], model="spm", method="map", random_seed=1))


@pytest.fixture(scope="module")
def evidence(subject):
    return SimpleNamespace(profile=profile.trace_profile(subject))


@pytest.fixture(scope="module")
def nearest(subject):
    return {found.name: found for found in exceptional.nearest_points(subject)}


# Levels -------------------------------------------------------------------------------------------


def test_an_interval_leaves_as_much_on_either_side():
    assert levels.interval(np.linspace(0, 1, 1001)) == pytest.approx((0.025, 0.975))
    assert levels.interval(np.linspace(0, 1, 1001), 0.5) == pytest.approx((0.25, 0.75))


def test_the_likelihood_set_over_the_posterior_interval(subject, evidence):
    (check,) = levels.check_against_profile(subject, evidence)
    pieces = evidence.profile.likelihood_set(branches=levels.OWN_BRANCHES)
    low, high = np.quantile(subject.pi_given_naming, [0.025, 0.975])
    first, last = pieces[0][0], pieces[-1][1]
    assert check.figure == pytest.approx((last - first) / (high - low))
    assert f"likelihood {share(first)} to {share(last)}, posterior {share(low)}" in check.text


def test_widths_of_t_and_h_row_by_row(subject):
    (check,) = levels.check_widths(subject, None)
    draws, X = subject.pivoted.take_flat(), subject.data.X
    ends = [np.quantile(f, [0.025, 0.975], axis=0) for f in (draws.t(X), draws.h(X))]
    t, h = (np.mean(high - low) for low, high in ends)
    assert check.figure == pytest.approx(t / h)
    assert f"h is known to ±{share(h / 2, 3)}, t to ±{share(t / 2, 3)}" in check.text


def test_widths_are_of_some_draws_and_rows(subject):
    """Of at least a thousand draws and five hundred rows where there are more."""
    draws = subject.pivoted.take_flat().take(np.arange(3000) % 200)
    times = -(-1500 // subject.data.n)
    many = SimpleNamespace(
        pivoted=draws, data=subject.data.rows(np.tile(np.arange(subject.data.n), times))
    )
    rows = many.data.evenly(levels.ROWS_FOR_WIDTHS).X
    assert 500 <= len(rows) < many.data.n
    low, high = np.quantile(draws.take(slice(None, None, 2)).t(rows), [0.025, 0.975], 0)
    assert levels.mean_width(many, type(draws).t) == pytest.approx(np.mean(high - low), rel=1e-12)


def test_contraction_is_the_share_of_variance_removed(subject):
    found = levels.contractions(subject)
    after, before = subject.pivoted.take_flat(), subject.prior_draws.take_flat()
    pairs = {
        "pi": (subject.pi_and_c[0], subject.prior_pi_and_c[0]),
        "b": (after.b, before.b),
        "|alpha|": [np.std(p.alpha @ subject.data.X.T, axis=1) for p in (after, before)],
        "gamma": (np.exp(after.log_w[:, 0]), np.exp(before.log_w[:, 0])),
    }
    for name, (one, other) in pairs.items():
        assert found[name] == pytest.approx(1 - np.var(one) / np.var(other)), name


# Profile ------------------------------------------------------------------------------------------


def test_every_branch_is_one_curve_through_its_best_peak(subject, evidence):
    table, top = evidence.profile.table, max(p.logp for p in subject.peaks)
    assert table["delta"].max() <= 0
    first = table[table["curve"] == 0]
    assert set(first["branch"]) == {subject.peaks[0].role}
    for branch, part in table.groupby("branch"):
        assert part["curve"].nunique() == 1, branch
        peak = max((p for p in subject.peaks if p.role == branch), key=lambda p: p.logp)
        if branch == subject.peaks[0].role:
            peak = subject.peaks[0]
        pi = peak.point.t(subject.weak.data.X).mean()
        assert np.abs(part["pi"] - pi).min() < 1e-6
        assert part["delta"].max() >= peak.logp - top - 1e-6
        steps = np.diff(np.log(part["pi"] / (1 - part["pi"])))
        assert (steps > 0).all()
        assert steps.max() < 0.5  # close enough to join by straight lines


def test_steps_follow_the_standard_error_of_pi(subject):
    """That of logit π by the delta method, within bounds."""
    density, z = subject.weak, subject.peaks[0].z
    slope = climbing.logit_pi(density, z)[1]
    sd = np.sqrt(slope @ np.linalg.solve(density.logp_grad_info(z)[2], slope))
    for times in (1e-6, 0.1 / sd, 0.5 / sd, 1e6):
        wanted = min(max(times * sd, 0.01), 0.8)
        assert profile._sd_logit(density, z, times * slope) == pytest.approx(wanted, rel=1e-6)


def test_the_best_peak_of_each_kind_is_followed(monkeypatch):
    """The labelled one, then the best exchanged and the best other one, if not excluded."""
    heights = [("as labelled", 0.0), ("other", -2.0), ("exchanged", -3.0), ("exchanged", -1.0)]
    peaks = [
        Peak(Role(name), np.zeros(1), logp, None) for name, logp in [*heights, ("other", -1e9)]
    ]
    monkeypatch.setattr(profile, "_trace", lambda _, peak: [(0.5, peak.logp)])
    table = profile.trace_profile(SimpleNamespace(peaks=peaks, weak=None)).table
    assert list(zip(table["branch"], table["delta"], strict=True)) == [
        ("as labelled", 0.0),
        ("exchanged", -1.0),
        ("other", -2.0),
    ]


def test_a_set_that_reaches_the_end_of_its_curve():
    pi, delta = np.array([0.1, 0.2, 0.3]), np.array([-1.0, 0.0, -1.0])
    assert profile._pieces(pi, delta) == [(0.1, 0.3)]
    assert profile._union([(0.5, 0.6), (0.1, 0.3), (0.2, 0.25)]) == [(0.1, 0.3), (0.5, 0.6)]


# Exceptional sets ---------------------------------------------------------------------------------


def test_the_nearest_point_of_every_set_is_on_it(subject, nearest):
    p = subject.data.p
    assert set(nearest) == {
        "a = 0", "a = alpha", "a = -alpha", "s constant", "gamma = 0", "one factor = 1",
    }  # fmt: skip
    points = {name: found.point for name, found in nearest.items()}
    np.testing.assert_allclose(points["a = 0"].a, 0)
    np.testing.assert_allclose(points["a = alpha"].a, points["a = alpha"].alpha)
    np.testing.assert_allclose(points["a = -alpha"].a, -points["a = -alpha"].alpha)
    assert np.exp(points["gamma = 0"].log_w[0]) < 1e-9
    assert np.ptp(points["s constant"].s(subject.data.X)) == 0
    freed = {name: found.freed for name, found in nearest.items()}
    assert freed == {  # of 2 p + 4 parameters
        "a = 0": p,
        "a = alpha": p,
        "a = -alpha": p,
        "s constant": p + 2,
        "gamma = 0": 1,
        "one factor = 1": p + 3,
    }


def test_the_distance_is_what_the_set_costs(subject, nearest):
    top = max(peak.logp for peak in subject.peaks)
    for name in ("a = 0", "a = alpha", "a = -alpha", "gamma = 0"):
        z = subject.weak.pack(nearest[name].point)
        assert top - subject.weak.logp(z) == pytest.approx(nearest[name].distance, abs=1e-6), name
        assert nearest[name].distance >= 0


@pytest.mark.parametrize(("name", "sign"), [("a = alpha", 1.0), ("a = -alpha", -1.0)])
def test_no_point_of_the_set_is_nearer(subject, nearest, name, sign):
    """A climb over what is free on it gains no more than a second solution may cost."""
    density, at = subject.weak, subject.weak.blocks
    rest = np.r_[at.b, at.beta, at.rates]
    z = density.pack(nearest[name].point)

    def whole(w):
        out = np.zeros(density.dim)
        out[at.a], out[at.alpha] = w[: subject.data.p], sign * w[: subject.data.p]
        out[rest] = w[subject.data.p :]
        return out

    start = np.r_[z[at.a], z[rest]]
    np.testing.assert_allclose(whole(start), z)
    bounds = [(w - 3, w + 3) for w in start]
    climbed = minimize(lambda w: -density.logp(whole(w)), start, method="L-BFGS-B", bounds=bounds)
    assert -climbed.fun - density.logp(z) < exceptional.NEARLY


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_slopes_alone_are_tied(subject, sign):
    """Levels and rates keep a coordinate each."""
    E, _ = exceptional._tied(subject, sign)
    w, at = np.arange(1.0, E.shape[1] + 1), subject.weak.blocks
    z = E @ w
    np.testing.assert_array_equal(z[np.r_[at.a, at.b, at.beta, at.rates]], w)
    np.testing.assert_array_equal(z[at.alpha], sign * z[at.a])


def test_the_sets_of_two_logistic_factors(spm):
    p, density = spm.data.p, spm.weak
    nearest = {found.name: found for found in exceptional.nearest_points(spm)}
    names = ["a = alpha = 0", "(a, b) = (alpha, beta)", "one factor = 1"]
    assert [nearest[name].freed for name in names] == [2 * p, p + 1, p + 1]
    still, equal = (nearest[name].point for name in names[:2])
    assert not still.a.any()
    assert not still.alpha.any()
    np.testing.assert_array_equal(equal.a, equal.alpha)
    assert equal.b == equal.beta
    # A step to the best point with equal factors would gain next to nothing.
    _, slope, info = density.logp_grad_info(density.pack(equal))
    both = np.tile(np.eye(p + 1), 2)
    slope, info = both @ slope, both @ info @ both.T
    assert 0.5 * slope @ np.linalg.solve(info, slope) < climbing.ENOUGH


def test_second_solutions_have_the_same_h(subject, nearest):
    X = subject.weak.data.X
    twins = [(found, twin) for found in nearest.values() for twin in found.twins]
    assert len(twins) >= 3
    for found, twin in twins:
        np.testing.assert_allclose(twin.point.h(X), found.point.h(X), atol=1e-6)


@pytest.mark.parametrize("far", [True, False])
def test_where_s_varies_a_constant_t_costs_the_ranking_too(subject, nearest, monkeypatch, far):
    """And only then; remedies are for sets that the data do not exclude."""
    distances = {"s constant": 99.0 if far else 0.1, "a = 0": 0.1, "a = alpha": 99.0}
    held = [replace(nearest[name], distance=d) for name, d in distances.items()]
    assert isinstance(held[0], Nearest)
    monkeypatch.setattr(exceptional, "nearest_points", lambda _: held)
    checks = {c.name: c for c in exceptional.check_exceptional(subject, None)}
    assert (Aspect.RANKING in checks["set a = 0"].bears_on) is far
    assert Aspect.RANKING not in checks["set s constant"].bears_on
    assert Aspect.RANKING not in checks["set a = alpha"].bears_on
    assert checks["set a = 0"].status == "failed"
    assert checks["set a = 0"].remedy
    assert checks["set a = alpha"].status == "passed"
    assert not checks["set a = alpha"].remedy
    assert bool(checks["set s constant"].remedy) is not far


# Information --------------------------------------------------------------------------------------


def test_the_worst_direction_is_named_and_measured(subject):
    known, shared = data_information.check_information(subject, None)
    rho, directions = data_information.spectrum(subject.local)
    assert known.figure == rho[0] == rho.min()
    assert data_information.name_direction(directions[:, 0], subject.local.names) in known.text
    assert f"carry {rho[0]:.2g} times" in known.text
    assert f"decides {(rho < 1).sum()} of {rho.size}" in known.text
    assert f"{shared.figure:.0%}" in shared.text


def test_directions_set_opposite_signs_against_each_other():
    names = ["a[u]", "b", "alpha[u]", "beta", "log(gamma/rho)"]
    words = data_information.name_direction(np.array([0.4, 0.7, -0.5, 0.0, -0.3]), names)
    assert words == "b and a[u] against alpha[u]"
    words = data_information.name_direction(np.array([0.0, 0.7, 0.0, 0.7, 0.0]), names)
    assert words == "b and beta (both levels)"
    assert data_information.name_direction(-np.ones(5), names).count(" and ") == 3  # at most four


@pytest.mark.parametrize("times", [0.0, 1.0, 3.0])
def test_the_share_of_the_prior(subject, times):
    """Of data that know as much as so many priors: 1 / (1 + times)."""
    local = replace(subject.local, data=times * subject.local.prior)
    assert data_information.prior_share(local) == pytest.approx(1 / (1 + times))


def test_rankings_agree_as_their_correlations_say(subject):
    draws, X = subject.pivoted.take_flat().a, subject.data.X
    scores, mean = X @ draws.T, X @ draws.mean(axis=0)
    wanted = np.mean([np.corrcoef(score, mean)[0, 1] for score in scores.T])
    assert data_information.ranking_stability(subject) == pytest.approx(wanted, rel=1e-9)
    small = replace(subject.pivoted, a=1e-3 * subject.pivoted.a)
    small = SimpleNamespace(fit=subject.fit, data=subject.data, pivoted=small)
    assert data_information.ranking_stability(small) == pytest.approx(wanted, rel=1e-9)
    (check,) = data_information.check_ranking(subject, None)
    assert check.figure == pytest.approx(wanted, rel=1e-9)
    steep, _ = data_information.check_shape(subject, None)
    assert steep.figure == pytest.approx(
        max((X @ subject.point.a).std(), (X @ subject.point.alpha).std())
    )


def test_a_point_estimate_of_several_annotators_knows_how_stable_its_ranking_is():
    """About as the Gaussian there says (500 draws); its one point agrees with itself."""
    X, _, L = annotated.simulate(300, seed=2)
    found = [
        data_information.ranking_stability(Subject(lepu.fit(X, L, model="spm", **options)))
        for options in (
            {"method": "map", "random_seed": 1},
            {"method": "laplace", "random_seed": 1, "draws": 500},
        )
    ]
    assert 1 - found[0] == pytest.approx(1 - found[1], rel=0.25)
    assert found[0] < 0.999


def test_sets_leave_false_marks_free():
    """The rate of false marks is no part of a set: kept at one half it would be."""
    X, l = simulated_rows()
    fit = lepu.fit(X, l, model="psychm", method="map", random_seed=1, false_marks=True)
    for found in exceptional.nearest_points(Subject(fit)):
        rest = found.point.epsilon
        assert rest is None or rest != pytest.approx(0.5, abs=1e-6)


def test_without_a_column_the_exchanged_answer_may_be_gone():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(500, 3))
    y = rng.random(500) < 1 / (1 + np.exp(0.3 - X @ [2.5, 1.0, 0.0]))
    l = y & (rng.random(500) < 1 / (1 + np.exp(-X @ [0.0, 0.5, 1.2] - 0.2)))
    fit = lepu.fit(X, l, model="spm", method="map", random_seed=1)
    masked = fit.update(selection_features=["x1", "x2"])
    left = [p for p in Subject(masked).peaks if p.role is Role.EXCHANGED]
    gap = remedies.masked_gap(Subject(fit), 0)
    assert gap == (
        np.inf if not left else pytest.approx(Subject(masked).peaks[0].logp - left[0].logp)
    )
    assert gap > 10
