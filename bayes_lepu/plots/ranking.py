"""What looking at the most probable unlabelled rows brings: gain, and precision against recall."""

from typing import TYPE_CHECKING

from bayes_lepu.plots.panels import CLASS, GUIDE, Panels
from bayes_lepu.result import FittedModel
from bayes_lepu.result.summaries import CI_PROB
from bayes_lepu.settling.curves import ranking_curves
from bayes_lepu.settling.readings import AS_NAMED, EXCHANGED

if TYPE_CHECKING:
    import pandas as pd
    from arviz_plots import PlotCollection

COLORS = {AS_NAMED: CLASS, EXCHANGED: GUIDE}
NAMES = {AS_NAMED: "as named", EXCHANGED: "factors exchanged"}


def plot_gain(
    fit: FittedModel,
    *,
    exchanged: bool = False,
    ci_prob: float = CI_PROB,
    plot_collection: "PlotCollection | None" = None,
    backend: str | None = None,
) -> "PlotCollection":
    """Positives found by looking at the first k unlabelled rows, with its band.

    Parameters
    ----------
    fit : Fit
    exchanged : bool
        Draw also what the same rows hold if the factors are exchanged, in grey.
    ci_prob : float
        Probability of the equal-tailed band.

    Returns
    -------
    PlotCollection
        One panel.
    """
    return _draw(
        fit,
        ("rows", "found"),
        ("unlabelled rows looked at, most probable first", "positives found"),
        exchanged=exchanged,
        ci_prob=ci_prob,
        plot_collection=plot_collection,
        backend=backend,
    )


def plot_precision_recall(
    fit: FittedModel,
    *,
    exchanged: bool = False,
    ci_prob: float = CI_PROB,
    plot_collection: "PlotCollection | None" = None,
    backend: str | None = None,
) -> "PlotCollection":
    """Precision against recall along the ranking of the unlabelled rows, with its band.

    Parameters
    ----------
    fit : Fit
    exchanged : bool
        Draw also what the same rows hold if the factors are exchanged, in grey.
    ci_prob : float
        Probability of the equal-tailed band.

    Returns
    -------
    PlotCollection
        One panel.
    """
    return _draw(
        fit,
        ("recall", "precision"),
        ("recall: share of the missed positives found", "precision"),
        exchanged=exchanged,
        ci_prob=ci_prob,
        plot_collection=plot_collection,
        backend=backend,
    )


def _draw(
    fit: FittedModel,
    axes: tuple[str, str],
    labels: tuple[str, str],
    *,
    exchanged: bool,
    ci_prob: float,
    plot_collection: "PlotCollection | None",
    backend: str | None,
) -> "PlotCollection":
    panels = Panels.of([axes[1]], plot_collection=plot_collection, backend=backend)
    curves = ranking_curves(fit, ci_prob=ci_prob, both=exchanged)
    shown = [str(name) for name in curves["reading"].unique()]
    for name in reversed(shown):  # the reading as named on top
        part: pd.DataFrame = curves[curves["reading"] == name]
        y = part[[axes[1], f"{axes[1]}_lower", f"{axes[1]}_upper"]].to_numpy().T
        panels.band(0, part[axes[0]].to_numpy(), y, COLORS[name])
    top = 1.02 if axes[1] == "precision" else 1.05 * max(float(curves["found_upper"].max()), 1.0)
    right = 1.0 if axes[0] == "recall" else float(curves["rows"].max())
    panels.limits(0, x=(0.0, right), y=(0.0, top))
    panels.labels(0, x=labels[0], y=labels[1])
    if plot_collection is None and len(shown) > 1:
        panels.legend([(NAMES[name], COLORS[name]) for name in shown])
    return panels.collection
