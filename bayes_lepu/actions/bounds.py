r"""What holds without any form: bounds of π from h alone and from what one is ready to assume on s.

h = s t is identified and can be checked against the labels. Row by row,

.. math::
    h \le t \le 1; \qquad
    s \ge s_0 \Rightarrow t \le h / s_0; \qquad
    s \le s_1 \Rightarrow t \ge h / s_1 .

*Bounded selectivity*: the odds of being marked differ between positive rows by a factor of at most
Γ, and the rows most often marked are surely positive. With :math:`s^*` the highest h and
:math:`o^*` its odds, s lies between the probabilities with odds :math:`o^*/\Gamma` and
:math:`\Gamma o^*`. Γ = 1 is a constant s (Elkan and Noto's estimate), and as Γ grows the band opens
to all that h allows.

Every end is a function of draws of h, so it has an interval of its own.
"""

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from bayes_lepu.errors import ModelError
from bayes_lepu.links import Array
from bayes_lepu.result.summaries import tail_probabilities

if TYPE_CHECKING:
    from bayes_lepu.fitted import Fit

MAX_ROWS = 20_000  # of which a mean is good to a hundredth of their spread
DRAWS = 500  # of which an end is good to a percent of its sd
SURE = 0.995  # quantile of h that stands for its highest value: the maximum itself is noise


def bound_class_prior(
    fit: "Fit",
    *,
    s_min: float | None = None,
    s_max: float | None = None,
    gamma: float | None = None,
    ci_prob: float | None = None,
) -> pd.DataFrame:
    """One line per assumption: the ends of π, each with the outer end of its interval."""
    if fit.data.n_annotators > 1:
        raise ModelError(
            "Bounds are for one annotator; several of the same rows tell more: see the verdict."
        )
    some, draws = fit.data.evenly(MAX_ROWS), fit.draws.thin(DRAWS)
    h, weight = draws.h(some.X), some.weight
    if draws.epsilon is not None:  # what the true marks leave of h
        false = draws.epsilon[:, None]
        h = np.maximum(h - false, 0.0) / (1 - false)
    # A value of h itself, which is the same whether rows are weighted or repeated.
    top = np.quantile(h, SURE, axis=1, weights=weight, method="inverted_cdf")[:, None]
    assumed: dict[str, tuple[Array | float, Array | float]] = {"nothing": (0.0, 1.0)}
    if s_min is not None or s_max is not None:
        low, high = _share("s_min", s_min, 0.0), _share("s_max", s_max, 1.0)
        if low >= high:
            raise ModelError(f"s_min = {low:g} and s_max = {high:g}; s_min < s_max is expected.")
        assumed[f"s between {low:g} and {high:g}"] = low, high
    if gamma is not None:
        if not gamma >= 1:
            raise ModelError(f"gamma = {gamma!r}; a factor of at least 1 is expected.")
        words = f"odds of being marked differ by a factor of at most {gamma:g}"
        assumed[words] = _times_odds(top, 1 / gamma), _times_odds(top, gamma)
    tail, lines = tail_probabilities(ci_prob)[0], {}
    for words, ends in assumed.items():
        upper, lower = (_mean_class(h, s, weight) for s in ends)
        lines[words] = {
            "lower": float(np.mean(lower)),
            "upper": float(np.mean(upper)),
            "lowest": np.nan if fit.is_point else float(np.quantile(lower, tail)),
            "highest": np.nan if fit.is_point else float(np.quantile(upper, 1 - tail)),
        }
    return pd.DataFrame.from_dict(lines, orient="index").rename_axis("assumed")


def _mean_class(h: Array, s: Array | float, weight: Array | None) -> Array:
    """Mean over the rows of t = h / s, at most 1 where h allows any: π, draw by draw."""
    t = np.minimum(np.divide(h, s, out=np.ones_like(h), where=np.asarray(s) > 0), 1.0)
    return np.asarray(np.average(t, axis=1, weights=weight))


def _times_odds(probability: Array, factor: float) -> Array:
    """The probability with so many times the odds."""
    scaled = factor * probability
    return scaled / (1 - probability + scaled)


def _share(name: str, value: float | None, default: float) -> float:
    if value is None:
        return default
    if not 0 <= value <= 1:
        raise ModelError(f"{name} = {value!r}; a probability between 0 and 1 is expected.")
    return float(value)
