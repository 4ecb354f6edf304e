"""Audits: the rows proposed tell most, and the fit takes their answers."""

import numpy as np
import pandas as pd
import pytest

import bayes_lepu as lepu
from bayes_lepu._fit import add_classes
from bayes_lepu.actions.audits import (
    Round,
    Stratum,
    draw,
    draw_probabilities,
    estimate_positives,
)
from bayes_lepu.errors import DataError, ModelError


def simulated(seed, n=2500):
    """SPM with |a| = 2 and |α| = 1 at a right angle: the naming is open, π badly known."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    axes = np.linalg.qr(rng.normal(size=(5, 5)))[0]
    y, l = lepu.Parameters.of(a=2 * axes[0], b=0.0, alpha=axes[1], beta=0.0).simulate(X, rng)
    return X, y, l


def laplace(X, l, **options):
    settings = {"draws": 250, "orientation": "none", "random_seed": 1}
    return lepu.fit(X, l, model="spm", method="laplace", **{**settings, **options})


@pytest.fixture(scope="module")
def rows():
    X, y, l = simulated(1, 1500)
    return pd.DataFrame(X, columns=list("abcde"), index=[f"r{i}" for i in range(1500)]), y, l


@pytest.fixture(scope="module")
def fit(rows):
    frame, _, l = rows
    return laplace(frame, l, draws=100)


def test_a_plan_for_the_total_draws_every_row_with_its_probability():
    rng = np.random.default_rng(0)
    p = rng.beta(0.3, 2, size=200)
    probability = draw_probabilities(p, 30)
    assert probability.sum() == pytest.approx(30)
    counts = np.zeros(200)
    for _ in range(4000):
        rows = draw(probability, rng)
        assert len(set(rows)) == 30
        counts[rows] += 1
    z = (counts / 4000 - probability) / np.sqrt(probability * (1 - probability) / 4000)
    assert np.abs(z).max() < 4.5
    many = draw_probabilities(np.r_[0.5, np.full(9, 1e-4)], 8)
    assert many.max() == 1
    assert many.sum() == pytest.approx(8)


def test_goals_pick_their_rows(fit, rows):
    l = rows[2]
    total = fit.suggest_audit(40)
    assert (total.rows["picked"] == "random").all()
    find = fit.suggest_audit(40, goal="find")
    assert find.rows["picked"].tolist() == ["chosen"] * 32 + ["random"] * 8
    m = fit.missed()["mean"].where(l == 0)
    assert set(find.rows.index[:32]) == set(m.nlargest(32).index)
    assert "40 rows to audit (8 of them drawn at random; 0 answered)" in repr(find)


def test_the_loop_of_plans_knows_its_design(rows, tmp_path):
    """From first marks to a count in three rounds; chosen rows do not bias it."""
    frame, y, l = rows
    truth = pd.Series(y, index=frame.index)
    fit = laplace(frame, l, draws=100)
    for goal in ("total", "find", "total"):
        plan = fit.suggest_audit(40, goal=goal)
        plan.to_csv(tmp_path / "audit.csv", frame)
        sheet = pd.read_csv(tmp_path / "audit.csv", index_col=0)
        sheet["y"] = truth[sheet.index]
        sheet.to_csv(tmp_path / "audit.csv")
        fit = fit.update(audits=lepu.read_audit(tmp_path / "audit.csv"))
    assert fit.options.audits == "planned"
    drawn = fit.data.drawn
    assert np.bincount(drawn[:, 0].astype(int)).tolist() == [len(l) - 120, 40, 40, 40]
    assert np.sum(drawn[:, 1] < 1) == 88
    row = fit.audit_estimate(ci_prob=0.95).loc["positives"]
    assert row["lower"] < y.sum() < row["upper"]
    assert row["audits"] == 88
    assert "By 88 rows audited at random" in fit.answer.audited
    exec(fit.call.replace("import bayes_lepu as lepu", ""), {"lepu": lepu, "X": frame, "l": l,
         "y": fit.data.y})  # fmt: skip
    loaded = lepu.load(fit.save(tmp_path / "fit.nc"))
    pd.testing.assert_frame_equal(loaded.audit_estimate(), fit.audit_estimate())
    # Rows reported besides count as chosen; a new word for all forgets the design.
    row = frame.index[(l == 0) & np.isnan(fit.data.y)][0]
    more = fit.update(y=pd.Series([0.0], index=[row]), method="map")
    assert more.options.audits == "planned"
    assert more.data.drawn[frame.index.get_loc(row)].tolist() == [4, 1]
    assert fit.update(audits="chosen").data.drawn.size == 0


def test_unanswered_rows_and_another_table(rows, tmp_path):
    frame, y, l = rows
    options = {"model": "scar", "method": "map", "random_seed": 1}
    fit = lepu.fit(frame.to_numpy(), l, **options)
    plan = fit.suggest_audit(50)
    answers = pd.Series(y[plan.rows.index].astype(float), index=plan.rows.index)
    half = fit.update(y=answers.iloc[:25], audits=plan)
    np.testing.assert_allclose(
        half.data.drawn[answers.index[:25], 1], plan.rows["probability"].iloc[:25] / 2
    )
    path = plan.to_csv(tmp_path / "audit.csv")
    with pytest.raises(DataError, match="belongs to another table"):
        lepu.fit(frame, l, **options).update(audits=lepu.read_audit(path))


@pytest.fixture(scope="module")
def sheet(rows):
    """A fit, its plan as a spreadsheet opens it, and the answers."""
    frame, y, l = rows
    fit = lepu.fit(frame, l, model="scar", method="map", random_seed=1)
    plan = fit.suggest_audit(50)
    table = plan.rows.assign(y=y[frame.index.get_indexer(plan.rows.index)].astype(int))
    return fit, table.rename_axis("row").reset_index().astype(str)


SPREADSHEETS = {
    "as written": lambda t: t.to_csv(index=False),
    "in another order": lambda t: t.iloc[::-1, ::-1].to_csv(index=False),
    "in words": lambda t: t.replace({"y": {"1": "Yes", "0": " no"}}).to_csv(index=False),
    "as numbers": lambda t: t.assign(y=t["y"] + ".0").to_csv(index=False),
    "with notes": lambda t: t.assign(note="seen, twice").to_csv(index=False),
    "lines twice": lambda t: pd.concat([t, t[:5]]).to_csv(index=False),
    "with empty lines": lambda t: "\ufeff" + t.to_csv(index=False) + ",,,,\n,,,,\n",
    "semicolons": lambda t: t.assign(
        probability=t["probability"].str.replace(".", ","), missed=""
    ).to_csv(index=False, sep=";"),
}


@pytest.mark.parametrize("edited", SPREADSHEETS.values(), ids=list(SPREADSHEETS))
def test_a_spreadsheet_may_change_the_file(sheet, edited, tmp_path):
    fit, table = sheet
    (tmp_path / "audit.csv").write_text(edited(table), encoding="utf-8")
    found = fit.update(audits=lepu.read_audit(tmp_path / "audit.csv")).data
    at = fit.data.index.get_indexer(table["row"])
    np.testing.assert_array_equal(found.y[at], table["y"].astype(float))
    np.testing.assert_allclose(found.drawn[at, 1], table["probability"].astype(float))
    assert found.n_audited == 50


def test_files_that_are_no_audits_are_refused(sheet, tmp_path):
    path, head = tmp_path / "audit.csv", "row,y,picked,probability\n"
    for text, words in (
        ("row,y\n1,0\n", "no column 'picked'"),
        (head + "1,0,maybe,1\n", "other words"),
        (head + "1,0,random,0\n", "not above 0"),
        (head + "1,maybe,random,0.1\n", "y holds maybe; 0, 1, yes, no"),
        (head + "1,0,random,0.1\n1,1,random,0.1\n", "the row '1' twice"),
    ):
        path.write_text(text)
        with pytest.raises(lepu.LepuError, match=words):
            lepu.read_audit(path)
    fit, table = sheet
    plan = fit.suggest_audit(5)
    with pytest.raises(DataError, match="no answer yet"):
        fit.update(audits=plan)
    with pytest.raises(DataError, match="table of the fit is expected"):
        plan.to_csv(path, table.iloc[:3])


@pytest.mark.parametrize(("n", "share", "width"), [(5000, 0.1, 0.08), (800, 0.02, 0.05)])
def test_how_many_audits(n, share, width):
    """As wide as asked for, on average over simulated audits."""
    m = lepu.plan_audit(n, share, width)
    rng = np.random.default_rng(0)
    y = (np.arange(n) < share * n).astype(float)
    widths = []
    for _ in range(400):
        some = rng.choice(y, m, replace=False)
        made = Round(some, 0 * some, 0 * some, 0 * some + 1, 0.0, float(n), m / n)
        stratum = Stratum((made,), some.sum(), float(n - m))
        _, low, high = estimate_positives([stratum], 0.95, trust=0.0)
        widths.append((high - low) / n)
    assert np.mean(widths) == pytest.approx(width, rel=0.04)
    assert lepu.plan_audit(n, share, width / 2) > 1.8 * m or n == 800


def test_a_fit_says_how_many_audits_it_saves(fit):
    found = fit.plan_audit(width=0.1, ci_prob=0.95)
    assert found["with this fit, if it is right"] < 0.8 * found["audits alone"]
    assert found.name == "audits for a 95% interval of width 0.1"
    with pytest.raises(ModelError, match=r"width = 1\.5"):
        fit.plan_audit(width=1.5)
    for share, width, words in ((2, 0.1, "expected_share"), (0.1, 0, "width")):
        with pytest.raises(ModelError, match=words):
            lepu.plan_audit(100, share, width)
    with pytest.raises(ModelError, match="at least one row"):
        lepu.plan_audit(0, 0.1, 0.1)


def test_answers_are_taken_by_row_label(fit, rows):
    frame, y, l = rows
    at = np.flatnonzero(l == 0)[:10][::-1]
    new = fit.update(y=pd.Series(y[at], index=frame.index[at]))
    assert new.data.n_audited == 10
    np.testing.assert_array_equal(new.data.y[at], y[at])
    assert new.options.audits == "chosen"
    assert new.priors == fit.priors
    assert new.parameters.b.shape == fit.parameters.b.shape
    same = laplace(frame, l, y=new.data.y, draws=100)
    np.testing.assert_allclose(new.pi_draws, same.pi_draws, rtol=1e-6)
    # More answers come on top of those at hand.
    other = frame.index[(l == 0) & np.isnan(new.data.y)][0]
    assert new.update(y=pd.Series([1], index=[other]), audits="random").data.n_audited == 11


def test_a_row_told_twice_must_be_told_the_same(fit, rows):
    frame, _, l = rows
    row = frame.index[l == 0][7]
    with pytest.raises(DataError, match=f"'{row}' twice, with different classes"):
        fit.update(y=pd.Series([1.0, 0.0], index=[row, row]))
    found = add_classes(fit, pd.Series([1.0, 1.0, np.nan], index=[row] * 3))
    assert found[frame.index.get_loc(row)] == 1
    assert np.isnan(found).sum() == len(l) - 1


def test_wrong_questions_are_refused(fit):
    for options, message in (
        ({"k": 0}, "k = 0"),
        ({"k": 5, "goal": "all"}, "Unknown goal"),
    ):
        with pytest.raises(ModelError, match=message):
            fit.suggest_audit(**options)
    with pytest.raises(DataError, match="'nowhere'"):
        fit.update(y=pd.Series([1], index=["nowhere"]))
