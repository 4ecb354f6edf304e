r"""Which unlabelled rows to review, and how many of them are positive.

.. math::
    N_R = \sum_{i \in R} y_i, \qquad
    \mathrm{precision} = N_R / |R|, \qquad \mathrm{recall} = N_R / N_{\mathrm{unlabelled}}

The class of every row is drawn for every draw of the posterior (`missed`). Rows are ordered by the
posterior mean of P(y=1 | x, l=0). This order is the best for both rules: a budget, or costs (review
where that mean exceeds fp / (fp + fn)). Where the labels identify only P(l=1 | x) (level 4), rows
are ordered by P(l=1 | x).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayes_lepu.actions.missed import (
    UNNAMED_LEVEL,
    Alternatives,
    around,
    count_missed,
    count_positives,
    describe,
    missed_range,
    open_rows,
    read,
    read_open,
    review_score,
    stream,
    with_range,
)
from bayes_lepu.defaults import ORDER_ALONE, orders_alone
from bayes_lepu.errors import ModelError
from bayes_lepu.links import Array
from bayes_lepu.result.numbers_in_words import say_range, say_share, with_interval
from bayes_lepu.result.summaries import interval_level

if TYPE_CHECKING:
    from bayes_lepu.fitted import Fit

type Rule = tuple[str, Callable[[Array], int]]  # text; number of rows, from ranked probabilities


@dataclass(frozen=True, eq=False, repr=False)
class Decision:
    """Rows to review, and what to expect of them.

    Attributes
    ----------
    rows : DataFrame
        The chosen rows, most probable first, by their labels in X: ``missed`` = P(y=1 | x, l=0)
        with ``lower`` and ``upper``. Where the data do not show which factor is the class,
        ``swapped`` is the same probability with t and s swapped.
    positions : array of int
        The same rows by their position in the table.
    outcome : DataFrame
        ``positives``, ``precision`` and ``recall`` of these rows and the ``total`` of positives
        among all candidates, one block per orientation. ``low`` and ``high`` (for rows of the fit)
        are the range over the alternative models with the same fit; ``lower`` and ``upper`` are the
        interval if this model is exact. With more than 100 sparse columns the ``total`` alone.
    draws : mapping of str to DataFrame
        The draws behind ``outcome``, one table per orientation.
    rule : str
        How the rows were chosen.
    candidates : int
        Number of rows from which they were chosen.
    ci_prob : float
        Probability of the intervals.
    """

    rows: pd.DataFrame
    positions: NDArray[np.intp]
    outcome: pd.DataFrame
    draws: Mapping[str, pd.DataFrame]
    rule: str
    candidates: int
    ci_prob: float

    def __repr__(self) -> str:
        lines = [f"{len(self.rows)} of {self.candidates} unlabelled rows ({self.rule})"]
        if "low" in self.outcome:
            own = self.outcome.loc[next(iter(self.draws))]
            found = _in_words(own, say_range)
            lines.append(f"  over all models that fit the labels equally well: {found}")
        for reading in self.draws:
            found = _in_words(self.outcome.loc[reading], with_interval)
            lines.append(f"  {reading}, if this model is exact: {found}")
        return "\n".join(lines)


def _in_words(table: pd.DataFrame, say: Callable[..., str]) -> str:
    if "positives" not in table.index:
        return ORDER_ALONE
    precision, recall = (say(table.loc[q], say_share) for q in ("precision", "recall"))
    return f"{say(table.loc['positives'])} positives, precision {precision}, recall {recall}"


def rule_of(budget: int | None, cost: tuple[float, float] | None) -> Rule:
    """The rule for a budget, or for the costs of a false alarm and of an overlooked positive."""
    if (budget is None) == (cost is None):
        raise ModelError(
            f"decide got {'no rule' if cost is None else 'budget and cost'}; one of budget= (how "
            "many rows can be reviewed) or cost=(false alarm, overlooked positive) is expected."
        )
    if budget is not None:
        if isinstance(budget, bool) or not isinstance(budget, int | np.integer) or budget < 1:
            raise ModelError(f"budget = {budget!r}; a whole number of at least 1 is expected.")
        return f"budget {budget}", lambda ranked: min(int(budget), len(ranked))
    if cost is None or np.shape(cost) != (2,) or not all(np.isfinite(c) and c > 0 for c in cost):
        raise ModelError(
            f"cost = {cost!r}; two positive numbers (cost of a false alarm, cost of an overlooked "
            "positive) are expected."
        )
    least = cost[0] / sum(cost)
    words = f"probability above {least:.3g}, by the costs"
    return words, lambda ranked: int(np.sum(ranked > least))


def decide(
    fit: "Fit",
    X: object,
    rule: Rule,
    *,
    ci_prob: float | None = None,
    identified: int,
    known: Alternatives,
) -> Decision:
    """Choose rows by a rule, and predict their classes (see `Fit.decide`).

    ``identified`` is the level of the verdict.
    """
    level, (words, how_many) = interval_level(ci_prob), rule
    both = identified >= UNNAMED_LEVEL
    if X is None:
        index = fit.data.index
        among, readings = read_open(fit, both=both)
        values = fit.data.X[among]
    else:
        values, index = fit.data.transform(X)
        among, readings = np.arange(values.shape[0]), read(fit, values, both=both)
    order = np.argsort(-review_score(fit, readings[0], values, identified), kind="stable")
    count = how_many(readings[0].mean[order])
    draws, outcome, rng, chosen = {}, {}, stream(fit), order[:count]
    rows = readings[0].summary(chosen, index[among[chosen]], level)
    rows = rows.rename(columns={"mean": "missed"})
    for reading in readings:
        sums = count_positives(reading, order, (0, count, len(order)), rng)
        expected, drawn = (_quantities(counts, count) for counts in sums)
        shown = ["total"] if orders_alone(values, fit.data) else expected
        lines = {q: describe(expected[q], drawn[q], level) for q in shown}
        outcome[reading.name] = pd.DataFrame.from_dict(lines, orient="index")
        draws[reading.name] = pd.DataFrame(drawn)
        if reading is not readings[0]:
            rows[reading.name] = reading.summary(chosen, rows.index, level)["mean"]
    table = pd.concat(outcome, names=["reading", "quantity"])
    if X is None:
        if fit.data.in_memory and not fit.data.weighted:  # the number that `missed` gives
            for name, line in count_missed(fit, ci_prob=level, both=both).iterrows():
                table.loc[(name, "total"), line.index] = line
        table = _with_ranges(fit, table, count, known) if "positives" in lines else table
    return Decision(rows, among[chosen], table, draws, words, len(among), level)


def _with_ranges(
    fit: "Fit", outcome: pd.DataFrame, count: int, known: Alternatives
) -> pd.DataFrame:
    """The outcome with the ranges over the alternative models with the same fit first.

    Recall is lowest with the fewest positives among the rows and the highest total, and vice versa.
    """
    own = {q: outcome.xs(q, level="quantity") for q in ("positives", "total")}
    total = missed_range(fit, known.pi, own["total"])
    first = known.of_first(count, len(open_rows(fit)))
    if total is None or first is None:
        return outcome
    few, many = around(first, own["positives"])
    ends = {
        "positives": (few, many),
        "precision": (few / count, many / count),
        "recall": (few / max(total[1], few, 1e-12), min(many / max(total[0], 1e-12), 1.0)),
        "total": total,
    }
    found = with_range(outcome, (np.nan, np.nan))
    found[["low", "high"]] = [ends[q] for q in outcome.index.get_level_values("quantity")]
    return found


def _quantities(counts: Array, rows: int) -> dict[str, Array]:
    """Positives, precision, recall and total, from the counts in the chosen and the other rows."""
    found, total = counts[:, 0], counts.sum(axis=1)
    return {
        "positives": found,
        "precision": found / rows if rows else np.full(len(found), np.nan),
        "recall": np.divide(found, total, out=np.zeros(len(found)), where=total > 0),
        "total": total,
    }
