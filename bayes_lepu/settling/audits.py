r"""Which unlabelled rows to audit, so that k answers tell most.

For draws θ_k let z_i be the centred m_i = P(y=1 | x_i, l_i=0) and P the centred target. One audit
is taken as a noisy linear look at z_i, with noise E[m_i (1 - m_i)]. It lowers the variance by

.. math:: \mathrm{cov}(P, z_i)^2 \, w_i, \qquad w_i = 1 / (\mathrm{Var}\,z_i + E[m_i (1 - m_i)])

Rows are taken greedily. After each choice every covariance is conditioned on it:
:math:`\mathrm{cov}(u, v) \leftarrow \mathrm{cov}(u, v) - \mathrm{cov}(u, z_i)\, w_i\,
\mathrm{cov}(z_i, v)`, which needs one product with the draws per step (a pivoted Cholesky). The
draws hold both namings of the factors in their posterior proportion, so that an open naming counts
as uncertainty.

Rows chosen by a model cannot check that model: a share of the rows is drawn at random instead.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayes_lepu.data.weights import evenly_spaced
from bayes_lepu.diagnostics.subject import subject_of
from bayes_lepu.errors import DataError, ModelError
from bayes_lepu.links import Array
from bayes_lepu.models.parameters import Parameters
from bayes_lepu.result import FittedModel
from bayes_lepu.result.summaries import mean_over_rows, row_blocks, tail_probabilities
from bayes_lepu.settling.counting import stream
from bayes_lepu.settling.plans import AuditPlan
from bayes_lepu.settling.readings import (
    MAX_DRAWS,
    exchanged_draws,
    open_rows,
    positive_given_labels,
)
from bayes_lepu.suggestions import unknown

GOALS = ("pi", "orientation", "rows")
MAX_CANDIDATES = 2000  # kept for the greedy search: those that tell most when audited alone
MAX_TARGETS = 300  # rows that stand for all where the probabilities themselves are the goal
SMALLEST = 1e-12


class _Covariances:
    """Covariances of the targets (π is the last) with the candidates, given the audits so far."""

    def __init__(self, targets: Array, m: Array, counted: int) -> None:
        self._z = m - m.mean(axis=0)
        centred = targets - targets.mean(axis=0)
        self._counted = counted  # how many of the targets make the score
        self._noise = np.mean(m * (1 - m), axis=0)
        self._variance = np.mean(self._z**2, axis=0)
        self._cross = centred.T @ self._z / len(m)
        self._targets = np.mean(centred**2, axis=0)
        self._known = np.empty((0, m.shape[1]))

    def gain(self) -> Array:
        """By how much auditing each candidate lowers the summed variance of the targets."""
        total = np.maximum(self._variance + self._noise, SMALLEST)
        return np.sum(self._cross[: self._counted] ** 2, axis=0) / total

    def correlation(self, i: int) -> float:
        """Of the first target with a candidate."""
        size = np.sqrt(max(self._targets[0] * self._variance[i], SMALLEST**2))
        return float(self._cross[0, i] / size)

    def condition(self, i: int) -> None:
        """Take an audit of candidate i as given."""
        with_i = self._z[:, i] @ self._z / len(self._z) - self._known[:, i] @ self._known
        root = 1 / np.sqrt(max(float(self._variance[i] + self._noise[i]), SMALLEST))
        u, v = root * with_i, root * self._cross[:, i]
        self._known = np.vstack([self._known, u])
        self._variance = np.maximum(self._variance - u**2, 0.0)
        self._cross = self._cross - np.outer(v, u)
        self._targets = np.maximum(self._targets - v**2, 0.0)

    @property
    def sd_pi(self) -> float:
        """Expected sd of π after the audits so far."""
        return float(np.sqrt(self._targets[-1]))


def suggest_audit(
    fit: FittedModel,
    k: int,
    *,
    goal: str = "pi",
    candidates: Sequence[Any] | None = None,
    random_share: float = 0.2,
    random_seed: int | None = None,
    ci_prob: float | None = None,
) -> AuditPlan:
    """Which k unlabelled rows to check, so that their true classes tell most.

    Parameters
    ----------
    fit : Fit
        A fit with draws (``method="nuts"`` or ``"laplace"``).
    k : int
        How many rows can be checked.
    goal : {"pi", "orientation", "rows"}
        What to learn: the class prior, which factor is the class, or the classes of the unlabelled
        rows themselves.
    candidates : sequence of row labels, optional
        Rows that can be checked at all; by default every unlabelled row nobody has checked.
    random_share : float
        Share of the k rows that is drawn at random, so that the model can be checked by them.
    random_seed : int, optional
        Seed of that share; by default the fit's own.
    ci_prob : float, optional
        Probability of the intervals of P(y=1 | x, l=0); ArviZ's ``stats.ci_prob`` by default.

    Returns
    -------
    AuditPlan
        ``rows`` in the order in which they tell most, with the sd of π to be expected after each,
        and why; give the answers to ``fit.update(y=...)``.

    Examples
    --------
    >>> import bayes_lepu as lepu
    >>> demo = lepu.load_demo()
    >>> fit = lepu.fit(demo.X, demo.l, model="spm", method="laplace", draws=100, random_seed=1)
    >>> plan = lepu.suggest_audit(fit, 20)
    >>> bool(plan.sd_after < plan.sd_before)
    True
    """
    _check(fit, k, goal, random_share)
    draws, side = both_namings(fit)
    among = _candidates(fit, candidates)
    if len(among) == 0:
        raise DataError("No unlabelled row is left to audit: the class of every one is known.")
    if goal == "orientation" and side.std() < SMALLEST:
        raise ModelError(
            "The draws agree on which factor is the class, so no audit can tell more about it. "
            "Use goal='pi' or goal='rows'."
        )
    rng = stream(fit) if random_seed is None else np.random.default_rng(random_seed)
    k = min(k, len(among))
    at_random = rng.choice(among, round(random_share * k), replace=False)
    pi = mean_over_rows(draws, Parameters.t, fit.data.X, fit.data.row_weights)
    state, kept = _start(fit, draws, pi, side, goal, among, at_random)
    before = state.sd_pi
    if state.gain().max() <= SMALLEST:
        raise ModelError(
            f"Under {fit.spec.name} no audit would tell anything about the goal {goal!r}: the "
            "probability that an unlabelled row is positive is the same in every draw."
        )
    chosen, why, after = _greedy(state, kept, at_random, k - len(at_random), goal)
    for row in at_random:
        state.condition(int(np.flatnonzero(kept == row)[0]))
        after.append(state.sd_pi)
    positions = np.array([*chosen, *at_random], dtype=np.intp)
    return AuditPlan(
        rows=_table(fit, draws, positions, len(chosen), after, why, ci_prob),
        positions=positions,
        goal=goal,
        sd_before=before,
        sd_after=after[-1],
        sd_random=_random_sd(fit, draws, pi, among, k, rng),
        data=fit.data,
        pi=pi,
    )


def both_namings(fit: FittedModel) -> tuple[Parameters, Array]:
    """Draws with both namings of the factors in their posterior proportion, and each one's side.

    Where a rule named the factors, the draws lie on one side: some are exchanged again.
    """
    subject = subject_of(fit)
    some = evenly_spaced(fit.draws.b.size, MAX_DRAWS)
    flat = fit.draws.take(some)
    if not subject.symmetric or fit.orientation.rule == "none":
        return flat, exchanged_draws(fit)[some].astype(float)
    probability = fit.orientation.probability
    keep = 0.5 if probability is None else probability
    # Evenly spread over the draws, so that no chain is exchanged more than another.
    order = np.modf(np.arange(flat.b.size) * 0.6180339887498949)[0]
    own = order < keep
    return flat.choose(own, flat.swap()), (~own).astype(float)


def _check(fit: FittedModel, k: int, goal: str, random_share: float) -> None:
    if goal not in GOALS:
        raise ModelError(unknown("goal", goal, GOALS))
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise ModelError(f"k = {k!r}; a whole number of at least 1 is expected.")
    if not 0 <= random_share <= 1:
        raise ModelError(f"random_share = {random_share!r}; a number from 0 to 1 is expected.")
    if fit.is_point:
        raise ModelError(
            "A point estimate has no uncertainty to reduce. Use a fit with draws, for example "
            "fit.update(method='laplace')."
        )


def _candidates(fit: FittedModel, labels: Sequence[Any] | None) -> NDArray[np.intp]:
    free = open_rows(fit)
    if labels is None:
        return free
    index = fit.data.index
    wanted = index.get_indexer_for(pd.Index(labels))
    if (wanted < 0).any():
        unknown = [label for label, at in zip(labels, wanted, strict=False) if at < 0]
        raise DataError(f"candidates holds {unknown[0]!r}, which is no row of this fit.")
    rows = np.intersect1d(wanted, free)
    if len(rows) == 0:
        raise DataError("None of the candidates is an unlabelled row whose class is unknown.")
    return rows


def _start(
    fit: FittedModel,
    draws: Parameters,
    pi: Array,
    side: Array,
    goal: str,
    among: NDArray[np.intp],
    always: NDArray[np.intp],
) -> tuple[_Covariances, NDArray[np.intp]]:
    """Targets, and the candidates that tell most when audited alone (``always`` among them)."""
    positive = positive_given_labels(fit.data)
    if goal == "rows":
        free = open_rows(fit)
        some = free[np.linspace(0, len(free) - 1, min(len(free), MAX_TARGETS)).astype(int)]
        target = positive(draws, some)
    else:
        target = (pi if goal == "pi" else side)[:, None]
    targets = np.column_stack([target, pi])

    def look(rows: NDArray[np.intp]) -> _Covariances:
        m = positive(draws, rows)
        return _Covariances(targets, m, target.shape[1])

    if len(among) <= MAX_CANDIDATES:
        return look(among), among
    gains = [look(among[block]).gain() for block in row_blocks(len(among), draws.b.size)]
    best = among[np.argsort(-np.concatenate(gains), kind="stable")[:MAX_CANDIDATES]]
    kept = np.union1d(best, always).astype(np.intp)
    return look(kept), kept


def _greedy(
    state: _Covariances,
    kept: NDArray[np.intp],
    taken: NDArray[np.intp],
    count: int,
    goal: str,
) -> tuple[list[int], list[str], list[float]]:
    """The rows that tell most one after the other, why, and the sd of π after each."""
    free = ~np.isin(kept, taken)
    chosen, why, after = [], [], []
    for _ in range(count):
        i = int(np.argmax(np.where(free, state.gain(), -1.0)))
        why.append(_why(state, i, goal))
        state.condition(i)
        free[i] = False
        chosen.append(int(kept[i]))
        after.append(state.sd_pi)
    return chosen, why, after


def _why(state: _Covariances, i: int, goal: str) -> str:
    correlation = state.correlation(i)
    if goal == "rows":
        return "its class tells most about those of other rows"
    if goal == "orientation":
        side = "exchanged" if correlation > 0 else "as named"
        return (
            f"a positive here would speak for the factors {side} (correlation {correlation:+.2f})"
        )
    more = "higher" if correlation > 0 else "lower"
    return f"a positive here would make the class prior {more} (correlation {correlation:+.2f})"


def _random_sd(
    fit: FittedModel,
    draws: Parameters,
    pi: Array,
    among: NDArray[np.intp],
    k: int,
    rng: np.random.Generator,
    repeats: int = 5,
) -> float:
    """Expected sd of π after k rows drawn at random, for comparison."""
    variances = []
    for _ in range(repeats):
        m = positive_given_labels(fit.data)(draws, rng.choice(among, k, replace=False))
        state = _Covariances(pi[:, None], m, 1)
        for i in range(k):
            state.condition(i)
        variances.append(state.sd_pi**2)
    return float(np.sqrt(np.mean(variances)))


def _table(
    fit: FittedModel,
    draws: Parameters,
    positions: NDArray[np.intp],
    n_chosen: int,
    after: list[float],
    why: list[str],
    ci_prob: float | None,
) -> pd.DataFrame:
    m = positive_given_labels(fit.data)(draws, positions)
    lower, upper = np.quantile(m, tail_probabilities(ci_prob), axis=0)
    n_random = len(positions) - n_chosen
    return pd.DataFrame(
        {
            "missed": m.mean(axis=0),
            "lower": lower,
            "upper": upper,
            "sd of pi after": after,
            "picked": ["chosen"] * n_chosen + ["random"] * n_random,
            "why": [*why, *["drawn at random, to check the model"] * n_random],
        },
        index=fit.data.index[positions],
    )
