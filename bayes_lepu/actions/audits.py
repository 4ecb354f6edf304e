r"""Which unlabelled rows to audit, and how many: a plan that knows its design.

* ``find``: the rows that are most probably positive.
* ``total``: rows at random, uncertain ones more often. The share of positives has least variance
  where rows are drawn with probabilities that follow the sd of y - p; half of every probability is
  the same for all rows, in case the model is wrong about its own errors:

  .. math:: r_i \propto \tfrac12 + \tfrac12 \sqrt{p_i (1-p_i)} \Big/ \overline{\sqrt{p (1-p)}} .

* ``orientation``: the rows whose class would change most which factor is taken for the class. For
  draws that hold both orientations in their posterior proportion, z = 1 on the swapped side, these
  are the largest :math:`\mathrm{cov}(z, m_i)^2 / (\mathrm{Var}\,m_i + E[m_i (1-m_i)])`, with
  :math:`m_i = P(y=1 \mid x_i, l_i=0)`.

Rows chosen by a model cannot check that model: a part is always drawn at random, and the plan
records with which probabilities, for `prediction_powered`.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayes_lepu.actions.counting import stream
from bayes_lepu.actions.prediction_powered import Round, Stratum, design_of, estimate_positives
from bayes_lepu.actions.readings import (
    MAX_DRAWS,
    exchanged_draws,
    open_rows,
    positive_given_labels,
)
from bayes_lepu.data.pu_data import PUData
from bayes_lepu.data.weights import evenly_spaced
from bayes_lepu.errors import DataError, FileFormatError, ModelError
from bayes_lepu.links import Array
from bayes_lepu.model.parameters import Parameters
from bayes_lepu.result.summaries import interval_level, mean_by_row, row_blocks
from bayes_lepu.suggestions import unknown
from bayes_lepu.verdict.evidence import evidence_of

if TYPE_CHECKING:
    from bayes_lepu.fitted import Fit

# Share of the rows drawn at random, by goal.
GOALS = {"find": 0.2, "total": 1.0, "orientation": 0.2}
WITH_FIT = "with this fit, if it is right"
RANDOM, CHOSEN, PLANNED = "random", "chosen", "planned"


@dataclass(frozen=True, eq=False, repr=False)
class AuditPlan:
    """Rows to audit, with the probabilities by which they were drawn.

    Attributes
    ----------
    rows : DataFrame
        By row label: ``missed`` = P(y=1 | x, l=0); ``picked`` (chosen or random); ``probability``
        of being drawn, 1 for chosen rows; ``y``, the class found, empty until it is known.
    goal : str
    """

    rows: pd.DataFrame
    goal: str

    def __repr__(self) -> str:
        n_random = int(np.sum(self.rows["picked"] == RANDOM))
        known = int(self.rows["y"].notna().sum())
        return (
            f"{len(self.rows)} rows to audit (goal {self.goal}; {n_random} of them drawn at random;"
            f" {known} answered)\n"
            '  plan.to_csv("audit.csv"), fill in the column y, then\n'
            '  fit.update(audits=lepu.read_audit("audit.csv"))'
        )

    def to_csv(self, path: str | Path, X: pd.DataFrame | None = None) -> Path:
        """Write the rows with an empty column ``y`` to fill in, and their cells of X if given."""
        rows = self.rows.assign(goal=self.goal)
        if X is not None:
            rows = rows.join(X.loc[rows.index].drop(columns=rows.columns, errors="ignore"))
        rows.to_csv(path, index_label="row")
        return Path(path)


def read_audit(path: str | Path) -> AuditPlan:
    """Read an audit back, its column ``y`` filled in: for ``fit.update(audits=...)``.

    Parameters
    ----------
    path : str or Path
        A CSV file of ``AuditPlan.to_csv``, or one of your own with the columns ``row`` (first),
        ``y``, ``picked`` (random or chosen) and ``probability`` (of being drawn, 1 for chosen).

    Returns
    -------
    AuditPlan
    """
    rows = pd.read_csv(path, index_col=0)
    lacking = [c for c in ("y", "picked", "probability") if c not in rows]
    if lacking:
        raise FileFormatError(f"{path} has no column {lacking[0]!r}; write it by plan.to_csv().")
    if not rows["picked"].isin([RANDOM, CHOSEN]).all():
        raise DataError(f"{path}: picked holds other words than {RANDOM} and {CHOSEN}.")
    if not rows["probability"].between(0, 1, inclusive="right").all():
        raise DataError(f"{path}: probability holds values that are not above 0 and at most 1.")
    goal = str(rows["goal"].iloc[0]) if "goal" in rows and len(rows) else "total"
    return AuditPlan(rows, goal)


def suggest_audit(
    fit: "Fit",
    k: int,
    *,
    goal: str,
    random_share: float | None,
    random_seed: int | None,
) -> AuditPlan:
    """Which k unlabelled rows to audit (see `Fit.suggest_audit`)."""
    if goal not in GOALS:
        raise ModelError(unknown("goal", goal, GOALS))
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise ModelError(f"k = {k!r}; a whole number of at least 1 is expected.")
    share = GOALS[goal] if random_share is None else random_share
    if not 0 <= share <= 1:
        raise ModelError(f"random_share = {share!r}; a number from 0 to 1 is expected.")
    among = open_rows(fit)
    k = min(k, len(among))
    if k == 0:
        raise DataError("No unlabelled row is left to audit: the class of every one is known.")
    p = mean_by_row(fit.draws.thin(MAX_DRAWS), positive_given_labels(fit.data), among)
    n_random = round(share * k)
    worth = _worth(fit, among) if goal == "orientation" and n_random < k else p
    chosen = np.argsort(-worth, kind="stable")[: k - n_random]
    left = np.setdiff1d(np.arange(len(among)), chosen)
    rng = stream(fit) if random_seed is None else np.random.default_rng(random_seed)
    probability = draw_probabilities(p[left], n_random)
    drawn = draw(probability, rng)
    at = np.concatenate([chosen, left[drawn]])
    chance = np.concatenate([np.ones(len(chosen)), probability[drawn]])
    rows = pd.DataFrame(
        {
            "missed": p[at],
            "picked": np.where(chance < 1, RANDOM, CHOSEN),
            "probability": chance,
            "y": np.nan,
        },
        index=fit.data.index[among[at]],
    )
    return AuditPlan(rows, goal)


def draw_probabilities(p: Array, m: int) -> Array:
    """Probabilities that sum to m: half the same for all rows, half as the sd of their classes."""
    sd = np.sqrt(p * (1 - p))
    size = 1 + sd / max(float(sd.mean()), 1e-300) if p.size else p
    out = np.zeros(len(p))
    while m and (free := out < 1).any():  # rows drawn for sure are set aside
        out[free] = (m - np.sum(~free)) * size[free] / size[free].sum()
        if out[free].max() <= 1:
            break
        out = np.minimum(out, 1.0)
    return out


def draw(probability: Array, rng: np.random.Generator) -> NDArray[np.intp]:
    """Systematic sample in random order: every row with its probability, as many as they sum to."""
    order, m = rng.permutation(len(probability)), round(float(probability.sum()))
    ends = np.cumsum(probability[order])
    at = np.searchsorted(ends, rng.random() + np.arange(m), side="right")
    return np.sort(order[np.minimum(at, len(order) - 1)])


def _worth(fit: "Fit", among: NDArray[np.intp]) -> Array:
    """How much the class of every row would tell about the orientation."""
    if fit.is_point:
        raise ModelError(
            "A point estimate has no uncertainty about the orientation. Use a fit with draws, for "
            "example fit.update(method='laplace')."
        )
    draws, side = both_orientations(fit)
    if side.std() == 0:
        raise ModelError(
            "The draws agree on which factor is the class, so no audit can tell more about it. "
            "Use goal='total' or goal='find'."
        )
    positive, parts = positive_given_labels(fit.data), []
    for block in row_blocks(len(among), draws.b.size):
        m = positive(draws, among[block])
        cross = (side - side.mean()) @ m / len(m)
        parts.append(cross**2 / (m.var(axis=0) + np.mean(m * (1 - m), axis=0) + 1e-12))
    return np.concatenate(parts)


def both_orientations(fit: "Fit") -> tuple[Parameters, Array]:
    """Draws with both orientations in their posterior proportion, and 1 for each swapped one.

    Where a rule named the factors, the draws lie on one side: some are swapped again.
    """
    some = evenly_spaced(fit.draws.b.size, MAX_DRAWS)
    flat = fit.draws.take(some)
    if not evidence_of(fit).symmetric or fit.orientation.rule == "none":
        return flat, exchanged_draws(fit)[some].astype(float)
    probability = fit.orientation.probability
    keep = 0.5 if probability is None else probability
    # Evenly spread over the draws (golden ratio), so that no chain is swapped more than another.
    own = np.modf(np.arange(flat.b.size) * 0.6180339887498949)[0] < keep
    return flat.choose(own, flat.swap()), (~own).astype(float)


# Answers --------------------------------------------------------------------------------------


def with_answers(data: PUData, audits: str | None, plan: AuditPlan, y: Array) -> PUData:
    """The data with audited classes y and the design of all audits, this plan's round the last.

    Random rows that were not answered are taken as missing at random among the random ones. Rows
    of y that the plan does not name count as chosen.
    """
    rounds, probability = design_of(data, audits)
    at = match_rows(data, plan.rows.index)
    given = pd.Series(plan.rows["probability"].to_numpy(), index=at)
    answered = at[~np.isnan(y[at])]
    random = given[given < 1]
    share = float(random.index.isin(answered).mean()) if len(random) else 1.0
    new = ~np.isnan(y) & (rounds == 0) & (data.l == 0)
    chance = np.where(new, 1.0, probability)
    drawn = random.index[new[random.index]]
    chance[drawn] = given[drawn] * share
    rounds = np.where(new, rounds.max() + 1, rounds)
    return replace(data, y=y, drawn=np.column_stack([rounds, chance]))


def match_rows(data: PUData, labels: pd.Index) -> NDArray[np.intp]:
    """Positions of rows by their labels; of labels read from a file by their text."""
    at = data.index.get_indexer_for(labels)
    if (at < 0).any() and data.index.is_unique:
        at = data.index.astype(str).get_indexer_for(labels.astype(str))
    if (at < 0).any() or len(at) != len(labels):
        raise DataError("The plan names rows that this fit has not; it belongs to another table.")
    return at


# How many -------------------------------------------------------------------------------------


def plan_audit(
    n_unlabelled: int, expected_share: float, width: float, *, ci_prob: float = 0.95
) -> int:
    """How many unlabelled rows to audit at random, before any model.

    Parameters
    ----------
    n_unlabelled : int
        Rows that nobody marked.
    expected_share : float
        Share of positives among them, roughly; with 0.5 the number suffices for any share.
    width : float
        How wide the interval of that share may be, from end to end.
    ci_prob : float
        Probability of the interval.

    Returns
    -------
    int
        Number of audits. One may look at the interval on the way, after every 25 say, and stop as
        soon as it is short enough: its coverage at the stop was simulated.

    Examples
    --------
    >>> import bayes_lepu as lepu
    >>> lepu.plan_audit(5000, 0.1, width=0.08)
    220
    """
    if not 0 <= expected_share <= 1:
        raise ModelError(f"expected_share = {expected_share!r}; a share from 0 to 1 is expected.")
    if not 0 < width < 1:
        raise ModelError(f"width = {width!r}; a number between 0 and 1 is expected.")
    if n_unlabelled < 1:
        raise ModelError(f"n_unlabelled = {n_unlabelled!r}; at least one row is expected.")
    ones, share = np.ones(n_unlabelled), expected_share
    return audits_needed(share * ones, np.zeros(n_unlabelled), ones, width, ci_prob)


def audits_needed(t: Array, p: Array, size: Array, width: float, ci_prob: float) -> int:
    """Audits for an interval of this width of the share of positives.

    Rows are positive with probabilities t, predicted by p and drawn in proportion to size.
    """
    n = len(t)
    low, high = 0, n
    while high - low > 1:
        m = (low + high) // 2
        low, high = (low, m) if expected_width(t, p, size, m, ci_prob) <= width else (m, high)
    return high


def expected_width(t: Array, p: Array, size: Array, m: int, ci_prob: float) -> float:
    """Width of the interval by m audits whose errors have the variance to be expected."""
    n, weight, error = len(t), size.mean() / size, t - p
    variance = np.mean(weight * (t * (1 - t) + (error - error.mean()) ** 2))
    # Two errors with the mean and the variance to be expected stand for those of the audits.
    drawn = np.quantile(p, (np.arange(m) + 0.5) / m)
    y = drawn + error.mean() + np.sqrt(variance) * np.where(np.arange(m) % 2, -1.0, 1.0)
    made = Round(y, drawn, 0 * y + p.sum(), 0 * y + 1, 0.0, float(n), m / n)
    _, low, high = estimate_positives([Stratum((made,), 0.0, float(n))], ci_prob, trust=1.0)
    return (high - low) / n


def plan_with(fit: "Fit", width: float, ci_prob: float | None) -> pd.Series:
    """Audits needed alone, and with a fit that is right (see `Fit.plan_audit`)."""
    rows, level = open_rows(fit), interval_level(ci_prob)
    p = mean_by_row(fit.draws.thin(MAX_DRAWS), positive_given_labels(fit.data), rows)
    share, flat = np.full(len(p), p.mean()), np.ones(len(p))
    found = {
        "audits alone": audits_needed(share, 0 * p, flat, width, level),
        WITH_FIT: audits_needed(p, p, draw_probabilities(p, 1), width, level),
    }
    return pd.Series(found, name="audits")
