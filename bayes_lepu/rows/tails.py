"""One row in log space: exact in the far tails, where linear space under- or overflows."""

import math

from bayes_lepu.factors.arithmetic import jit
from bayes_lepu.factors.scalars import link_logs
from bayes_lepu.links import Array
from bayes_lepu.rows.arguments import Links, Point


@jit
def log_add(x: float, y: float) -> float:
    """log(e^x + e^y), also where one or both are -inf; NaN stays NaN."""
    if x == -math.inf or y == -math.inf:
        return x if y == -math.inf else y
    return max(x, y) + math.log1p(math.exp(-abs(x - y)))


@jit
def exp_ratio(log_x: float, log_y: float) -> float:
    """The ratio x / y from logarithms; 0 where x is 0, also where y is 0 too."""
    return 0.0 if log_x == -math.inf else math.exp(log_x - log_y)


@jit
def log_factor_of(link: tuple, z: float, rates: Array) -> tuple:
    """Log ψ, log(1 - ψ) and log ψ' of a link mixed by rates."""
    up, down, slope = link_logs(link, z)
    psi, not_psi = log_add(rates[0], rates[2] + up), log_add(rates[1], rates[2] + down)
    return psi, not_psi, rates[2] + slope


@jit
def row_log(
    labels: Array, known: int, tau: float, omega: Array, links: Links, point: Point
) -> tuple:
    """Log-likelihood of one row, its slope in τ, and P(y=1 | x, labels).

    ``labels`` and ``omega`` are (J,).
    """
    log_t, log_not_t, log_slope = log_factor_of(links.of_class, tau, point.class_rates)
    log_A = log_B = 0.0
    log_short, false_marks, marks = -math.inf, False, 0
    for j in range(labels.size):
        eps = point.epsilon[j]
        false_marks |= eps > 0.0
        if labels[j] >= 0:
            psi, not_psi, _ = log_factor_of(links.of_selection, omega[j], point.rates[j])
            log_short = log_add(log_short, log_A + psi)  # B - A while nobody marked
            log_A += psi if labels[j] == 1 else not_psi
            if labels[j] == 1:
                marks += 1
                log_B += math.log(eps) if eps > 0.0 else -math.inf
            else:
                log_B += math.log1p(-eps)
    if known == 1:
        log_L = log_t + log_A
        return log_L, exp_ratio(log_slope + log_A, log_L), 1.0
    if known == 0:
        log_L = log_not_t + log_B
        return log_L, -exp_ratio(log_slope + log_B, log_L), 0.0
    log_L = log_add(log_t + log_A, log_not_t + log_B)
    m = exp_ratio(log_t + log_A, log_L)
    if marks == 0 and not false_marks:
        return log_L, -exp_ratio(log_slope + log_short, log_L), m
    up, down = exp_ratio(log_slope + log_A, log_L), exp_ratio(log_slope + log_B, log_L)
    return log_L, up - down, m


@jit
def cell_log(label: int, omega: float, link: tuple, rates: Array) -> tuple:
    """Slopes of log P(l | y=1) of one cell in ω, u and v."""
    if label < 0:
        return 0.0, 0.0, 0.0
    psi, not_psi, slope = log_factor_of(link, omega, rates)
    cell, sign = (psi, 1.0) if label == 1 else (not_psi, -1.0)
    d_u, d_v = exp_ratio(rates[0] + not_psi, cell), exp_ratio(rates[1] + psi, cell)
    return sign * exp_ratio(slope, cell), sign * d_u, -sign * d_v
