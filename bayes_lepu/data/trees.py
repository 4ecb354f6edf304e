"""Sums and averages of decision trees as plain arrays: to predict, and to save without pickle.

Conventions
-----------
The nodes of all trees stand one after another. ``left`` and ``right`` are places of nodes, always
after their parent; a leaf has ``feature`` -1. A row goes left where ``x[feature] <= threshold``.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from bayes_lepu.errors import FileFormatError
from bayes_lepu.links import Array
from bayes_lepu.runtime.compilation import compiled


class Trees(NamedTuple):
    """Boosted trees, whose leaves add up to log-odds, or a forest, which averages probabilities.

    Attributes
    ----------
    roots : (trees,) int array
    feature, left, right : (nodes,) int arrays
    threshold, value : (nodes,) arrays
    base : (1,) array
        Log-odds before any tree; NaN for a forest.
    """

    roots: NDArray[np.int64]
    feature: NDArray[np.int64]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    threshold: Array
    value: Array
    base: Array

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


def as_trees(classifier: Any) -> Trees | None:
    """A fitted classifier of scikit-learn as trees; None where it is no sum of trees."""
    from sklearn.ensemble import (
        ExtraTreesClassifier,
        HistGradientBoostingClassifier,
        RandomForestClassifier,
    )

    if list(getattr(classifier, "classes_", [])) != [0, 1]:
        return None
    if isinstance(classifier, HistGradientBoostingClassifier):
        return _boosted(classifier)
    if isinstance(classifier, ExtraTreesClassifier | RandomForestClassifier):
        return _joined([_forest_tree(tree.tree_) for tree in classifier.estimators_], np.nan)
    return None


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
