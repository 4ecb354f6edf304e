"""The command line: one command from file to report, and one line for every mistake."""

import inspect
import json
import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import bayes_lepu as lepu
from bayes_lepu.cli import main
from bayes_lepu.cli.arguments import NOT_OFFERED, descriptions, read_priors
from bayes_lepu.cli.commands import COMMANDS, predicted_rows
from bayes_lepu.model.parameters import Parameters
from notebooks.made_tables import fraud_table

QUICK = ["--method", "laplace", "--draws", "100", "--random-seed", "1"]
FILES = {"report.html", "fit.nc", "predictions.csv", "identifiability.csv"}
SCAR = ("--model", "scar", "--method", "map")  # the quickest to judge


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(400, 3))
    point = Parameters.of(a=[2.5, 1, 0], b=0.2, alpha=[0, 0.5, 1.5], beta=0.4, gamma=0.1)
    y, l = point.simulate(X, rng)
    frame = pd.DataFrame(X, columns=["heat", "wind", "light"]).round(4)
    frame.insert(0, "file", [f"img{i:03d}.jpg" for i in range(400)])
    checked = np.where(rng.random(400) < 0.2, y.astype(float), np.nan)
    return frame.assign(marked=l, checked=checked)


@pytest.fixture
def here(tmp_path, monkeypatch, frame):
    monkeypatch.chdir(tmp_path)
    frame.to_csv("photos.csv", index=False)
    return tmp_path


@pytest.fixture(scope="module")
def fitted(tmp_path_factory, frame):
    """The folder of one fit, and that of a second model."""
    folder = tmp_path_factory.mktemp("fits")
    data = folder / "photos.csv"
    frame.to_csv(data, index=False)
    for model in ("psychm", "scar"):
        columns = ["--id", "file", "--exclude", "checked"]
        base = ["fit", str(data), "--label", "marked", "--model", model, *columns]
        assert main([*base, "--out", str(folder / model), "--quiet", *QUICK]) == 0
    return folder


def run(capsys, *args):
    """Exit code, standard output and standard error without the lines that tell the stages."""
    code = main(list(args))
    out, err = capsys.readouterr()
    lines = [line for line in err.splitlines(keepends=True) if not line.endswith(" ...\n")]
    return code, out, "".join(lines)


def test_one_command_makes_everything(fitted, frame):
    folder = fitted / "psychm"
    assert {p.name for p in folder.iterdir()} == FILES
    predictions = pd.read_csv(folder / "predictions.csv")
    assert list(predictions["file"]) == list(frame["file"])
    assert list(predictions["label"]) == list(frame["marked"])
    fit = lepu.load(folder / "fit.nc")
    X = frame.set_index("file")[["heat", "wind", "light"]]
    expected = fit.class_probability(X)
    np.testing.assert_allclose(predictions["class_probability"], expected["mean"], rtol=1e-5)
    np.testing.assert_allclose(predictions["class_probability_upper"], expected["upper"], rtol=1e-5)
    checks = pd.read_csv(folder / "identifiability.csv")
    assert list(checks["name"]) == list(fit.identifiability.to_frame().index)
    text = (folder / "report.html").read_text("utf-8")
    assert fit.identifiability.verdict.split(":")[0] in text


def test_json_is_one_document_and_quiet_is_silent(here, capsys):
    args = ["fit", "photos.csv", "--label", "marked", "--y", "checked", "--id", "file"]
    args += ["--selection-features", "light,wind", "--model", "spm", "--method", "map"]
    code, out, _ = run(capsys, *args, "--random-seed", "1", "--json")
    assert code == 0
    result = json.loads(out)
    assert result["columns"] == ["heat", "wind", "light"]
    assert result["level"] in (1, 2, 3, 4)
    assert 0 < result["class_prior"]["mean"] < 1
    assert set(result["files"].values()) == {f"lepu-photos/{name}" for name in FILES}
    fit = lepu.load("lepu-photos/fit.nc")
    assert list(fit.data.selection_mask) == [False, True, True]
    assert fit.data.n_audited > 0
    code, out, err = run(capsys, *args, "--random-seed", "1", "--quiet", "--overwrite")
    assert (code, out, err) == (0, "", "")


def test_other_separators_and_a_byte_order_mark(here, frame, capsys):
    text = frame.drop(columns=["file", "checked"]).to_csv(index=False, sep=";")
    (here / "semicolons.csv").write_text("\ufeff" + text, encoding="utf-8")
    code, out, _ = run(capsys, "fit", "semicolons.csv", "--label", "marked", *SCAR, "--json")
    assert code == 0
    assert json.loads(out)["columns"] == ["heat", "wind", "light"]


def test_audits_by_a_sheet_and_words_with_decimal_commas(here, frame, capsys):
    words = {0: "nein", 1: "ja"}
    table = frame.assign(marked=frame["marked"].map(words), checked=frame["checked"].map(words))
    table.to_csv("german.csv", sep=";", decimal=",", index=False)
    base = ["fit", "german.csv", "--label", "marked", "--y", "checked", "--id", "file", *SCAR]
    code, _, err = run(capsys, *base)
    assert (code, "--y holds" in err or "--label holds" in err) == (2, True)
    assert run(capsys, *base, "--positive", "ja")[0] == 0
    fit = lepu.load("lepu-german/fit.nc")
    np.testing.assert_array_equal(fit.data.y, frame["checked"])
    table.head(9).to_csv("new.csv", sep=";", decimal=",", index=False)
    code, out, _ = run(capsys, "predict", "lepu-german/fit.nc", "new.csv", "--id", "file")
    assert code == 0
    assert f"if the model is exact.\n{fit._facts()['trust']}" in out
    assert run(capsys, "audit", "lepu-german/fit.nc", "--rows", "9")[0] == 0
    sheet = pd.read_csv("audit.csv").assign(y=1)
    sheet.to_csv("audit.csv", index=False)
    code, out, _ = run(capsys, "update", "lepu-german/fit.nc", "--audits", "audit.csv")
    assert code == 0
    assert "By 9 rows audited at random" in out
    assert {p.name for p in (here / "lepu-german-audited").iterdir()} == FILES


def test_one_run_says_what_is_wrong_with_columns_and_labels(here, frame, capsys):
    frame.assign(marked=frame["marked"].map({0: "no", 1: "yes"})).to_csv("photos.csv", index=False)
    code, _, err = run(capsys, "fit", "photos.csv", "--label", "marked")
    assert code == 2
    for part in ("for 3 reasons", "checked (", "--id file", "--label holds 'no', 'yes'"):
        assert part in err


def test_predict_finds_columns_by_name(fitted, here, frame, capsys):
    new = frame.loc[:9, ["light", "file", "heat", "wind"]]
    new.to_csv("new.csv", index=False)
    fit = str(fitted / "psychm" / "fit.nc")
    code, _, _ = run(capsys, "predict", fit, "new.csv", "--id", "file", "--out", "p.csv")
    assert code == 0
    table = pd.read_csv("p.csv")
    whole = pd.read_csv(fitted / "psychm" / "predictions.csv").head(10)
    columns = ["file", "class_probability", "propensity", "missed_if_unlabelled"]
    pd.testing.assert_frame_equal(table[columns], whole[columns], rtol=1e-4)


@pytest.mark.parametrize(("source", "out"), [("new.csv", "p.csv"), ("new.parquet", "p.parquet")])
def test_predict_reads_text_that_looks_like_numbers(here, capsys, source, out):
    codes = pd.Categorical(np.tile(["1", "2", "x"], 40))
    X = pd.DataFrame({"code": codes, "heat": np.linspace(-1, 1, 120) + (codes == "x")})
    fit = lepu.fit(X, np.tile([1, 0, 0, 1], 30), model="scar", method="map", random_seed=1)
    fit.save("fit.nc", data=False)
    new = X[X["code"] != "x"].reset_index(drop=True)
    new.to_csv("new.csv", index=False)
    new.to_parquet("new.parquet")
    code, said, _ = run(capsys, "predict", "fit.nc", source, "--out", out, "--json")
    assert code == 0
    table = pd.read_csv(out) if out.endswith("csv") else pd.read_parquet(out)
    assert list(table["row"]) == list(range(1, 81))
    expected = fit.predict_proba(new)[:, 1]
    np.testing.assert_allclose(table["class_probability"], expected, rtol=1e-5)
    assert json.loads(said)["rows"] == 80
    assert json.loads(said)["expected_share_positive"] == pytest.approx(expected.mean())


def test_report_of_a_saved_fit(fitted, here, capsys):
    fit = str(fitted / "psychm" / "fit.nc")
    args = ["report", fit, "--title", "March", "--group-by", "wind", "--out", "march.html"]
    code, out, _ = run(capsys, *args)
    assert code == 0
    assert "march.html" in out
    text = (here / "march.html").read_text("utf-8")
    assert "<title>March</title>" in text
    assert "Label rate by wind" in text


# Mistakes -------------------------------------------------------------------------------------


def _cell(row, column, value):
    def spoil(frame):
        frame = frame.astype({column: object})
        frame.loc[row - 1, column] = value
        return frame.to_csv(index=False)

    return spoil


def _lines(change):
    return lambda frame: "\n".join(change(frame.to_csv(index=False).splitlines())) + "\n"


MISTAKES = {
    "text cell": (
        _cell(17, "heat", "warm"),
        [],
        "photos.csv cannot be used as it is. Text among numbers: heat ('warm' in row file "
        "img016.jpg). Correct such cells, read them as blank with --blank TEXT",
    ),
    "empty cell": (
        _cell(8, "wind", None),
        [],
        "photos.csv cannot be used as it is. Cells without a value (how many): wind (1). Choose "
        "--missing indicator",
    ),
    "label in words": (
        lambda f: f.assign(marked=f["marked"].map({0: "no", 1: "yes"})).to_csv(index=False),
        [],
        "'no', 'yes'; 0/1 or bool is expected. With --positive VALUE, 1 is where these",
    ),
    "no such word": (None, ["--positive", "yes"], "holds 'yes' (--positive). It holds 0, 1."),
    "selection formula": (
        None,
        ["--selection-features", "~ lgo(wind)"],
        "photos.csv: --selection-features: 'lgo' in 'lgo(wind)' is not a function",
    ),
    "audited not 0/1": (_cell(5, "checked", 2), [], "y holds the values 0, 1, 2; 0, 1 or"),
    "prior without a name": (None, ["--priors", "normal(0, 2)"], "NAME=FAMILY(scale)"),
    "audited against the label": (
        lambda f: f.assign(marked=(f.index < 50) * 1, checked=(f.index < 20) * 1).to_csv(
            index=False
        ),
        [],
        "photos.csv: 30 row(s) are labelled (l=1) but audited as negative (y=0), first in row file "
        "img020.jpg and 29 more. A labelled row is positive by assumption",
    ),
    "same heading twice": (
        _lines(lambda t: [t[0].replace("wind", "heat"), *t[1:]]),
        [],
        "column 3 has no heading, or that of another column",
    ),
    "too many cells": (
        _lines(lambda t: [*t[:6], t[6] + ",1,2", *t[7:]]),
        [],
        "Expected 6 fields in line 7, saw 8",
    ),
    "empty file": (lambda frame: "", [], "No columns"),
    "unknown label column": (
        None,
        ["--label", "market"],
        "--label names 'market', which is not a column of X. Did you mean 'marked'?",
    ),
    "out is a file": (None, ["--out", "photos.csv"], "is a file"),
}


@pytest.mark.parametrize(("spoil", "options", "message"), MISTAKES.values(), ids=MISTAKES)
def test_every_mistake_gets_one_line(here, frame, capsys, spoil, options, message):
    if spoil is not None:
        (here / "photos.csv").write_text(spoil(frame.copy()), encoding="utf-8")
    args = ["--label", "marked", "--y", "checked", "--id", "file", *QUICK, *options]
    code, out, err = run(capsys, "fit", "photos.csv", *args)
    assert code == 2
    assert out == ""
    assert message in err
    assert err.startswith("bayes-lepu: error: ")
    assert err.count("\n") == 1
    assert not (here / "lepu-photos").exists()


@pytest.mark.parametrize(
    ("spoil", "options", "message"),
    [
        (_cell(61, "heat", "hot"), [], "row 61"),
        (lambda f: f.drop(columns="wind").to_csv(index=False), [], "missing column(s) wind"),
        (lambda f: f.to_csv(index=False), ["--id", "heat"], "missing column(s) heat"),
    ],
)
def test_new_rows_that_cannot_be_predicted(fitted, here, frame, capsys, spoil, options, message):
    (here / "new.csv").write_text(spoil(frame.copy()), encoding="utf-8")
    fit = str(fitted / "scar" / "fit.nc")
    code, _, err = run(capsys, "predict", fit, "new.csv", *options)
    assert code == 2
    assert message in err
    assert not list(here.glob("*predictions*")), "nothing is left half written"


@pytest.mark.parametrize("args", [[], ["fit"], ["fit", "x.csv", "--label"], ["no-such-command"]])
def test_usage_errors_take_one_line(args, capsys):
    with pytest.raises(SystemExit) as stop:
        main(args)
    assert stop.value.code == 2
    err = capsys.readouterr().err
    assert "--help" in err
    assert err.count("\n") == 1


def loading(monkeypatch, load):
    """The command `report` with another way to load the fit."""
    monkeypatch.setattr("bayes_lepu.cli.commands.load", load)
    return "report", "fit.nc"


def test_a_fault_of_ours_is_short_unless_asked_for(here, capsys, monkeypatch):
    def fault(path):
        raise RuntimeError("broken\nin two lines")

    command = loading(monkeypatch, fault)
    code, _, err = run(capsys, *command)
    assert code == 1
    assert err.count("\n") == 1
    assert "RuntimeError: broken in two lines" in err
    assert "--debug" in err
    code, _, err = run(capsys, *command, "--debug")
    assert code == 1
    assert "Traceback" in err


def test_our_warnings_are_printed_once_and_kept_in_the_json(here, capsys, monkeypatch):
    def warn(path):
        for _ in range(2):
            warnings.warn("look\nhere", lepu.DataWarning, stacklevel=1)
        warnings.warn("not ours", UserWarning, stacklevel=1)
        judged = SimpleNamespace(level=1, verdict="")
        return SimpleNamespace(identifiability=judged, report=lambda *_, **__: None)

    code, out, err = run(capsys, *loading(monkeypatch, warn), "--json")
    assert code == 0
    assert json.loads(out)["warnings"] == ["look here"]
    assert err == "warning: look here\n"


# Help -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command, capsys):
    with pytest.raises(SystemExit) as stop:
        main([command, "--help"])
    assert stop.value.code == 0
    out = capsys.readouterr().out
    for option in ("--quiet", "--json"):
        assert option in out
    if command in ("fit", "predict", "report"):
        assert "examples:" in out


def test_options_are_those_of_fit(capsys):
    with pytest.raises(SystemExit):
        main(["fit", "--help"])
    shown = " ".join(capsys.readouterr().out.split())
    for name, option in inspect.signature(lepu.fit).parameters.items():
        if name not in NOT_OFFERED:
            assert f"--{name.replace('_', '-')} " in shown
            assert descriptions()[name][1], name
            if isinstance(option.default, str):
                assert f"default {option.default}" in shown


def test_options_reach_fit_as_python_would_give_them(here, monkeypatch, capsys):
    seen = {}

    def caught(X, l, **options):
        seen.update(options)
        raise lepu.ModelError("caught")

    monkeypatch.setattr("bayes_lepu.cli.commands.fit_model", caught)
    written = (
        "--model spm --class-link probit --class-learner none --method laplace --class-prior .4,.1 "
        "--false-marks --no-standardize --penalty a=l1 --C 2 --draws 50 --target-accept .8 "
        "--class-features heat,wind --sampler pymc --random-seed 3 --missing impute --cores 2"
    )
    assert run(capsys, "fit", "photos.csv", "--label", "marked", *written.split())[0] == 2
    assert seen == {
        "model": "spm",
        "class_link": "probit",
        "class_learner": None,
        "method": "laplace",
        "class_prior": (0.4, 0.1),
        "false_marks": True,
        "standardize": False,
        "penalty": {"a": "l1"},
        "C": 2.0,
        "draws": 50,
        "target_accept": 0.8,
        "class_features": ["heat", "wind"],
        "sampler": "pymc",
        "random_seed": 3,
        "missing": "impute",
        "cores": 2,
        "progressbar": False,
    }
    wrong = run(capsys, "fit", "photos.csv", "--label", "marked", "--class-prior", "many")
    assert wrong[0] == 2


# A table as it is ---------------------------------------------------------------------------------


def test_a_bank_table_goes_to_a_report_by_one_command(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    table = fraud_table(12_000)
    table.to_csv("claims.csv.gz", index=False)
    base = ["fit", "claims.csv.gz", "--label", "flagged", "--y", "checked"]
    code, _, err = run(capsys, *base)  # one pass tells everything that is in the way
    assert code == 2
    for part in (
        "Dates or times: opened",
        "--id case_id",
        f"log_amount ({table['log_amount'].isna().sum()}), country (",
        "--missing indicator",
        "--exclude opened",
    ):
        assert part in err
    options = ["--id", "case_id", "--exclude", "opened", "--missing", "indicator"]
    model = ["--model", "spm", "--selection-features", "log_amount,channel", "--method", "map"]
    code, out, _ = run(capsys, *base, *options, *model, "--random-seed", "1", "--json")
    assert code == 0
    result = json.loads(out)
    assert result["rows"] == len(table)
    assert abs(result["class_prior"]["mean"] - table.attrs["truth"].mean()) < 0.05
    predictions = pd.read_csv("lepu-claims/predictions.csv")
    assert list(predictions["case_id"]) == list(table.loc[table["checked"] != 0, "case_id"])
    assert "country" in (tmp_path / "lepu-claims" / "report.html").read_text("utf-8")
    new = table.head(50).drop(columns=["flagged", "checked"]).assign(country="AT")
    new.to_csv("new.tsv", index=False, sep="\t")
    code, _, err = run(capsys, "predict", "lepu-claims/fit.nc", "new.tsv", "--id", "case_id")
    assert code == 2
    assert "country ('AT' in row case_id 100000 and 49 more)" in err
    assert "--accept-unseen" in err
    code, _, _ = run(capsys, "predict", "lepu-claims/fit.nc", "new.tsv", "--accept-unseen")
    assert code == 0


def test_priors_by_option():
    priors = read_priors(["a=normal(0, 2)", "alpha = normal(halfnormal(1))", "c=beta(1, 9)"])
    assert priors == {
        "a": lepu.Prior("normal", scale=2.0),
        "alpha": lepu.Prior("normal", scale=lepu.Prior("halfnormal", scale=1.0)),
        "c": lepu.Prior("beta", concentration=(1.0, 9.0)),
    }


def test_predictions_show_audits_and_leave_out_cleared_rows():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(60, 2)), columns=["u", "v"])
    l = (rng.random(60) < 0.3).astype(int)
    y = np.full(60, np.nan)
    y[np.flatnonzero(l == 0)[:4]] = [0, 1, 0, 1]
    fit = lepu.fit(X, l, y=y, audits="random", model="scar", method="map", random_seed=1)
    found = predicted_rows(fit)
    assert list(found.columns)[:3] == ["label", "audited", "class_probability"]
    assert len(found) == 58
    assert found["audited"].dropna().tolist() == [1, 1]


@pytest.mark.slow
def test_warm_up_runs_and_says_how_long_it_took(capsys):
    code, out, _ = run(capsys, "warm-up", "--json")
    assert code == 0
    assert json.loads(out)["seconds"] > 0
