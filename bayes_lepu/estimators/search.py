r"""The search behind `PUClassifierCV`: folds, grids, scores, and the choice."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata
from sklearn.model_selection import check_cv

from bayes_lepu.data.reading import read_data
from bayes_lepu.errors import DataError, ModelError
from bayes_lepu.estimators.scoring import label_brier, label_log_loss
from bayes_lepu.estimators.shared import LabelClassifier, LabelledRows, among, usable_columns
from bayes_lepu.inference.paths import PenaltyGrid, Score, score_path
from bayes_lepu.links import Array
from bayes_lepu.models import get_model
from bayes_lepu.models.spec import ModelSpec
from bayes_lepu.options import with_marks
from bayes_lepu.runtime.interruption import stops_at_once
from bayes_lepu.tables.scaling import column_moments

L2_RANGE = (-4.0, 2.0)  # powers of ten
L1_RANGE = (-3.5, -0.1)  # the same, of the coefficient that leaves nothing
TIE = 1e-12
Fold = tuple[NDArray[np.intp], NDArray[np.intp]]


def choose_penalties(
    estimator: LabelClassifier, rows: LabelledRows, audited: Any
) -> dict[str, float]:
    """The weights with the best score; sets those tried, the choice and the table of scores."""
    spec, others = with_marks(get_model(estimator.model), estimator.false_marks, None)
    selects = spec.has_selection
    top = _null_penalty(rows.X, rows.l, estimator.standardize)
    wanted = estimator.class_penalties
    estimator.class_penalties_ = _values("class_penalties", wanted, estimator.class_norm, top)
    if selects:
        if estimator.selection_penalties is not None:
            wanted = estimator.selection_penalties
        estimator.selection_penalties_ = _values(
            "selection_penalties", wanted, estimator.selection_norm, top
        )
    grid = PenaltyGrid(
        C_alpha=estimator.selection_penalties_ if selects else np.ones(1),
        C_a=estimator.class_penalties_,
        penalty_alpha=estimator.selection_norm,
        penalty_a=estimator.class_norm,
        others=others,
    )
    task = FoldTask(
        spec,
        rows.X,
        rows.l,
        _classes(audited, rows.l),
        grid,
        estimator.standardize,
        rows.positions("class_features", estimator.class_features),
        rows.positions("selection_features", estimator.selection_features) if selects else None,
        estimator._seed(),
        estimator.orientation,
    )
    return _record(estimator, _run(estimator, task), selects=selects)


@dataclass(frozen=True, eq=False)
class FoldTask:
    """What one fold of a MAP model needs; calling it gives the scores (C_α, C_a)."""

    spec: ModelSpec
    X: Array
    l: NDArray[np.int8]
    classes: Array
    grid: PenaltyGrid
    standardize: bool
    class_columns: list[int] | None = None
    selection_columns: list[int] | None = None
    seed: int = 0
    rule: str = "none"

    def __call__(self, fold: Fold, score: Score) -> Array:
        """Scores of the held-out rows for every pair."""
        train, test = fold
        keep = usable_columns(self.X[train])
        data = read_data(
            self.X[train][:, keep],
            self.l[train],
            y=self.classes[train],
            class_features=among(self.class_columns, keep),
            selection_features=among(self.selection_columns, keep),
            standardize=self.standardize,
            false_marks=self.spec.false_marks,
        )
        rows = data.transform(self.X[test][:, keep])[0]
        return score_path(
            self.spec,
            data,
            rows,
            self.l[test],
            self.grid,
            score=score,
            rule=self.rule,
            rng=np.random.default_rng(self.seed),
        )


@stops_at_once
def _run(estimator: LabelClassifier, task: FoldTask) -> Array:
    """Scores of all folds, the folds first."""
    score = _read_score(estimator.scoring)
    folds = _folds(estimator.cv, task.X, task.l)
    return np.array(Parallel(n_jobs=estimator.n_jobs)(delayed(task)(f, score) for f in folds))


def _folds(cv: Any, X: Array, l: NDArray[np.int8]) -> list[Fold]:
    """Training and held-out rows of every fold; each training part needs both labels."""
    splitter = check_cv(cv, l, classifier=True)
    rarest = int(min(l.sum(), len(l) - l.sum()))
    if isinstance(cv, int) and rarest < cv:
        raise DataError(
            f"{cv} folds need at least {cv} rows of each class; the rarer label has {rarest}. "
            "Use fewer folds (cv=), or a classifier with fixed penalties."
        )
    folds = list(splitter.split(X, l))
    for k, (train, _) in enumerate(folds):
        if l[train].min() == l[train].max():
            raise DataError(
                f"The training rows of fold {k} hold one class only. Stratify the folds by label, "
                "for example cv=3."
            )
    return folds


def _classes(audited: Any, l: NDArray[np.int8]) -> Array:
    if audited is None:
        return np.full(len(l), np.nan)
    classes = np.asarray(audited, dtype=float)
    if classes.shape != l.shape:
        raise DataError(
            f"audited has shape {classes.shape}; expected {l.shape}, NaN where unknown."
        )
    return classes


def _values(option: str, Cs: int | ArrayLike, penalty: str, top: float) -> Array:
    """Ascending coefficients: as given, or so many over the range that suits the penalty."""
    if isinstance(Cs, int | np.integer):
        if Cs < 1:
            raise ModelError(f"{option} = {Cs}; at least one coefficient is needed.")
        return (
            np.logspace(*L1_RANGE, int(Cs)) * top
            if penalty == "l1"
            else np.logspace(*L2_RANGE, int(Cs))
        )
    values = np.unique(np.asarray(Cs, dtype=float))
    if values.size == 0 or not (np.isfinite(values).all() and values[0] > 0):
        raise ModelError(f"{option} = {Cs!r}; finite numbers above 0 are expected.")
    return values


def _null_penalty(X: Array, l: NDArray[np.int8], standardize: bool) -> float:
    r"""The smallest L1 coefficient that leaves a lone factor without slopes: max |Σ (l - mean) x|.

    From there down runs the range of L1 coefficients. (The coefficient that empties α beside a
    fitted t is smaller, and zero where t explains l alone.)
    """
    used = usable_columns(X)
    toward = ((l - l.mean()) @ X)[used]
    return float(np.abs(toward / column_moments(X)[1][used] if standardize else toward).max())


def _minus_brier(l: NDArray[np.int8], h: Array) -> float:
    return -label_brier(l, h)


def _minus_log_loss(l: NDArray[np.int8], h: Array) -> float:
    return -label_log_loss(l, h)


# Named functions rather than lambdas: workers of joblib receive them by pickle.
SCORES: dict[str, Score] = {"brier": _minus_brier, "log_loss": _minus_log_loss}


def _read_score(scoring: str | Callable) -> Score:
    if callable(scoring):
        return scoring
    if scoring not in SCORES:
        raise ModelError(
            f"Unknown scoring {scoring!r}. Known: {', '.join(SCORES)}, or a callable f(l, h)."
        )
    return SCORES[scoring]


def _record(estimator: LabelClassifier, scores: Array, *, selects: bool) -> dict[str, float]:
    """The weights with the best mean score, of equals the strongest.

    Held-out labels cannot tell which factor is the class. So where pairs with C_α >= C_a, which
    leave the slopes to the class, do as well as the best (within the standard error of their
    difference over the folds), the choice is among them.
    """
    tried = {"class_penalty": estimator.class_penalties_}
    if selects:
        tried = {"selection_penalty": estimator.selection_penalties_} | tried
    else:
        scores = scores[:, 0]
    grid = dict(zip(tried, np.meshgrid(*tried.values(), indexing="ij"), strict=True))
    mean = scores.mean(axis=0)
    own = scores.reshape(len(scores), -1)[:, int(mean.argmax())]
    behind = own.reshape(-1, *(1,) * mean.ndim) - scores
    error = behind.std(axis=0, ddof=1) / np.sqrt(len(scores)) if len(scores) > 1 else 0.0
    to_class = np.logical_and.reduce([w >= grid["class_penalty"] for w in grid.values()])
    # A mean of folds of which one differs is its own standard error, but for rounding.
    among = to_class & (behind.mean(axis=0) <= 1.001 * error + TIE)
    mean = np.where(among if among.any() else True, mean, -np.inf)
    strength = np.prod(list(grid.values()), axis=0)
    best = max(
        map(tuple, np.argwhere(mean >= mean.max() - TIE)), key=lambda k: (float(strength[k]), k)
    )
    estimator.scores_ = scores
    for name, values in grid.items():
        setattr(estimator, f"{name}_", float(values[best]))
    candidates = {name: values.ravel() for name, values in grid.items()}
    estimator.cv_results_ = _table(candidates, scores.reshape(len(scores), -1))
    chosen = {"a": estimator.class_penalty_}
    return {"alpha": estimator.selection_penalty_} | chosen if selects else chosen


def _table(parameters: dict[str, Array], scores: Array) -> dict[str, Any]:
    """The keys of `GridSearchCV.cv_results_` that apply."""
    mean = scores.mean(axis=0)
    results: dict[str, Any] = {f"param_{k}": v for k, v in parameters.items()}
    names = list(parameters)
    results["params"] = [
        dict(zip(names, map(float, row), strict=True))
        for row in zip(*parameters.values(), strict=True)
    ]
    results |= {f"split{k}_test_score": row for k, row in enumerate(scores)}
    results["mean_test_score"], results["std_test_score"] = mean, scores.std(axis=0)
    results["rank_test_score"] = rankdata(-mean, method="min").astype(int)
    return results
