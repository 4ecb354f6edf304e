"""What remedies tell the user to type can be typed."""

import ast
import inspect
from pathlib import Path

import pytest

import bayes_lepu as lepu

PACKAGE = Path(lepu.__file__).parent
CALLS = {"fit.update(": lepu.Fit.update, "lepu.fit(": lepu.fit}


def texts(path):
    """The texts of a file, with ``0`` for what is put into them."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.JoinedStr):
            parts = [v.value if isinstance(v, ast.Constant) else "0" for v in node.values]
            yield "".join(parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def options(text, call):
    """Names of the options in every such call of a text."""
    for part in text.split(call)[1:]:
        depth, inside = 1, ""
        for letter in part:
            depth += (letter in "([{") - (letter in ")]}")
            if depth == 0:
                break
            inside += letter if depth == 1 else ""
        yield from (piece.split("=")[0].strip() for piece in inside.split(",") if "=" in piece)


@pytest.mark.parametrize("call", CALLS)
def test_calls_in_texts_have_options_that_exist(call):
    known = inspect.signature(CALLS[call]).parameters
    found = {
        (path.name, name)
        for path in PACKAGE.rglob("*.py")
        for text in texts(path)
        for name in options(text, call)
    }
    assert found
    assert not {pair for pair in found if pair[1] not in known}
