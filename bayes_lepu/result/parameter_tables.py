"""Tables of parameters, of annotators, and of rows by annotator."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from bayes_lepu.errors import ModelError
from bayes_lepu.links import Array
from bayes_lepu.models.parameters import Parameters
from bayes_lepu.priors.prior import INTERCEPTS, SLOPES
from bayes_lepu.result import summaries
from bayes_lepu.result.summaries import describe_draws
from bayes_lepu.suggestions import unknown

if TYPE_CHECKING:
    from bayes_lepu.result.fitted_model import FittedModel


def coefficient_table(fit: "FittedModel", ci_prob: float | None) -> pd.DataFrame:
    """Slopes and intercepts of both factors, on the internal and on the original scale."""
    factors, records = _slopes_and_intercepts(fit), []
    for _, *internal in factors:
        for slope, intercept in (internal, fit.data.original_scale(*internal)):
            columns = np.column_stack([slope, intercept]).T
            records += [describe_draws(values, ci_prob) for values in columns]
    levels = {
        "factor": [label for label, _, _ in factors],
        "scale": ["internal", "original"],
        "feature": [*fit.feature_names, "(intercept)"],
    }
    # With levels in this order the index counts as sorted; from_product would sort the names.
    codes = np.indices([len(names) for names in levels.values()]).reshape(len(levels), -1)
    index = pd.MultiIndex(levels=list(levels.values()), codes=codes, names=list(levels))
    return pd.DataFrame(records, index=index)


def _slopes_and_intercepts(fit: "FittedModel") -> list[tuple[str, Array, Array]]:
    """Of t, and of s or of every annotator's s, with the factor's name; draws come first."""
    draws = fit.draws
    factors = [("t", draws.a, draws.b)]
    if not fit.spec.has_selection:
        return factors
    if fit.data.n_annotators == 1:
        return [*factors, ("s", draws.alpha, draws.beta)]
    return factors + [
        (f"s[{name}]", draws.alpha[:, j], draws.beta[:, j])
        for j, name in enumerate(fit.data.annotators)
    ]


def checked_names(
    var_names: str | Sequence[str] | None, known: Iterable[object]
) -> list[str] | None:
    """The names of variables that are asked for; ``"~b"`` is all others, as in ArviZ."""
    if var_names is None:
        return None
    names = [var_names] if isinstance(var_names, str) else list(var_names)
    there = list(dict.fromkeys(map(str, known)))
    if wrong := [name for name in names if name.removeprefix("~") not in there]:
        raise ModelError(unknown("name in var_names", wrong[0], there))
    others = [name for name in there if f"~{name}" not in names]
    return names if len(others) == len(there) else others


def estimate_table(fit: "FittedModel", var_names: str | Sequence[str] | None) -> pd.DataFrame:
    """One line per parameter: on the scale of the fit and on that of the user's columns."""
    rows: dict[str, list[float]] = {}
    several = fit.data.n_annotators > 1
    for factor, values, level in _slopes_and_intercepts(fit):
        who = factor[2:-1] if several and factor != "t" else ""
        slope, intercept = (names[factor != "t"] for names in (SLOPES, INTERCEPTS))
        raw, raw_level = fit.data.original_scale(values, level)
        for name, internal, original in zip(fit.feature_names, values[0], raw[0], strict=True):
            rows[f"{slope}[{who}, {name}]" if who else f"{slope}[{name}]"] = [
                internal,
                original,
            ]
        rows[f"{intercept}[{who}]" if who else intercept] = [level[0], raw_level[0]]
    table = pd.DataFrame.from_dict(rows, orient="index", columns=["internal", "original"])
    table.loc["pi"] = fit.pi_draws[0]
    scalars = {"c": fit.c_by_annotator[0] if several else fit.c_draws[0]}
    draw = fit.draws.take(0)
    scalars |= draw.rates(fit.spec.shape_rates) | draw.nuisance
    for name, value in scalars.items():
        if not several:
            table.loc[name] = value
            continue
        for annotator, own in zip(fit.data.annotators, value, strict=True):
            table.loc[f"{name}[{annotator}]"] = own
    names = [str(i).split("[")[0] for i in table.index]
    wanted = checked_names(var_names, names)
    return table if wanted is None else table[[name in wanted for name in names]]


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
