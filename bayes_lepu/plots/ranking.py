"""What looking at the most probable unlabelled rows brings: gain, and precision against recall."""

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from bayes_lepu.actions.missed import (
    AS_NAMED,
    EXCHANGED,
    Reading,
    count_positives,
    kept,
    read_open,
    stream,
)
from bayes_lepu.errors import ModelError
from bayes_lepu.links import Array
from bayes_lepu.plots.panels import CLASS, GUIDE, Panels, height
from bayes_lepu.result.summaries import tail_probabilities

if TYPE_CHECKING:
    from arviz_plots import PlotCollection

    from bayes_lepu.fitted import Fit

SETTLED = 20
STEPS = 100
COLORS = {AS_NAMED: CLASS, EXCHANGED: GUIDE}
NAMES = {AS_NAMED: "as named", EXCHANGED: "t and s swapped"}


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
    fit: "Fit",
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


@kept
def ranking_curves(fit: "Fit", *, ci_prob: float | None = None, both: bool) -> pd.DataFrame:
    """What is found by looking at the first k unlabelled rows, for about 100 values of k.

    Returns
    -------
    DataFrame
        Per reading and k (``rows``): ``found``, ``precision`` and ``recall``, each with ``_lower``
        and ``_upper``. Rows are ranked by the reading as named.
    """
    among, readings = read_open(fit, both=both)
    rng = stream(fit)
    order = np.argsort(-readings[0].mean, kind="stable")
    edges = _edges(len(among))
    parts = [_along(reading, order, edges, ci_prob, rng) for reading in readings]
    return pd.concat(parts, ignore_index=True)


def _edges(n: int) -> list[int]:
    """Cuts of the ranking, closer together at its top, where decisions are made."""
    steps = np.unique(np.round(n * np.linspace(0, 1, STEPS + 1) ** 2).astype(int))
    return [int(k) for k in steps]


def _along(
    reading: Reading,
    order: "np.ndarray[tuple[int], np.dtype[np.intp]]",
    edges: list[int],
    ci_prob: float | None,
    rng: np.random.Generator,
) -> pd.DataFrame:
    expected, drawn = (
        np.cumsum(counts, axis=1) for counts in count_positives(reading, order, edges, rng)
    )
    k = np.array(edges[1:])
    table: dict[str, object] = {"reading": reading.name, "rows": k}

    def add(name: str, of: "tuple[Array, Array]") -> None:
        table[name] = of[0].mean(axis=0)
        lower, upper = np.quantile(of[1], tail_probabilities(ci_prob), axis=0)
        table[f"{name}_lower"], table[f"{name}_upper"] = lower, upper

    add("found", (expected, drawn))
    add("precision", (expected / k, drawn / k))
    add("recall", tuple(c / np.maximum(c[:, -1:], 1e-300) for c in (expected, drawn)))  # type: ignore[arg-type]
    return pd.DataFrame(table)
