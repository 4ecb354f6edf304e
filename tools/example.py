"""Run the README's first example again and put what it prints in the block below it."""

import contextlib
import io
import re
import sys
import tempfile
from pathlib import Path

README = Path(__file__).resolve().parents[1] / "README.md"
BLOCK = re.compile(r"^```(python|text)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def refreshed(text: str) -> str:
    """The text with the first block of output as the first block of code prints it now."""
    blocks = list(BLOCK.finditer(text))
    code = next(b for b in blocks if b[1] == "python")
    shown = next(b for b in blocks if b[1] == "text" and b.start() > code.end())
    out = io.StringIO()
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.chdir(folder),
        contextlib.redirect_stdout(out),
    ):
        exec(compile(code[2], str(README), "exec"), {})
    return text[: shown.start(2)] + out.getvalue().strip("\n") + "\n" + text[shown.end(2) :]


if __name__ == "__main__":
    README.write_text(refreshed(README.read_text(encoding="utf-8")), encoding="utf-8")
    sys.exit(0)
