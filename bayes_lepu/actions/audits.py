r"""Which unlabelled rows to audit, how many, and how many positives the audits show.

A plan (`suggest_audit`) knows with which probability every row was drawn. Its goals:

* ``find``: the rows that are most probably positive.
* ``total``: rows at random, uncertain ones more often. The estimated share of positives has the
  smallest variance if rows are drawn in proportion to the sd of y - p. The model can be wrong about
  these sd, so half of every probability is the same for all rows:

  .. math:: r_i \propto \tfrac12 + \tfrac12 \sqrt{p_i (1-p_i)} \Big/ \overline{\sqrt{p (1-p)}} .

Rows chosen by a model cannot check that model, so a part is always drawn at random.

*Counts* (`audit_estimate`) are right whatever the model. Rows are audited in rounds. Before round
r, :math:`K_r` positives are known, and m rows are drawn from the set :math:`L_r` of rows left.
Every drawn row gives an unbiased estimate of the number of positives T. The predictions p are made
without the row's own class:

.. math:: x_i = K_r + \lambda \sum_{j \in L_r} p_j + |L_r|\, w_i\, (y_i - \lambda p_i),

with weights w inverse to the probability of being drawn and with mean one. The estimate is the mean
of x (prediction-powered inference, Angelopoulos and others 2023, doi:10.1126/science.adi6000; in
surveys the difference estimator). The factor λ ≤ 1 is the slope of y on p over the audits, shrunk
towards 1 with the weight of ten audits. Predictions that are useless then cost no precision.

The normal interval fails where few of the audited rows are positive. As Agresti and Coull (1998,
doi:10.1080/00031305.1998.10480550) do for a proportion, :math:`z^2/2` audits with the lowest
possible x and as many with the highest are added before mean and variance are computed. The
variance has the finite-population correction 1 - m / |L|, and the quantile is Student's.
`tools.audit_study` measures the coverage.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtri, stdtrit

from bayes_lepu.actions.groups import Groups
from bayes_lepu.actions.missed import (
    MAX_DRAWS,
    open_rows,
    positive_given_labels,
    stream,
    weighted_sums,
)
from bayes_lepu.data.pu_data import PUData
from bayes_lepu.errors import DataError, FileFormatError, ModelError
from bayes_lepu.links import Array
from bayes_lepu.model.parameters import Parameters
from bayes_lepu.result.summaries import interval_level, mean_by_row, tail_probabilities
from bayes_lepu.suggestions import some, unknown

if TYPE_CHECKING:
    from bayes_lepu.fitted import Fit

# Share of the rows drawn at random, by goal.
GOALS = {"find": 0.2, "total": 1.0}
WITH_FIT = "with this fit, if it is right"
RANDOM, CHOSEN, PLANNED = "random", "chosen", "planned"
ANSWERS = dict.fromkeys(("1", "1.0", "yes", "true"), 1.0)  # as spreadsheets write them
ANSWERS |= dict.fromkeys(("0", "0.0", "no", "false"), 0.0)


@dataclass(frozen=True, eq=False, repr=False)
class AuditPlan:
    """Rows to audit, with the probabilities by which they were drawn.

    Attributes
    ----------
    rows : DataFrame
        By row label: ``missed`` = P(y=1 | x, l=0); ``picked`` (chosen or random); ``probability``
        of being drawn, 1 for chosen rows; ``y``, the audited class, empty until it is known.
    """

    rows: pd.DataFrame

    def __repr__(self) -> str:
        drawn, known = np.sum(self.rows["picked"] == RANDOM), self.rows["y"].notna().sum()
        return (
            f"{len(self.rows)} rows to audit ({drawn} of them drawn at random; {known} answered)\n"
            '  plan.to_csv("audit.csv"), fill in the column y, then\n'
            '  fit.update(audits=lepu.read_audit("audit.csv"))'
        )

    def to_csv(self, path: str | Path, X: Any = None) -> Path:
        """Write the rows with an empty column ``y`` to fill in, and their cells of X if given."""
        rows = self.rows
        if X is not None:
            cells = pd.DataFrame(X)
            if not rows.index.isin(cells.index).all():
                raise DataError("X has not all rows of the plan; the table of the fit is expected.")
            rows = rows.join(cells.loc[rows.index].drop(columns=rows.columns, errors="ignore"))
        rows.to_csv(path, index_label="row")
        return Path(path)


def read_audit(path: str | Path) -> AuditPlan:
    """Read an answered audit, with its column ``y`` filled in, for ``fit.update(audits=...)``.

    Parameters
    ----------
    path : str or Path
        A CSV file of ``AuditPlan.to_csv``, as a spreadsheet may have changed it, or one of your own
        with the columns ``row`` (label in the table of the fit), ``y`` (0, 1, yes, no, or empty
        where it is not known), ``picked`` (random or chosen) and ``probability`` (of being drawn, 1
        for chosen).

    Returns
    -------
    AuditPlan
    """
    with Path(path).open(encoding="utf-8-sig") as file:
        head = file.readline()
        separator = ";" if head.count(";") > head.count(",") else ","
        file.seek(0)
        table = pd.read_csv(file, sep=separator, dtype=str)
    if lacking := [c for c in ("row", "y", "picked", "probability") if c not in table]:
        raise FileFormatError(f"{path} has no column {lacking[0]!r}; write it by plan.to_csv().")
    rows = table.dropna(subset="row").drop_duplicates().set_index("row")
    if (twice := rows.index.duplicated()).any():
        raise DataError(f"{path} names the row {rows.index[twice][0]!r} twice; once is expected.")
    said = rows["y"].str.strip().str.casefold().replace("", np.nan)
    rows["y"] = said.map(ANSWERS)
    if (odd := said.notna() & rows["y"].isna()).any():
        raise DataError(
            f"{path}: y holds {some(list(said[odd].unique()))}; 0, 1, yes, no, or an empty cell "
            "for unknown is expected."
        )
    if not rows["picked"].isin([RANDOM, CHOSEN]).all():
        raise DataError(f"{path}: picked contains other words than {RANDOM} and {CHOSEN}.")
    decimals = rows["probability"].str.replace(",", ".")
    rows["probability"] = pd.to_numeric(decimals, errors="coerce")
    if not rows["probability"].between(0, 1, inclusive="right").all():
        raise DataError(f"{path}: probability has values that are not above 0 and at most 1.")
    return AuditPlan(rows)


def suggest_audit(fit: "Fit", k: int, *, goal: str, random_seed: int | None) -> AuditPlan:
    """Which k unlabelled rows to audit (see `Fit.suggest_audit`)."""
    if goal not in GOALS:
        raise ModelError(unknown("goal", goal, GOALS))
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise ModelError(f"k = {k!r}; a whole number of at least 1 is expected.")
    among, p = _open_and_missed(fit)
    k = min(k, len(among))
    if k == 0:
        raise DataError("No unlabelled row is left to audit: the class of every one is known.")
    n_random = round(GOALS[goal] * k)
    chosen = np.argsort(-p, kind="stable")[: k - n_random]
    left = np.setdiff1d(np.arange(len(among)), chosen)
    rng = stream(fit) if random_seed is None else np.random.default_rng(random_seed)
    probability = draw_probabilities(p[left], n_random)
    drawn = draw(probability, rng)
    at = np.concatenate([chosen, left[drawn]])
    chance = np.concatenate([np.ones(len(chosen)), probability[drawn]])
    picked = np.where(chance < 1, RANDOM, CHOSEN)
    found = {"missed": p[at], "picked": picked, "probability": chance, "y": np.nan}
    return AuditPlan(pd.DataFrame(found, index=fit.data.index[among[at]]))


def _open_and_missed(fit: "Fit") -> tuple[NDArray[np.intp], Array]:
    """The unlabelled rows of unknown class, and the probability that each is positive."""
    rows = open_rows(fit)
    return rows, mean_by_row(fit.draws.thin(MAX_DRAWS), positive_given_labels(fit.data), rows)


def draw_probabilities(p: Array, m: int) -> Array:
    """Probabilities that sum to m: one half constant, the other in proportion to the sd of y."""
    sd = np.sqrt(p * (1 - p))
    size = 1 + sd / max(float(sd.mean()), 1e-300) if p.size else p
    out = np.zeros(len(p))
    while m and (free := out < 1).any():  # rows with probability 1 are drawn for certain
        out[free] = (m - np.sum(~free)) * size[free] / size[free].sum()
        if out[free].max() <= 1:
            break
        out = np.minimum(out, 1.0)
    return out


def draw(probability: Array, rng: np.random.Generator) -> NDArray[np.intp]:
    """Systematic sample of the rows in random order, with these inclusion probabilities."""
    order, m = rng.permutation(len(probability)), round(float(probability.sum()))
    ends = np.cumsum(probability[order])
    at = np.searchsorted(ends, rng.random() + np.arange(m), side="right")
    return np.sort(order[np.minimum(at, len(order) - 1)])


def with_answers(data: PUData, audits: str | None, plan: AuditPlan, y: Array) -> PUData:
    """The data with audited classes y and the design of all audits; this plan is the last round.

    Answers of randomly drawn rows are assumed to be missing at random. Rows of y that are not in
    the plan count as chosen.
    """
    rounds, probability = design_of(data, audits)
    at = match_rows(data, plan.rows.index)
    given = pd.Series(plan.rows["probability"].to_numpy(), index=at)
    answered = at[~np.isnan(y[at])]
    random = given[given < 1]
    if len(at) and not len(answered):
        raise DataError("The plan has no answer yet; fill in its column y, or pass y=.")
    share = float(random.index.isin(answered).mean()) if len(random) else 1.0
    new = ~np.isnan(y) & (rounds == 0) & (data.l == 0)
    chance = np.where(new, 1.0, probability)
    drawn = random.index[new[random.index]]
    chance[drawn] = given[drawn] * share
    rounds = np.where(new, rounds.max() + 1, rounds)
    return replace(data, y=y, drawn=np.column_stack([rounds, chance]))


def match_rows(data: PUData, labels: pd.Index) -> NDArray[np.intp]:
    """Positions of rows by their labels; labels read from a file are compared as text."""
    at = data.index.get_indexer_for(labels)
    if (at < 0).any() and data.index.is_unique:
        at = data.index.astype(str).get_indexer_for(labels.astype(str))
    if (at < 0).any() or len(at) != len(labels):
        raise DataError("The plan has rows that this fit has not; it belongs to another table.")
    return at


# How many to audit ----------------------------------------------------------------------------


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
        Number of audits. You may compute the interval after every 25 audits and stop as soon as it
        is short enough; simulations confirmed its coverage under this stopping rule.

    Examples
    --------
    >>> import bayes_lepu as lepu
    >>> lepu.plan_audit(5000, 0.1, width=0.08)
    220
    """
    if not 0 <= expected_share <= 1:
        raise ModelError(f"expected_share = {expected_share!r}; a share from 0 to 1 is expected.")
    if n_unlabelled < 1:
        raise ModelError(f"n_unlabelled = {n_unlabelled!r}; at least one row is expected.")
    ones, share = np.ones(n_unlabelled), expected_share
    return audits_needed(share * ones, np.zeros(n_unlabelled), ones, width, ci_prob)


def audits_needed(t: Array, p: Array, size: Array, width: float, ci_prob: float) -> int:
    """Number of audits after which the interval of the share of positives has this width.

    Rows are positive with probabilities t, predicted by p and drawn in proportion to size.
    """
    if not 0 < width < 1:
        raise ModelError(f"width = {width!r}; a number between 0 and 1 is expected.")
    low, high = 0, len(t)
    while high - low > 1:
        m = (low + high) // 2
        low, high = (low, m) if expected_width(t, p, size, m, ci_prob) <= width else (m, high)
    return high


def expected_width(t: Array, p: Array, size: Array, m: int, ci_prob: float) -> float:
    """Expected width of the interval after m audits, from the expected variance of their errors."""
    n, weight, error = len(t), size.mean() / size, t - p
    variance = np.mean(weight * (t * (1 - t) + (error - error.mean()) ** 2))
    # The audits' errors are replaced by two values with the expected mean and variance.
    drawn = np.quantile(p, (np.arange(m) + 0.5) / m)
    y = drawn + error.mean() + np.sqrt(variance) * np.where(np.arange(m) % 2, -1.0, 1.0)
    made = Round(y, drawn, 0 * y + p.sum(), 0 * y + 1, 0.0, float(n), m / n)
    _, low, high = estimate_positives([Stratum((made,), 0.0, float(n))], ci_prob, trust=1.0)
    return (high - low) / n


def plan_with(fit: "Fit", width: float, ci_prob: float | None) -> pd.Series:
    """Audits needed without the fit, and with it if it is right (see `Fit.plan_audit`)."""
    p, level = _open_and_missed(fit)[1], interval_level(ci_prob)
    share, flat = np.full(len(p), p.mean()), np.ones(len(p))
    found = {
        "audits alone": audits_needed(share, 0 * p, flat, width, level),
        WITH_FIT: audits_needed(p, p, draw_probabilities(p, 1), width, level),
    }
    return pd.Series(found, name=f"audits for a {level:.0%} interval of width {width:g}")


# Counts by audits -----------------------------------------------------------------------------

TRUST = 10.0  # audits that λ = 1 counts for: with fewer, the slope is mostly noise
FOLDS = 5  # refits of a point estimate, each without a fifth of the audited classes


@dataclass(frozen=True, eq=False)
class Round:
    """Rows drawn at random from the rows left, and their classes; arrays are ``(m,)``."""

    y: Array
    p: Array  # predictions of y made without it
    expected: Array  # sum over the rows left of the predictions by which each row was predicted
    weight: Array  # inverse probabilities of being drawn, up to a factor
    known: float  # positives known before the draw
    left: float  # rows left, the drawn ones among them
    share: float  # of the rows left that was drawn

    @property
    def relative(self) -> Array:
        """Weights with a mean of one."""
        return self.weight / max(float(np.mean(self.weight)), 1e-300)

    def estimates(self, trust: float) -> Array:
        """The number of positives as estimated by each drawn row: x of the module's formula."""
        error, w = self.y - trust * self.p, self.relative
        mean = float(np.mean(w * error))
        return self.known + trust * self.expected + self.left * (mean + w * (error - mean))


class Stratum(NamedTuple):
    """Rounds of audits of the same rows, the positives found so far, and the rows still open."""

    rounds: tuple[Round, ...]
    found: float
    open: float


def estimate_positives(
    strata: Sequence[Stratum], ci_prob: float, *, trust: float | None = None
) -> tuple[float, float, float]:
    """Number of positives in all strata together: estimate, lower and upper.

    ``trust`` is λ; by default it is estimated. 0 ignores the predictions.
    """
    z = float(ndtri((1 + ci_prob) / 2))
    parts = [_stratum(stratum, z**2 / 2, trust) for stratum in strata]
    estimate, centre, variance, audits = (float(v) for v in np.sum(parts, axis=0))
    half = float(stdtrit(audits + z**2 - 1, (1 + ci_prob) / 2)) * np.sqrt(variance)
    low = sum(s.found for s in strata)
    high = low + sum(s.open for s in strata)
    estimate = estimate if high > low else low  # every row was audited
    ends = np.clip([estimate, centre - half, centre + half], low, high)
    return float(ends[0]), float(ends[1]), float(ends[2])


def _stratum(stratum: Stratum, pseudo: float, trust: float | None) -> tuple[float, ...]:
    """Estimate, centre and variance of the adjusted mean, and the number of audits."""
    rounds = [r for r in stratum.rounds if r.y.size]
    last = rounds[-1] if rounds else stratum.rounds[-1]
    m = sum(r.y.size for r in rounds)
    trust = _trust(rounds, m) if trust is None else trust
    x = np.concatenate([r.estimates(trust) for r in rounds] or [np.zeros(0)])
    # Weight of an added audit with the highest x: the size-biased mean of the weights.
    heavy = max((float(np.mean(r.relative**2)) for r in rounds), default=1.0)
    p = np.concatenate([r.p for r in rounds] or [np.zeros(1)]) * trust
    predicted = trust * float(np.mean(last.expected)) if m else 0.0
    lowest = min(0.0, predicted - last.left * float(p.max()))  # a negative with the largest p
    highest = predicted + heavy * last.left * (1 - float(p.min()))  # a positive with the smallest
    added = last.known + np.array([lowest, highest])
    size = m + 2 * pseudo
    centre = (x.sum() + pseudo * added.sum()) / size
    square = np.sum((x - centre) ** 2) + pseudo * np.sum((added - centre) ** 2)
    drawn = sum(r.share * r.y.size for r in rounds) / max(m, 1)
    variance = square / (size * max(size - 2, 1.0)) * (1 - drawn)  # mean and λ are estimated
    return (float(x.mean()) if m else np.nan), centre, variance, m


def _trust(rounds: Sequence[Round], m: int) -> float:
    """The factor λ of the predictions: the slope of y on p, shrunk towards 1."""
    above, square = 0.0, 0.0
    for r in rounds:
        d = r.p - r.expected / max(r.left, 1e-300)
        above += float(np.sum(r.relative * d * r.y))
        square += float(np.sum(r.relative * d**2))
    slope = above / square if square > 0 else 1.0
    return float(np.clip((m * slope + TRUST) / (m + TRUST), 0.0, 1.0))


def design_of(data: PUData, audits: str | None, *, marks: bool = False) -> tuple[Array, Array]:
    """Round in which every row was audited (0: never), and the probability with which it was drawn.

    A chosen row has the probability one. ``marks``: include audited marked rows.
    """
    if data.drawn.size:
        return data.drawn[:, 0], data.drawn[:, 1]
    known = ~np.isnan(data.y) & ((data.l == 0) | marks)
    probability = np.where(known, 1.0, np.nan)
    if audits == "random":
        for marked in (0, 1):
            here = data.l == marked
            probability[known & here] = (known & here).sum() / max(int(here.sum()), 1)
    return known.astype(float), probability


def audit_estimate(
    fit: "Fit", groups: Groups | None, again: Callable[[Array], Parameters], *, ci_prob: float
) -> pd.DataFrame:
    """Missed positives, all positives and their share by random audits, in total or by group.

    ``again(y)`` refits a point estimate with the audited classes y.
    """
    data, marks, weight = fit.data, fit.spec.false_marks, fit.data.weight
    rounds, probability = design_of(data, fit.options.audits, marks=marks)
    if fit.options.audits != "random" and not np.any(probability < 1):
        raise ModelError(
            "No audited row of this fit is known to be drawn at random. Audit some that are: "
            'fit.suggest_audit(50), or declare it by fit.update(y=..., audits="random").'
        )
    drawn = (rounds > 0) & (probability < 1)
    if marks and not drawn[data.l == 1].any():
        raise ModelError("Marks may be false here: audit marked rows at random as well.")
    by = groups or Groups("", ("",), np.zeros(data.n, dtype=np.intp))
    here = by.codes == np.arange(len(by.names))[:, None]
    strata = here[:, None] & np.array([data.l == 0, data.l == 1][: 1 + marks])
    # Rows left before the draw of every round, those chosen in it set aside.
    number = np.arange(1, max(int(rounds.max()), 1) + 1)[:, None]
    left = (rounds == 0) | (number < rounds) | ((number == rounds) & drawn)
    sets, rows = strata[:, :, None] & left, np.flatnonzero(drawn)
    is_open = strata.any(axis=1) & np.isnan(data.y)
    p, expected, more = _predict(fit, rows, sets.reshape(-1, data.n), is_open, again)
    expected = expected.reshape(len(rows), *sets.shape[:3])

    def made(g: int, h: int, r: int) -> Round:
        """One round of audits in group g and stratum h."""
        some = strata[g, h, rows] & (rounds[rows] == r + 1)
        at, known = rows[some], strata[g, h] & ~left[r] & (data.y == 1)
        return Round(
            y=data.y[at],
            p=p[some],
            expected=expected[some, g, h, r],
            weight=weight[at] / probability[at],
            known=float(weight[known].sum()),
            left=float(weight[sets[g, h, r]].sum()),
            share=1 / float(np.mean(1 / probability[at])) if at.size else 0.0,
        )

    names, lines = ["estimate", "lower", "upper", "alone_lower", "alone_upper"], {}
    for g, name in enumerate(by.names):
        found = [
            Stratum(
                tuple(made(g, h, r) for r in range(len(number))),
                float(weight[rows_of & (data.y == 1)].sum()),
                float(weight[rows_of & np.isnan(data.y)].sum()),
            )
            for h, rows_of in enumerate(strata[g])
        ]
        marked = 0.0 if marks else float(weight[here[g] & (data.l == 1)].sum())
        known, model = marked + sum(s.found for s in found), more[:, g]
        ends = np.quantile(model, tail_probabilities(ci_prob)) if model.size > 1 else [np.nan] * 2
        by_audits = (
            *estimate_positives(found, ci_prob),
            *estimate_positives(found, ci_prob, trust=0.0)[1:],
        )
        figures = np.r_[np.add(by_audits, marked), known + model.mean(), np.add(ends, known)]
        table = pd.DataFrame(
            [figures - known, figures, figures / max(float(weight[here[g]].sum()), 1e-300)],
            index=pd.Index(["missed", "positives", "share"], name="quantity"),
            columns=[*names, "model", "model_lower", "model_upper"],
        )
        lines[name] = table.assign(audits=int(here[g, rows].sum()))
    return lines[""] if groups is None else pd.concat(lines, names=[by.title])


def _predict(
    fit: "Fit",
    rows: NDArray[np.intp],
    sets: NDArray[np.bool_],
    is_open: NDArray[np.bool_],
    again: Callable[[Array], Parameters],
) -> tuple[Array, Array, Array]:
    """Predictions of audited rows without their own classes, and sums of these predictions.

    Returns p ``(m,)``, sums over sets of rows ``(m, sets)``, and, for every draw of the fit, sums
    over the open rows of every group ``(draws, groups)``. A row's class is left out by weighting
    the draws by 1 / P(class of the row) (importance sampling); a point estimate is refitted.
    """
    data, draws = fit.data, fit.draws.thin(MAX_DRAWS)
    positive = positive_given_labels(replace(data, y=np.full(data.n, np.nan)))
    weight = np.vstack([sets, is_open]).T * data.weight[:, None]

    def sums(draws: Parameters) -> Array:
        return weighted_sums(positive, draws, np.arange(data.n), weight)[0]

    whole = sums(draws)
    if not fit.is_point:
        m = positive(draws, rows)
        by = 1 / np.maximum(np.where(data.y[rows] == 1, m, 1 - m), 1e-12)
        by = np.minimum(by, np.sqrt(len(m)) * by.mean(axis=0))  # as in truncated PSIS
        by /= by.sum(axis=0)
        return np.sum(by * m, axis=0), by.T @ whole[:, : len(sets)], whole[:, len(sets) :]
    p, expected = np.zeros(len(rows)), np.zeros((len(rows), len(sets)))
    fold = np.arange(len(rows)) % FOLDS
    for k in np.unique(fold):
        y = data.y.copy()
        y[rows[fold == k]] = np.nan
        other = again(y)
        p[fold == k] = positive(other, rows[fold == k])[0]
        expected[fold == k] = sums(other)[0, : len(sets)]
    return p, expected, whole[:, len(sets) :]
