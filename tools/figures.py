"""The table of figures in the README, refreshed from benchmarks/results/*.json.

A row ends in the place its figure is stored at, `file: key`, and the figure is that value with two
significant digits:

    | what | 2.5 | `kernel: 1M x 20 spm: gradient / one read of X` |
"""

import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
ROW = re.compile(r"^(\|[^|]*\| )([^|]*)( \| `(\w+): ([^`]+)` \|)$", re.MULTILINE)


def show(value: float) -> str:
    """Two significant digits, without exponent or trailing zeros."""
    rounded = float(f"{value:.2g}")
    text = f"{rounded:.0f}" if abs(rounded) >= 10 else f"{rounded:.4f}".rstrip("0")
    return text.removesuffix(".").removeprefix("0") or "0"


def refreshed(text: str) -> str:
    """The text with every figure as stored."""

    def row(match: re.Match[str]) -> str:
        file, key = match[4], match[5]
        figures = json.loads((RESULTS / f"{file}.json").read_text(encoding="utf-8"))["figures"]
        if key not in figures:
            raise KeyError(f"{file}.json has no figure {key!r}; it has: {', '.join(figures)}.")
        return match[1] + show(figures[key]) + match[3]

    return ROW.sub(row, text)


def main() -> int:
    """Rewrite the README."""
    readme = ROOT / "README.md"
    readme.write_text(refreshed(readme.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
