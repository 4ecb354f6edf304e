r"""What ``model="auto"`` does: it asks the labels which class and which annotator they need.

Six models are compared by how well they predict labels that they have not seen,

.. math:: \{\text{straight}, \text{learned class}\} \times \{\text{scar}, \text{spm},
    \text{psychm}\}, \qquad \sum_{\text{folds}} \log L(l_{\text{fold}} \mid
    \hat\theta_{\text{the other rows}}),

each a point estimate on three quarters of the rows. The curve is asked for first: two straight
factors follow a curved class by giving each a part of it, so a straight class would take a curve
for an annotator whose care varies. The learned class is taken where it leads by more than `MARGIN`;
given that, the simplest annotator within `MARGIN` of the best one. Models that predict the labels
as well and say another π are kept (`Choice.as_good`): the range of the verdict holds them all.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd

from bayes_lepu.data.learned import AUTO_LEARNERS, can_learn, with_learned
from bayes_lepu.data.pu_data import PUData
from bayes_lepu.inference.map import MapResult, fit_map
from bayes_lepu.models.row_sums import row_terms
from bayes_lepu.models.spec import ModelSpec
from bayes_lepu.priors.prior import Priors

ANNOTATORS = ("scar", "spm", "psychm")  # the simplest first
MARGIN = 3.0  # log-likelihood units; between 2 and 10 the answers on real tables are the same
FOLDS = 4
COMPARED_ROWS = 20_000  # of a larger table an even part decides: leads there are in the hundreds
COMPARED_MARKS = 1_000  # marked rows that such a part has, where there are as many


@dataclass(frozen=True)
class Candidate:
    """One of the models that were compared.

    Attributes
    ----------
    model : str
        The annotator's model.
    learned : bool
        Whether the class has learned columns.
    held_out : float
        Log likelihood of labels that the model has not seen.
    pi : float
        The class prior by the point estimate.
    """

    model: str
    learned: bool
    held_out: float
    pi: float


@dataclass(frozen=True)
class Choice:
    """The models that ``model="auto"`` compared, the chosen one first."""

    candidates: tuple[Candidate, ...]

    @property
    def chosen(self) -> Candidate:
        """The model of the fit."""
        return self.candidates[0]

    @property
    def bend(self) -> float | None:
        """By how much a learned class predicts labels better than a straight one; None if unasked.

        In log-likelihood units over all rows compared, each class with its best annotator.
        """
        best = {c.learned: c.held_out for c in sorted(self.candidates, key=_held_out)}
        return best[True] - best[False] if len(best) == 2 else None

    @property
    def as_good(self) -> tuple[Candidate, ...]:
        """The others that predict the labels as well as the best one."""
        least = max(c.held_out for c in self.candidates) - MARGIN
        return tuple(c for c in self.candidates[1:] if c.held_out >= least)

    def to_frame(self) -> pd.DataFrame:
        """One row per model: class, annotator, log-likelihood units behind the best, π."""
        best = max(c.held_out for c in self.candidates)
        return pd.DataFrame(
            {
                "class": ["learned" if c.learned else "straight" for c in self.candidates],
                "model": [c.model for c in self.candidates],
                "behind": [best - c.held_out for c in self.candidates],
                "pi": [c.pi for c in self.candidates],
            }
        )

    def to_list(self) -> list[dict[str, Any]]:
        """What a file holds; `from_list` reads it back."""
        return [asdict(candidate) for candidate in self.candidates]

    @classmethod
    def from_list(cls, stored: Sequence[dict[str, Any]]) -> "Choice":
        """Inverse of `to_list`."""
        return cls(tuple(Candidate(**one) for one in stored))


def choose(compared: Sequence[tuple[Candidate, Any]]) -> tuple[Choice, Any]:
    """The choice among candidates, and what came with the chosen one."""
    best = {c.learned: c.held_out for c, _ in sorted(compared, key=lambda one: _held_out(one[0]))}
    learned = best.get(True, -np.inf) > best.get(False, -np.inf) + MARGIN
    rivals = [one for one in compared if one[0].learned == learned]
    chosen = next(one for one in rivals if one[0].held_out >= best[learned] - MARGIN)
    others = sorted((c for c, _ in compared if c != chosen[0]), key=_held_out, reverse=True)
    return Choice((chosen[0], *others)), chosen[1]


def classes_to_compare(data: PUData, asked: Any, random_seed: int) -> list[PUData]:
    """The rows with a straight class and, where they can, with a learned one."""
    learn = asked == "auto" and can_learn(data)
    return [data, with_learned(data, AUTO_LEARNERS, random_seed)] if learn else [data]


def held_out(spec: ModelSpec, data: PUData, priors: Priors, random_seed: int) -> Candidate:
    """How well a model predicts labels that it has not seen, by four folds of the rows.

    A fold starts where all rows together have their mode.
    """
    marks = max(int(data.l.sum()), 1)
    rows = data.evenly(max(COMPARED_ROWS, data.n * COMPARED_MARKS // marks))
    whole = _search(spec, rows, priors, random_seed)
    total = 0.0
    fold_of = _folds(rows, random_seed)
    for fold in range(FOLDS):
        rest, left = rows.rows(fold_of != fold), rows.rows(fold_of == fold)
        point = _search(spec, rest, priors, random_seed, start=whole).point
        total += float(row_terms(point, left)[0] @ left.each_weight)
    pi = float(np.average(whole.point.t(rows.X), weights=rows.row_weights))
    return Candidate(spec.name, data.learned is not None, total, pi)


def _search(
    spec: ModelSpec,
    data: PUData,
    priors: Priors,
    random_seed: int,
    start: MapResult | None = None,
) -> MapResult:
    rng = np.random.default_rng(random_seed)
    initial = None if start is None else start.point
    return fit_map(spec, data, priors, rule="none", initial=initial, rng=rng)


def _folds(data: PUData, random_seed: int) -> Any:
    """The fold of every row: marked rows spread evenly, as the others are."""
    order = np.random.default_rng([random_seed, 9]).permutation(data.n)
    order = order[np.argsort(data.l[order], kind="stable")]
    fold = np.empty(data.n, dtype=int)
    fold[order] = np.arange(data.n) % FOLDS
    return fold


def _held_out(candidate: Candidate) -> float:
    return candidate.held_out
