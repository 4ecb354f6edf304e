"""Pictures as SVG inside the page: real text, and colours that follow the page's theme.

The plots use ArviZ's backend "none", which only records what is to be drawn. The records become SVG
here, in a few milliseconds per picture; matplotlib takes a quarter of a second.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from markupsafe import Markup, escape

from bayes_lepu.links import Array
from bayes_lepu.plots import panels

if TYPE_CHECKING:
    from arviz_plots import PlotCollection

THEME = {
    panels.CLASS: "var(--class)",
    panels.PROPENSITY: "var(--propensity)",
    panels.LABEL: "var(--label)",
    panels.PRIOR: "var(--prior)",
    panels.GUIDE: "var(--guide)",
}
WIDTH, HEIGHT = 266, 202  # in the units of the fonts, whose size is 8
LEFT, RIGHT, TOP, BOTTOM = 46, 260, 18, 172  # the frame that the axes span
LETTER = 4.9  # width of a letter, hardly ever more
STEPS = (1, 2, 5, 10)  # between ticks, times a power of ten
Mark = Mapping[str, Any]  # one record of the backend: a function's name and its arguments
Scale = Callable[[Any], Array]  # values of an axis to places in the picture


class Picture(NamedTuple):
    """A figure with its title and one line that explains it."""

    title: str
    svg: Markup
    reading: str


def picture(
    title: str, reading: str, plot: "Callable[..., PlotCollection]", of: Any, **options: Any
) -> Picture:
    """Draw one picture of a plot with a single panel, of a fit or of a table."""
    marks: list[Mark] = plot(of, backend="none", **options).viz["plot"].item()
    return Picture(title, _svg(marks, title), reading)


def _svg(marks: list[Mark], title: str) -> Markup:
    """The marks of a panel, with its axes, labels and legend."""
    said = {mark["function"]: mark for mark in marks}
    x, y = (_ends(marks, said, axis) for axis in "xy")

    def across(values: Any) -> Array:
        return LEFT + (np.asarray(values, dtype=float) - x[0]) / (x[1] - x[0]) * (RIGHT - LEFT)

    def up(values: Any) -> Array:
        return BOTTOM - (np.asarray(values, dtype=float) - y[0]) / (y[1] - y[0]) * (BOTTOM - TOP)

    drawn = [DRAWN[m["function"]](m, across, up) for m in marks if m["function"] in DRAWN]
    named, (heights, sizes) = said.get("xticks"), _ticks(*y)
    at, names = (named["ticks"], _fitting(named["labels"])) if named else _ticks(*x)
    turned = f"translate(9,{(TOP + BOTTOM) / 2})rotate(-90)"
    parts = [
        *(_text(v, BOTTOM + 11, name) for v, name in zip(across(at), names, strict=True)),
        *(_text(LEFT - 5, v + 3, name, "end") for v, name in zip(up(heights), sizes, strict=True)),
        *(f'<path d="M{v:.1f},{BOTTOM:.1f}l0,3" style="stroke:var(--ink)"/>' for v in across(at)),
        *(f'<path d="M{LEFT:.1f},{v:.1f}l-3,0" style="stroke:var(--ink)"/>' for v in up(heights)),
        f'<path d="M{LEFT},{TOP}V{BOTTOM}H{RIGHT}" style="fill:none;stroke:var(--ink)"/>',
        _text((LEFT + RIGHT) / 2, HEIGHT - 6, said["xlabel"]["string"]),
        _text(0, 0, said["ylabel"]["string"], move=f' transform="{turned}"'),
        *_legend(said.get("legend", {}).get("entries", ())),
        f'<g clip-path="url(#frame)">{"".join(drawn)}</g>',
    ]
    opening = f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">'
    return Markup("".join([opening, *parts, "</svg>"]))


def _ends(marks: list[Mark], said: Mapping[str, Mark], axis: str) -> tuple[float, float]:
    """The limits of an axis: as given, or those of the data with a small margin."""
    if given := said.get(f"{axis}lim"):
        low, high = given["lims"]
    else:
        parts = [m[k] for m in marks for k in m if k == axis or k.startswith(f"{axis}_")]
        values = np.concatenate([np.atleast_1d(part) for part in parts])
        low, high = float(np.nanmin(values)), float(np.nanmax(values))
        room = 0.04 * (high - low)
        low, high = (low if low == 0 else low - room), high + room
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _ticks(low: float, high: float, most: int = 6) -> tuple[Any, list[str]]:
    """Round values along an axis with their labels, as many as there is room for."""
    size = 10.0 ** math.floor(math.log10((high - low) / most))
    step = size * next((k for k in STEPS if (high - low) / (k * size) <= most), STEPS[-1])
    at = np.arange(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1) * step
    names = [f"{value:.7g}".replace("-", "−") for value in np.round(at / step) * step + 0.0]
    wide = sum(len(name) + 1 for name in names) * LETTER > RIGHT - LEFT
    return _ticks(low, high, most - 1) if wide and most > 2 else (at, names)


def _fitting(names: Sequence[str]) -> list[str]:
    """Names below an axis, cut to the room there is."""
    most = (RIGHT - LEFT) / LETTER / max(len(names), 1) - 1
    return [panels.short(name, max(2, int(most))) for name in names]


def _legend(entries: Sequence[tuple[str, str]]) -> list[str]:
    """The legend in one line above the axes: a stroke of every colour with its meaning."""
    widths = [(len(text) + 2) * LETTER + 14 for text, _ in entries]
    start, parts = (WIDTH - sum(widths)) / 2, []
    for (text, color), width in zip(entries, widths, strict=True):
        stroke = f"stroke:{THEME[color]};stroke-width:2"
        parts.append(f'<path d="M{start:.1f},8h12" style="{stroke}"/>')
        parts.append(_text(start + 15, 11, text, "start"))
        start += width
    return parts


def _text(x: float, y: float, text: str, anchor: str = "middle", move: str = "") -> str:
    style = f"font-size:8px;fill:var(--ink);text-anchor:{anchor}"
    return f'<text x="{x:.1f}" y="{y:.1f}"{move} style="{style}">{escape(text)}</text>'


def _points(x: Array, y: Array) -> str:
    kept = np.isfinite(x) & np.isfinite(y)
    return " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x[kept], y[kept], strict=True))


def _line(mark: Mark, across: Scale, up: Scale) -> str:
    dashes = ";stroke-dasharray:4 2.5" if "linestyle" in mark else ""
    style = f"fill:none;stroke:{THEME[mark['color']]};stroke-width:{mark['width']}{dashes}"
    return f'<polyline points="{_points(across(mark["x"]), up(mark["y"]))}" style="{style}"/>'


def _area(mark: Mark, across: Scale, up: Scale) -> str:
    x = across(mark["x"])
    bottom, top = (np.broadcast_to(up(mark[k]), x.shape) for k in ("y_bottom", "y_top"))
    around = _points(np.r_[x, x[::-1]], np.r_[bottom, top[::-1]])
    style = f"fill:{THEME[mark['color']]};fill-opacity:{mark['alpha']}"
    return f'<polygon points="{around}" style="{style}"/>'


def _bars(mark: Mark, across: Scale, up: Scale) -> str:
    ends = zip(across(mark["x"]), up(mark["y_bottom"]), up(mark["y_top"]), strict=True)
    path = "".join(f"M{x:.1f},{low:.1f}V{high:.1f}" for x, low, high in ends)
    return f'<path d="{path}" style="stroke:{THEME[mark["color"]]};stroke-width:{mark["width"]}"/>'


def _dots(mark: Mark, across: Scale, up: Scale) -> str:
    radius = math.sqrt(mark["size"]) / 2
    each = zip(across(mark["x"]), up(mark["y"]), strict=True)
    dots = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}"/>' for x, y in each)
    return f'<g style="fill:{THEME[mark["facecolor"]]}">{dots}</g>'


DRAWN = {"line": _line, "fill_between_y": _area, "ciliney": _bars, "scatter": _dots}
