"""Tables of the parameters: coefficients on both scales, and a point estimate's parameters."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from bayes_lepu.errors import ModelError
from bayes_lepu.links import Array
from bayes_lepu.priors.prior import INTERCEPTS, SLOPES
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
