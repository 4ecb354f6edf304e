r"""Learned columns: scores of classifiers that make the class non-linear in the columns.

.. math:: t(x) = \sigma(a\cdot x + \textstyle\sum_k w_k z_k(x) + b), \qquad
    z_k = \log r_k - \log\bigl(\tau \log(1 + e^{(1 - r_k)/\tau})\bigr), \qquad
    r_k(x) = \hat h_k(x) / c_k

Each :math:`\hat h_k` is a classifier trained on the labels. It estimates P(l=1 | x) = s(x) t(x),
and with a constant s = c the class is h/c. So z is the log-odds of the score relative to that of a
surely positive row, :math:`\log r - \log(1 - r)`, with a soft maximum for scores that noise lifts
above it (τ = 0.1). Log-odds of h itself would flatten where h approaches c, and the class prior of
the fit would be too small. :math:`c_k` is 1.2 times the mean score of the marked rows, at most 1.
This is Elkan and Noto's estimate of c plus a fifth, because some marked rows are not surely
positive.

The classifier thus gives the shape of the class. The few coefficients of the model give its level
and the split of the labels' probability into class and propensity. The propensity has no learned
columns. Rows of the fit get the score of a classifier that was trained without them, new rows that
of the classifier trained on all rows.

A classifier sees the columns of the class on the internal scale, an array ``(n, k)``, and the
labels 0/1: marked by anybody, or the class itself where it was audited. Trained classifiers are
kept as plain arrays (trees or a kernel), so that they can be saved without pickle. A kernel is a
logistic regression on Gaussian functions around some rows (Nystroem's approximation):

.. math:: \eta(x) = b + \sum_j w_j \exp(-\gamma \lVert x - c_j\rVert^2), \qquad
    \min_{w, b} \; -\sum_i \log p(l_i \mid \eta(x_i)) + \tfrac{\lambda}{2}\, w^\top K w.

The leave-one-out log-odds of a row follow from one Newton step, with :math:`g_i` its leverage:

.. math:: \eta_{-i} = \eta_i - \frac{g_i}{1 - g_i}\, \frac{l_i - p_i}{p_i (1 - p_i)}.

γ and λ maximise this leave-one-out prediction.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit
from threadpoolctl import threadpool_limits

from bayes_lepu.data.formulas import is_group
from bayes_lepu.data.scaling import column_moments
from bayes_lepu.errors import DataError, FileFormatError, ModelError
from bayes_lepu.links import Array
from bayes_lepu.runtime.compilation import compiled
from bayes_lepu.suggestions import unknown

if TYPE_CHECKING:
    from bayes_lepu.data.pu_data import PUData

LEARNERS = ("boosting", "kernel", "trees")
AUTO_LEARNERS = ("kernel", "trees")  # smooth shapes and steps; both score held-out rows cheaply
FOLDS = 5  # so that each classifier is trained on four fifths of the rows
FEWEST_MARKS = 20  # four in a fold; with fewer the scores are noise
FEWEST_KINDS, KINDS_AMONG = 50, 2000  # different rows among the first ones
SURE = 1e-3  # scores are kept this far from 0 and 1: log-odds of ±6.9
MANY_ROWS = 3000  # from here on the labels support larger trees
# Of the mean score of marked rows: on the tuning tables 1.05, 1.2 and 1.4 gave nearly the same.
SUREST = 1.2
SOFT_END = 0.1  # τ: a score at c_k has log-odds of 2.7
# Centres are drawn without the labels, because more centres among marked rows would reveal them.
# The other two numbers of rows, in training and in prediction, bound time and memory.
CENTRES, MOST_ROWS = 150, 10_000
WIDTHS = (0.3, 1.0, 3.0)  # γ times the number of columns
PENALTIES = (1.0, 0.1)  # λ, the largest first: each search starts at the previous solution
STEPS, LONGEST, ENOUGH = 12, 5.0, 0.1  # of Newton, in log-odds
# Columns are clipped at so many standard deviations, because a kernel is flat in heavy tails. Below
# this share of the largest eigenvalue of K directions are rounding errors.
FARTHEST, LOWEST = 3.0, 1e-8


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
        return _log_odds(np.column_stack([_score(one, seen) for one in self.scorers]), self.levels)

    def to_arrays(self) -> dict[str, Any]:
        """Arrays by name for a file; the inverse of `from_arrays`."""
        kinds = [type(s).__name__ for s in self.scorers if not isinstance(s, Kernel | Trees)]
        if kinds:
            raise ModelError(
                f"A fit whose class was learned by {', '.join(kinds)} cannot be saved: a file "
                "holds trees and kernels. Use class_learner='boosting', 'kernel' or 'trees', or a "
                "HistGradientBoostingClassifier, ExtraTreesClassifier or RandomForestClassifier."
            )
        out: dict[str, Any] = {"columns": self.columns, "levels": self.levels}
        for k, scorer in enumerate(self.scorers):
            out |= {f"{name}_{k}": values.ravel() for name, values in scorer._asdict().items()}
        return out

    @classmethod
    def from_arrays(cls, names: Sequence[str], arrays: Mapping[str, Any]) -> "Learned":
        """Inverse of `to_arrays`; arrays that are no trees or kernels are refused."""
        columns, levels = arrays["columns"].astype(np.intp), arrays["levels"].astype(float)
        if levels.shape != (len(names),) or not np.all((levels > 0) & (levels <= 1)):
            raise FileFormatError("The file holds a learned class whose levels are damaged.")
        scorers: tuple[Any, ...] = ()
        for k in range(len(names)):
            own = {n.removesuffix(f"_{k}"): v for n, v in arrays.items() if n.endswith(f"_{k}")}
            kind: Any = Kernel if "centres" in own else Trees
            scorers += (kind.from_arrays(own, columns.size),)
        return cls(tuple(names), columns, scorers, levels)


def read_learner(given: Any) -> tuple[Any, ...]:
    """The classifiers of the option ``class_learner``, one per learned column."""
    if given is None or (isinstance(given, str) and given == "auto"):
        return ()  # held-out labels decide in `bayes_lepu.choosing`
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
    """Whether there are enough rows and columns to learn the shape of the class.

    ``folds`` is the number of folds in a comparison with a straight class, 0 without one.
    """
    if data.is_sparse or not data.in_memory or not _seen(data).any():
        return False
    target = _target(data)
    fewest = FEWEST_MARKS * folds / (folds - 1) if folds else FEWEST_MARKS
    return bool(min(target.sum(), (1 - target).sum()) >= fewest)


def of_few_kinds(data: "PUData") -> bool:
    """Whether most rows repeat: they cannot separate a curved class from a varying s."""
    if data.is_sparse or not data.in_memory:
        return False
    return len(np.unique(data.X[:KINDS_AMONG][:, _seen(data)], axis=0)) < FEWEST_KINDS


def with_learned(data: "PUData", learners: Sequence[Any], random_seed: int) -> "PUData":
    """The same rows with a learned column in the class for every classifier.

    The classifiers use the columns of the class except group intercepts; instead, the rows of a
    group are left out together.
    """
    if not learners:
        return data
    if data.is_sparse:
        raise DataError(
            "class_learner needs dense columns, and X is a sparse matrix. Use X.toarray(), or "
            "fewer columns (TruncatedSVD), or leave class_learner out."
        )
    target, weight = _target(data), data.weight
    if min(target.sum(), (1 - target).sum()) < FEWEST_MARKS:
        raise DataError(
            f"class_learner learns the shape of the class from {int(target.sum())} marked and "
            f"{int((1 - target).sum())} other rows; at least {FEWEST_MARKS} of each are needed. "
            "Leave class_learner out: the class is then a straight line in the columns."
        )
    columns, groups = np.flatnonzero(_seen(data)), None
    if grouped := _grouped(data):
        widest = max(grouped, key=len)
        levels = data.X[:, widest] * data.scale[widest] + data.center[widest]
        groups = np.where(levels.max(axis=1) > 0.5, levels.argmax(axis=1), len(widest))
    seen, names = np.ascontiguousarray(data.X[:, columns]), list(data.feature_names)
    scores: list[Array] = []
    scorers: list[Any] = []
    with threadpool_limits(1, user_api="openmp"):  # two threads take eight times the CPU of one
        for k, learner in enumerate(learners):
            seed = (random_seed + k) % 2**32
            whole = _trained(_new(learner, data.n, seed), seen, target, weight)
            score = None if groups is not None else _left_out(learner, whole, target)
            if score is None:
                score = np.empty(data.n)
                for rest, fold in _folds(target, groups, random_seed):
                    part = _new(learner, data.n, seed)
                    part = as_arrays(_trained(part, seen[rest], target[rest], weight[rest]))
                    score[fold] = _score(part, seen[fold])
            scores.append(np.clip(score, SURE, 1 - SURE))
            scorers.append(as_arrays(whole))
            names.append(_name(learner, names))
    found = np.column_stack(scores)
    surest = np.minimum(SUREST * np.average(found, axis=0, weights=target * weight), 1.0)
    learned = Learned(tuple(names[data.p :]), columns, tuple(scorers), surest)
    found = _log_odds(found, surest)
    center, scale = column_moments(found, weight)
    return _with_columns(data, learned, found, center, np.where(scale > 0, scale, 1.0))


def scored_by(like: "PUData", data: "PUData") -> "PUData":
    """Add learned columns to other rows, computed by the classifiers of the data ``like``."""
    assert like.learned is not None
    mask = like.is_learned
    scores = like.learned.log_odds(np.asarray(data.X))
    return _with_columns(data, like.learned, scores, like.center[mask], like.scale[mask])


def without_learned(data: "PUData") -> "PUData":
    """The same rows without learned columns."""
    return replace(data.columns(~data.is_learned), learned=None)


def _with_columns(
    data: "PUData", learned: Learned, scores: Array, center: Array, scale: Array
) -> "PUData":
    X = (scores - center) / scale
    return replace(
        data.with_columns(learned.names, X, center, scale, of_class=True), learned=learned
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


def _new(learner: Any, rows: int, seed: int) -> Any:
    """A classifier of this kind, not yet trained."""
    from sklearn.base import clone
    from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier

    many = rows >= MANY_ROWS
    if learner == "boosting":
        return HistGradientBoostingClassifier(
            max_iter=150 if many else 60,
            max_leaf_nodes=16 if many else 8,
            early_stopping=False,
            random_state=seed,
        )
    if learner == "kernel":
        return KernelClassifier(seed)
    if learner == "trees":
        return ExtraTreesClassifier(
            n_estimators=200,
            min_samples_leaf=3,
            bootstrap=True,
            oob_score=True,
            max_samples=MOST_ROWS if rows > MOST_ROWS else None,
            random_state=seed,
        )
    classifier = clone(learner)
    free = classifier.get_params().get("random_state", 0) is None
    return classifier.set_params(random_state=seed) if free else classifier


def _trained(classifier: Any, X: Array, target: NDArray[np.int8], weight: Array) -> Any:
    """The classifier, trained on these rows."""
    with warnings.catch_warnings():  # rows that are in every tree have the rate of all rows
        warnings.filterwarnings("ignore", "Some inputs do not have OOB scores", UserWarning)
        if np.ptp(weight) == 0:  # bins by weights take ten times as long
            return classifier.fit(X, target)
        try:
            return classifier.fit(X, target, sample_weight=weight)
        except TypeError as error:
            raise ModelError(
                f"{type(classifier).__name__} cannot be trained with sample_weight ({error}). Use "
                "a classifier whose fit takes it, such as class_learner='boosting'."
            ) from error


def _left_out(learner: Any, whole: Any, target: NDArray[np.int8]) -> Array | None:
    """Leave-one-out scores of the rows; None for classifiers that must be refitted for that."""
    if not isinstance(learner, str) or learner == "boosting":
        return None
    if learner == "kernel":
        return whole.left_out
    score = whole.oob_decision_function_[:, 1]
    return np.where(np.isnan(score), target.mean(), score)


def _folds(
    target: NDArray[np.int8], groups: NDArray[np.intp] | None, seed: int
) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Rows to train on and rows left out, marked ones in every fold.

    Groups are left out as a whole, unless there are too few groups or too few with marks.
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
    """P(marked | x) by a classifier or by its arrays, at least `SURE` away from 0 and 1."""
    if isinstance(scorer, Kernel | Trees):
        return np.clip(scorer.probability(X), SURE, 1 - SURE)
    found = scorer.predict_proba(X)[:, list(scorer.classes_).index(1)]
    return np.clip(np.asarray(found, dtype=float), SURE, 1 - SURE)


def _log_odds(scores: Array, levels: Array) -> Array:
    """The columns z of scores (n, K), relative to those of a surely positive row."""
    ratio = scores / levels
    return np.log(ratio) - np.log(SOFT_END * np.logaddexp(0.0, (1.0 - ratio) / SOFT_END))


def _name(learner: Any, taken: Sequence[str]) -> str:
    """A name for a column of scores that no other column has."""
    kind, count = learner if isinstance(learner, str) else type(learner).__name__, 2
    name = f"score({kind})"
    while name in taken:
        name, count = f"score({kind} {count})", count + 1
    return name


class Kernel(NamedTuple):
    """Log-odds as a sum of Gaussian functions: c of shape (m, k), w of shape (m,), and γ and b."""

    centres: Array
    heights: Array
    level: Array

    def probability(self, X: Array) -> Array:
        """P(marked | x) of every row."""
        parts = np.split(X, range(MOST_ROWS, len(X), MOST_ROWS))
        eta = [_bumps(part, self.centres, self.level[0]) @ self.heights for part in parts]
        return expit(self.level[1] + np.concatenate(eta))

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any], width: int) -> "Kernel":
        """A kernel over ``width`` columns from stored arrays; inconsistent arrays are refused."""
        found = cls._make(np.asarray(arrays[name], dtype=float) for name in cls._fields)
        fine = found.centres.size == found.heights.size * width and found.level.size == 2
        if not (fine and all(np.isfinite(values).all() for values in found)):
            raise FileFormatError("The file holds a learned class whose kernel is damaged.")
        return found._replace(centres=found.centres.reshape(-1, width))


class KernelClassifier:
    """Trains a `Kernel`; ``left_out`` are leave-one-out scores of the rows."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def fit(self, X: Array, y: NDArray[Any], sample_weight: Array | None = None) -> Self:
        """Find the centres, the width, λ and the heights."""
        rng = np.random.default_rng(self.seed)
        rows = np.sort(rng.permutation(len(y))[:MOST_ROWS])
        weight = np.ones(rows.size) if sample_weight is None else sample_weight[rows]
        seen, target = X[rows], y[rows].astype(float)
        centres = seen[rng.permutation(rows.size)[:CENTRES]]
        gammas = np.array(WIDTHS) / X.shape[1]
        found = [one for g in gammas for one in trained(seen, target, weight, centres, g)]
        _, self.kernel, left_out = max(found, key=lambda one: one[0])
        self.left_out = self.kernel.probability(X)
        self.left_out[rows] = expit(left_out)
        return self


def _bumps(X: Array, centres: Array, gamma: float) -> Array:
    """Heights (n, m) of the bumps around the centres."""
    X, centres = (np.clip(values, -FARTHEST, FARTHEST) for values in (X, centres))
    far = (X**2).sum(axis=1)[:, None] + (centres**2).sum(axis=1) - 2 * X @ centres.T
    return np.exp(-gamma * np.maximum(far, 0.0))


def trained(
    X: Array, y: NDArray[Any], weight: Array, centres: Array, gamma: float
) -> list[tuple[float, Kernel, Array]]:
    """For every λ: the leave-one-out log likelihood, the kernel, the leave-one-out log-odds."""
    size, axes = np.linalg.eigh(_bumps(centres, centres, gamma))
    kept = size > LOWEST * size[-1]
    axes = axes[:, kept] / np.sqrt(size[kept])
    Z = np.column_stack([_bumps(X, centres, gamma) @ axes, np.ones(len(X))])
    rate = np.clip(np.average(y, weights=weight), 1e-6, 1 - 1e-6)
    beta = np.append(np.zeros(Z.shape[1] - 1), np.log(rate / (1 - rate)))
    out = []
    for penalty in PENALTIES:
        ridge = np.append(np.full(beta.size - 1, penalty), 1e-9)
        for _ in range(STEPS):
            eta = Z @ beta
            p = expit(eta)
            curve = np.maximum(p * (1 - p), 1e-9)
            inverse = np.linalg.inv((Z.T * (weight * curve)) @ Z + np.diag(ridge))
            step = inverse @ (Z.T @ (weight * (y - p)) - ridge * beta)
            longest = np.abs(Z @ step).max()
            if longest < ENOUGH:
                break
            beta = beta + step * min(1.0, LONGEST / longest)
        lever = np.minimum(weight * curve * ((Z @ inverse) * Z).sum(axis=1), 0.99)
        left_out = eta - lever / (1 - lever) * (y - p) / curve
        fit = float(weight @ np.where(y == 1, log_expit(left_out), log_expit(-left_out)))
        kernel = Kernel(centres, axes @ beta[:-1], np.array([gamma, beta[-1]]))
        out.append((fit, kernel, left_out))
    return out


class Trees(NamedTuple):
    """Boosted trees, whose leaves add up to log-odds, or a forest, which averages probabilities.

    The nodes of all trees are in one list: positions of the roots, and for every node its column
    (-1: a leaf), children (later in the list), threshold (left: x <= threshold) and value.
    """

    roots: NDArray[np.int64]
    feature: NDArray[np.int64]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    threshold: Array
    value: Array
    base: Array  # of length 1: log-odds before any tree; NaN for a forest

    def probability(self, X: Array) -> Array:
        """P(marked | x) of every row."""
        forest = bool(np.isnan(self.base[0]))
        # scikit-learn's forests compare in single precision.
        rows = X.astype(np.float32).astype(float) if forest else X
        total = _sum_of_leaves(np.ascontiguousarray(rows), *self[:6])
        return total / self.roots.size if forest else expit(self.base[0] + total)

    @classmethod
    def joined(cls, trees: list[tuple[Any, ...]], base: float) -> "Trees":
        """Single trees (column, left, right, threshold, value of every node) as one."""
        sizes = [len(feature) for feature, *_ in trees]
        roots = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
        feature, left, right, threshold, value = map(np.concatenate, zip(*trees, strict=True))
        moved = np.repeat(roots, sizes)
        places = (p.astype(np.int64) for p in (roots, feature, left + moved, right + moved))
        real = (values.astype(float) for values in (threshold, value))
        return cls._make((*places, *real, np.array([base])))

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any], width: int) -> "Trees":
        """Trees over ``width`` columns from stored arrays; what is no tree is refused."""
        kinds = (np.int64,) * 4 + (float,) * 3
        found = cls._make(arrays[n].astype(k) for n, k in zip(cls._fields, kinds, strict=True))
        nodes, inner = np.arange(found.feature.size), found.feature >= 0
        sizes = {a.size for a in found[1:6]}
        after = (found.left > nodes) & (found.right > nodes)
        within = (found.left < nodes.size) & (found.right < nodes.size)
        rooted = (found.roots >= 0) & (found.roots < nodes.size)
        fine = sizes == {nodes.size} and found.roots.size > 0 and found.base.size == 1
        fine = fine and bool((after & within)[inner].all() and rooted.all())
        fine = fine and bool((found.feature < width).all() and np.isfinite(found.value).all())
        if not fine:
            raise FileFormatError("The file holds a learned class whose trees are damaged.")
        return found


def as_arrays(classifier: Any) -> Any:
    """A trained classifier as a `Kernel` or `Trees` where possible, otherwise unchanged."""
    from sklearn import ensemble

    if isinstance(classifier, KernelClassifier):
        return classifier.kernel
    if list(getattr(classifier, "classes_", [])) == [0, 1]:
        if isinstance(classifier, ensemble.HistGradientBoostingClassifier):
            return _boosted(classifier) or classifier
        if isinstance(classifier, ensemble.ExtraTreesClassifier | ensemble.RandomForestClassifier):
            return Trees.joined([_forest_tree(one.tree_) for one in classifier.estimators_], np.nan)
    return classifier


def _boosted(classifier: Any) -> Trees | None:
    """Boosted trees; None if scikit-learn's private format is unknown, or has categories."""
    try:
        nodes = [one.nodes for (one,) in classifier._predictors]
        base = float(np.asarray(classifier._baseline_prediction).item())
        if any(tree["is_categorical"].any() for tree in nodes):
            return None
        features = [np.where(tree["is_leaf"], -1, tree["feature_idx"]) for tree in nodes]
        names = ("left", "right", "num_threshold", "value")
        trees = [
            (own, *(tree[name] for name in names))
            for own, tree in zip(features, nodes, strict=True)
        ]
    except (AttributeError, KeyError, ValueError, TypeError):
        return None
    return Trees.joined(trees, base)


def _forest_tree(tree: Any) -> tuple[Any, ...]:
    left, right, share = tree.children_left, tree.children_right, tree.value[:, 0, :]
    feature = np.where(left < 0, -1, tree.feature)
    return feature, left, right, tree.threshold, share[:, 1] / share.sum(axis=1)


@compiled()
def _sum_of_leaves(
    X: Array,
    roots: NDArray[np.int64],
    feature: NDArray[np.int64],
    left: NDArray[np.int64],
    right: NDArray[np.int64],
    threshold: Array,
    value: Array,
) -> Array:
    total = np.zeros(X.shape[0])
    for root in roots:  # the nodes of one tree stay in the cache while all rows pass
        for i in range(X.shape[0]):
            at = root
            while feature[at] >= 0:
                at = left[at] if X[i, feature[at]] <= threshold[at] else right[at]
            total[i] += value[at]
    return total
