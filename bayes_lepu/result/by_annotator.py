"""Tables with one line or one part per annotator."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from bayes_lepu.links import Array
from bayes_lepu.models.parameters import Parameters
from bayes_lepu.result import summaries

if TYPE_CHECKING:
    from bayes_lepu.result.fitted_model import FittedModel

DISTINCT = 0.95  # probability of the interval that decides which columns tell an annotator apart


def summary_by_annotator(
    fit: "FittedModel",
    function: Callable[[Parameters, Array], Array],
    X: Array,
    index: pd.Index,
    ci_prob: float | None,
) -> pd.DataFrame:
    """Posterior summary of f(θ, x) ``(..., J, n)``, one line per row and annotator."""

    def of(j: int) -> pd.DataFrame:
        return summaries.summary_by_row(
            fit.draws, lambda draws, rows: function(draws, rows)[..., j, :], X, index, ci_prob
        )

    parts = {name: of(j) for j, name in enumerate(fit.data.annotators)}
    table = pd.concat(parts, names=["annotator"])
    order = np.arange(len(table)).reshape(len(parts), -1).T.ravel()
    return table.swaplevel().iloc[order]


def annotator_table(fit: "FittedModel", ci_prob: float | None) -> pd.DataFrame:
    """One line per annotator: rows seen and marked, label frequency, what sets them apart."""
    data = fit.data
    marked = data.marked
    table = pd.DataFrame(
        {
            "seen": data.shown.sum(axis=0),
            "labelled": marked.sum(axis=0),
            "shared": (marked & (marked.sum(axis=1) > 1)[:, None]).sum(axis=0),
        },
        index=pd.Index(data.annotators, name="annotator"),
    )
    figures = [summaries.describe_draws(column, ci_prob) for column in fit.c_by_annotator.T]
    for name in ("mean", "lower", "upper"):
        if name in figures[0]:
            table[name] = [figure[name] for figure in figures]
    if data.n_annotators > 1 and not fit.is_point:
        table["differs_in"] = [_differences(fit, j) for j in range(len(table))]
    return table


def _differences(fit: "FittedModel", j: int) -> str:
    """Columns in which annotator j stands apart, with the sign of the difference."""
    gap = fit.draws.alpha[:, j] - fit.draws.alpha.mean(axis=1)
    lower, upper = np.quantile(gap, summaries.tail_probabilities(DISTINCT), axis=0)
    apart = [
        (name, low > 0)
        for name, mine, low, high in zip(
            fit.feature_names, fit.data.selection_mask, lower, upper, strict=True
        )
        if mine and low * high > 0
    ]
    return ", ".join(f"{name} {'+' if more else '-'}" for name, more in apart)
