"""The likelihood of a row of one annotator, written out once more for the tests.

It shares no line with `bayes_lepu.rows` and is itself held against 60-digit arithmetic in
`tests/likelihood/test_row_formula.py`. Every complement is a sum of positive terms.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_expit

Array = NDArray[np.float64]

LOG_W_NAIVE = np.array([0.0, -np.inf, -np.inf])
LOG_W_SPM = np.array([-np.inf, -np.inf, 0.0])


def log_psychometric(omega: ArrayLike, log_w: ArrayLike) -> tuple[Array, Array]:
    """Logarithms of Ψ and of 1 - Ψ, each from a sum of positive terms."""
    log_gamma, log_lam, log_rho = np.asarray(log_w, dtype=float)
    log_s0, log_not_s0 = log_expit(omega), log_expit(-np.asarray(omega))
    log_psi = np.logaddexp(log_gamma, log_rho + log_s0)
    log_not_psi = np.logaddexp(log_lam, log_rho + log_not_s0)
    return log_psi, log_not_psi


def row_loglik(kind: ArrayLike, tau: ArrayLike, omega: ArrayLike, log_w: ArrayLike) -> Array:
    """Log-likelihood of each row given its kind (0 to 3 of `bayes_lepu.links.RowKind`)."""
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
