"""Precision, recall and gain along the ranking of the unlabelled rows, with bands."""

import numpy as np
import pandas as pd

from bayes_lepu.links import Array
from bayes_lepu.result import FittedModel
from bayes_lepu.result.summaries import tail_probabilities
from bayes_lepu.settling.counting import count_positives, stream
from bayes_lepu.settling.readings import Reading, kept, read_open

STEPS = 100


@kept
def ranking_curves(fit: FittedModel, *, ci_prob: float | None = None, both: bool) -> pd.DataFrame:
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
