"""Files with one line per item and annotator."""

import numpy as np
import pandas as pd
import pytest

from bayes_lepu import DataError
from bayes_lepu.cli.app import main
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
    sheet, names = wide(lines, tmp_path)
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


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: pd.concat([d, d.head(1)]), r"1 line\(s\) repeat .* Remove the copies"),
        (lambda d: d.assign(size=np.arange(len(d))), "size.* differ between lines of one item"),
        (lambda d: d.assign(who=d["who"].replace("ben", "size")), "size.* name of a column"),
        (lambda d: d.assign(who=d["who"].where(d["who"] != "ben")), "blank cell.*--annotator"),
    ],
)
def test_long_files_that_make_no_sense(lines, tmp_path, change, words):
    with pytest.raises(DataError, match=words):
        wide(change(lines), tmp_path)
