"""Our scores beside the printed ones, as a picture."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OURS, PRINTED = "#0b6e8a", "#c0561f"


def score_figure(summary: pd.DataFrame, panels: Sequence[str]) -> "Figure":
    """One panel per value of ``panels``, models down the side, mean ± 2 standard errors.

    The last of ``panels`` runs across the page.

    Parameters
    ----------
    summary : DataFrame
        Columns ``panels``, model, mean, se and, where the paper has a number, printed.
    """
    from matplotlib.figure import Figure

    groups = list(summary.groupby(list(panels), sort=False))
    across = min(5, summary[panels[-1]].nunique())
    down = -(-len(groups) // across)
    figure = Figure(figsize=(3.1 * across + 0.6, 2.6 * down + 0.5), layout="constrained")
    axes = figure.subplots(down, across, squeeze=False)
    for axis in axes.flat[len(groups) :]:
        axis.set_axis_off()
    for axis, (key, part) in zip(axes.flat, groups, strict=False):
        place = np.arange(len(part))[::-1]
        spread = 2 * part["se"].fillna(0).to_numpy()
        axis.errorbar(part["mean"], place, xerr=spread, fmt="o", ms=5, color=OURS, label="ours")
        if "printed" in part and part["printed"].notna().any():
            axis.plot(part["printed"], place, "x", ms=7, color=PRINTED, label="printed")
        axis.set_yticks(place, part["model"])
        axis.set_title(", ".join(map(str, key)), fontsize=10)
        axis.grid(axis="x", color="#e4e4e4")
        axis.spines[["top", "right"]].set_visible(False)
        axis.margins(y=0.15)
    handles, labels = axes.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False)
    return figure
