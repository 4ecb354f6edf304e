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

*Random audits*: of k unlabelled rows picked at random a share m̂ is positive; then
:math:`\hat\pi = P(l=1) + P(l=0)\,\hat m`, whatever t and s look like.

Every end is a function of draws of h, so it has an interval of its own.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd

from bayes_lepu.errors import ModelError
from bayes_lepu.links import Array, RowKind
from bayes_lepu.result import FittedModel
from bayes_lepu.result.summaries import tail_probabilities

MAX_ROWS = 20_000
DRAWS = 500
SURE = 0.995  # quantile of h that stands for its highest value: the maximum itself is noise


def bound_class_prior(
    fit: FittedModel,
    *,
    s_min: float | None = None,
    s_max: float | None = None,
    gamma: float | None = None,
    audits: str | None = None,
    ci_prob: float | None = None,
) -> pd.DataFrame:
    """One line per assumption: the ends of π, each with the outer end of its interval."""
    if fit.data.n_annotators > 1:
        raise ModelError(
            "Bounds are for one annotator; several of the same rows tell more: see the verdict."
        )
    some, draws = fit.data.evenly(MAX_ROWS), fit.draws.thin(DRAWS)
    h, weight = draws.h(some.X), some.row_weights
    if draws.epsilon is not None:  # what the true marks leave of h
        false = draws.epsilon[:, None]
        h = np.maximum(h - false, 0.0) / (1 - false)
    mean = np.average(h, axis=1, weights=weight)
    lines: dict[str, tuple[Array, Array]] = {"nothing": (mean, np.ones(len(h)))}
    if s_min is not None or s_max is not None:
        low, high = _share("s_min", s_min, 0.0), _share("s_max", s_max, 1.0)
        if low >= high:
            raise ModelError(f"s_min = {low:g} and s_max = {high:g}; s_min < s_max is expected.")
        words = f"s between {low:g} and {high:g}"
        lines[words] = band(h, weight, lambda _: low, lambda _: high)
    if gamma is not None:
        if not gamma >= 1:
            raise ModelError(f"gamma = {gamma!r}; a factor of at least 1 is expected.")
        words = f"odds of being marked differ by a factor of at most {gamma:g}"
        ends = (partial(_odds, factor=factor) for factor in (1 / gamma, gamma))
        lines[words] = band(h, weight, *ends)
    told = audits or fit.options.audits or "chosen"
    if told not in ("chosen", "random"):
        raise ModelError(f"audits = {audits!r}; 'chosen' or 'random' is expected.")
    if told == "random" and (found := random_audits(fit)) is not None:
        pi = found.pi(np.random.default_rng([fit.options.random_seed, 9]))
        lines[f"{found.rows} audited rows were picked at random"] = (pi, pi)
    tail = tail_probabilities(ci_prob)[0]
    records = []
    for lower, upper in lines.values():
        point = fit.is_point and lower is not upper
        records.append(
            {
                "lower": float(np.mean(lower)),
                "upper": float(np.mean(upper)),
                "lowest": np.nan if point else float(np.quantile(lower, tail)),
                "highest": np.nan if point else float(np.quantile(upper, 1 - tail)),
            }
        )
    return pd.DataFrame(records, index=pd.Index(lines, name="assumed"))


def band(
    h: Array,
    weight: Array | None,
    smallest: Callable[[Array], Array | float],
    largest: Callable[[Array], Array | float],
) -> tuple[Array, Array]:
    """Both ends of π, draw by draw, for s between functions of the highest h."""
    # A value of h itself, which is the same whether rows are weighted or repeated.
    top = np.quantile(h, SURE, axis=1, weights=weight, method="inverted_cdf")[:, None]
    low, high = np.asarray(smallest(top)), np.asarray(largest(top))
    with np.errstate(divide="ignore", invalid="ignore"):
        lower = np.where(high > 0, np.minimum(h / high, 1.0), 1.0)
        upper = np.where(low > 0, np.minimum(h / low, 1.0), 1.0)
    lower, upper = (np.average(end, axis=1, weights=weight) for end in (lower, upper))
    return lower, upper


@dataclass(frozen=True)
class RandomAudits:
    """What rows audited at random say of π, whatever t and s look like.

    Attributes
    ----------
    rows : int
        How many.
    unmarked : float
        Share of the population that is not marked.
    missed, negative : float
        Positive and negative ones among the audited rows that are not marked.
    true, false : float
        The same of those that are, where marks may be false; else none.
    """

    rows: int
    unmarked: float
    missed: float
    negative: float
    true: float = 0.0
    false: float = 0.0

    @property
    def error(self) -> float:
        """Standard error of π."""
        parts = (
            (self.unmarked, self.missed, self.negative),
            (1 - self.unmarked, self.true, self.false),
        )
        squares = 0.0
        for share, one, other in parts:
            if k := one + other:
                m = (one + 1) / (k + 2)
                squares += share**2 * m * (1 - m) / k
        return float(np.sqrt(squares))

    def pi(self, rng: np.random.Generator, count: int = 4000) -> Array:
        """Draws of π under Jeffreys' prior of the shares."""
        m = rng.beta(self.missed + 0.5, self.negative + 0.5, count)
        marks = np.ones(count)
        if self.true + self.false:
            marks = rng.beta(self.true + 0.5, self.false + 0.5, count)
        return (1 - self.unmarked) * marks + self.unmarked * m


def random_audits(fit: FittedModel) -> RandomAudits | None:
    """The audited rows of a fit taken as random ones; None where they leave π open."""
    data, weights = fit.data, fit.data.kind_weights
    missed, negative = weights[RowKind.MISSED], weights[RowKind.NEGATIVE]
    known = ~np.isnan(data.y)
    marks = known & (data.l == 1) & fit.spec.false_marks
    if not missed + negative or (fit.spec.false_marks and not marks.any()):
        return None
    unmarked = float(np.average(data.l == 0, weights=data.row_weights))
    true, false = (float((marks & (data.y == c)) @ data.each_weight) for c in (1, 0))
    rows = int((known & (data.l == 0)).sum() + marks.sum())
    return RandomAudits(rows, unmarked, float(missed), float(negative), true, false)


def _odds(probability: Array, factor: float) -> Array:
    """The probability with so many times the odds."""
    scaled = factor * probability
    return scaled / (1 - probability + scaled)


def _share(name: str, value: float | None, default: float) -> float:
    if value is None:
        return default
    if not 0 <= value <= 1:
        raise ModelError(f"{name} = {value!r}; a probability between 0 and 1 is expected.")
    return float(value)
