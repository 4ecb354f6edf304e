"""The README as a new user meets it: its code runs, and prints what it says it prints."""

import re
import tomllib

import pandas as pd
import pytest

from bayes_lepu.cli import main
from bayes_lepu.model import list_models
from tests.documents import ROOT, blocks, run

README = ROOT / "README.md"
TEXT = README.read_text(encoding="utf-8")
PAGES = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["urls"].values()
NUMBER = re.compile(r"\d+\.\d+")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("readme")


@pytest.fixture(scope="module")
def printed(folder):
    """Run the Python blocks in order, in an empty folder, and return what the first one prints."""
    import contextlib
    import io

    namespace, outputs = {}, []
    with contextlib.chdir(folder):
        for code in blocks(README, "python"):
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                run(code, README, namespace)
            outputs.append(out.getvalue())
    return outputs


def test_the_example_prints_what_the_readme_shows(printed):
    """Words are the same; figures agree to .01, several Monte-Carlo errors of an interval's end."""
    shown = blocks(README, "text")[0]
    now, then = (NUMBER.sub("#", text).split() for text in (printed[0], shown))
    assert now == then, "run: python -m tools.example"
    pairs = zip(NUMBER.findall(printed[0]), NUMBER.findall(shown), strict=True)
    for now, then in pairs:
        assert float(now) == pytest.approx(float(then), abs=0.01)


def test_the_truth_is_what_the_readme_says():
    import bayes_lepu as lepu

    demo = lepu.load_demo()
    for figure in (demo.truth["pi"], demo.truth["c"], demo.l.mean()):
        assert f" {figure:.3f}".replace(" 0", " ") in TEXT


def test_the_example_writes_its_files(printed, folder):
    assert (folder / "report.html").stat().st_size > 10_000
    assert (folder / "fit.nc").stat().st_size > 10_000


def test_the_commands_run(printed, folder, monkeypatch):
    """By MAP, as the example above sampled; the files the README names are there afterwards."""
    monkeypatch.chdir(folder)
    commands = [
        line.split("#")[0].split()[1:]
        for block in blocks(README, "bash")
        for line in block.splitlines()
        if line.startswith("bayes-lepu ")
    ]
    assert {c[0] for c in commands} == {"fit", "predict", "audit", "update"}
    for command in commands:
        if command[0] == "update":
            pd.read_csv("audit.csv").assign(y=1).to_csv("audit.csv", index=False)
        quick = ["--model", "spm", "--method", "map"] if command[0] == "fit" else []
        assert main([*command, *quick]) == 0
    out = folder / "lepu-photos"
    for name in ("report.html", "fit.nc", "predictions.csv", "identifiability.csv"):
        assert name in TEXT
        assert (out / name).is_file()
    assert (folder / "predictions.csv").is_file()


def test_make_targets_exist():
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    documents = [README, ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    named = {
        target
        for path in documents
        for target in re.findall(r"(?:^|`)make ([a-z-]+)", path.read_text("utf-8"), re.MULTILINE)
    }
    assert {"demo", "test"} <= named <= targets


def test_links_lead_somewhere():
    links = re.findall(r"\]\(([^)#]+)\)", TEXT)
    local = [link for link in links if not link.startswith(tuple(PAGES))]
    assert len(links) > len(local) > 10
    for link in local:
        assert (ROOT / link).exists(), link


@pytest.mark.parametrize("path", [README, ROOT / "models" / "README.md"], ids=lambda p: str(p))
def test_table_of_models_is_the_registry(path):
    rows = re.findall(r"^\| \[(\w+)\]\(\S*card\.md\)", path.read_text("utf-8"), re.MULTILINE)
    assert rows == list_models()
