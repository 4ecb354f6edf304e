r"""The choice of ``model="auto"``: a class and an annotator, by the prediction of held-out labels.

Six models are compared by their log likelihood of held-out labels,

.. math:: \{\text{straight}, \text{learned class}\} \times \{\text{scar}, \text{spm},
    \text{psychm}\}, \qquad \sum_{\text{folds}} \log L(l_{\text{fold}} \mid
    \hat\theta_{\text{the other rows}}),

each as a point estimate from three quarters of the rows. The class is chosen first, because two
straight factors can imitate a curved class, which would then look like an annotator whose
propensity varies. The learned class is chosen if it leads by more than `BEND_MARGIN`. Then the
annotator is chosen: the first in a fixed order that is within `MARGIN` of the best. With a straight
class the order begins with scar, because with few labels a varying s absorbs a part of the class.
With a learned class it begins with spm: s can then absorb nothing, and on public tables the π of
spm was as good as that of scar where marks were random, and better elsewhere. Tables with few
distinct rows allow scar only. Other models that predict the labels as well with another π
(`Choice.as_good`) widen the verdict's range.
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
# Log-likelihood units; three make the data twenty times as likely. On the tuning tables of the
# benchmark (`benchmarks.real`) margins from 0 to 5 perform alike.
BEND_MARGIN, MARGIN = 3.0, 3.0
FOLDS = 4  # each refits six models
HELD_OUT = attrgetter("held_out")
COMPARED_ROWS = 8_000  # larger tables are thinned evenly; leads there are in the hundreds
COMPARED_MARKS = 1_000  # marked rows of such a part, where there are as many


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
        """The other models that predict the labels as well as the best one."""
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
    """The choice among candidates, and the second entry of the chosen pair."""
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
    """The rows with a straight class and, if it can be learned, with one by ``learners``.

    Large tables are thinned evenly.
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
    """One class to compare: all rows, the part that is compared, and the folds of this part.

    A fold has the positions of the rows left out, the other rows, and the rows left out. Learned
    columns of the latter come from classifiers trained on the other rows only; scores from
    cross-fitting over all rows would reveal the held-out labels.
    """

    data: PUData
    part: PUData
    folds: list[tuple[NDArray[np.intp], PUData, PUData]]

    @classmethod
    def of(cls, data: PUData, most: int, learners: Sequence[Any], random_seed: int) -> "Compared":
        """The rows of a fit, at most ``most`` of them compared."""
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
    """How well a model predicts held-out labels, as a `Candidate`."""
    found, pi = held_out_rows(spec, compared, priors, random_seed)
    total = float(found @ compared.part.weight)
    return Candidate(spec.name, compared.data.learned is not None, total, pi)


def held_out_rows(
    spec: ModelSpec, compared: Compared, priors: Priors, random_seed: int
) -> tuple[Array, float]:
    """Log likelihood of every row by a point estimate without its fold, and π with all rows.

    The fit of a fold starts at the mode of all rows.
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
    """The fold of every row; marked and unmarked rows are spread evenly over the folds."""
    order = np.random.default_rng([random_seed, 9]).permutation(data.n)
    order = order[np.argsort(data.l[order], kind="stable")]
    fold = np.empty(data.n, dtype=int)
    fold[order] = np.arange(data.n) % FOLDS
    return fold
