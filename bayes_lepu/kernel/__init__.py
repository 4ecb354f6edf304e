r"""The fused log-likelihood: value, gradient and expected information in one pass over X.

A row contributes the probability of the cells (y, l) that what is known about it leaves open,

.. math::
    L = k_0 (1-t) + t\,[k_1 \Psi + k_2 (1-\Psi)], \qquad
    t = \sigma(\tau), \quad \Psi = \gamma + \rho\,\sigma(\omega),
    \quad 1 - \Psi = \lambda + \rho\,\sigma(-\omega),

with :math:`(k_0, k_1, k_2)` = (1, 0, 1) unlabelled, (0, 1, 0) labelled, (0, 0, 1) missed and
(1, 0, 0) negative (`bayes_lepu.links.RowKind`). Its derivatives are

.. math::
    \partial L/\partial\tau &= t(1-t)\,[(k_1-k_0)\Psi + (k_2-k_0)(1-\Psi)], \qquad
    \partial L/\partial\Psi = t\,(k_1 - k_2), \\
    \partial\Psi/\partial\omega &= \rho\,\sigma(\omega)\sigma(-\omega), \quad
    \partial\Psi/\partial u = \gamma(1-\Psi), \quad
    \partial\Psi/\partial v = -\lambda\Psi,

where :math:`u = \log(\gamma/\rho)` and :math:`v = \log(\lambda/\rho)`. Under SCAR
(:math:`\rho = 0`) the same formula makes u the logit of c. No sum above mixes signs, so no
digits are lost to cancellation.

Conventions
-----------
``X`` (n, p) C-contiguous, ``kind`` (n,) int8, ``a`` and ``alpha`` (p,), ``log_w`` (3,) as in
`bayes_lepu.links`; everything but ``kind`` is float64. Gradients have 2p + 4 entries in the
order a, b, alpha, beta, u, v. With ``log_w[2] == -inf`` (naive, SCAR) omega is not computed and
its gradient is zero. Every function is compiled by numba without threads, releases the GIL, and
can be called from Python or from other compiled code. Results add over blocks of rows.

Rows are taken in tiles that stay in cache, so that X comes from memory once for predictors and
gradient. Moderate rows are evaluated in linear space by loops that the compiler
vectorises; rows in the far tails are evaluated again in log space.
"""

import math

import numpy as np

from bayes_lepu.arithmetic import jit
from bayes_lepu.kernel.tails import MISSED, row_log
from bayes_lepu.kernel.tiles import (
    FAR,
    TINY,
    add_gradient,
    add_gram,
    factors_of_tile,
    fill,
    information,
    likelihood,
    tile_rows,
)
from bayes_lepu.links import Array

__all__ = ["loglik_grad", "loglik_grad_info", "loglik_grad_pair", "loglik_rows"]

INFO_ROWS = 128  # its scratch is 2p + 4 numbers a row


@jit
def loglik_grad(
    X: Array, kind: Array, a: Array, b: float, alpha: Array, beta: float, log_w: Array
) -> tuple[float, Array]:
    """Log-likelihood and its gradient (2p + 4,) in a, b, alpha, beta, u, v."""
    n, p = X.shape
    rows = tile_rows(p)
    room, has_omega = np.empty((8, rows)), log_w[2] > -math.inf
    loglik, grad = 0.0, np.zeros(2 * p + 4)
    for start in range(0, n, rows):
        tile, known = X[start : start + rows], kind[start : start + rows]
        first, second = factors_of_tile(tile, a, b, alpha, beta, has_omega, room)
        loglik += add_gradient(tile, known, first, second, log_w, room, grad)
    return loglik, grad


@jit
def loglik_grad_pair(
    X: Array, kind: Array, a: Array, b: float, alpha: Array, beta: float, log_w: Array
) -> tuple[float, Array, float, Array]:
    """`loglik_grad` at theta and at S theta, which exchanges (a, b) and (alpha, beta).

    The second gradient is in the arguments of the second evaluation: its first p entries
    belong to the slopes of its own classifier, which are ``alpha``.
    """
    n, p = X.shape
    rows = tile_rows(p)
    room = np.empty((8, rows))
    loglik, swapped = 0.0, 0.0
    grad, grad_swapped = np.zeros(2 * p + 4), np.zeros(2 * p + 4)
    for start in range(0, n, rows):
        tile, known = X[start : start + rows], kind[start : start + rows]
        first, second = factors_of_tile(tile, a, b, alpha, beta, True, room)
        loglik += add_gradient(tile, known, first, second, log_w, room, grad)
        swapped += add_gradient(tile, known, second, first, log_w, room, grad_swapped)
    return loglik, grad, swapped, grad_swapped


@jit
def loglik_rows(
    X: Array, kind: Array, a: Array, b: float, alpha: Array, beta: float, log_w: Array
) -> Array:
    """Log-likelihood of every row, (n,)."""
    n, p = X.shape
    rows = tile_rows(p)
    room, has_omega = np.empty((8, rows)), log_w[2] > -math.inf
    gamma, lam, rho = math.exp(log_w[0]), math.exp(log_w[1]), math.exp(log_w[2])
    out = np.empty(n)
    for start in range(0, n, rows):
        first, second = factors_of_tile(X[start : start + rows], a, b, alpha, beta, has_omega, room)
        (tau, t, not_t), (omega, s0, not_s0) = first, second
        for i in range(tau.size):
            known = kind[start + i]
            psi, not_psi = gamma + rho * s0[i], lam + rho * not_s0[i]
            value = likelihood(known, t[i], not_t[i], psi, not_psi)
            if abs(tau[i]) <= FAR and abs(omega[i]) <= FAR and value >= TINY:
                out[start + i] = math.log(value)
            else:
                out[start + i] = row_log(known, tau[i], omega[i], log_w)[0]
    return out


@jit
def loglik_grad_info(
    X: Array, kind: Array, a: Array, b: float, alpha: Array, beta: float, log_w: Array
) -> tuple[float, Array, Array]:
    """Log-likelihood, gradient and expected (Fisher) information (2p + 4, 2p + 4)."""
    n, p = X.shape
    rows, q, size = INFO_ROWS, p + 1, 2 * p + 4
    room, has_omega = np.empty((8, rows)), log_w[2] > -math.inf
    f, F, info_tau = np.empty((5, rows)), np.zeros((size + 3, rows)), np.zeros((q, q + 3))
    loglik, grad, info = 0.0, np.zeros(size), np.zeros((size, size + 3))
    for start in range(0, n, rows):
        tile, known = X[start : start + rows], kind[start : start + rows]
        m = known.size
        first, second = factors_of_tile(tile, a, b, alpha, beta, has_omega, room)
        loglik += add_gradient(tile, known, first, second, log_w, room, grad)
        information(known, first, second, log_w, f)
        fill(tile, f[0, :m], F[:q])
        fill(tile, f[1, :m], F[q : 2 * q])
        for i in range(m):  # slice assignment would compile all of broadcasting
            F[2 * q, i], F[2 * q + 1, i] = f[2, i], f[3, i]
        add_gram(F, size, m, info)
        if known.max() >= MISSED:
            fill(tile, f[4, :m], F[:q])
            add_gram(F, q, m, info_tau)
    symmetric = np.empty((size, size))
    for i in range(size):
        for j in range(i, size):
            value = info[i, j] + (info_tau[i, j] if j < q else 0.0)
            symmetric[i, j] = symmetric[j, i] = value
    return loglik, grad, symmetric
