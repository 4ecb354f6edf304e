"""Files with one line per item and annotator."""

import numpy as np
import pandas as pd
import pytest

from bayes_lepu import DataError
from bayes_lepu.cli.app import main
from bayes_lepu.cli.commands import fit as command
from bayes_lepu.cli.long_sheets import widened
from bayes_lepu.cli.sheets import read_sheet


@pytest.fixture
def lines():
    rng = np.random.default_rng(1)
    size = rng.normal(size=80)
    rows = [
        {"photo": f"p{i}", "who": who, "size": size[i], "seen": int(size[i] + rng.normal() > 0.3)}
        for i in range(80)
        for who in ("anna", "ben")
        if rng.random() < 0.9
    ]
    return pd.DataFrame(rows)


def wide(lines, tmp_path):
    path = tmp_path / "lines.csv"
    lines.to_csv(path, index=False)
    return widened(read_sheet(path), item="photo", annotator="who", label="seen")


def test_long_files_are_made_wide(lines, tmp_path):
    sheet, names, _ = wide(lines, tmp_path)
    assert names == ["anna", "ben"]
    for (photo, who), label in lines.set_index(["photo", "who"])["seen"].items():
        assert float(sheet.frame.loc[photo, who]) == label
    assert len(sheet.frame) == lines["photo"].nunique()
    assert sheet.frame[names].isna().to_numpy().sum() == 2 * len(sheet.frame) - len(lines)


def test_a_long_file_is_fitted(lines, tmp_path):
    path = tmp_path / "lines.csv"
    lines.to_csv(path, index=False)
    call = ["fit", str(path), "--label", "seen", "--item", "photo", "--annotator", "who"]
    options = ["--model", "scar", "--method", "map", "--out", str(tmp_path / "out")]
    assert main([*call, *options]) == 0
    table = pd.read_csv(tmp_path / "out" / "predictions.csv", index_col=0)
    assert list(table.index) == list(dict.fromkeys(lines["photo"]))


def test_columns_of_visits_long_and_wide(lines, tmp_path, monkeypatch, capsys):
    """A file with a line per visit and one with a line per item hand the same tables to `fit`."""
    handed = []

    def stop(X, labels, **options):
        handed.append((X, labels, options["visits"]["hours"]))
        raise DataError("enough")

    monkeypatch.setattr(command, "fit_model", stop)
    monkeypatch.chdir(tmp_path)
    lines = lines.assign(hours=np.random.default_rng(2).gamma(2.0, size=len(lines)))
    lines.to_csv("long.csv", index=False)
    X = lines.drop_duplicates("photo").set_index("photo")[["size"]]
    marks = lines.pivot_table(index="photo", columns="who", values="seen").reindex(X.index)
    hours = lines.pivot_table(index="photo", columns="who", values="hours").reindex(X.index)
    X.join(marks).join(hours.add_prefix("hours_")).to_csv("wide.csv")
    long = ["long.csv", "--label", "seen", "--item", "photo", "--annotator", "who"]
    wide = ["wide.csv", "--label", "anna,ben", "--id", "photo"]
    for call, visits in [(long, "hours"), (wide, "hours=hours_anna,hours_ben")]:
        assert main(["fit", *call, "--visits", visits]) == 2
    for found in handed:
        for table, expected in zip(found, (X, marks, hours), strict=True):
            pd.testing.assert_frame_equal(table, expected, check_names=False)
    assert len(handed) == 2


def test_columns_of_visits_that_make_no_sense(lines, tmp_path, capsys):
    path = tmp_path / "lines.csv"
    lines.assign(other=1.0).to_csv(path, index=False)
    for options, words in [
        (["--label", "seen", "--visits", "hours"], "0 column(s) for 1 annotator(s)"),
        (["--label", "seen,other", "--visits", "h=size,hour"], "no column 'hour' (--visits)"),
        (["--label", "seen", "--item", "photo", "--annotator", "who", "--visits", "seen"],
         "'seen' is named by --visits and by another option"),
    ]:  # fmt: skip
        assert main(["fit", str(path), *options, "--out", str(tmp_path / "out")]) == 2
        assert words in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: pd.concat([d, d.head(1)]), r"1 line\(s\) repeat .* merge them first"),
        (lambda d: d.assign(size=np.arange(len(d))), "size.* differ between lines of one item"),
        (lambda d: d.assign(who=d["who"].replace("ben", "size")), "size.* name of a column"),
        (lambda d: d.assign(who=d["who"].where(d["who"] != "ben")), "blank cell.*--annotator"),
    ],
)
def test_long_files_that_make_no_sense(lines, tmp_path, change, words):
    with pytest.raises(DataError, match=words):
        wide(change(lines), tmp_path)
