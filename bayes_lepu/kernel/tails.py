"""One row in log space: exact in the far tails, where linear space under- or overflows."""

import math

from bayes_lepu.arithmetic import jit
from bayes_lepu.links import Array, RowKind

UNLABELLED = int(RowKind.UNLABELLED)
LABELLED = int(RowKind.LABELLED)
MISSED = int(RowKind.MISSED)
NEGATIVE = int(RowKind.NEGATIVE)


@jit
def log_sigmoid(z: float) -> float:
    """Logarithm of σ(z)."""
    return -math.log1p(math.exp(-z)) if z > 0 else z - math.log1p(math.exp(z))


@jit
def log_add(x: float, y: float) -> float:
    """log(e^x + e^y), also where both are -inf."""
    high, low = max(x, y), min(x, y)
    return high if low == -math.inf else high + math.log1p(math.exp(low - high))


@jit
def log_factors(tau: float, omega: float, log_w: Array) -> tuple:
    """Logarithms of t, 1 - t, Psi, 1 - Psi and dPsi/domega."""
    log_s0, log_not_s0 = log_sigmoid(omega), log_sigmoid(-omega)
    log_psi = log_add(log_w[0], log_w[2] + log_s0)
    log_not_psi = log_add(log_w[1], log_w[2] + log_not_s0)
    log_slope = log_w[2] + log_s0 + log_not_s0
    return log_sigmoid(tau), log_sigmoid(-tau), log_psi, log_not_psi, log_slope


@jit
def row_log(kind: int, tau: float, omega: float, log_w: Array) -> tuple:
    """Log-likelihood and its derivatives in tau, omega, u, v; every ratio is bounded."""
    log_t, log_not_t, log_psi, log_not_psi, log_slope = log_factors(tau, omega, log_w)
    t, not_t = math.exp(log_t), math.exp(log_not_t)
    gamma, lam = math.exp(log_w[0]), math.exp(log_w[1])
    if kind == NEGATIVE:
        return log_not_t, -t, 0.0, 0.0, 0.0
    if kind == LABELLED:
        d_u = math.exp(log_w[0] + log_not_psi - log_psi)
        return log_t + log_psi, not_t, math.exp(log_slope - log_psi), d_u, -lam
    if kind == MISSED:
        if log_not_psi == -math.inf:  # impossible under the naive model
            return -math.inf, not_t, 0.0, 0.0, 0.0
        d_v = math.exp(log_w[1] + log_psi - log_not_psi)
        return log_t + log_not_psi, not_t, -math.exp(log_slope - log_not_psi), -gamma, d_v
    log_q = log_add(log_not_t, log_t + log_not_psi)
    d_tau = -math.exp(log_t + log_not_t + log_psi - log_q)
    d_omega = -math.exp(log_t + log_slope - log_q)
    d_u = -math.exp(log_t + log_w[0] + log_not_psi - log_q)
    d_v = math.exp(log_t + log_w[1] + log_psi - log_q)
    return log_q, d_tau, d_omega, d_u, d_v


@jit
def information_log(kind: int, tau: float, omega: float, log_w: Array) -> tuple:
    """`information` of one row in log space."""
    log_t, log_not_t, log_psi, log_not_psi, log_slope = log_factors(tau, omega, log_w)
    f_tau, f_class = 0.0, math.exp(0.5 * (log_t + log_not_t))
    if kind == NEGATIVE or (kind == MISSED and log_not_psi == -math.inf):
        return 0.0, 0.0, 0.0, 0.0, f_class
    if kind == MISSED:
        root = -0.5 * (log_psi + log_not_psi)
    else:
        root = 0.5 * (log_t - log_psi - log_add(log_not_t, log_t + log_not_psi))
        f_tau, f_class = math.exp(root + log_psi + log_not_t), 0.0
    f_u, f_v = math.exp(root + log_w[0] + log_not_psi), -math.exp(root + log_w[1] + log_psi)
    return f_tau, math.exp(root + log_slope), f_u, f_v, f_class
