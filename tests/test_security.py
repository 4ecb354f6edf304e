"""Nothing that a user gives or loads is run: no pickle, no eval, no shell; the linter holds it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import bayes_lepu

PACKAGE = Path(bayes_lepu.__file__).parent
RUNS_WHAT_IT_IS_GIVEN = [
    "import pickle",
    "from pickle import loads as harmless",
    "import os, pickle as p",
    "x = eval('1')",
    "exec('1')",
    "import os\nos.system('ls')",
    "from os import system",
    "import pandas as pd\npd.read_pickle('x')",
    "import subprocess",
]


@pytest.mark.parametrize("source", RUNS_WHAT_IT_IS_GIVEN)
def test_the_linter_finds_what_runs_its_input(source):
    """As in a file of the package; `make lint` checks the package itself."""
    command = [sys.executable, "-m", "ruff", "check", "--stdin-filename", "bayes_lepu/x.py", "-"]
    found = subprocess.run(
        command, input=source, capture_output=True, text=True, cwd=PACKAGE.parent, check=False
    )
    assert found.returncode == 1
    assert re.search("S102|S301|S307|TID251", found.stdout)


def test_what_the_linter_does_not_know():
    for file in PACKAGE.rglob("*.py"):
        text = file.read_text("utf-8")
        assert not re.search(
            r"allow_pickle=True|__import__\(|\.eval\(|(?<!re\.)\bcompile\(", text
        ), file
