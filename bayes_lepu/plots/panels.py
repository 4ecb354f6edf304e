"""Panels of a picture, and their few drawing functions, on any backend of ArviZ."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np

from bayes_lepu.links import Array
from bayes_lepu.result.summaries import tail_probabilities

if TYPE_CHECKING:
    from arviz_plots import PlotCollection

# One colour per quantity, the same in every picture and in the report.
CLASS = "#2b6cb0"  # t, the class
PROPENSITY = "#c05621"  # s, the annotator
LABEL = "#2f855a"  # h and the labels themselves
PRIOR = "#8a94a6"  # the prior
GUIDE = "#7a869a"  # diagonals and reference lines

PANEL_SIZE = (3.7, 2.8)  # inches
MAX_ROWS = 20_000  # for rates and ranks: enough for any line on a screen
DRAWS = 200  # posterior draws of a picture: its bands are exact to the width of a line


@dataclass(frozen=True, eq=False)
class Panel:
    """The axes of one panel (or the backend's equivalent), and the backend's drawing functions."""

    target: Any
    draw: Any
    backend: str

    def band(self, x: Array, curve: Array, color: str, *, dashed: bool = False) -> None:
        """A line with its interval: ``curve`` holds mean, lower and upper."""
        mean, lower, upper = curve
        self.draw.fill_between_y(x, lower, upper, self.target, color=color, alpha=0.22)
        self.line(x, mean, color, dashed=dashed)

    def line(
        self, x: Array, y: Array, color: str, *, dashed: bool = False, width: float = 1.8
    ) -> None:
        """A line."""
        options = {"linestyle": str(self.draw.get_default_aes("linestyle", 2)[1])} if dashed else {}
        self.draw.line(x, y, self.target, color=color, width=width, **options)

    def dots(self, x: Array, y: Array, color: str, *, size: float = 14) -> None:
        """Points."""
        self.draw.scatter(x, y, self.target, color=color, size=size)

    def bars(self, x: Array, lower: Array, upper: Array, color: str, *, width: float = 1.2) -> None:
        """Vertical intervals."""
        self.draw.ciliney(x, lower, upper, self.target, color=color, width=width)

    def ticks(self, x: Array, names: Sequence[str]) -> None:
        """Names below the axis in place of numbers."""
        self.draw.xticks(x, [self.plain(name) for name in names], self.target)

    def axes(
        self,
        x: str,
        y: str,
        *,
        across: tuple[float, float] | None = None,
        up: tuple[float, float] | None = None,
    ) -> None:
        """Labels of the axes, and their ends where they are given."""
        self.draw.xlabel(self.plain(x), self.target)
        self.draw.ylabel(self.plain(y), self.target)
        if across is not None:
            self.draw.xlim(across, self.target)
        if up is not None:
            self.draw.ylim(up, self.target)

    def plain(self, text: str) -> str:
        """Text with escaped dollars, which matplotlib would read as mathematics."""
        return text.replace("$", r"\$") if self.backend == "matplotlib" else text


def new_panels(
    names: Sequence[str], *, dim: str = "panel", backend: str | None = None
) -> tuple["PlotCollection", list[Panel]]:
    """A plot collection with a panel per name, and the panels."""
    import xarray as xr
    from arviz_plots import PlotCollection

    columns = min(3, len(names))
    data = xr.Dataset({"value": (dim, np.zeros(len(names)))}, coords={dim: list(names)})
    figure: dict[str, Any] = {}
    if backend in (None, "matplotlib"):
        rows = -(-len(names) // columns)
        figure["figsize"] = (PANEL_SIZE[0] * columns, PANEL_SIZE[1] * rows)
        figure["layout"] = "constrained"
    made = PlotCollection.wrap(
        data, cols=[dim], col_wrap=columns, backend=backend, figure_kwargs=figure
    )
    draw = import_module(f"arviz_plots.backend.{made.backend}")
    return made, [Panel(axes, draw, made.backend) for axes in made.viz["plot"].to_numpy().ravel()]


def legend(
    made: "PlotCollection", panels: Sequence[Panel], entries: Sequence[tuple[str, str]]
) -> None:
    """Names of the colours above the panels."""
    first = panels[0]
    if first.backend == "none":  # which has no legends
        first.target.append({"function": "legend", "entries": entries})
        return
    place: dict[str, Any] = {}
    if first.backend == "matplotlib":
        place = {"loc": "outside upper center", "ncols": len(entries), "frameon": False}
    colors = [{"color": color} for _, color in entries]
    first.draw.legend(made, colors, [text for text, _ in entries], **place)


def short(name: str, most: int = 32) -> str:
    """A name cut to what fits below a panel."""
    return name if len(name) <= most else name[: most - 1] + "…"


def some_rows(n: int, count: int) -> Any:
    """Positions of at most ``count`` rows, evenly spaced."""
    return np.linspace(0, n - 1, min(n, count)).round().astype(int)


def mean_and_interval(values: Array) -> Array:
    """Mean, lower and upper over the first axis, shape ``(3, ...)``."""
    return np.stack([values.mean(axis=0), *np.quantile(values, tail_probabilities(), axis=0)])


def share_range(values: Array) -> tuple[float, float]:
    """From 0 to somewhat beyond the largest share, or to 1 where that is not far.

    A class of one per cent needs another axis than a half.
    """
    top = float(np.max(values)) if len(values) else 1.0
    return (0.0, 1.0) if not np.isfinite(top) or top > 0.4 else (0.0, max(1.35 * top, 1e-6))


def enlarged(top: float) -> int:
    """Factor by which a rare class is enlarged beside the propensity: 1, 5, 10, 50, ..."""
    times, steps = 1, cycle((5, 2))
    while 0 < times * top < 0.15:  # a line on the floor of an axis from 0 to 1
        times *= next(steps)
    return times


def height(values: Array) -> tuple[float, float]:
    """From 0 to a little above the largest probability."""
    return 0.0, min(1.02, 1.15 * max(float(np.max(values, initial=0.0)), 1e-6))
