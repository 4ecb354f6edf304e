"""Pictures of how the default fit grows with rows, columns and annotators.

``python -m benchmarks.growth`` writes ``docs/img/growth.svg`` from ``results/scale.json``: CPU
seconds on logarithmic axes, beside one logistic regression where there is one.
"""

import json
import re
from pathlib import Path

import matplotlib.pyplot as plt

HERE = Path(__file__).parent
KEY = re.compile(r"(\d+) x (\d+)(?:, (\d+) annotators)?: (\w+), CPU seconds")

Curves = dict[str, list[tuple[int, float]]]

# What grows, its place among rows, columns and annotators, and what stays.
PANELS = (
    ("rows, of 20 columns", 0, {1: 20, 2: 1}),
    ("columns, of 10 000 rows", 1, {0: 10_000, 2: 1}),
    ("annotators, of 5 000 × 5", 2, {0: 5_000, 1: 5}),
)


def curves(figures: dict[str, float], grows: int, fixed: dict[int, int]) -> Curves:
    """Size and CPU seconds of every method, in the order of the sizes."""
    found: Curves = {}
    for key, value in figures.items():
        if match := KEY.fullmatch(key):
            size = [int(match[1]), int(match[2]), int(match[3] or 1)]
            if all(size[place] == of for place, of in fixed.items()):
                found.setdefault(match[4], []).append((size[grows], value))
    return {name: sorted(points) for name, points in found.items() if len(points) > 1}


def main() -> None:
    """Draw the picture."""
    figures = json.loads((HERE / "results" / "scale.json").read_text(encoding="utf-8"))["figures"]
    figure, places = plt.subplots(1, len(PANELS), figsize=(10, 3.5), layout="constrained")
    for axes, (title, grows, fixed) in zip(places, PANELS, strict=True):
        drawn = curves(figures, grows, fixed)
        for name, points in drawn.items():
            axes.loglog(*zip(*points, strict=True), "o-", label=name)
        sizes = sorted({size for points in drawn.values() for size, _ in points})
        axes.set_xticks(sizes, [f"{size:,}".replace(",", " ") for size in sizes])
        axes.set_xticks([], minor=True)
        axes.set(xlabel=title)
        axes.legend(frameon=False)
    places[0].set(ylabel="CPU seconds of the default fit")
    figure.savefig(HERE.parent / "docs" / "img" / "growth.svg")


if __name__ == "__main__":
    main()
