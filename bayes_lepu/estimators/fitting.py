"""From checked rows to fitted attributes, shared by the classifiers with and without a search."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayes_lepu import baselines
from bayes_lepu._fit import fit as fit_model
from bayes_lepu.errors import DataError
from bayes_lepu.estimators.base import (
    Columns,
    PUClassifier,
    among,
    as_table,
    positions,
    usable_columns,
)
from bayes_lepu.interruption import stops_at_once
from bayes_lepu.links import Array, sigmoid


@stops_at_once
def fit_into[E: PUClassifier](
    estimator: E,
    model: str,
    X: Array,
    l: NDArray[np.int8],
    *,
    penalty: Mapping[str, str | None],
    C: Mapping[str, float | None],
    audited: Any = None,
    class_features: Columns = None,
    selection_features: Columns = None,
    orientation: str = "none",
    n_starts: int | None = None,
    seed: int = 0,
) -> E:
    """MAP fit with the full search for modes; sets the fitted attributes.

    Entries of ``penalty`` and ``C`` that are None are left to `fit`.
    """
    keep = usable_columns(X)
    result = fit_model(
        as_table(estimator, X, keep),
        l,
        model=model,
        method="map",
        y=None if audited is None else np.asarray(audited),
        class_features=among(positions(estimator, "class_features", class_features), keep),
        selection_features=among(
            positions(estimator, "selection_features", selection_features), keep
        ),
        standardize=estimator.standardize,
        penalty=_given(penalty),
        C=_given(C),
        orientation=orientation,
        n_starts=n_starts,
        random_seed=seed,
    )
    return estimator._set_model(result, keep)


@stops_at_once
def _given[V](values: Mapping[str, V | None]) -> dict[str, V] | None:
    return {name: v for name, v in values.items() if v is not None} or None


def fit_factors[E: PUClassifier](
    estimator: E,
    model: str,
    X: Array,
    l: NDArray[np.int8],
    audited: Any,
    C: Mapping[str, float | None],
    *,
    orientation: str = "none",
) -> E:
    """`fit_into` for the models with two factors, whose options bear the same names."""
    return fit_into(
        estimator,
        model,
        X,
        l,
        penalty={"a": estimator.penalty_a, "alpha": estimator.penalty_alpha},
        C=C,
        audited=audited,
        class_features=estimator.class_features,
        selection_features=estimator.selection_features,
        orientation=orientation,
        n_starts=estimator.n_starts,
        seed=estimator._seed(),
    )


def set_weights[E: PUClassifier](estimator: E) -> E:
    """Guess and lapse rates of a fitted PsychM."""
    estimator.guess_rate_ = float(estimator.parameters_.gamma)
    estimator.lapse_rate_ = float(estimator.parameters_.lam)
    return estimator


@stops_at_once
def fit_elkan_noto[E: PUClassifier](
    estimator: E, X: Array, l: NDArray[np.int8], *, C: float, held_out: Any = None
) -> E:
    """Both steps of Elkan and Noto on standardised columns; sets the fitted attributes."""
    keep = usable_columns(X)
    center, scale = np.zeros(keep.sum()), np.ones(keep.sum())
    if estimator.standardize:
        center, scale = X[:, keep].mean(axis=0), X[:, keep].std(axis=0)
    Z = (X[:, keep] - center) / scale
    if held_out is None:
        found = baselines.elkan_noto(
            Z, l, C=C, holdout=estimator.holdout, random_seed=estimator._seed()
        )
        coef, intercept, c = found.coef, found.intercept, found.c
    else:
        kept = _read_held_out(held_out, l)
        g = baselines.naive(Z[~kept], l[~kept], C=C)
        coef, intercept = g.coef, g.intercept
        c = float(sigmoid(Z[kept & (l == 1)] @ coef + intercept).mean())
    slopes = np.zeros((1, keep.size))
    slopes[0, keep] = coef / scale
    estimator.coef_ = slopes
    estimator.intercept_ = np.atleast_1d(intercept - coef @ (center / scale))
    estimator.label_frequency_ = c
    estimator.class_prior_ = float(estimator._class_probability(X).mean())
    return estimator


def elkan_noto_probability(estimator: PUClassifier, X: Array) -> Array:
    """min(1, g/c)."""
    g = sigmoid(X @ estimator.coef_[0] + estimator.intercept_[0])
    return np.minimum(g / estimator.label_frequency_, 1.0)


def elkan_noto_decision(estimator: PUClassifier, X: Array) -> Array:
    """Logit g - logit(c/2): the ranking of g, without the ties of clipping, zero at t = 1/2."""
    log_half = np.log(estimator.label_frequency_ / 2)
    threshold = log_half - np.log1p(-estimator.label_frequency_ / 2)
    return X @ estimator.coef_[0] + estimator.intercept_[0] - threshold


def _read_held_out(held_out: Any, l: NDArray[np.int8]) -> NDArray[np.bool_]:
    kept = np.asarray(held_out)
    if kept.shape != l.shape or kept.dtype != bool:
        raise DataError(
            f"held_out has shape {kept.shape} and type {kept.dtype}; expected one bool per row, "
            f"shape {l.shape}."
        )
    if not (kept & (l == 1)).any():
        raise DataError("held_out holds no labelled row, so that c cannot be estimated from it.")
    return kept
