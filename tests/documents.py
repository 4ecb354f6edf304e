"""Fenced blocks of the documents, and how the tests run them."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def blocks(path, language):
    """The fenced blocks of this language, in order."""
    text = Path(path).read_text(encoding="utf-8")
    return [body for name, body in FENCE.findall(text) if name == language]


def run(code, path, namespace):
    """Execute a block; a traceback names the document."""
    exec(compile(code, str(path), "exec"), namespace)
