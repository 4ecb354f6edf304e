"""Pictures of how the default fit grows with the table, from ``results/scale.json``.

``python -m benchmarks.growth`` writes ``docs/img/growth.svg``: CPU seconds against rows, on
logarithmic axes, beside one logistic regression.
"""

import json
import re
from pathlib import Path

import matplotlib.pyplot as plt

HERE = Path(__file__).parent
KEY = re.compile(r"(\d+) x (\d+): (\w+), CPU seconds")
COLUMNS = 20


def curves(figures: dict[str, float], columns: int = COLUMNS) -> dict[str, list[tuple[int, float]]]:
    """Rows and CPU seconds of every method at one number of columns, in the order of the rows."""
    found: dict[str, list[tuple[int, float]]] = {}
    for key, value in figures.items():
        match = KEY.fullmatch(key)
        if match and int(match[2]) == columns:
            found.setdefault(match[3], []).append((int(match[1]), value))
    return {name: sorted(points) for name, points in found.items()}


def main() -> None:
    """Draw the picture."""
    figures = json.loads((HERE / "results" / "scale.json").read_text(encoding="utf-8"))["figures"]
    figure, axes = plt.subplots(figsize=(5, 3.5), layout="constrained")
    for name, points in curves(figures).items():
        axes.loglog(*zip(*points, strict=True), "o-", label=name)
    axes.set(xlabel=f"rows, of {COLUMNS} columns", ylabel="CPU seconds of the default fit")
    axes.legend(frameon=False)
    figure.savefig(HERE.parent / "docs" / "img" / "growth.svg")


if __name__ == "__main__":
    main()
