"""The fenced blocks of a document, and a way to try them where the library is installed.

``python tools/fences.py README.md`` runs, in the current folder and in order, the Python blocks and
the lines of the shell blocks that call ``bayes-lepu``.
"""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def blocks(path: str | Path, language: str | None = None) -> list[Any]:
    """The fenced blocks of this language, in order; of all languages as pairs (language, text)."""
    found = FENCE.findall(Path(path).read_text(encoding="utf-8"))
    return [body for name, body in found if name == language] if language else found


def run(code: str, path: str | Path, namespace: dict[str, Any]) -> None:
    """Execute a block; a traceback names the document."""
    exec(compile(code, str(path), "exec"), namespace)


def main(path: str) -> None:
    """Run what a reader would run."""
    namespace: dict[str, Any] = {}
    for language, body in blocks(path):
        if language == "python":
            run(body, path, namespace)
        elif language == "bash":
            for line in body.splitlines():
                if line.startswith("bayes-lepu "):
                    print("$", line, flush=True)
                    subprocess.run(
                        [sys.executable, "-m", "bayes_lepu", *line.split()[1:]], check=True
                    )


if __name__ == "__main__":
    main(sys.argv[1])
