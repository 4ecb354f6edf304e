r"""Observed information: minus the Hessian of the log-likelihood on the common coordinates.

Row by row the log-likelihood is a function of (τ, ω, u, v) through t and Ψ, with

.. math::
    \Psi_\omega = \rho s_0 (1-s_0), \quad \Psi_u = \gamma (1-\Psi), \quad \Psi_v = -\lambda \Psi,

and second derivatives that are multiples of these. The chain rule gives a 4 x 4 matrix per row,
which the features spread over the coordinates.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_expit

from bayes_lepu import links
from bayes_lepu.links import Array, RowKind
from bayes_lepu.models.parameters import Parameters


def observed_information(X: Array, kind: NDArray[np.int8], point: Parameters) -> Array:
    """Minus the Hessian, ``(2p + 4, 2p + 4)``, in the order (a, b, α, β, u, v)."""
    n, p = X.shape
    H = -row_hessians(point.tau(X), point.omega(X), kind, point.log_w)
    design = np.column_stack([X, np.ones(n)])
    k = p + 1
    out = np.zeros((2 * p + 4, 2 * p + 4))
    for i in range(2):
        for j in range(2):
            weighted = design * H[:, i, j, None]
            out[i * k : (i + 1) * k, j * k : (j + 1) * k] = design.T @ weighted
        out[i * k : (i + 1) * k, 2 * k :] = design.T @ H[:, i, 2:]
        out[2 * k :, i * k : (i + 1) * k] = out[i * k : (i + 1) * k, 2 * k :].T
    out[2 * k :, 2 * k :] = H[:, 2:, 2:].sum(axis=0)
    return out


def row_hessians(tau: Array, omega: Array, kind: NDArray[np.int8], log_w: Array) -> Array:
    """Hessian of every row's log-likelihood in (τ, ω, u, v), ``(n, 4, 4)``.

    Every derivative enters as its ratio to the likelihood, formed from logarithms, so that far
    tails give zeros and not 0/0.
    """
    log_gamma, log_lam, log_rho = log_w
    gamma, lam = np.exp(log_gamma), np.exp(log_lam)
    log_t, log_not_t = log_expit(tau), log_expit(-tau)
    log_s0, log_not_s0 = log_expit(omega), log_expit(-omega)
    log_psi, log_not_psi = links.log_psychometric(omega, log_w)
    log_missed = log_t + log_not_psi
    t, not_t = np.exp(log_t), np.exp(log_not_t)
    unlabelled, labelled = kind == RowKind.UNLABELLED, kind == RowKind.LABELLED
    missed = kind == RowKind.MISSED

    # log f with L = f (times t or 1 - t): Ψ, 1 - Ψ, or L itself; and d f / d Ψ = ± 1 or -t.
    log_f = np.select(
        [labelled, missed, unlabelled],
        [log_psi, log_not_psi, np.logaddexp(log_not_t, log_missed) - log_t],
        default=0.0,
    )
    sign = np.select([labelled, missed | unlabelled], [1.0, -1.0], default=0.0)
    first = np.zeros((tau.shape[0], 4))
    first[:, 1] = sign * np.exp(log_rho + log_s0 + log_not_s0 - log_f)
    first[:, 2] = sign * np.exp(log_gamma + log_not_psi - log_f)
    first[:, 3] = -sign * np.exp(log_lam + log_psi - log_f)
    second = np.zeros((tau.shape[0], 4, 4))
    second[:, 1, 1] = first[:, 1] * -np.tanh(omega / 2)
    second[:, 1, 2] = second[:, 2, 1] = -gamma * first[:, 1]
    second[:, 1, 3] = second[:, 3, 1] = -lam * first[:, 1]
    second[:, 2, 2] = first[:, 2] * (1 - 2 * gamma)
    second[:, 2, 3] = second[:, 3, 2] = -gamma * first[:, 3] - lam * first[:, 2]
    second[:, 3, 3] = first[:, 3] * (1 - 2 * lam)

    # Only in unlabelled rows do τ and Ψ enter one sum together.
    d_tau = -np.exp(np.where(unlabelled, log_not_t + log_psi - log_f, -np.inf))
    first[:, 0] = d_tau
    second[:, 0, 0] = np.where(unlabelled, d_tau * (not_t - t), -t * not_t)
    mixed = np.where(unlabelled, not_t, 0.0)[:, None] * first[:, 1:]
    second[:, 0, 1:] = second[:, 1:, 0] = mixed
    return second - first[:, :, None] * first[:, None, :]
