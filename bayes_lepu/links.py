r"""The two factors of the labelling probability, and the log-likelihood of one row.

.. math::
    h(x) = P(l=1 \mid x) = \Psi(\omega)\, t(\tau), \qquad
    t = \sigma(\tau), \quad \tau = a \cdot x + b, \quad \omega = \alpha \cdot x + \beta,

    \Psi = \gamma + (1 - \gamma - \lambda)\,\sigma(\omega).

Every model of the library is a choice of the weights :math:`(\gamma, \lambda, \rho)`,
:math:`\rho = 1 - \gamma - \lambda`, which are always handled as logarithms ``log_w``:

======  ======================  =========================
model   weights                 ``log_w``
======  ======================  =========================
naive   (1, 0, 0)               (0, -inf, -inf)
scar    (c, 1 - c, 0)           (log c, log(1 - c), -inf)
spm     (0, 0, 1)               (-inf, -inf, 0)
psychm  (gamma, lambda, rho)    all finite
======  ======================  =========================

Nothing here is ever formed as one minus a product: every complement is written as a sum of
positive terms, so that logarithms stay finite up to predictors of several hundred.

Conventions
-----------
``tau`` and ``omega`` broadcast against each other; ``kind`` has one entry per row.
"""

from enum import IntEnum

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, log_expit

Array = NDArray[np.float64]

LOG_W_NAIVE = np.array([0.0, -np.inf, -np.inf])
LOG_W_SPM = np.array([-np.inf, -np.inf, 0.0])


class RowKind(IntEnum):
    """What is known about a row.

    A labelled row is positive (no false positives); an audited row has a known class.
    """

    UNLABELLED = 0  # l=0, class unknown:          1 - s t
    LABELLED = 1  # l=1, hence y=1:                s t
    MISSED = 2  # l=0, audited as y=1:             (1 - s) t
    NEGATIVE = 3  # l=0, audited as y=0:           1 - t
    FALSE_MARK = 4  # l=1, audited as y=0:         ε (1 - t), with false marks only


def sigmoid(z: ArrayLike) -> Array:
    """Logistic function 1 / (1 + exp(-z))."""
    return np.asarray(expit(z), dtype=float)


def psychometric(omega: ArrayLike, log_w: ArrayLike) -> Array:
    """Propensity Ψ = γ + (1 - γ - λ) σ(ω)."""
    gamma, _, rho = np.exp(np.asarray(log_w, dtype=float))
    return np.asarray(gamma + rho * expit(omega), dtype=float)


def log_psychometric(omega: ArrayLike, log_w: ArrayLike) -> tuple[Array, Array]:
    """Logarithms of Ψ and of 1 - Ψ, each from a sum of positive terms."""
    log_gamma, log_lam, log_rho = np.asarray(log_w, dtype=float)
    log_s0, log_not_s0 = log_expit(omega), log_expit(-np.asarray(omega))
    log_psi = np.logaddexp(log_gamma, log_rho + log_s0)
    log_not_psi = np.logaddexp(log_lam, log_rho + log_not_s0)
    return log_psi, log_not_psi


def label_probability(tau: ArrayLike, omega: ArrayLike, log_w: ArrayLike) -> Array:
    """Probability h = Ψ t that a row is labelled."""
    return psychometric(omega, log_w) * sigmoid(tau)


def missed_probability(tau: ArrayLike, omega: ArrayLike, log_w: ArrayLike) -> Array:
    """P(y=1 | x, l=0) = t (1 - Ψ) / (1 - h)."""
    _, log_not_psi = log_psychometric(omega, log_w)
    log_missed = log_expit(tau) + log_not_psi
    return np.exp(log_missed - np.logaddexp(log_missed, log_expit(-np.asarray(tau))))


def row_loglik(kind: ArrayLike, tau: ArrayLike, omega: ArrayLike, log_w: ArrayLike) -> Array:
    """Log-likelihood of each row given its kind (see `RowKind`)."""
    log_psi, log_not_psi = log_psychometric(omega, log_w)
    log_t, log_not_t = log_expit(tau), log_expit(-np.asarray(tau))
    log_missed = log_t + log_not_psi
    choices = [
        np.logaddexp(log_not_t, log_missed),
        log_t + log_psi,
        log_missed,
        log_not_t,
    ]
    return np.choose(np.asarray(kind), choices)
