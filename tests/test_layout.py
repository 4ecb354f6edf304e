"""Tests mirror the package: a folder here is a folder there, or one of the few named below."""

from pathlib import Path

import bayes_lepu

TESTS = Path(__file__).parent
ELSEWHERE = {
    "benchmarks": "what `make bench` runs",
    "stored": "values of other libraries",
    "docs": "README, pages, notebooks, public names, packaging",
    "reproduction": "the paper's experiments",
    "statistics": "what is true of the library as a whole: recovery, calibration, Stan",
}


def test_folders_are_those_of_the_package():
    folders = {p.name for p in TESTS.iterdir() if p.is_dir() and not p.name.startswith(("_", "."))}
    package = {p.name for p in Path(bayes_lepu.__file__).parent.iterdir() if p.is_dir()}
    assert folders - set(ELSEWHERE) <= package
