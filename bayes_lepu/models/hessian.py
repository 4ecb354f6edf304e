r"""Observed information: minus the Hessian of the log-likelihood on the common coordinates.

Row by row the log-likelihood is a function of (τ, ω, u, v) through t and Ψ, with

.. math::
    \Psi_\omega = \rho s_0 (1-s_0), \quad \Psi_u = \gamma (1-\Psi), \quad \Psi_v = -\lambda \Psi,

and second derivatives that are multiples of these. The chain rule gives a 4 x 4 matrix per row,
which the features spread over the coordinates.
"""

import numpy as np
from numpy.typing import NDArray

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
    """Hessian of every row's log-likelihood in (τ, ω, u, v), ``(n, 4, 4)``."""
    gamma, lam, rho = np.exp(log_w)
    t, not_t = links.sigmoid(tau), links.sigmoid(-tau)
    s0, not_s0 = links.sigmoid(omega), links.sigmoid(-omega)
    psi, not_psi = gamma + rho * s0, lam + rho * not_s0
    q = not_psi + psi * not_t

    first = np.zeros((tau.shape[0], 4))
    first[:, 1] = rho * s0 * not_s0
    first[:, 2] = gamma * not_psi
    first[:, 3] = -lam * psi
    second = np.zeros((tau.shape[0], 4, 4))
    second[:, 1, 1] = first[:, 1] * (not_s0 - s0)
    second[:, 1, 2] = second[:, 2, 1] = -gamma * first[:, 1]
    second[:, 1, 3] = second[:, 3, 1] = -lam * first[:, 1]
    second[:, 2, 2] = first[:, 2] * (1 - 2 * gamma)
    second[:, 2, 3] = second[:, 3, 2] = gamma * lam * (psi - not_psi)
    second[:, 3, 3] = first[:, 3] * (1 - 2 * lam)

    H = np.zeros_like(second)
    unlabelled = kind == RowKind.UNLABELLED
    labelled = kind == RowKind.LABELLED
    missed = kind == RowKind.MISSED

    H[~unlabelled, 0, 0] = -(t * not_t)[~unlabelled]
    H[labelled] += _log_hessian(psi[labelled], first[labelled], second[labelled])
    H[missed] += _log_hessian(not_psi[missed], -first[missed], -second[missed])

    q_first = -t[:, None] * first
    q_first[:, 0] = -psi * t * not_t
    q_second = -t[:, None, None] * second
    q_second[:, 0, 0] = q_first[:, 0] * (not_t - t)
    q_second[:, 0, 1:] = q_second[:, 1:, 0] = -(t * not_t)[:, None] * first[:, 1:]
    H[unlabelled] = _log_hessian(q[unlabelled], q_first[unlabelled], q_second[unlabelled])
    return H


def _log_hessian(f: Array, first: Array, second: Array) -> Array:
    """Hessian of log f from f, its gradient and its Hessian."""
    g = first / f[:, None]
    return second / f[:, None, None] - g[:, :, None] * g[:, None, :]
