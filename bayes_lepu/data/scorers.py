r"""Trained classifiers as plain arrays, to predict and to save without pickle: trees and kernels.

Conventions
-----------
The nodes of all trees stand one after another. ``left`` and ``right`` are places of nodes, always
after their parent; a leaf has ``feature`` -1. A row goes left where ``x[feature] <= threshold``.

A kernel is a logistic regression on bumps around some rows (Nystroem's approximation):

.. math:: \eta(x) = b + \sum_j w_j \exp(-\gamma \lVert x - c_j\rVert^2), \qquad
    \min_{w, b} \; -\sum_i \log p(l_i \mid \eta(x_i)) + \tfrac{\lambda}{2}\, w^\top K w.

A row's log-odds without the row follow from one Newton step, with :math:`g_i` its leverage:

.. math:: \eta_{-i} = \eta_i - \frac{g_i}{1 - g_i}\, \frac{l_i - p_i}{p_i (1 - p_i)}.

γ and λ are those by which rows left out in this way are predicted best.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit

from bayes_lepu.errors import FileFormatError
from bayes_lepu.links import Array
from bayes_lepu.runtime.compilation import compiled

# Centres are drawn without a look at the labels: more among the marked would tell those. So many
# rows are trained on, and predicted at a time: that bounds time and memory.
CENTRES, MOST_ROWS = 150, 10_000
WIDTHS = (0.3, 1.0, 3.0)  # γ times the number of columns
PENALTIES = (1.0, 0.1)  # λ, the largest first: each begins where the last one ended
STEPS, LONGEST, ENOUGH = 12, 5.0, 0.1  # of Newton, in log-odds
# Standard deviations, since a kernel sees no shape in heavy tails; and the share of the largest
# eigenvalue of K below which directions are rounding.
FARTHEST, LOWEST = 3.0, 1e-8


class Kernel(NamedTuple):
    """Bumps that add up to log-odds: c of shape (m, k), w of shape (m,), and γ and b."""

    centres: Array
    heights: Array
    level: Array

    def probability(self, X: Array) -> Array:
        """P(marked | x) of every row."""
        parts = np.split(X, range(MOST_ROWS, len(X), MOST_ROWS))
        eta = [_bumps(part, self.centres, self.level[0]) @ self.heights for part in parts]
        return expit(self.level[1] + np.concatenate(eta))

    def to_arrays(self) -> dict[str, Any]:
        """The arrays by name, of one dimension."""
        return self._asdict() | {"centres": self.centres.ravel()}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any], *, width: int) -> "Kernel":
        """Over ``width`` columns, from stored arrays; what does not fit together is refused."""
        found = cls._make(np.asarray(arrays[name], dtype=float) for name in cls._fields)
        fine = found.centres.size == found.heights.size * width and found.level.size == 2
        if not (fine and all(np.isfinite(values).all() for values in found)):
            raise FileFormatError("The file holds a learned class whose kernel is damaged.")
        return found._replace(centres=found.centres.reshape(-1, width))


class KernelClassifier:
    """Trains a `Kernel`; ``left_out`` are the scores of the rows without themselves."""

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
    """For every λ: how well rows are predicted without themselves, the kernel, those log-odds."""
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

    Shapes are (trees,) of ``roots``, (1,) of ``base``, and (nodes,) of the others.
    """

    roots: NDArray[np.int64]
    feature: NDArray[np.int64]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    threshold: Array
    value: Array
    base: Array  # log-odds before any tree; NaN for a forest

    @property
    def is_forest(self) -> bool:
        """Whether the trees are averaged."""
        return bool(np.isnan(self.base[0]))

    def probability(self, X: Array) -> Array:
        """P(marked | x) of every row."""
        # scikit-learn's forests compare in single precision.
        rows = X.astype(np.float32).astype(float) if self.is_forest else X
        total = _sum_of_leaves(np.ascontiguousarray(rows), *self[:6])
        return total / self.roots.size if self.is_forest else expit(self.base[0] + total)

    def to_arrays(self) -> dict[str, Any]:
        """The arrays by name."""
        return self._asdict()

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any], *, width: int) -> "Trees":
        """Trees over ``width`` columns from stored arrays; what is no tree is refused."""
        whole = (arrays[n].astype(np.int64) for n in ("roots", "feature", "left", "right"))
        real = (arrays[n].astype(float) for n in ("threshold", "value", "base"))
        found = cls._make((*whole, *real))
        nodes, inner = np.arange(found.feature.size), found.feature >= 0
        sizes = {a.size for a in (found.left, found.right, found.threshold, found.value)}
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
    """A trained classifier as a `Kernel` or `Trees`; itself where it is neither."""
    from sklearn import ensemble

    if isinstance(classifier, KernelClassifier):
        return classifier.kernel
    if list(getattr(classifier, "classes_", [])) == [0, 1]:
        if isinstance(classifier, ensemble.HistGradientBoostingClassifier):
            return _boosted(classifier) or classifier
        if isinstance(classifier, ensemble.ExtraTreesClassifier | ensemble.RandomForestClassifier):
            return _joined([_forest_tree(tree.tree_) for tree in classifier.estimators_], np.nan)
    return classifier


def _boosted(classifier: Any) -> Trees | None:
    """Boosted trees; None where their private form is not the one known here, or has categories."""
    try:
        nodes = [one.nodes for (one,) in classifier._predictors]
        base = float(np.asarray(classifier._baseline_prediction).item())
        if any(tree["is_categorical"].any() for tree in nodes):
            return None
        trees = [
            {
                "feature": np.where(tree["is_leaf"], -1, tree["feature_idx"].astype(np.int64)),
                "left": tree["left"].astype(np.int64),
                "right": tree["right"].astype(np.int64),
                "threshold": tree["num_threshold"].astype(float),
                "value": tree["value"].astype(float),
            }
            for tree in nodes
        ]
    except (AttributeError, KeyError, ValueError, TypeError):
        return None
    return _joined(trees, base)


def _forest_tree(tree: Any) -> dict[str, Array]:
    share = tree.value[:, 0, :]
    return {
        "feature": np.where(tree.children_left < 0, -1, tree.feature),
        "left": tree.children_left,
        "right": tree.children_right,
        "threshold": tree.threshold,
        "value": share[:, 1] / share.sum(axis=1),
    }


def _joined(trees: list[dict[str, Array]], base: float) -> Trees:
    """Single trees one after another, places of nodes moved accordingly."""
    sizes = np.array([tree["feature"].size for tree in trees])
    roots = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)

    def together(name: str, *, moved: bool = False) -> Array:
        parts = [t[name] + (root if moved else 0) for t, root in zip(trees, roots, strict=True)]
        return np.concatenate(parts)

    return Trees(
        roots=roots,
        feature=together("feature").astype(np.int64),
        left=together("left", moved=True).astype(np.int64),
        right=together("right", moved=True).astype(np.int64),
        threshold=together("threshold").astype(float),
        value=together("value").astype(float),
        base=np.array([base]),
    )


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
