r"""Methods of the literature, at settings that suit them.

Each takes a `Trial`, of which it may use the rows and the marks alone, and returns an `Answer`.
Trees get raw columns and stop early; logistic regressions get standardised ones.

The four written from papers on logistic regressions (`LINEAR`) serve where few rows make them
cheap. "EM of two logistic regressions" is SAR-EM and LBE, which differ in where they begin:

.. math:: m_i = l_i + (1 - l_i)\,\frac{t_i (1 - s_i)}{1 - s_i t_i}, \qquad
    t \leftarrow \text{regression of } m, \qquad s \leftarrow \text{regression of } l
    \text{ with weights } m.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import digamma, expit, log_expit
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.tree import DecisionTreeClassifier

from benchmarks.real.labelling import FEWEST, Marks, Trial
from benchmarks.real.public_tables import Array, boosting, logistic

RIDGE = 0.5  # C of every regression here: scikit-learn's default, which these papers use
EM_STEPS = 200
BAGS = 100  # the number of Mordelet and Vert


@dataclass(frozen=True, eq=False)
class Answer:
    """What a method says.

    Attributes
    ----------
    score : array
        P(y=1 | x) of the test rows.
    pi : float, optional
        Share of positives among the training rows, where the method gives one.
    interval : tuple of float, optional
        95 % interval of pi.
    """

    score: Array
    pi: float | None = None
    interval: tuple[float, float] | None = None


Method = Callable[[Trial, np.random.Generator], Answer]


def fit_naive(trial: Trial, rng: np.random.Generator) -> Answer:
    """Logistic regression of the marks: whoever is not marked is negative."""
    found = logistic().fit(trial.X, trial.l)
    return Answer(found.predict_proba(trial.X_test)[:, 1], float(trial.l.mean()))


def fit_naive_boosting(trial: Trial, rng: np.random.Generator) -> Answer:
    """Boosted trees of the marks."""
    found = boosting(_seed(rng)).fit(trial.trees, trial.l)
    return Answer(found.predict_proba(trial.trees_test)[:, 1], float(trial.l.mean()))


def fit_elkan_noto(trial: Trial, rng: np.random.Generator) -> Answer:
    """Elkan and Noto (2008) on a logistic regression."""
    return _elkan_noto(trial, logistic(), trial.X, trial.X_test, rng)


def fit_elkan_noto_boosting(trial: Trial, rng: np.random.Generator) -> Answer:
    """Elkan and Noto (2008) on boosted trees."""
    return _elkan_noto(trial, boosting(_seed(rng)), trial.trees, trial.trees_test, rng)


def _elkan_noto(
    trial: Trial, learner: object, X: Array, X_test: Array, rng: np.random.Generator
) -> Answer:
    """Divide by c, the mean score of the marked rows by learners that have not seen them."""
    folds = StratifiedKFold(FEWEST, shuffle=True, random_state=_seed(rng))
    left_out = cross_val_predict(learner, X, trial.l, cv=folds, method="predict_proba")[:, 1]
    c = float(left_out[trial.l == 1].mean())
    h = learner.fit(X, trial.l).predict_proba(X_test)[:, 1]  # type: ignore[attr-defined]
    return Answer(h / c, min(1.0, float(trial.l.mean()) / c))


def fit_bagged_trees(trial: Trial, rng: np.random.Generator) -> Answer:
    """Mordelet and Vert (2014): trees of the marked against as many of the others, averaged."""
    marked, others = np.flatnonzero(trial.l == 1), np.flatnonzero(trial.l == 0)
    total = np.zeros(len(trial.y_test))
    for _ in range(BAGS):
        rows = np.append(marked, rng.choice(others, marked.size))
        tree = DecisionTreeClassifier(max_features="sqrt", random_state=_seed(rng))
        tree.fit(trial.trees[rows], trial.l[rows])
        total += tree.predict_proba(trial.trees_test)[:, 1]
    return Answer(total / BAGS)


def _seed(rng: np.random.Generator) -> int:
    return int(rng.integers(2**31))


def fit_sar_em(trial: Trial, rng: np.random.Generator) -> Answer:
    """SAR-EM (Bekker, Robberechts and Davis, 2019).

    EM from a classifier of the marks with both kinds weighted alike; after it, the classifier is
    fitted once more with every marked row counted 1/s times as positive.
    """
    X, l = trial.X, trial.l
    rate = l.mean()
    t = expit(_design(X) @ _regress(X, l, np.where(l == 1, 1 - rate, rate)))
    s = expit(_design(X) @ _regress(X, l, np.where(l == 1, 1.0, t)))
    _, propensity = _em(X, l, t, s)
    weight = l / np.clip(expit(_design(X) @ propensity), 1e-4, 1.0)
    theta = _regress(X, weight, np.ones(len(l)))
    return _answer(trial, theta)


def fit_lbe(trial: Trial, rng: np.random.Generator) -> Answer:
    """LBE (Gong and others, 2021): EM that begins at the naive classifier."""
    X, l = trial.X, trial.l
    t = expit(_design(X) @ _regress(X, l, np.ones(len(l))))
    theta, _ = _em(X, l, t, np.full(len(l), 0.5))
    return _answer(trial, theta)


def fit_two_models(trial: Trial, rng: np.random.Generator) -> Answer:
    r"""TM (Furmanczyk, Mielniczuk, Rejchel and Teisseyre, 2023): two consistent risks in turn.

    .. math:: t = \arg\max \sum \tfrac{l}{s} \log t + (1 - \tfrac{l}{s}) \log (1 - t), \qquad
        s = \arg\max \sum l \log s + (t - l)_+ \log (1 - s)
    """
    X, l = trial.X, trial.l
    t = expit(_design(X) @ _regress(X, l, np.ones(len(l))))
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
    return _answer(trial, theta)


def fit_threshold(trial: Trial, rng: np.random.Generator) -> Answer:
    """NTC-τMI (Teisseyre, Martens, Bekker and Davis, 2025): the naive ranking, cut elsewhere.

    The cut maximises the mutual information between the score and the side it falls on, over the
    rows without a mark, by nearest neighbours (Ross, 2014, with k = 3).
    """
    X, l = trial.X, trial.l
    theta = _regress(X, l, np.ones(len(l)))
    scores = np.sort((_design(X) @ theta)[l == 0])
    cuts = np.linspace(scores[3], scores[-4], 102)[1:-1]
    theta[-1] -= cuts[int(np.argmax([_information(scores, c) for c in cuts]))]
    return _answer(trial, theta)


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


def _answer(trial: Trial, theta: Array) -> Answer:
    pi = float(expit(_design(trial.X) @ theta).mean())
    return Answer(expit(_design(trial.X_test) @ theta), pi)


TREES: dict[str, Method] = {
    "naive-boosting": fit_naive_boosting,
    "elkan-noto-boosting": fit_elkan_noto_boosting,
    "bagged-trees": fit_bagged_trees,
}
LINEAR: dict[str, Method] = {
    "sar-em": fit_sar_em,
    "lbe": fit_lbe,
    "tm": fit_two_models,
    "ntc-tmi": fit_threshold,
}
PEERS: dict[str, Method] = {"naive": fit_naive, "elkan-noto": fit_elkan_noto, **TREES, **LINEAR}
