r"""Shares and counts of positives by rows audited at random, whatever the model.

Rows are audited in rounds. Before round r, :math:`K_r` positives are known, and m rows are drawn
from the set :math:`L_r` of rows left. Every drawn row gives an unbiased estimate of the number of
positives T, with predictions p made without its class:

.. math:: x_i = K_r + \lambda \sum_{j \in L_r} p_j + |L_r|\, w_i\, (y_i - \lambda p_i),

with weights w inverse to the probability of being drawn, one on average. The estimate is the mean
of x (prediction-powered inference, Angelopoulos and others 2023, doi:10.1126/science.adi6000; in
surveys the difference estimator). The factor λ ≤ 1 is the slope of y on p over the audits, drawn
towards 1 by ten audits, so that useless predictions cost nothing.

The normal interval fails where few of the audited rows are positive. As Agresti and Coull (1998,
doi:10.1080/00031305.1998.10480550) do for a proportion, :math:`z^2/2` audits that found the lowest
possible x and as many that found the highest are added before mean and variance are taken (a row
predicted positive that is not, and the reverse, predicted as surely as any audited row is); the
variance has the finite-population correction 1 - m / |L|, and z is Student's. Chosen rows are
known rows, and nothing more. `tools.audit_study` measures the coverage.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtri, stdtrit

from bayes_lepu.actions.groups import Groups
from bayes_lepu.actions.readings import MAX_DRAWS, positive_given_labels, weighted_sums
from bayes_lepu.data.pu_data import PUData
from bayes_lepu.errors import ModelError
from bayes_lepu.links import Array
from bayes_lepu.model.parameters import Parameters
from bayes_lepu.result.summaries import tail_probabilities

if TYPE_CHECKING:
    from bayes_lepu.fitted import Fit

Refit = Callable[[Array], Parameters]  # a point estimate with other audited classes

TRUST = 10.0  # audits that λ = 1 counts for: as many as make a slope worth looking at
FOLDS = 5  # refits of a point estimate, each without a fifth of the audited classes


@dataclass(frozen=True, eq=False)
class Round:
    """Rows drawn at random from the rows left, and what was found; arrays are ``(m,)``."""

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
        """Number of positives by every drawn row.

        Weights are divided by their mean, so what varies is the weighted deviation of y - λp from
        its own mean.
        """
        error, w = self.y - trust * self.p, self.relative
        mean = float(np.mean(w * error))
        return self.known + trust * self.expected + self.left * (mean + w * (error - mean))


@dataclass(frozen=True, eq=False)
class Stratum:
    """Rounds of audits of the same rows, the positives found by now, and the rows still open."""

    rounds: tuple[Round, ...]
    found: float
    open: float


def estimate_positives(
    strata: Sequence[Stratum], ci_prob: float, *, trust: float | None = None
) -> tuple[float, float, float]:
    """Number of positives in all strata together: estimate, lower and upper.

    ``trust`` is λ; by default it is estimated, and 0 is for audits alone.
    """
    z = float(ndtri((1 + ci_prob) / 2))
    parts = [_stratum(stratum, z**2 / 2, trust) for stratum in strata]
    estimate, centre, variance, audits = (float(v) for v in np.sum(parts, axis=0))
    half = float(stdtrit(audits + z**2 - 1, (1 + ci_prob) / 2)) * np.sqrt(variance)
    low = sum(s.found for s in strata)
    high = low + sum(s.open for s in strata)
    ends = np.clip([estimate, centre - half, centre + half], low, high)
    return float(ends[0]), float(ends[1]), float(ends[2])


def _stratum(stratum: Stratum, pseudo: float, trust: float | None) -> tuple[float, ...]:
    """Estimate, centre and variance of the adjusted mean, and the number of audits."""
    rounds = [r for r in stratum.rounds if r.y.size]
    last = rounds[-1] if rounds else stratum.rounds[-1]
    m = sum(r.y.size for r in rounds)
    trust = _trust(rounds, m) if trust is None else trust
    x = np.concatenate([r.estimates(trust) for r in rounds] or [np.zeros(0)])
    # An audit that found a positive might have been of a row with a typical weight.
    heavy = max((float(np.mean(r.relative**2)) for r in rounds), default=1.0)
    p = np.concatenate([r.p for r in rounds] or [np.zeros(1)]) * trust
    predicted = trust * float(np.mean(last.expected)) if m else 0.0
    lowest = min(0.0, predicted - last.left * float(p.max()))  # a false alarm, as sure as any
    highest = predicted + heavy * last.left * (1 - float(p.min()))  # a positive as unexpected
    added = last.known + np.array([lowest, highest])
    size = m + 2 * pseudo
    centre = (x.sum() + pseudo * added.sum()) / size
    square = np.sum((x - centre) ** 2) + pseudo * np.sum((added - centre) ** 2)
    drawn = sum(r.share * r.y.size for r in rounds) / max(m, 1)
    variance = square / (size * max(size - 2, 1.0)) * (1 - drawn)  # mean and λ are estimated
    return (float(x.mean()) if m else np.nan), centre, variance, m


def _trust(rounds: Sequence[Round], m: int) -> float:
    """The factor λ of the predictions."""
    above, square = 0.0, 0.0
    for r in rounds:
        d = r.p - r.expected / max(r.left, 1e-300)
        above += float(np.sum(r.relative * d * r.y))
        square += float(np.sum(r.relative * d**2))
    slope = above / square if square > 0 else 1.0
    return float(np.clip((m * slope + TRUST) / (m + TRUST), 0.0, 1.0))


# Of a fit -------------------------------------------------------------------------------------


def design_of(data: PUData, audits: str | None, *, marks: bool = False) -> tuple[Array, Array]:
    """Round in which every row was audited (0: never), and the probability of its being drawn.

    A chosen row has the probability one. ``marks``: audited marked rows belong to it as well.
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
    fit: "Fit", groups: Groups | None, again: Refit, *, ci_prob: float
) -> pd.DataFrame:
    """Missed and all positives and their share, by random audits, in all or by group."""
    data, marks = fit.data, fit.spec.false_marks
    rounds, probability = design_of(data, fit.options.audits, marks=marks)
    if fit.options.audits != "random" and not np.any(probability < 1):
        raise ModelError(
            "No audited row of this fit is said to be drawn at random. Audit some that are: "
            'fit.suggest_audit(50), or say so by fit.update(y=..., audits="random").'
        )
    kinds = [data.l == 0] + ([data.l == 1] if marks else [])
    drawn = (rounds > 0) & (probability < 1)
    if marks and not drawn[data.l == 1].any():
        raise ModelError("Marks may be false here: audit marked rows at random as well.")
    codes = np.zeros(data.n, dtype=np.intp) if groups is None else groups.codes
    last, weight, rows = max(int(rounds.max()), 1), data.each_weight, np.flatnonzero(drawn)
    left, sets = {}, []
    for h, kind in enumerate(kinds):
        for r in range(1, last + 1):
            before = (rounds > 0) & ((rounds < r) | ((rounds == r) & (probability == 1)))
            left[h, r] = kind & ~before
            sets.append(left[h, r])
    p, expected, draws = _predict(fit, rows, np.array(sets), codes, again)

    def lines(here: NDArray[np.bool_], cells: Any) -> pd.DataFrame:
        inside = here[rows]
        strata, place = [], 0
        for h, kind in enumerate(kinds):
            made = []
            for r in range(1, last + 1):
                some = left[h, r] & here
                of_round = inside & (rounds[rows] == r) & kind[rows]
                at = rows[of_round]
                rest = weight[here & kind & ~left[h, r] & (data.y == 1)].sum()
                made.append(
                    Round(
                        y=data.y[at],
                        p=p[of_round],
                        expected=expected[of_round, place][:, cells].sum(axis=1),
                        weight=weight[at] / probability[at],
                        known=float(rest),
                        left=float(weight[some].sum()),
                        share=1 / float(np.mean(1 / probability[at])) if at.size else 0.0,
                    )
                )
                place += 1
            open_ = here & kind & np.isnan(data.y)
            found = weight[here & kind & (data.y == 1)].sum()
            strata.append(Stratum(tuple(made), float(found), float(weight[open_].sum())))
        marked = 0.0 if marks else float(weight[here & (data.l == 1)].sum())
        known = marked + sum(s.found for s in strata)
        total = float(weight[here].sum())
        tails = np.quantile(draws[:, cells].sum(axis=1), tail_probabilities(ci_prob))
        model = float(draws[:, cells].sum(axis=1).mean())
        point = len(draws) == 1
        figures = np.array(
            [
                *(v + marked for v in estimate_positives(strata, ci_prob)),
                *(v + marked for v in estimate_positives(strata, ci_prob, trust=0.0)[1:]),
                *(known + v for v in (model, *(np.full(2, np.nan) if point else tails))),
            ]
        )
        names = ["estimate", "lower", "upper", "alone_lower", "alone_upper"]
        table = pd.DataFrame(
            [figures - known, figures, figures / max(total, 1e-300)],
            index=pd.Index(["missed", "positives", "share"], name="quantity"),
            columns=[*names, "model", "model_lower", "model_upper"],
        )
        return table.assign(audits=int(inside.sum()))

    if groups is None:
        return lines(np.ones(data.n, dtype=bool), slice(None))
    found = {name: lines(codes == g, [g]) for g, name in enumerate(groups.names)}
    return pd.concat(found, names=[groups.title])


def _predict(
    fit: "Fit",
    rows: NDArray[np.intp],
    sets: NDArray[np.bool_],
    codes: NDArray[np.intp],
    again: Refit,
) -> tuple[Array, Array, Array]:
    """Predictions of audited rows without their own classes, and sums by the same predictions.

    Returns p ``(m,)``, sums over sets of rows by group ``(m, sets, groups)``, and the sums over the
    open rows by every draw of the fit ``(draws, groups)``. Of draws, those without a row's class
    are the same with weights 1 / P(class of the row); a point estimate is fitted again.
    """
    data, draws, count = fit.data, fit.draws.thin(MAX_DRAWS), int(codes.max()) + 1
    blind = replace(data, y=np.full(data.n, np.nan))
    positive = positive_given_labels(blind)
    is_open = np.isnan(data.y) & ((data.l == 0) | fit.spec.false_marks)
    everything = np.vstack([sets, is_open])
    cells = np.zeros((data.n, len(everything), count))
    cells[np.arange(data.n), :, codes] = everything.T * data.each_weight[:, None]

    def sums(some: Parameters) -> Array:
        weight = cells.reshape(data.n, -1)
        found = weighted_sums(positive, some, np.arange(data.n), weight)[0]
        return found.reshape(some.b.size, -1, count)

    whole = sums(draws)
    if not fit.is_point:
        m = positive(draws, rows)
        weight = 1 / np.maximum(np.where(data.y[rows] == 1, m, 1 - m), 1e-12)
        weight = np.minimum(weight, np.sqrt(len(m)) * weight.mean(axis=0))  # as in truncated PSIS
        weight = (weight / weight.sum(axis=0)).T
        expected = np.einsum("ik,ksg->isg", weight, whole[:, :-1])
        return np.sum(weight * m.T, axis=1), expected, whole[:, -1]
    p, expected = np.zeros(len(rows)), np.zeros((len(rows), len(sets), count))
    fold = np.arange(len(rows)) % FOLDS
    for k in np.unique(fold):
        y = data.y.copy()
        y[rows[fold == k]] = np.nan
        other = again(y)
        p[fold == k] = positive(other, rows[fold == k])[0]
        expected[fold == k] = sums(other)[0, :-1]
    return p, expected, whole[:, -1]
