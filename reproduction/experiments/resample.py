r"""One resample of one human annotator's photographs.

Protocols
---------
``paper``
    Draw as many rows as there are, with replacement, and split these into halves: copies of one
    photograph stand in both, so that a test row was seen in training with probability
    :math:`1 - (1 - 1/n)^{n/2} \approx .39`.
``safe``
    Split the photographs first, then draw each half with replacement; the folds of the
    cross-validation and the rows Elkan and Noto keep back are also split by photograph. One step
    is not: while C is chosen for Elkan and Noto, the rows kept back *within* a training fold are
    drawn by row, so that copies of a photograph can be on both sides of that inner split, which
    makes its :math:`\hat c` too large. The score is that of :math:`h = \hat c\,\min(1, g/\hat c) =
    \min(g, \hat c)` on photographs of no training row, so that :math:`\hat c` matters for C only at
    rows with :math:`g > \hat c`; the :math:`c` of the final fit is by photograph.

Either way the penalties come from a 3-fold Brier score on (X, l), with an L1 penalty on α.
"""

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayes_lepu.errors import DataError
from bayes_lepu.links import Array, sigmoid
from bayes_lepu.model.parameters import Parameters
from reproduction.datasets import load_animal_gonogo, load_animal_heldout
from reproduction.experiments.scores import classifier_scores

Protocol = Literal["paper", "safe"]
PROTOCOLS: tuple[Protocol, ...] = ("paper", "safe")
NAMED_FEATURES = ("pca10", "pca50", "full", "statistics")
C_SINGLE = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
HOLDOUT = 0.2


@dataclass(frozen=True)
class AnimalSettings:
    """What a resample depends on, besides its seed.

    Attributes
    ----------
    subject : str
        Code of the annotator, such as "fsa".
    protocol : {"paper", "safe"}
    features : str
        "pca10", "pca50", "full", "statistics", or "own" for the user's.
    speeded : bool
        Label only the fast half of the hits: a stronger bias.
    Cs, C_alphas : tuple of float
        Penalties tried for a (L2) and α (L1), on standardised columns.
    C_single : tuple of float
        Penalties tried for the models with one factor.
    folds : int
    gamma_start, lam_start : float
        Where the climb of PsychM begins, as in the paper.
    data : str
        Fingerprint of the data, set by the run: other data are other trials.
    """

    subject: str
    protocol: Protocol
    features: str = "pca50"
    speeded: bool = False
    Cs: tuple[float, ...] = (0.3, 1.0, 3.0, 10.0)
    C_alphas: tuple[float, ...] = (0.3, 1.0, 3.0, 10.0)
    C_single: tuple[float, ...] = C_SINGLE
    folds: int = 3
    gamma_start: float = 0.7
    lam_start: float = 0.02
    data: str = ""


@dataclass(frozen=True, eq=False)
class Photographs:
    """The photographs one annotator judged, and those nobody did."""

    X: Array
    l: NDArray[np.int64]
    y: NDArray[np.int64]
    held_out: tuple[Array, NDArray[np.int64]] | None

    @property
    def fingerprint(self) -> str:
        """Eight hexadecimal digits that change with any value."""
        digest = hashlib.sha256()
        for values in (self.X, self.l, self.y, *(self.held_out or ())):
            digest.update(np.ascontiguousarray(values).tobytes())
        return digest.hexdigest()[:8]


@dataclass(frozen=True, eq=False)
class Source:
    """Where the data are: a folder, and a table of features where the user brings them.

    Attributes
    ----------
    path : str or None
        As in `reproduction.datasets.load_animal_gonogo`.
    table : DataFrame or None
        Features by image (the index).
    """

    path: str | None
    table: pd.DataFrame | None = None

    @classmethod
    def at(cls, path: str | Path | None, table: pd.DataFrame | None = None) -> "Source":
        """A source whose path means the same in every process."""
        return cls(None if path is None else str(Path(path).expanduser().resolve()), table)

    def photographs(self, subject: str, features: str, speeded: bool) -> Photographs:
        """The data of one subject."""
        if self.table is None:
            return _load(self.path, subject, features, speeded)
        judged = load_animal_gonogo(self.path, subject=subject, features=None, speeded=speeded)
        assert judged.rows is not None
        assert judged.l is not None
        assert judged.y is not None
        return Photographs(self._of(judged.rows["image"]), judged.l, judged.y, self._held_out())

    def _held_out(self) -> tuple[Array, NDArray[np.int64]] | None:
        """The photographs nobody judged, where the user's table has them."""
        assert self.table is not None
        try:
            rest = load_animal_heldout(self.path, features=None)
        except DataError:  # a folder made from the public export has no table of images
            return None
        assert rest.rows is not None
        assert rest.y is not None
        if not set(rest.rows["image"]) <= set(self.table.index):
            return None
        return self._of(rest.rows["image"]), rest.y

    def _of(self, images: pd.Series) -> Array:
        assert self.table is not None
        missing = sorted(set(images) - set(self.table.index))
        if missing:
            raise DataError(
                f"The features have no row for {len(missing)} judged images (first: "
                f"{missing[:3]}). Their index must hold the image numbers of the trials."
            )
        return self.table.loc[images].to_numpy(dtype=float)


@lru_cache(maxsize=16)
def _load(path: str | None, subject: str, features: Any, speeded: bool) -> Photographs:
    judged = load_animal_gonogo(path, subject=subject, features=features, speeded=speeded)
    rest = load_animal_heldout(path, features=features)
    assert judged.l is not None
    assert judged.y is not None
    assert rest.y is not None
    return Photographs(judged.X.to_numpy(), judged.l, judged.y, (rest.X.to_numpy(), rest.y))


def animal_trial(
    settings: AnimalSettings, rng: np.random.Generator, *, source: Source
) -> dict[str, Any]:
    """Scores of every model on one resample.

    SPM is named after the fit by its steeper factor (the paper's Algorithm 1), PsychM not at all.

    Returns
    -------
    dict
        ``scores``: the five models of the paper on the test half; ``variants``: the same for other
        readings of SPM and PsychM; ``held_out``: all of them on photographs nobody judged;
        ``fitted``: penalties and rates.
    """
    data = source.photographs(settings.subject, settings.features, settings.speeded)
    train, test = draw_rows(len(data.y), settings.protocol, rng)
    seed = int(rng.integers(2**31 - 1))
    models, fitted = fit_models(data, train, settings, seed)
    outcome: dict[str, Any] = {"scores": {}, "variants": {}, "held_out": {}, "fitted": fitted}
    for name, model in models.items():
        kind = "variants" if "," in name else "scores"
        outcome[kind][name] = classifier_scores(model, data.X[test], data.y[test])
        if data.held_out is not None:
            outcome["held_out"][name] = classifier_scores(model, *data.held_out)
    return outcome


def draw_rows(
    n: int, protocol: Protocol, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows of the training and of the test half, with repetitions."""
    half = n // 2
    if protocol == "paper":
        rows = rng.integers(n, size=n)  # independent draws, so any half is a random half
        return rows[:half], rows[half:]
    order = rng.permutation(n)
    return rng.choice(order[:half], half), rng.choice(order[half:], n - half)


@dataclass(frozen=True, eq=False)
class Relabelled:
    """A fitted pair of factors of which the steeper is taken for the classifier."""

    slopes: Array
    intercept: float

    @classmethod
    def of(cls, point: Parameters, X: Array) -> "Relabelled":
        """The factor whose linear predictor varies more over X, whatever it was penalised with."""
        swap = np.std(X @ point.alpha) > np.std(X @ point.a)
        chosen = point.swap() if swap else point
        return cls(chosen.a, float(chosen.b))

    def decision_function(self, X: Array) -> Array:
        """Log-odds of y=1."""
        return X @ self.slopes + self.intercept

    def predict_proba(self, X: Array) -> Array:
        """P(y | x), shape (n, 2)."""
        t = sigmoid(self.decision_function(X))
        return np.column_stack([1.0 - t, t])


def fit_models(
    data: Photographs, train: NDArray[np.int64], settings: AnimalSettings, seed: int
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Every model fitted to the training rows, and what was chosen."""
    from sklearn.base import clone

    from bayes_lepu.estimators import PUClassifier
    from reproduction.experiments.searched import Searched
    from reproduction.experiments.started import StartedPsychM

    X, l, y = data.X[train], data.l[train], data.y[train]
    by_label = _folds(l, train, settings)
    one_factor = PUClassifier(model="naive", random_state=seed)
    single = {"class_penalty": settings.C_single}
    naive = Searched(one_factor, single, cv=by_label).fit(X, l)
    real = Searched(one_factor, single, cv=_folds(y, train, settings)).fit(X, y)
    # What L1 alone is worth, without any annotator in the model: the control for SPM's α.
    lone = PUClassifier(model="naive", class_norm="l1", random_state=seed)
    sparse = Searched(lone, {"class_penalty": settings.C_alphas}, cv=by_label).fit(X, l)
    elkan = _elkan(X, l, train, by_label, settings, seed)
    # The paper's Algorithm 1: the best optimum of the loss, its factors named afterwards.
    both = PUClassifier(model="spm", selection_norm="l1", orientation="none", random_state=seed)
    pairs = {"class_penalty": settings.Cs, "selection_penalty": settings.C_alphas}
    spm = Searched(both, pairs, cv=by_label).fit(X, l).best_estimator_
    kept = clone(spm).set_params(orientation="sigma-norm").fit(X, l)
    started = StartedPsychM.fit(
        X,
        l,
        folds=by_label,
        C_alphas=settings.C_alphas,
        Cs=settings.Cs,
        gamma=settings.gamma_start,
        lam=settings.lam_start,
        seed=seed,
    )
    many = PUClassifier(
        model="psychm",
        class_penalty=started.C_a,
        selection_penalty=started.C_alpha,
        selection_norm="l1",
        random_state=seed,
    ).fit(X, l)
    models = {
        "SPM": Relabelled.of(spm.parameters_, X),
        "PsychM": started,
        "Naive": naive,
        "Elkan": elkan,
        "Real": real,
        "Naive, L1 penalty": sparse,
        "SPM, penalties kept to their factors": kept,
        "PsychM, steeper factor": Relabelled.of(started.parameters, X),
        "PsychM, best of many starts": many,
        "PsychM, best of many starts, steeper factor": Relabelled.of(many.parameters_, X),
    }
    fitted = {
        "SPM": _describe(spm.parameters_, X, spm.selection_penalty, spm.class_penalty),
        "PsychM": _describe(started.parameters, X, started.C_alpha, started.C_a),
        "PsychM, best of many starts": _describe(many.parameters_, X, started.C_alpha, started.C_a),
        "Naive": {"C_a": naive.best_params_["class_penalty"]},
        "Naive, L1 penalty": {"C_a": sparse.best_params_["class_penalty"]},
        "Real": {"C_a": real.best_params_["class_penalty"]},
        "Elkan": {"C_a": elkan.class_penalty, "c": elkan.label_frequency_},
    }
    return models, fitted


def _folds(
    target: NDArray[np.int64], train: NDArray[np.int64], settings: AnimalSettings
) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Stratified folds; in the safe protocol no photograph is in two of them."""
    from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

    if settings.protocol == "safe":
        return list(StratifiedGroupKFold(settings.folds).split(target, target, groups=train))
    return list(StratifiedKFold(settings.folds).split(target, target))


def _elkan(
    X: Array,
    l: NDArray[np.int64],
    train: NDArray[np.int64],
    folds: Any,
    settings: AnimalSettings,
    seed: int,
) -> Any:
    """Elkan and Noto with C by cross-validation; c from rows (or photographs) kept back."""
    from bayes_lepu.estimators import ElkanNotoClassifier
    from reproduction.experiments.searched import Searched

    penalties = {"class_penalty": settings.C_single}
    search = Searched(ElkanNotoClassifier(random_state=seed), penalties, cv=folds).fit(X, l)
    chosen = search.best_estimator_
    if settings.protocol == "paper":
        return chosen
    images = np.random.default_rng(seed).permutation(np.unique(train))
    kept = np.isin(train, images[: max(1, round(HOLDOUT * len(images)))])
    return chosen.fit(X, l, held_out=kept)


def _describe(point: Parameters, X: Array, C_alpha: float, C_a: float) -> dict[str, float]:
    return {
        "C_alpha": C_alpha,
        "C_a": C_a,
        "gamma": float(point.gamma),
        "lam": float(point.lam),
        "slopes_of_s": int(np.count_nonzero(point.alpha)),
        "s_steeper": bool(np.std(X @ point.alpha) > np.std(X @ point.a)),
        "pi": float(point.t(X).mean()),
    }
