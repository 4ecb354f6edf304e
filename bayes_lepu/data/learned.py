r"""Learned columns: how the class bends.

.. math:: t(x) = \sigma(a\cdot x + \textstyle\sum_k w_k z_k(x) + b), \qquad
    z_k = \log r_k - \log\bigl(\tau \log(1 + e^{(1 - r_k)/\tau})\bigr), \qquad
    r_k(x) = \hat h_k(x) / c_k

Each :math:`\hat h_k` is a classifier trained on the labels. It estimates P(l=1 | x) = s(x) t(x),
and with a constant s = c the class is h/c. So z is the log-odds of the score relative to that of a
surely positive row, :math:`\log r - \log(1 - r)`, with a soft end where noise lifts a score above
it (τ = 0.1). Log-odds of h itself would flatten where h comes near c, and the class prior of the
fit would be too small. :math:`c_k` is 1.2 times the mean score of the marked rows, at most 1: Elkan
and Noto's estimate of c, and a fifth more, because some of the marked rows are not sure ones.

The shape of the class so comes from the classifier; its level, and the split of the labels'
probability into class and propensity, stay with the few coefficients of the model. The propensity
has no learned columns.

Rows of the fit get the score of a classifier that was trained without them; new rows that of the
classifier trained on all. Scores are kept within [0.001, 0.999].

A classifier sees the columns of the class on the internal scale, an array ``(n, k)``, and the
labels 0/1: marked by anybody, or the class itself where it was audited.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from bayes_lepu.data.formulas import is_group
from bayes_lepu.data.scaling import column_moments
from bayes_lepu.data.scorers import MOST_ROWS, Kernel, KernelClassifier, Trees, as_arrays
from bayes_lepu.errors import DataError, FileFormatError, ModelError
from bayes_lepu.links import Array
from bayes_lepu.suggestions import unknown

if TYPE_CHECKING:
    from bayes_lepu.data.pu_data import PUData

LEARNERS = ("boosting", "kernel", "trees")
KINDS = (Kernel, Trees)  # of scorers that predict and are saved as arrays
AUTO_LEARNERS = ("kernel", "trees")  # smooth shapes and steps; both have scores without refits
FOLDS = 5  # so that a score is made with four fifths of the rows
FEWEST_MARKS = 20  # four in a fold; with fewer the scores are noise
FEWEST_KINDS, KINDS_AMONG = 50, 2000  # different rows among the first ones
SURE = 1e-3  # scores are kept this far from 0 and 1: log-odds of ±6.9
MANY_ROWS = 3000  # from here on the labels support larger trees
# Of the mean score of marked rows: on the tuning tables 1.05, 1.2 and 1.4 gave nearly the same.
SUREST = 1.2
SOFT_END = 0.1  # τ: a score at c_k has log-odds of 2.7


@dataclass(frozen=True, eq=False)
class Learned:
    """The learned columns of a fit."""

    names: tuple[str, ...]
    columns: NDArray[np.intp]  # places of the columns of X that the classifiers see
    scorers: tuple[Any, ...]  # Trees, Kernels or fitted classifiers, trained on all rows
    levels: Array  # c_k, the score of a surely positive row

    def log_odds(self, X: Array) -> Array:
        """The columns ``(n, K)`` of new rows, from their own columns on the internal scale."""
        seen = np.ascontiguousarray(X[:, self.columns])
        scores = np.column_stack([_bounded(_score(scorer, seen)) for scorer in self.scorers])
        return _relative_log_odds(scores, self.levels)

    def to_arrays(self) -> dict[str, Any]:
        """What a file holds of them, by name; `from_arrays` reads it back."""
        if kinds := [type(s).__name__ for s in self.scorers if not isinstance(s, KINDS)]:
            raise ModelError(
                f"A fit whose class was learned by {', '.join(kinds)} cannot be saved: a file "
                "holds trees and kernels. Use class_learner='boosting', 'kernel' or 'trees', or a "
                "HistGradientBoostingClassifier, ExtraTreesClassifier or RandomForestClassifier."
            )
        out: dict[str, Any] = {"columns": self.columns, "levels": self.levels}
        for k, scorer in enumerate(self.scorers):
            out |= {f"{name}_{k}": values for name, values in scorer.to_arrays().items()}
        return out

    @classmethod
    def from_arrays(cls, names: Sequence[str], arrays: Mapping[str, Any]) -> "Learned":
        """Inverse of `to_arrays`; arrays that are no trees are refused."""
        columns, levels = arrays["columns"].astype(np.intp), arrays["levels"].astype(float)
        if levels.shape != (len(names),) or not np.all((levels > 0) & (levels <= 1)):
            raise FileFormatError("The file holds a learned class whose levels are damaged.")
        scorers: tuple[Any, ...] = ()
        for k in range(len(names)):
            own = {n.removesuffix(f"_{k}"): v for n, v in arrays.items() if n.endswith(f"_{k}")}
            kind: Any = Kernel if "centres" in own else Trees
            scorers += (kind.from_arrays(own, width=columns.size),)
        return cls(tuple(names), columns, scorers, levels)


def read_learner(given: Any) -> tuple[Any, ...]:
    """The classifiers that ``class_learner=`` names, one per learned column."""
    if given is None or (isinstance(given, str) and given == "auto"):
        return ()  # left to the labels: `bayes_lepu.choosing`
    several = tuple(given) if isinstance(given, list | tuple) else (given,)
    for one in several:
        if isinstance(one, str):
            if one not in LEARNERS:
                raise ModelError(unknown("class_learner", one, ("auto", *LEARNERS)))
        elif isinstance(one, type) or not (hasattr(one, "fit") and hasattr(one, "predict_proba")):
            raise ModelError(
                f"class_learner is {one!r}; 'boosting', 'kernel', 'trees', a list of them, or a "
                "classifier of scikit-learn with fit and predict_proba is expected, for example "
                "RandomForestClassifier(min_samples_leaf=5)."
            )
    return several


def can_learn(data: "PUData", folds: int = 0) -> bool:
    """Whether there are rows and columns to learn the shape of the class from.

    So many ``folds`` are then left out in turn, to compare it with a straight class.
    """
    if data.is_sparse or not data.in_memory or not _seen(data).any():
        return False
    target = _target(data)
    fewest = FEWEST_MARKS * folds / (folds - 1) if folds else FEWEST_MARKS
    return bool(min(target.sum(), (1 - target).sum()) >= fewest)


def of_few_kinds(data: "PUData") -> bool:
    """Whether the rows repeat: these cannot tell a curved class from a varying annotator."""
    if data.is_sparse or not data.in_memory:
        return False
    return len(np.unique(data.X[:KINDS_AMONG][:, _seen(data)], axis=0)) < FEWEST_KINDS


def with_learned(data: "PUData", learners: Sequence[Any], random_seed: int) -> "PUData":
    """The same rows with a learned column in the class for every classifier.

    The classifiers see the columns of the class except group intercepts, whose rows are left out
    together instead.
    """
    if not learners:
        return data
    if data.is_sparse:
        raise DataError(
            "class_learner needs dense columns, and X is a sparse matrix. Use X.toarray(), or "
            "fewer columns (TruncatedSVD), or leave class_learner out."
        )
    grouped = _grouped(data)
    groups = None
    if grouped:
        widest = max(grouped, key=len)
        levels = data.X[:, widest] * data.scale[widest] + data.center[widest]
        groups = np.where(levels.max(axis=1) > 0.5, levels.argmax(axis=1), len(widest))
    scores, learned = learn(
        learners,
        data.X,
        np.flatnonzero(_seen(data)),
        _target(data),
        taken=data.feature_names,
        weight=data.weight,
        groups=groups,
        random_seed=random_seed,
    )
    center, scale = column_moments(scores, data.weight)
    scale = np.where(scale > 0, scale, 1.0)
    return _with_columns(data, learned, scores, center, scale)


def scored_by(like: "PUData", data: "PUData") -> "PUData":
    """Other rows with the learned columns of ``like``, by its classifiers."""
    assert like.learned is not None
    mask = like.is_learned
    scores = like.learned.log_odds(np.asarray(data.X))
    return _with_columns(data, like.learned, scores, like.center[mask], like.scale[mask])


def _with_columns(
    data: "PUData", learned: Learned, scores: Array, center: Array, scale: Array
) -> "PUData":
    at, count = data.given_width, len(learned.names)

    def between(old: Any, new: Any) -> Any:
        return np.concatenate([old[:at], new, old[at:]])

    names = data.feature_names
    return replace(
        data,
        X=np.hstack([data.X[:, :at], (scores - center) / scale, data.X[:, at:]]),
        feature_names=(*names[:at], *learned.names, *names[at:]),
        center=between(data.center, center),
        scale=between(data.scale, scale),
        class_mask=between(data.class_mask, np.ones(count, dtype=bool)),
        selection_mask=between(data.selection_mask, np.zeros(count, dtype=bool)),
        learned=learned,
    )


def _grouped(data: "PUData") -> list[list[int]]:
    """Places of the columns of every group intercept."""
    return [list(at) for term, at in data.blocks.items() if is_group(term)]


def _seen(data: "PUData") -> NDArray[np.bool_]:
    """The columns that the classifiers see."""
    seen = data.class_mask & ~data.is_learned
    seen[[j for at in _grouped(data) for j in at]] = False
    return seen


def _target(data: "PUData") -> NDArray[np.int8]:
    """Whether anybody marked the row, or its class where audited."""
    return np.where(np.isnan(data.y), data.l, data.y).astype(np.int8)


def without_learned(data: "PUData") -> "PUData":
    """The same rows with the user's columns alone."""
    return replace(data.columns(~data.is_learned), learned=None)


def learn(
    learners: Sequence[Any],
    X: Array,
    columns: NDArray[np.intp],
    target: NDArray[np.int8],
    *,
    taken: Sequence[str],
    weight: Array,
    groups: NDArray[np.intp] | None = None,
    random_seed: int,
) -> tuple[Array, Learned]:
    """Cross-fitted log-odds of the rows, and the classifiers trained on all of them.

    ``columns``: places in X of those the class may use; ``taken``: names that the new columns must
    not have; ``weight``: of length 0 where every row counts once; ``groups``: rows of one group are
    left out together.
    """
    marks = int(min(target.sum(), (1 - target).sum()))
    if marks < FEWEST_MARKS:
        raise DataError(
            f"class_learner learns the shape of the class from {int(target.sum())} marked and "
            f"{int((1 - target).sum())} other rows; at least {FEWEST_MARKS} of each are needed. "
            "Leave class_learner out: the class is then a straight line in the columns."
        )
    seen = np.ascontiguousarray(X[:, columns])
    scores: list[Array] = []
    scorers: list[Any] = []
    names: list[str] = []
    with threadpool_limits(1, user_api="openmp"):  # two threads take eight times the CPU of one
        for k, learner in enumerate(learners):
            make = _Maker(learner, len(target), random_seed + k)
            whole = make.train(seen, target, weight)
            score = make.left_out(whole, target, groups)
            if score is None:
                score = np.empty(len(target))
                for rest, fold in _folds(target, groups, random_seed):
                    own = weight[rest] if weight.size else weight
                    part = as_arrays(make.train(seen[rest], target[rest], own))
                    score[fold] = _score(part, seen[fold])
            scores.append(_bounded(score))
            scorers.append(as_arrays(whole))
            names.append(_name(make.name, [*taken, *names]))
    found = np.column_stack(scores)
    marked = np.average(found, axis=0, weights=target * (weight if weight.size else 1.0))
    levels = np.minimum(SUREST * marked, 1.0)
    learned = Learned(tuple(names), columns, tuple(scorers), levels)
    return _relative_log_odds(found, levels), learned


@dataclass(frozen=True)
class _Maker:
    """Makes and trains one kind of classifier, again and again with the same seed."""

    learner: Any
    rows: int
    seed: int

    @property
    def name(self) -> str:
        return self.learner if isinstance(self.learner, str) else type(self.learner).__name__

    def train(self, X: Array, target: NDArray[np.int8], weight: Array) -> Any:
        """A classifier trained on these rows."""
        with warnings.catch_warnings():  # rows that are in every tree have the rate of all rows
            warnings.filterwarnings("ignore", "Some inputs do not have OOB scores", UserWarning)
            return self._trained(X, target, weight)

    def _trained(self, X: Array, target: NDArray[np.int8], weight: Array) -> Any:
        classifier = self._new()
        if not weight.size or np.ptp(weight) == 0:  # bins by weights take ten times as long
            return classifier.fit(X, target)
        try:
            return classifier.fit(X, target, sample_weight=weight)
        except TypeError as error:
            raise ModelError(
                f"{self.name} cannot be trained with sample_weight ({error}). Use a classifier "
                "whose fit takes it, such as class_learner='boosting'."
            ) from error

    def left_out(
        self, whole: Any, target: NDArray[np.int8], groups: NDArray[np.intp] | None
    ) -> Array | None:
        """Scores of the rows as if trained without them; None where classifiers are refitted."""
        if self.learner not in AUTO_LEARNERS or groups is not None:
            return None
        if self.learner == "kernel":
            return whole.left_out
        score = whole.oob_decision_function_[:, 1]
        return np.where(np.isnan(score), target.mean(), score)

    def _new(self) -> Any:
        from sklearn.base import clone
        from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier

        many = self.rows >= MANY_ROWS
        if self.learner == "boosting":
            return HistGradientBoostingClassifier(
                max_iter=150 if many else 60,
                max_leaf_nodes=16 if many else 8,
                early_stopping=False,
                random_state=self.seed % 2**32,
            )
        if self.learner == "kernel":
            return KernelClassifier(self.seed % 2**32)
        if self.learner == "trees":
            return ExtraTreesClassifier(
                n_estimators=200,
                min_samples_leaf=3,
                bootstrap=True,
                oob_score=True,
                max_samples=MOST_ROWS if self.rows > MOST_ROWS else None,
                random_state=self.seed % 2**32,
            )
        classifier = clone(self.learner)
        seeds = {k: self.seed % 2**32 for k in classifier.get_params() if k == "random_state"}
        free = {k: v for k, v in seeds.items() if classifier.get_params()[k] is None}
        return classifier.set_params(**free) if free else classifier


def _folds(
    target: NDArray[np.int8], groups: NDArray[np.intp] | None, seed: int
) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Rows to train on and rows left out, marked ones in every fold.

    Groups are left out whole, unless they are too few, or their marks in too few of them.
    """
    from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

    how: Any = {"shuffle": True, "random_state": seed % 2**32}
    rows = np.zeros(len(target))
    if groups is not None and len(np.unique(groups)) >= FOLDS:
        folds = list(StratifiedGroupKFold(FOLDS, **how).split(rows, target, groups))
        if all(0 < target[rest].mean() < 1 for rest, _ in folds):
            return folds
    return list(StratifiedKFold(FOLDS, **how).split(rows, target))


def _score(scorer: Any, X: Array) -> Array:
    """P(marked | x) by a classifier or by its arrays."""
    if isinstance(scorer, KINDS):
        return scorer.probability(X)
    return np.asarray(scorer.predict_proba(X)[:, list(scorer.classes_).index(1)], dtype=float)


def _bounded(score: Array) -> Array:
    """Scores, kept away from certainty."""
    return np.clip(score, SURE, 1 - SURE)


def _relative_log_odds(scores: Array, levels: Array) -> Array:
    """The columns z of scores (n, K), relative to those of a surely positive row."""
    ratio = scores / levels
    return np.log(ratio) - np.log(SOFT_END * np.logaddexp(0.0, (1.0 - ratio) / SOFT_END))


def _name(kind: str, taken: Sequence[str]) -> str:
    """A name for a column of scores that no other column has."""
    name, count = f"score({kind})", 2
    while name in taken:
        name, count = f"score({kind} {count})", count + 1
    return name
