"""What looking at the most probable unlabelled rows brings: gain, and precision against recall."""

from typing import TYPE_CHECKING

import numpy as np

from bayes_lepu.errors import ModelError
from bayes_lepu.plots.panels import CLASS, GUIDE, Panels, height
from bayes_lepu.result import FittedModel
from bayes_lepu.settling.curves import ranking_curves
from bayes_lepu.settling.readings import AS_NAMED, EXCHANGED

if TYPE_CHECKING:
    import pandas as pd
    from arviz_plots import PlotCollection

SETTLED = 20
COLORS = {AS_NAMED: CLASS, EXCHANGED: GUIDE}
NAMES = {AS_NAMED: "as named", EXCHANGED: "factors exchanged"}


# of each kind: the columns on the two axes, and their names for people
KINDS = {
    "gain": ("rows", "found", "unlabelled rows looked at, most probable first", "positives found"),
    "precision": (
        "recall",
        "precision",
        "recall: share of the missed positives found",
        "precision",
    ),
}


def plot_ranking(
    fit: FittedModel,
    *,
    kind: str = "gain",
    exchanged: bool = False,
    ci_prob: float | None = None,
    plot_collection: "PlotCollection | None" = None,
    backend: str | None = None,
) -> "PlotCollection":
    """What the ranking of the unlabelled rows is worth, with its band.

    Parameters
    ----------
    fit : Fit
    kind : {"gain", "precision"}
        Positives found in the first k rows, or precision against recall.
    exchanged : bool
        Draw also what the same rows hold if the factors are exchanged, in grey.
    ci_prob : float, optional
        Probability of the equal-tailed band; ArviZ's ``stats.ci_prob`` by default.

    Returns
    -------
    PlotCollection
        One panel.
    """
    if kind not in KINDS:
        raise ModelError(f"kind is {kind!r}; 'gain' or 'precision' is expected.")
    across, up, x_label, y_label = KINDS[kind]
    panels = Panels.of([up], plot_collection=plot_collection, backend=backend)
    curves = ranking_curves(fit, ci_prob=ci_prob, both=exchanged)
    shown = [str(name) for name in curves["reading"].unique()]
    for name in reversed(shown):  # the reading as named on top
        part: pd.DataFrame = curves[curves["reading"] == name]
        y = part[[up, f"{up}_lower", f"{up}_upper"]].to_numpy().T
        panels.band(0, part[across].to_numpy(), y, COLORS[name])
    found = max(float(curves["found_upper"].max()), 1.0)
    right, top = float(curves["rows"].max()), 1.05 * found
    if kind == "precision":
        # The first rows of a list are a coin toss each: the band of the first few sets no axis.
        settled = curves.loc[curves["rows"] >= SETTLED, ["precision_upper", "precision"]]
        right, top = 1.0, height(np.r_[settled.to_numpy().ravel(), curves["precision"]])[1]
    panels.limits(0, x=(0.0, right), y=(0.0, top))
    panels.labels(0, x=x_label, y=y_label)
    if len(shown) > 1:
        panels.legend([(NAMES[name], COLORS[name]) for name in shown])
    return panels.collection
