"""Pictures for the catalogue and the README: `python -m tools.pictures`.

* ``models/<name>/graph.svg``: the model as PyMC sees it (`pymc.model_graph.ModelGraph`), drawn here
  because the graphviz program cannot be assumed;
* ``docs/img/propensity.png``: the annotator of the demo by the default call, and the truth.
"""

import sys
from collections import defaultdict
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

import bayes_lepu as lepu
from bayes_lepu.model import list_models

ROOT = Path(__file__).resolve().parent.parent
WIDTH, HEIGHT = 150, 54  # of a node
GAP_X, GAP_Y, MARGIN = 26, 56, 14
FILL = {"observed": "#d9d9d9", "derived": "#f4f4f4", "free": "#ffffff"}


def describe(model: Any) -> tuple[dict[str, set[str]], dict[str, tuple[str, str]]]:
    """Parents of every variable, and its role and second line (distribution, dimensions)."""
    from pymc.model_graph import ModelGraph

    parents = {
        str(k): {str(p) for p in v} for k, v in ModelGraph(model).make_compute_graph().items()
    }
    # As the model prints; the likelihood is computed from logarithms of these.
    written = {"l": {"h"}, "L": {"t", "s", "epsilon"} & set(parents)}
    parents |= {name: by for name, by in written.items() if name in parents}
    observed = {v.name for v in model.observed_RVs}
    derived = {v.name for v in model.deterministics}
    data = {v.name for v in model.data_vars}
    free = {v.name for v in model.free_RVs}
    nodes = {}
    for name in parents:
        if name in data:
            role, kind = "observed", "data"
        elif name in derived or name not in observed | free:
            role, kind = "derived", "derived"
        elif name in observed:
            role, kind = "observed", "Bernoulli"
        else:
            role, kind = "free", distribution(model[name])
        dims = model.named_vars_to_dims.get(name) or ()
        nodes[name] = (role, kind + "".join(f" · {d}" for d in dims))
    return parents, nodes


def distribution(variable: Any) -> str:
    """Name of a free variable's distribution."""
    return str(variable.owner.op.name).capitalize()


def layers(parents: dict[str, set[str]]) -> list[list[str]]:
    """Variables by the length of the longest path that leads to them."""
    depth: dict[str, int] = {}

    def of(name: str) -> int:
        if name not in depth:
            depth[name] = 1 + max((of(p) for p in parents[name]), default=-1)
        return depth[name]

    rows: dict[int, list[str]] = defaultdict(list)
    for name in parents:
        rows[of(name)].append(name)
    return [rows[d] for d in sorted(rows)]


def svg(model: Any, title: str) -> str:
    """The graph as an SVG drawing: parents above, observed variables shaded, derived ones boxed."""
    parents, nodes = describe(model)
    rows = layers(parents)
    columns = max(map(len, rows))
    total = 2 * MARGIN + columns * WIDTH + (columns - 1) * GAP_X
    tall = 2 * MARGIN + len(rows) * HEIGHT + (len(rows) - 1) * GAP_Y
    place: dict[str, tuple[float, float]] = {}
    for r, row in enumerate(rows):
        used = len(row) * WIDTH + (len(row) - 1) * GAP_X
        if r:  # below its parents, so that few arrows cross
            row = sorted(row, key=lambda v: sum(place[p][0] for p in parents[v]) / len(parents[v]))
        for c, name in enumerate(row):
            x = (total - used) / 2 + c * (WIDTH + GAP_X) + WIDTH / 2
            place[name] = (x, MARGIN + r * (HEIGHT + GAP_Y) + HEIGHT / 2)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{total}" height="{tall}" '
        f'viewBox="0 0 {total} {tall}" font-family="sans-serif" text-anchor="middle" role="img">',
        f"<title>{escape(title)}</title>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" '
        'markerHeight="8" orient="auto"><path d="M0,0L8,4L0,8z" fill="#555"/></marker></defs>',
        f'<rect width="{total}" height="{tall}" fill="#ffffff"/>',
    ]
    for name in nodes:
        for parent in sorted(parents[name]):
            (x1, y1), (x2, y2) = place[parent], place[name]
            lines.append(
                f'<line x1="{x1:.0f}" y1="{y1 + HEIGHT / 2:.0f}" x2="{x2:.0f}" '
                f'y2="{y2 - HEIGHT / 2:.0f}" stroke="#555" marker-end="url(#tip)"/>'
            )
    for name, (role, second) in nodes.items():
        x, y = place[name]
        style = f'fill="{FILL[role]}" stroke="#333"'
        if role == "derived":
            box = f'x="{x - WIDTH / 2:.0f}" y="{y - HEIGHT / 2:.0f}"'
            lines.append(f'<rect {box} width="{WIDTH}" height="{HEIGHT}" {style}/>')
        else:
            radii = f'rx="{WIDTH / 2:.0f}" ry="{HEIGHT / 2:.0f}"'
            lines.append(f'<ellipse cx="{x:.0f}" cy="{y:.0f}" {radii} {style}/>')
        lines.append(f'<text x="{x:.0f}" y="{y - 3:.0f}" font-size="15">{escape(name)}</text>')
        lines.append(
            f'<text x="{x:.0f}" y="{y + 14:.0f}" font-size="11" fill="#444">{escape(second)}</text>'
        )
    return "\n".join([*lines, "</svg>", ""])


def graph(name: str) -> str:
    """The picture of a model of the catalogue, on the demo's columns."""
    demo = lepu.load_demo()
    if name == "panel":
        labels = np.column_stack([demo.l, demo.y])
        return svg(lepu.build_model(demo.X, labels, model="spm"), "Graph of the model panel")
    if name == "false_marks":
        model = lepu.build_model(demo.X, demo.l, model="spm", false_marks=True)
        return svg(model, "Graph of the model false_marks")
    return svg(lepu.build_model(demo.X, demo.l, model=name), f"Graph of the model {name}")


def annotator() -> Any:
    """Propensity along the columns that the demo's volunteer reacts to, estimated and true."""
    demo, names = lepu.load_demo(), ["brightness", "sharpness", "distance_m"]
    fit = lepu.fit(demo.X, demo.l, random_seed=1, progressbar=False)
    drawn = lepu.plots.plot_propensity(fit, features=names)
    figure = drawn.viz["figure"].item()
    figure.set_size_inches(9, 3.1)
    slopes, level = demo.truth["alpha"], demo.truth["beta"]
    low, high = demo.truth["gamma"], 1 - demo.truth["lam"]
    for name, axes in zip(names, figure.axes, strict=True):
        grid = max((line.get_xdata() for line in axes.lines), key=len)  # that of the estimate
        rows = demo.X.to_numpy(dtype=float)
        column, curve = demo.X.columns.get_loc(name), []
        for value in grid:
            moved = rows.copy()
            moved[:, column] = value
            score = (moved - rows.mean(axis=0)) / rows.std(axis=0) @ slopes + level
            curve.append(float(np.mean(low + (high - low) / (1 + np.exp(-score)))))
        axes.plot(grid, curve, ":", color="black", label="truth")
        axes.set_ylabel("P(marked | animal)" if axes is figure.axes[0] else "")
    for legend in figure.legends:
        legend.remove()
    figure.axes[2].legend(loc="center right", frameon=False)
    return figure


def main() -> int:
    """Write all pictures."""
    for name in [*list_models(), "panel", "false_marks"]:
        (ROOT / "models" / name / "graph.svg").write_text(graph(name), encoding="utf-8")
    picture = ROOT / "docs" / "img" / "propensity.png"
    picture.parent.mkdir(parents=True, exist_ok=True)
    annotator().savefig(picture, dpi=110)
    return 0


if __name__ == "__main__":
    sys.exit(main())
