"""The row likelihood: in NumPy (`formula`, `information`) and compiled (`tiles`)."""

from bayes_lepu.likelihood.arguments import (
    CERTAIN_LINK,
    NOT_SHOWN,
    UNKNOWN,
    Layout,
    Links,
    Point,
    Rows,
    layout,
    make_links,
    make_point,
    make_rows,
)
from bayes_lepu.likelihood.information import observed_information

__all__ = [
    "CERTAIN_LINK",
    "NOT_SHOWN",
    "UNKNOWN",
    "Layout",
    "Links",
    "Point",
    "Rows",
    "layout",
    "make_links",
    "make_point",
    "make_rows",
    "observed_information",
]
