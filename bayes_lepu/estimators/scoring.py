r"""Scores that need no true classes, and what they can and cannot tell.

**From (X, l) alone.** The data are draws of P(l=1 | x) = h(x), so anything about h can be checked
on held-out rows: `label_brier`, `label_log_loss`, `label_calibration_error`. They compare models,
choose penalties, and show that a model of the labelling is wrong. They cannot say which factor of
h = s·t is the classifier (exchanging s and t leaves h as it is), nor the class prior where two
models with the same h differ in it, nor the accuracy of t: two fits with equal scores may disagree
about every unlabelled row.

**With the propensity s(x)**, known by design (for example from a random check of who was asked) or
estimated elsewhere, a labelled row stands for 1/s(x) positives:

.. math:: E\Bigl[\frac{l}{s(x)} f(x)\Bigr] = E[y f(x)] ,

which makes every error rate of a classifier estimable: `ipw_class_prior`, `ipw_accuracy`,
`ipw_brier` (unbiased), `ipw_recall`, `ipw_precision`, `ipw_f1`, `ipw_auc` (ratios of unbiased
estimates, consistent). Each returns an `Estimate` with its standard error.

**With the propensity of the same fit** these figures check nothing: they hold the fit to its own
assumption about s, and an exchanged pair of factors passes as well. Use a propensity from outside,
or audited rows, to validate a classifier.

Conventions
-----------
``l`` (n,) of 0/1, ``h``, ``t`` and ``score`` (n,). ``propensity`` is a number, (n,), or (draws, n)
for an uncertain propensity: its spread is then part of the standard error.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayes_lepu.errors import DataError, ModelError
from bayes_lepu.links import Array

ROUNDING = 1e-9


@dataclass(frozen=True)
class Estimate:
    """An estimate with its standard error."""

    value: float
    standard_error: float

    def __float__(self) -> float:
        return self.value


# Scores of the label probability --------------------------------------------------------------


def label_brier(l: ArrayLike, h: ArrayLike) -> float:
    r"""Brier score :math:`\frac1n \sum (l_i - h_i)^2`; smaller is better."""
    labels, h = _labels(l), _probabilities("h", h)
    return float(np.mean((labels - h) ** 2))


def label_log_loss(l: ArrayLike, h: ArrayLike) -> float:
    r"""Log-loss :math:`-\frac1n \sum l_i \log h_i + (1-l_i) \log(1-h_i)`; smaller is better.

    Probabilities of exactly 0 or 1 are moved inside by the smallest step of a float.
    """
    labels, h = _labels(l), _probabilities("h", h)
    p = np.clip(h, np.finfo(float).tiny, 1 - np.finfo(float).epsneg)
    return -float(np.mean(np.where(labels == 1, np.log(p), np.log1p(-p))))


def label_calibration_error(l: ArrayLike, h: ArrayLike, *, n_bins: int = 10) -> float:
    r"""Expected calibration error :math:`\sum_b \frac{n_b}{n} |\bar l_b - \bar h_b|`.

    Bins hold equally many rows, in the order of h. Smaller is better; of the order of
    :math:`\sqrt{n_\mathrm{bins}/n}` even for the true h.
    """
    labels, h = _labels(l), _probabilities("h", h)
    if not 1 <= n_bins <= len(h):
        raise DataError(f"n_bins = {n_bins}; a number from 1 to the {len(h)} rows is expected.")
    gaps = (labels - h)[np.argsort(h, kind="stable")]
    return float(sum(abs(part.sum()) for part in np.array_split(gaps, n_bins)) / len(h))


# Inverse-propensity estimates for a classifier --------------------------------------------------


def ipw_class_prior(l: ArrayLike, propensity: ArrayLike) -> Estimate:
    r"""Class prior :math:`\pi = E\,y`, by the mean of l/s; unbiased."""
    return _average(l, propensity, lambda w: w)


def ipw_accuracy(l: ArrayLike, predicted: ArrayLike, propensity: ArrayLike) -> Estimate:
    r"""P(d = y) for predictions d, by the mean of :math:`1 - d + w(2d - 1)`, w = l/s; unbiased."""
    d = _labels(predicted, "predicted")
    return _average(l, propensity, lambda w: 1 - d + w * (2 * d - 1))


def ipw_brier(l: ArrayLike, t: ArrayLike, propensity: ArrayLike) -> Estimate:
    r"""Brier score E(y - t)² of t against y, by the mean of :math:`t^2 + w(1 - 2t)`; unbiased."""
    t = _probabilities("t", t)
    return _average(l, propensity, lambda w: t**2 + w * (1 - 2 * t))


def ipw_recall(l: ArrayLike, predicted: ArrayLike, propensity: ArrayLike) -> Estimate:
    r"""P(d=1 | y=1), by :math:`\sum w d / \sum w`."""
    d = _labels(predicted, "predicted")
    return _ratio(l, propensity, lambda w: (w * d, w))


def ipw_precision(l: ArrayLike, predicted: ArrayLike, propensity: ArrayLike) -> Estimate:
    r"""P(y=1 | d=1), by :math:`\sum w d / \sum d`; unbiased given X, and may exceed 1 by chance."""
    d = _labels(predicted, "predicted")
    return _ratio(l, propensity, lambda w: (w * d, d))


def ipw_f1(l: ArrayLike, predicted: ArrayLike, propensity: ArrayLike) -> Estimate:
    r"""F1 = 2 P(y=1, d=1) / (P(y=1) + P(d=1)), by :math:`2\sum w d / \sum (w + d)`."""
    d = _labels(predicted, "predicted")
    return _ratio(l, propensity, lambda w: (2 * w * d, w + d))


def ipw_auc(l: ArrayLike, score: ArrayLike, propensity: ArrayLike) -> Estimate:
    r"""Area under the ROC curve of a score of y.

    .. math:: \frac{\sum_{i \ne j} w_i (1 - w_j) k_{ij}}{\sum_{i \ne j} w_i (1 - w_j)},
        \qquad k_{ij} = 1, \tfrac12, 0 \text{ for } f_i >, =, < f_j .

    Numerator and denominator are unbiased, because rows are independent. The standard error is
    that of the first-order (Hájek) projection.
    """
    f = np.asarray(score, dtype=float)
    return _with_draws(l, propensity, lambda w: _auc(w, f))


# As scorers of scikit-learn ---------------------------------------------------------------------


def label_scorer(
    score: Callable[[ArrayLike, ArrayLike], float] = label_brier,
) -> Callable[[Any, Any, Any], float]:
    """A scorer ``(estimator, X, l) -> float``, greater is better, for ``scoring=`` in searches.

    The estimator, or the last step of a pipeline, tells h by ``predict_label_proba``; classifiers
    without it are taken at their word that ``predict_proba`` is about l.

    Examples
    --------
    >>> from sklearn.model_selection import cross_val_score
    >>> from bayes_lepu import load_demo
    >>> from bayes_lepu.estimators import PUClassifier, label_log_loss, label_scorer
    >>> demo = load_demo()
    >>> scorer = label_scorer(label_log_loss)
    >>> cross_val_score(PUClassifier(model="naive"), demo.X, demo.l, scoring=scorer).shape
    (5,)
    """
    if not callable(score):
        raise ModelError(
            f"score = {score!r} is not a function; label_brier, label_log_loss, "
            "label_calibration_error or a function (l, h) -> float is expected, for example "
            "label_scorer(label_brier)."
        )
    return _LabelScorer(score)


def ipw_scorer(
    score: Callable[[ArrayLike, ArrayLike, ArrayLike], Estimate],
    propensity: Callable[[Any], ArrayLike] | float,
) -> Callable[[Any, Any, Any], float]:
    """A scorer ``(estimator, X, l) -> float`` of an inverse-propensity estimate.

    Parameters
    ----------
    score : callable
        One of the ``ipw_`` functions of a classifier.
    propensity : callable or float
        ``propensity(X)`` gives s(x), known or estimated elsewhere; a number where it is constant.
    """
    if not callable(score):
        raise ModelError(
            f"score = {score!r} is not a function; ipw_accuracy, ipw_brier, ipw_recall, "
            "ipw_precision, ipw_f1, ipw_auc or a function (l, predicted, propensity) is expected."
        )
    if not callable(propensity) and not isinstance(propensity, int | float | np.number):
        raise ModelError(
            f"propensity is a {type(propensity).__name__}; a number, or a function of X that gives "
            "s(x) for every row, is expected: the rows differ from fold to fold."
        )
    return _PropensityScorer(score, propensity)


@dataclass(frozen=True)
class _LabelScorer:
    score: Callable[[ArrayLike, ArrayLike], float]

    def __call__(self, estimator: Any, X: Any, l: Any) -> float:
        labels = (np.asarray(l) == estimator.classes_[1]).astype(np.int8)
        return -float(self.score(labels, _label_probability(estimator, X)))


@dataclass(frozen=True)
class _PropensityScorer:
    score: Callable[[ArrayLike, ArrayLike, ArrayLike], Estimate]
    propensity: Callable[[Any], ArrayLike] | float

    def __call__(self, estimator: Any, X: Any, l: Any) -> float:
        labels = (np.asarray(l) == estimator.classes_[1]).astype(np.int8)
        s = self.propensity(X) if callable(self.propensity) else self.propensity
        if self.score is ipw_auc:
            prediction = estimator.decision_function(X)
        elif self.score is ipw_brier:
            prediction = estimator.predict_proba(X)[:, 1]
        else:
            prediction = estimator.predict(X) == estimator.classes_[1]
        value = float(self.score(labels, prediction, s))
        return -value if self.score is ipw_brier else value


def _label_probability(estimator: Any, X: Any) -> Array:
    last = estimator
    if hasattr(estimator, "steps"):
        X, last = estimator[:-1].transform(X), estimator[-1]
    if hasattr(last, "predict_label_proba"):
        return last.predict_label_proba(X)
    return last.predict_proba(X)[:, 1]


# Workings ---------------------------------------------------------------------------------------


def _average(l: ArrayLike, propensity: ArrayLike, terms: Callable[[Array], Array]) -> Estimate:
    """Mean of ``terms(w)`` with the standard error of a mean."""

    def one(w: Array) -> Estimate:
        values = terms(w)
        return Estimate(float(values.mean()), _standard_error(values))

    return _with_draws(l, propensity, one)


def _ratio(
    l: ArrayLike, propensity: ArrayLike, terms: Callable[[Array], tuple[Array, Array]]
) -> Estimate:
    """Ratio of two means with its standard error to first order."""

    def one(w: Array) -> Estimate:
        over, under = terms(w)
        if not under.mean() > 0:
            return Estimate(np.nan, np.nan)
        value = float(over.mean() / under.mean())
        return Estimate(value, _standard_error((over - value * under) / under.mean()))

    return _with_draws(l, propensity, one)


def _auc(w: Array, f: Array) -> Estimate:
    n, order = len(f), np.unique(f, return_inverse=True)[1]
    v = 1 - w
    below, above = _mass_below(v, order), _mass_below(w, order)
    at_v, at_w = np.bincount(order, v)[order], np.bincount(order, w)[order]
    # Pairs (i, j) with i positive: rows below i count one, ties one half, the row itself nothing.
    wins = w * (below + 0.5 * (at_v - v))
    losses = v * (w.sum() - above - at_w + 0.5 * (at_w - w))
    pairs_as_positive, pairs_as_negative = w * (v.sum() - v), v * (w.sum() - w)
    total = float(pairs_as_positive.sum())
    if not total > 0:
        return Estimate(np.nan, np.nan)
    value = float(wins.sum()) / total
    influence = (wins + losses - value * (pairs_as_positive + pairs_as_negative)) * n / total
    return Estimate(value, _standard_error(influence))


def _mass_below(mass: Array, order: NDArray[np.intp]) -> Array:
    """For every row, the mass of the rows with a smaller score."""
    by_value = np.bincount(order, mass)
    return (np.cumsum(by_value) - by_value)[order]


def _with_draws(l: ArrayLike, propensity: ArrayLike, one: Callable[[Array], Estimate]) -> Estimate:
    """The estimate for one propensity, or over draws of it with the spread between them."""
    labels = _labels(l)
    s = np.asarray(propensity, dtype=float)
    if s.ndim == 0:
        s = np.full(len(labels), float(s))
    if s.shape[-1] != len(labels) or s.ndim > 2:
        raise DataError(
            f"propensity has shape {s.shape}; expected a number, ({len(labels)},), or (draws, "
            f"{len(labels)})."
        )
    used = s[..., labels == 1]
    if not (np.all(used > 0) and np.all(used <= 1)):
        raise DataError(
            f"propensity goes from {used.min():g} to {used.max():g} over the labelled rows; "
            "expected numbers in (0, 1]. A labelled row with propensity 0 is impossible."
        )
    weights = np.divide(labels, s, out=np.zeros(s.shape), where=labels == 1)
    if s.ndim == 1 or len(s) == 1:  # one draw has no spread
        return one(weights.reshape(-1))
    found = [one(w) for w in weights]
    values = np.array([e.value for e in found])
    within = np.mean([e.standard_error**2 for e in found])
    return Estimate(float(values.mean()), float(np.sqrt(within + values.var(ddof=1))))


def _standard_error(values: Array) -> float:
    return float(np.std(values, ddof=1) / np.sqrt(len(values)))


def _labels(l: ArrayLike, name: str = "l") -> Array:
    values = np.asarray(l, dtype=float)
    if values.ndim != 1 or not np.isin(values, (0, 1)).all():
        raise DataError(
            f"{name} must be one 0 or 1 (or bool) per row; got {np.unique(values)[:5]}."
        )
    return values


def _probabilities(name: str, p: ArrayLike) -> Array:
    values = np.asarray(p, dtype=float)
    inside = np.clip(values, 0.0, 1.0)
    if values.ndim != 1 or not np.all(np.abs(values - inside) < ROUNDING):
        raise DataError(
            f"{name} must be one probability per row; got shape {values.shape}, from "
            f"{np.min(values):g} to {np.max(values):g}."
        )
    return inside
