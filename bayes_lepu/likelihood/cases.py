r"""Case-control rows, compiled: marked rows and unmarked ones were drawn apart.

The formulas are those of `bayes_lepu.likelihood.case_formula`. Every row is evaluated in log space,
which needs no second branch for the far tails.
"""

import math

import numpy as np

from bayes_lepu.likelihood.arguments import OWN, Links, Point, Rows
from bayes_lepu.likelihood.tails import exp_ratio, log_factor_of
from bayes_lepu.links import Array
from bayes_lepu.propensities.arithmetic import jit


@jit
def cases_grad(rows: Rows, links: Links, point: Point) -> tuple[float, Array]:
    """Log-likelihood and its gradient in the flat order."""
    n, p = rows.X.shape
    total, grad = 0.0, np.zeros(2 * p + 2 + OWN)
    log_C = point.log_ratio
    log_gamma, log_lam = point.rates[0, 0], point.rates[0, 1]
    for i in range(n):
        x, tau, omega = rows.X[i], point.b, point.beta[0]
        for j in range(p):
            tau += x[j] * point.a[j]
            omega += x[j] * point.alpha[0, j]
        log_t, log_not_t, t_slope = log_factor_of(links.of_class, tau, point.class_rates)
        psi, not_psi, slope = log_factor_of(links.of_selection, omega, point.rates[0])
        z = log_C + log_t + psi
        tail = math.log1p(math.exp(-abs(z)))
        marked = rows.labels[0, i] == 1
        w = rows.weight[i] if rows.weight.size > 0 else 1.0
        value = (min(z, 0.0) if marked else min(-z, 0.0)) - tail
        share = math.exp(min(z, 0.0) - tail)
        miss = w * (math.exp(min(-z, 0.0) - tail) if marked else -share)
        d_tau = miss * exp_ratio(t_slope, log_t)
        if rows.known[i] >= 0 and not marked:
            if rows.known[i] == 1:
                value += log_t
                d_tau += w * exp_ratio(t_slope, log_t)
            else:
                value += log_not_t
                d_tau -= w * exp_ratio(t_slope, log_not_t)
        d_omega = miss * exp_ratio(slope, psi)
        total += w * value
        for j in range(p):
            grad[j] += x[j] * d_tau
            grad[p + 1 + j] += x[j] * d_omega
        grad[p] += d_tau
        grad[2 * p + 1] += d_omega
        grad[2 * p + 2] += miss * exp_ratio(log_gamma + not_psi, psi)
        grad[2 * p + 3] -= miss * math.exp(log_lam)
        grad[2 * p + 4] += miss
    return total, grad


@jit
def cases_pair(rows: Rows, links: Links, point: Point) -> tuple[float, Array, float, Array]:
    """`cases_grad` at theta and at S theta."""
    a, alpha = point.alpha[0], point.a.reshape(1, point.a.size)
    b, beta = point.beta[0], np.full(1, point.b)
    exchanged = Point(
        a, b, point.class_rates, alpha, beta, point.rates, point.epsilon, point.log_ratio
    )
    here, grad = cases_grad(rows, links, point)
    there, grad_there = cases_grad(rows, links, exchanged)
    return here, grad, there, grad_there
