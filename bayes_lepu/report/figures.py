"""Pictures as SVG inside the page: real text, and colours that follow the page's theme."""

import io
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from bayes_lepu.plots import panels

if TYPE_CHECKING:
    from arviz_plots import PlotCollection

INK = "#1b2430"
THEME = {
    INK: "var(--ink)",
    panels.CLASS: "var(--class)",
    panels.PROPENSITY: "var(--propensity)",
    panels.LABEL: "var(--label)",
    panels.PRIOR: "var(--prior)",
    panels.GUIDE: "var(--guide)",
}
STYLE = {
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 8,
    "axes.labelsize": 8,
    "legend.fontsize": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "figure.dpi": 100,
}


@dataclass(frozen=True)
class Picture:
    """A figure with what it shows and how to read it.

    Attributes
    ----------
    title : str
    svg : Markup
    reading : str
        One line: what to see in it.
    """

    title: str
    svg: Markup
    reading: str


class Album:
    """Draws pictures one after the other and numbers them."""

    def __init__(self) -> None:
        self._count = 0

    def picture(self, title: str, reading: str, plot: "Callable[[], PlotCollection]") -> Picture:
        """Draw one picture."""
        import matplotlib.pyplot as plt
        from matplotlib import rc_context

        self._count += 1
        key = f"f{self._count}"
        with rc_context({**STYLE, "svg.hashsalt": key}), plt.ioff(), warnings.catch_warnings():
            # A name in a script the plotting font lacks is still shown by the reader's browser.
            warnings.filterwarnings("ignore", message="Glyph .* missing from font")
            collection = plot()
            figure = collection.viz["figure"].item()
            buffer = io.StringIO()
            figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
            plt.close(figure)
        return Picture(title, themed(buffer.getvalue(), key, title), reading)


def themed(svg: str, key: str, title: str) -> Markup:
    """The <svg> element alone, with unique ids and the colours of the page's theme."""
    body = svg[svg.index("<svg") :]
    body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    body = re.sub(r'\bid="', f'id="{key}-', body)
    body = re.sub(r"url\(#", f"url(#{key}-", body)
    body = re.sub(r'xlink:href="#', f'href="#{key}-', body)
    for color, variable in THEME.items():
        body = body.replace(color, variable)
    view = re.search(r'viewBox="[^"]*"', body)
    if view is None:
        raise ValueError("the picture has no viewBox")
    opening = f'<svg {view.group()} role="img" aria-label="{escape(title)}">'
    return Markup(opening + body[body.index(">") + 1 :])
