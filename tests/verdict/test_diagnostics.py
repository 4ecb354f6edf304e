"""What the verdict says, what decides its level, and the design."""

import numpy as np
import pytest

import bayes_lepu as lepu
from bayes_lepu.data.reading import read_data
from bayes_lepu.model import get_model
from bayes_lepu.verdict import separation
from bayes_lepu.verdict.identifiability import choose_level
from bayes_lepu.verdict.records import Aspect, Check, Identifiability, settled
from tests.diagnosed import TRUTH, simulated_rows

pytestmark = pytest.mark.filterwarnings("ignore::bayes_lepu.LepuWarning")


@pytest.fixture(scope="module")
def rows():
    return simulated_rows()


@pytest.fixture(scope="module")
def spm(rows):
    return lepu.fit(*rows, model="spm", method="map", random_seed=1)


@pytest.fixture(scope="module")
def drawn(rows):
    return lepu.fit(*rows, model="psychm", method="laplace", draws=250, random_seed=1)


def test_what_a_reader_sees(spm):
    found = spm.identifiability
    assert found is spm.identifiability
    table = found.to_frame()
    assert list(table.columns) == ["status", "figure", "threshold", "text", "remedy", "bears_on"]
    assert table.index.is_unique
    html = found._repr_html_()
    assert "<table" in html
    assert "What would help" in html
    assert found.verdict in str(found)
    assert found.verdict in repr(spm)
    check = Check("x", "failed", 1.0, "", "<script>", "")
    assert "<script>" not in Identifiability(4, "<b>", (), (check,))._repr_html_()


def a_check(status, *aspects, needs="passed"):
    return Check("x", status, None, "", "", bears_on=aspects, needs=needs)


@pytest.mark.parametrize(
    ("status", "needs", "stands"),
    [
        ("passed", "passed", True),
        ("weak", "passed", False),
        ("weak", "weak", True),
        ("failed", "weak", False),
        ("not computed", "weak", False),
        ("passed", None, False),
    ],
)
def test_an_aspect_needs_evidence(status, needs, stands):
    assert settled([a_check(status, Aspect.LEVEL, needs=needs)], Aspect.LEVEL) is stands
    assert not settled([], Aspect.LEVEL)


def test_the_level_follows_from_the_aspects():
    good = [a_check("passed", aspect) for aspect in Aspect]
    assert choose_level(good) == 1
    levels = {Aspect.RANKING: 4, Aspect.ORIENTATION: 3}
    for aspect in Aspect:
        for checks in (
            [*good, a_check("failed", aspect)],
            [c for c in good if c.bears_on != (aspect,)],
        ):
            assert choose_level(checks) == levels.get(aspect, 2)


def test_level_three_gives_pi_under_both_namings(spm, rows):
    """Exchanging t and s by hand: σ(α·x + β) averaged over the rows."""
    point, X = spm.draws.take(0), spm.data.X
    other = float(np.mean(1 / (1 + np.exp(-(X @ point.alpha + point.beta)))))
    assert spm.identifiability.level == 3
    assert spm.identifiability.exchanged_pi == pytest.approx([other])
    assert f"with class and annotator swapped {other:.3f}" in repr(spm)
    drawn = lepu.fit(*rows, model="spm", method="laplace", draws=250, random_seed=1)
    flat, found = drawn.draws, drawn.identifiability.exchanged_pi
    pi = (1 / (1 + np.exp(-(X @ flat.alpha.T + flat.beta)))).mean(axis=0)
    assert found == pytest.approx(pi)
    low, high = np.quantile(pi, [0.055, 0.945])
    assert f"{low:.3f} to {high:.3f}" in repr(drawn)


def test_few_audits_leave_the_parametric_form_in_charge(rows):
    """100 audited rows at random tell π to ±.05 by themselves; 30 do not, nor do chosen ones."""
    X, l = rows
    rng = np.random.default_rng(3)
    carried = {}
    for k in (30, 100):
        y = np.full(len(l), np.nan)
        some = rng.choice(np.flatnonzero(l == 0), k, replace=False)
        y[some] = rng.random(k) < TRUTH.missed(X.to_numpy()[some])
        fit = lepu.fit(X, l, y=y, audits="random", model="spm", method="map", random_seed=1)
        carried[k] = fit.identifiability.carried_by
    assert "parametric form" in carried[30]
    assert "parametric form" not in carried[100]
    assert "parametric form" in fit.update(audits="chosen").identifiability.carried_by


def test_data_do_not_carry_a_class_prior_they_leave_open():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(1500, 3))
    truth = lepu.Parameters.of(a=[1.0, 0, 0], b=0.0, alpha=[0, 0.5, 0.3], beta=0.0)
    _, l = truth.simulate(X, rng)
    masks = {"selection_features": [1, 2]}
    fit = lepu.fit(X, l, model="spm", method="laplace", draws=250, random_seed=1, **masks)
    found = fit.identifiability
    assert found.level == 2
    assert "data" not in found.carried_by
    assert {"data (the ranking, not π)", "parametric form"} <= set(found.carried_by)


def test_a_penalty_that_moves_pi_out_of_its_likelihood_set_is_named(rows):
    fit = lepu.fit(*rows, model="spm", method="map", random_seed=1, C=15.0)
    found = fit.identifiability
    point = float(fit.pi_draws[0])
    assert point < found.evidence.likelihood_range[0]
    assert "prior" in found.carried_by


@pytest.mark.parametrize(
    ("columns", "spm_rank", "psychm_rank"), [(1, 2, 2), (2, 4, 4), (3, 8, 8), (4, 10, 12)]
)
def test_rank_of_binary_designs(columns, spm_rank, psychm_rank):
    X = np.array(np.meshgrid(*[[0.0, 1.0]] * columns)).reshape(columns, -1).T
    data = read_data(np.tile(X, (3, 1)), np.arange(3 * len(X)) % 3 == 0)
    rows = separation.distinct_rows(data.X)
    for name, rank, extra in (("spm", spm_rank, 0), ("psychm", psychm_rank, 2)):
        wanted = rank, 2 * (columns + 1) + extra
        assert separation.jacobian_rank(get_model(name), data, rows) == wanted


def test_a_redundant_dummy_is_no_missing_direction():
    """Dummies that sum to one repeat the intercept: t and s as functions lose nothing."""
    rng = np.random.default_rng(0)
    dummy = rng.integers(0, 2, 400)
    X = np.column_stack([rng.normal(size=(400, 3)), dummy, 1 - dummy])
    data = read_data(X, rng.integers(0, 2, 400))
    rows = separation.distinct_rows(data.X)
    assert separation.jacobian_rank(get_model("spm"), data, rows) == (10, 10)
