r"""What ``model="auto"`` does: it asks the labels which class and which annotator they need.

Six models are compared by how well they predict labels that they have not seen,

.. math:: \{\text{straight}, \text{learned class}\} \times \{\text{scar}, \text{spm},
    \text{psychm}\}, \qquad \sum_{\text{folds}} \log L(l_{\text{fold}} \mid
    \hat\theta_{\text{the other rows}}),

each a point estimate on three quarters of the rows. The curve is asked for first: two straight
factors follow a curved class by giving each a part of it, so a straight class would take a curve
for an annotator whose care varies. The learned class is taken where it leads by more than
`BEND_MARGIN`. Then the annotator, the first within `MARGIN` of the best: with a straight class the
simplest, since a varying s takes a part of the class with it where the labels are few; with a
learned class spm, since s has nothing of the class to take, and on public tables its π was as good
as scar's where marks were random and better elsewhere. Rows of few kinds have scar alone. Models
that predict the labels as well with another π are kept (`Choice.as_good`) for the verdict's range.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayes_lepu.data.learned import (
    AUTO_LEARNERS,
    can_learn,
    read_learner,
    scored_by,
    with_learned,
    without_learned,
)
from bayes_lepu.data.pu_data import PUData
from bayes_lepu.engines.map import fit_map
from bayes_lepu.engines.pooling import known_scales
from bayes_lepu.links import Array
from bayes_lepu.model.density import row_terms
from bayes_lepu.model.parameters import Parameters
from bayes_lepu.model.spec import ModelSpec
from bayes_lepu.priors.prior import Priors

ANNOTATORS = ("scar", "spm", "psychm")
PREFERRED = {False: ANNOTATORS, True: ("spm", "scar", "psychm")}  # by whether the class is learned
# Log-likelihood units. From 0 to 5 the tuning tables of the benchmark (`benchmarks.real`) do not
# tell margins apart; three make the data twenty times as likely.
BEND_MARGIN, MARGIN = 3.0, 3.0
FOLDS = 4  # each refits six models
HELD_OUT = attrgetter("held_out")
COMPARED_ROWS = 8_000  # of a larger table an even part decides: leads there are in the hundreds
COMPARED_MARKS = 1_000  # marked rows that such a part has, where there are as many


@dataclass(frozen=True)
class Candidate:
    """One of the models that were compared."""

    model: str  # the annotator's
    learned: bool  # whether the class has learned columns
    held_out: float  # log likelihood of labels that the model has not seen
    pi: float  # the class prior by the point estimate


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
        """The lead in log likelihood of a learned over a straight class, each at its best."""
        best = _best(self.candidates)
        return best[True] - best[False] if len(best) == 2 else None

    @property
    def as_good(self) -> tuple[Candidate, ...]:
        """The others that predict the labels as well as the best one."""
        least = max(c.held_out for c in self.candidates) - MARGIN
        return tuple(c for c in self.candidates[1:] if c.held_out >= least)

    def to_frame(self) -> pd.DataFrame:
        """One row per model: class, annotator, log-likelihood units behind the best, π."""
        found = pd.DataFrame([vars(c) for c in self.candidates])
        found["class"] = np.where(found["learned"], "learned", "straight")
        found["behind"] = found["held_out"].max() - found["held_out"]
        return found[["class", "model", "behind", "pi"]]


def _best(candidates: Sequence[Candidate]) -> dict[bool, float]:
    """Log likelihood of the best straight and of the best learned class."""
    return {c.learned: c.held_out for c in sorted(candidates, key=HELD_OUT)}


def choose(compared: Sequence[tuple[Candidate, Any]]) -> tuple[Choice, Any]:
    """The choice among candidates, and what came with the chosen one."""
    best = _best([candidate for candidate, _ in compared])
    learned = best.get(True, -np.inf) > best.get(False, -np.inf) + BEND_MARGIN
    rivals = [one for one in compared if one[0].learned == learned]
    rivals.sort(key=lambda one: PREFERRED[learned].index(one[0].model))
    chosen = next(one for one in rivals if one[0].held_out >= best[learned] - MARGIN)
    others = sorted((c for c, _ in compared if c != chosen[0]), key=HELD_OUT, reverse=True)
    return Choice((chosen[0], *others)), chosen[1]


def classes_to_compare(
    data: PUData, asked: Any, random_seed: int, learners: Sequence[Any] = AUTO_LEARNERS
) -> list["Compared"]:
    """The rows with a straight class and, where they can, with one learned by ``learners``.

    Of many rows an even part is compared.
    """
    marks = max(int(data.held.l.sum()), 1)
    most = max(COMPARED_ROWS, data.held.n * COMPARED_MARKS // marks)
    given = read_learner(asked)
    found = [Compared.of(data, most, given, random_seed)]
    if not given and asked is not None and can_learn(data, FOLDS):
        learned = with_learned(data, learners, random_seed)
        found.append(Compared.of(learned, most, learners, random_seed))
    return found


@dataclass(frozen=True, eq=False)
class Compared:
    """A class to compare: all rows, those compared, and these cut into folds.

    A fold has the places of the rows left out, the other rows, and the rows left out as these see
    them: with learned columns, by classifiers that have not seen them either. The scores of a fold
    that was left out would tell its labels, as what the others lack.
    """

    data: PUData
    part: PUData
    folds: list[tuple[NDArray[np.intp], PUData, PUData]]

    @classmethod
    def of(cls, data: PUData, most: int, learners: Sequence[Any], random_seed: int) -> "Compared":
        """The rows of a fit, at most so many of them compared."""
        part = data.held.evenly(most)
        fold_of, folds = _folds(part, random_seed), []
        for fold in range(FOLDS):
            rest, left = part.rows(fold_of != fold), part.rows(fold_of == fold)
            if learners and can_learn(without_learned(rest)):
                rest = with_learned(without_learned(rest), learners, random_seed)
                left = scored_by(rest, without_learned(left))
            folds.append((np.flatnonzero(fold_of == fold), rest, left))
        return cls(data, part, folds)


def held_out(spec: ModelSpec, compared: Compared, priors: Priors, random_seed: int) -> Candidate:
    """How well a model predicts labels that it has not seen."""
    found, pi = held_out_rows(spec, compared, priors, random_seed)
    total = float(found @ compared.part.weight)
    return Candidate(spec.name, compared.data.learned is not None, total, pi)


def held_out_rows(
    spec: ModelSpec, compared: Compared, priors: Priors, random_seed: int
) -> tuple[Array, float]:
    """Log likelihood of every row by a point estimate without its fold, and π with all rows.

    A fold starts where all rows together have their mode.
    """
    part, scales, found = compared.part, known_scales(priors), np.empty(compared.part.n)

    def search(data: PUData, start: Parameters | None = None) -> Parameters:
        rng = np.random.default_rng(random_seed)
        return fit_map(spec, data, scales, rule="none", initial=start, rng=rng).point

    whole = search(part)
    for places, rest, left in compared.folds:
        found[places] = row_terms(search(rest, whole), left)[0]
    return found, float(np.average(whole.t(part.X), weights=part.weight))


def _folds(data: PUData, random_seed: int) -> Any:
    """The fold of every row: marked rows spread evenly, as the others are."""
    order = np.random.default_rng([random_seed, 9]).permutation(data.n)
    order = order[np.argsort(data.l[order], kind="stable")]
    fold = np.empty(data.n, dtype=int)
    fold[order] = np.arange(data.n) % FOLDS
    return fold
