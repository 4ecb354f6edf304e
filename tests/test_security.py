"""Nothing that a user gives or loads is run: no pickle, no eval, no shell, found in the syntax."""

import ast
from pathlib import Path

import pytest

import bayes_lepu

PACKAGE = Path(bayes_lepu.__file__).parent
MODULES = {
    "cloudpickle",
    "code",
    "codeop",
    "ctypes",
    "dill",
    "marshal",
    "pickle",
    "pty",
    "shelve",
    "subprocess",
    "yaml",
}
CALLS = {"eval", "exec", "compile", "__import__", "execfile"}
METHODS = {
    ("os", "popen"),
    ("os", "system"),
    ("pandas", "eval"),
    ("pandas", "read_pickle"),
    ("pd", "eval"),
    ("pd", "read_pickle"),
    ("joblib", "load"),
    ("torch", "load"),
}
ALLOWED_PICKLE = "allow_pickle"


def offences(source: str) -> list[str]:
    """Imports and calls in a source that could run what they are given."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [a.name for a in node.names if a.name.split(".")[0] in MODULES]
        elif isinstance(node, ast.ImportFrom):
            module = (node.module or "").split(".")[0]
            found += [module] if module in MODULES else []
            found += [f"{module}.{a.name}" for a in node.names if (module, a.name) in METHODS]
        elif isinstance(node, ast.Call):
            found += _call(node)
    return found


def _call(node: ast.Call) -> list[str]:
    name = node.func
    if isinstance(name, ast.Name) and name.id in CALLS:
        return [name.id]
    if isinstance(name, ast.Attribute):
        owner = name.value.id if isinstance(name.value, ast.Name) else ""
        frame = owner not in ("re", "") and name.attr in ("eval", "to_pickle", "read_pickle")
        if (owner, name.attr) in METHODS or frame or owner == "builtins":
            return [f"{owner}.{name.attr}"]
    return [
        ALLOWED_PICKLE
        for word in node.keywords
        if word.arg == ALLOWED_PICKLE
        and not (isinstance(word.value, ast.Constant) and word.value.value is False)
    ]


def test_nothing_given_is_run():
    found = {file: offences(file.read_text("utf-8")) for file in PACKAGE.rglob("*.py")}
    assert not {file: what for file, what in found.items() if what}


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "from pickle import loads as harmless",
        "import os, pickle as p",
        "def f(x):\n    return eval(x)",
        "exec('1')",
        "import os\nos.system('ls')",
        "from os import system",
        "import pandas as pd\npd.read_pickle('x')",
        "frame.eval('a + b')",
        "import numpy as np\nnp.load('x', allow_pickle=True)",
        "__import__('os')",
    ],
)
def test_the_scan_finds_what_it_looks_for(source):
    assert offences(source)


def test_the_scan_reads_syntax_and_not_words():
    source = '"""No pickle, no eval(x)."""\nimport re\nx = re.compile("exec")  # eval(y)\n'
    assert offences(source) == []
