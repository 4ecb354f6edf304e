r"""Methods of the literature, written from their papers, all on logistic regressions.

Each takes training rows and marks and returns an `Answer`. "EM of two logistic regressions" serves
SAR-EM and LBE, which differ in where they begin:

.. math:: m_i = l_i + (1 - l_i)\,\frac{t_i (1 - s_i)}{1 - s_i t_i}, \qquad
    t \leftarrow \text{regression of } m, \qquad s \leftarrow \text{regression of } l
    \text{ with weights } m.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import digamma, expit, log_expit

from bayes_lepu.baselines import elkan_noto, naive

Array = NDArray[np.float64]
Marks = NDArray[np.int64]
RIDGE = 0.5  # C of every regression here: scikit-learn's default, which these papers use
EM_STEPS = 200


@dataclass(frozen=True, eq=False)
class Answer:
    """What a method says.

    Attributes
    ----------
    class_probability : callable
        P(y=1 | x) of rows.
    pi : float
        Share of positives among the training rows.
    interval : tuple of float, optional
        95 % interval of pi.
    facts : dict
        What else is worth keeping: the level of a verdict.
    members : dict of str to Answer
        Of an average, what each of its members says, by name of the method.
    """

    class_probability: Callable[[Array], Array]
    pi: float
    interval: tuple[float, float] | None = None
    facts: dict[str, float] = field(default_factory=dict)
    members: "dict[str, Answer]" = field(default_factory=dict)


def fit_naive(X: Array, l: Marks, rng: np.random.Generator) -> Answer:
    """Whoever is not marked is negative."""
    return _answer(X, naive(X, l, C=RIDGE).predict_proba)


def fit_elkan_noto(X: Array, l: Marks, rng: np.random.Generator) -> Answer:
    """Elkan and Noto (2008): divide by the mean score of marked rows kept back."""
    return _answer(X, elkan_noto(X, l, C=RIDGE, random_seed=rng).predict_proba)


def fit_sar_em(X: Array, l: Marks, rng: np.random.Generator) -> Answer:
    """SAR-EM (Bekker, Robberechts and Davis, 2019).

    EM from a classifier of the marks with both kinds weighted alike; after it, the classifier is
    fitted once more with every marked row counted 1/s times as positive.
    """
    rate = l.mean()
    t = expit(_design(X) @ _regress(X, l, np.where(l == 1, 1 - rate, rate)))
    s = expit(_design(X) @ _regress(X, l, np.where(l == 1, 1.0, t)))
    _, propensity = _em(X, l, t, s)
    weight = l / np.clip(expit(_design(X) @ propensity), 1e-4, 1.0)
    theta = _regress(X, weight, np.ones(len(l)))
    return _logistic_answer(X, theta)


def fit_lbe(X: Array, l: Marks, rng: np.random.Generator) -> Answer:
    """LBE (Gong and others, 2021): EM that begins at the naive classifier."""
    t = naive(X, l, C=RIDGE).predict_proba(X)[:, 1]
    theta, _ = _em(X, l, t, np.full(len(l), 0.5))
    return _logistic_answer(X, theta)


def fit_two_models(X: Array, l: Marks, rng: np.random.Generator) -> Answer:
    r"""TM (Furmanczyk, Mielniczuk, Rejchel and Teisseyre, 2023): two consistent risks in turn.

    .. math:: t = \arg\max \sum \tfrac{l}{s} \log t + (1 - \tfrac{l}{s}) \log (1 - t), \qquad
        s = \arg\max \sum l \log s + (t - l)_+ \log (1 - s)
    """
    t = naive(X, l, C=RIDGE).predict_proba(X)[:, 1]
    t = 0.5 * (t + 1.0)  # half-way between "not marked is negative" and "all are positive"
    theta = np.zeros(X.shape[1] + 1)
    for _ in range(EM_STEPS):
        weight = np.where(l == 1, 1.0, t)
        s = np.clip(expit(_design(X) @ _regress(X, l, weight)), 0.02, 1.0)
        new = _regress(X, l / s, np.ones(len(l)))
        done = np.abs(new - theta).max() < 1e-4
        theta, t = new, expit(_design(X) @ new)
        if done:
            break
    return _logistic_answer(X, theta)


def fit_threshold(X: Array, l: Marks, rng: np.random.Generator) -> Answer:
    """NTC-τMI (Teisseyre, Martens, Bekker and Davis, 2025): the naive ranking, cut elsewhere.

    The cut maximises the mutual information between the score and the side it falls on, over the
    rows without a mark, by nearest neighbours (Ross, 2014, with k = 3).
    """
    found = naive(X, l, C=RIDGE)
    scores = np.sort(found.decision_function(X)[l == 0])
    cuts = np.linspace(scores[3], scores[-4], 102)[1:-1]
    cut = cuts[int(np.argmax([_information(scores, c) for c in cuts]))]
    return _answer(X, lambda rows: _two_columns(expit(found.decision_function(rows) - cut)))


def _information(scores: Array, cut: float, k: int = 3) -> float:
    """Mutual information of sorted scores and their side of the cut."""
    n, below = scores.size, int(np.searchsorted(scores, cut, side="right"))
    if below <= k or n - below <= k:
        return -np.inf
    counts = np.full(n, k)
    for i in range(max(0, below - k), min(n, below + k)):  # elsewhere all neighbours are alike
        side = scores[:below] if i < below else scores[below:]
        radius = np.sort(np.abs(side - scores[i]))[k]
        near = np.searchsorted(scores, [scores[i] - radius, scores[i] + radius])
        counts[i] = max(k, near[1] - near[0])
    shares = np.array([below, n - below])
    return float(-np.mean(digamma(counts)) - shares @ digamma(shares) / n)


def _em(X: Array, l: Marks, t: Array, s: Array) -> tuple[Array, Array]:
    """Coefficients of classifier and propensity after EM from these probabilities."""
    theta = phi = None
    before = -np.inf
    for _ in range(EM_STEPS):
        m = np.where(l == 1, 1.0, t * (1 - s) / np.clip(1 - s * t, 1e-12, None))
        phi = _regress(X, l, m, start=phi)
        theta = _regress(X, m, np.ones(len(l)), start=theta)
        t, s = expit(_design(X) @ theta), expit(_design(X) @ phi)
        h = np.clip(s * t, 1e-12, 1 - 1e-12)
        now = float(np.mean(np.where(l == 1, np.log(h), np.log1p(-h))))
        if now - before < 1e-7:
            break
        before = now
    assert theta is not None
    assert phi is not None
    return theta, phi


def _regress(X: Array, target: Array, weight: Array, *, start: Array | None = None) -> Array:
    """Ridge logistic regression of a target, which may exceed 1, with weights; intercept last."""
    design = _design(X)
    penalty = np.full(design.shape[1], RIDGE)
    penalty[-1] = 1e-6

    def loss(theta: Array) -> tuple[float, Array]:
        eta = design @ theta
        value = -(weight * (target * log_expit(eta) + (1 - target) * log_expit(-eta))).sum()
        slope = design.T @ (weight * (expit(eta) - target)) + 2 * penalty * theta
        return float(value + penalty @ theta**2), slope

    first = np.zeros(design.shape[1]) if start is None else start
    return minimize(loss, first, jac=True, method="L-BFGS-B").x


def _design(X: Array) -> Array:
    return np.column_stack([X, np.ones(len(X))])


def _two_columns(t: Array) -> Array:
    return np.column_stack([1 - t, t])


def _logistic_answer(X: Array, theta: Array) -> Answer:
    return _answer(X, lambda rows: _two_columns(expit(_design(rows) @ theta)))


def _answer(X: Array, predict_proba: Callable[[Array], Array]) -> Answer:
    def probability(rows: Array) -> Array:
        return predict_proba(rows)[:, 1]

    return Answer(probability, float(probability(X).mean()))


PEERS: dict[str, Callable[[Array, Marks, np.random.Generator], Answer]] = {
    "naive": fit_naive,
    "Elkan-Noto": fit_elkan_noto,
    "SAR-EM": fit_sar_em,
    "LBE": fit_lbe,
    "TM": fit_two_models,
    "NTC-τMI": fit_threshold,
}
