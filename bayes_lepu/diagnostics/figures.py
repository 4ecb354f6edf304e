"""Figures that belong to a verdict without deciding it: one table, no thresholds."""

from collections.abc import Callable

import numpy as np
import pandas as pd

from bayes_lepu.diagnostics.subject import Subject
from bayes_lepu.likelihood.factoring import solve
from bayes_lepu.links import Array
from bayes_lepu.models.parameters import Parameters

WIDTH_ROWS, WIDTH_DRAWS = 1000, 2000  # a mean width over more of them is the same to two digits


def table_of_figures(subject: Subject, label_rates: pd.DataFrame) -> pd.DataFrame:
    """Every figure that this fit has: index figure, columns value and meaning."""
    rows: list[tuple[str, float, str]] = []
    if not subject.several:
        sd_t, sd_s, cosine = norms_and_cosine(subject)
        rows.append(("sd of t's predictor", sd_t, "below 3, the level of t is hard to identify"))
        if subject.fit.spec.has_selection:
            rows.append(("sd of s's predictor", sd_s, "the same of the propensity"))
            meaning = "near 1 or -1, t and s react to the same columns"
            rows.append(("correlation of the predictors", cosine, meaning))
    rows.append(
        (
            "largest z of the label rates",
            float(label_rates["z"].abs().max()),
            "bins of h: standard errors between the observed and the fitted label rate",
        )
    )
    if not subject.fit.is_point:
        t, h = mean_width(subject, Parameters.t), mean_width(subject, Parameters.h)
        meaning = "mean width of the 95 % intervals of {} over the rows"
        rows += [(f"width of {name}", width, meaning.format(name)) for name, width in
                 (("t", t), ("h", h))]  # fmt: skip
    if subject.small and not subject.several:
        meaning = "share of the precision of π that comes from the prior, not from the data"
        rows.append(("prior share of pi", prior_share(subject), meaning))
    return pd.DataFrame(rows, columns=["figure", "value", "meaning"]).set_index("figure")


def norms_and_cosine(subject: Subject) -> tuple[float, float, float]:
    """The sd of both linear predictors over the data, and their correlation."""
    X, point = subject.data.X, subject.point
    both = np.cov(point.tau(X), point.omega(X), ddof=0, aweights=subject.data.row_weights)
    sd_t, sd_s = np.sqrt(np.diag(both)).tolist()
    if min(sd_t, sd_s) < 1e-12:
        return sd_t, sd_s, 0.0
    return sd_t, sd_s, float(both[0, 1]) / (sd_t * sd_s)


def mean_width(subject: Subject, function: Callable[[Parameters, Array], Array]) -> float:
    """Mean width of the 95 % intervals of a function of x over some rows."""
    some = subject.pivoted.take_flat().thin(WIDTH_DRAWS)
    values = function(some, subject.data.evenly(WIDTH_ROWS).X)
    low, high = np.quantile(values, [0.025, 0.975], axis=0)
    return float(np.mean(high - low))


def prior_share(subject: Subject) -> float:
    """Share of π's precision that comes from the prior, by the delta method."""
    local = subject.local
    v = solve(local.data + local.prior, local.pi_gradient)
    return float(v @ local.prior @ v) / max(float(local.pi_gradient @ v), 1e-300)
