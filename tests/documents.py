"""Where the documents are, and how the tests run their blocks."""

from pathlib import Path

from tools.fences import blocks, run

__all__ = ["ROOT", "blocks", "run"]

ROOT = Path(__file__).resolve().parent.parent
