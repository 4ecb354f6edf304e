"""The size of the house: budgets that are lowered with every step, and never raised."""

import inspect
import re
from collections import Counter
from pathlib import Path

import bayes_lepu as lepu

TESTS = Path(__file__).parent
PACKAGE = TESTS.parent / "bayes_lepu"
CONSTANT = re.compile(r"^_?[A-Z][A-Z0-9_]+(: *[a-z]+)? *= *-?[0-9.]", re.MULTILINE)
# Where this is going: 18,500 lines and 110 files of the package (20,000 and 120 with everything
# that is being added), 13,000 lines of tests, 120 numeric constants, 28 options of `fit`, 70
# modules whose functions are called from `fit` to the page (counted in `tests/report`).
BUDGETS = {
    "lines of the package": 22_633,
    "files of the package": 97,
    "lines of the tests": 13_930,
    "numeric constants": 120,
    "options of fit": 28,
    "modules from fit to page": 85,
}
# Lines of every folder: what one of them gains, others have lost before.
FOLDERS = {
    "actions": 1_920,
    "cli": 941,
    "data": 2_973,
    "engines": 2_411,
    "factors": 762,
    "model": 2_136,
    "plots": 686,
    "priors": 541,
    "report": 764,
    "result": 1_319,
    "root": 3_720,
    "rows": 1_293,
    "runtime": 317,
    "verdict": 2_850,
}


def counted() -> dict[str, int]:
    """What there is of everything that has a budget."""
    package = [file.read_text("utf-8") for file in PACKAGE.rglob("*.py")]
    options = inspect.signature(lepu.fit).parameters.values()
    return {
        "lines of the package": sum(text.count("\n") for text in package),
        "files of the package": len(package),
        "lines of the tests": sum(f.read_text("utf-8").count("\n") for f in TESTS.rglob("*.py")),
        "numeric constants": sum(len(CONSTANT.findall(text)) for text in package),
        "options of fit": sum(option.kind == option.KEYWORD_ONLY for option in options),
    }


def folders() -> Counter[str]:
    """Lines of every folder of the package; what is in none belongs to the root."""
    lines: Counter[str] = Counter()
    for file in PACKAGE.rglob("*.py"):
        parts = file.relative_to(PACKAGE).parts
        lines[parts[0] if len(parts) > 1 else "root"] += file.read_text("utf-8").count("\n")
    return lines


def test_the_house_stays_within_its_budgets():
    found = counted()
    assert {what: n for what, n in found.items() if n > BUDGETS[what]} == {}


def test_every_folder_stays_within_its_budget():
    assert {name: n for name, n in folders().items() if n > FOLDERS.get(name, 0)} == {}
