r"""Expected information of one annotator without false marks, compiled.

An unaudited row that was shown contributes :math:`g g'` with
:math:`g = \nabla h / \sqrt{h(1-h)}`, :math:`h = t\psi`; an audited one the information of its
class, :math:`t'^2 / (t(1-t))`, and, if positive and shown, that of its label,
:math:`\nabla\psi \nabla\psi' / (\psi(1-\psi))`.
"""

import math

import numpy as np

from bayes_lepu.factors.arithmetic import jit, jit_sums
from bayes_lepu.factors.scalars import link_slope
from bayes_lepu.likelihood.arguments import OWN, Links, Point, Rows
from bayes_lepu.likelihood.evaluation import add_single, check_single, factors_of_tile
from bayes_lepu.likelihood.tails import exp_ratio, log_add, log_factor_of
from bayes_lepu.likelihood.tiles import FAR, TINY, add_gram, fill
from bayes_lepu.links import Array

INFO_ROWS = 128  # its scratch is 2p + 5 numbers a row


@jit_sums
def roots_of_tile(
    labels: Array,
    known: Array,
    weight: Array,
    first: tuple,
    second: tuple,
    links: Links,
    point: Point,
    f: Array,
) -> None:
    """Fill f (5, m): g in (τ, ω, u, v), and the root of the information in τ alone."""
    (tau, up_t, down_t), (omega, up_s, down_s) = first, second
    rates, class_rates = point.rates[0], point.class_rates
    base, lost, span = math.exp(class_rates[0]), math.exp(class_rates[1]), math.exp(class_rates[2])
    gamma, lam, rho = math.exp(rates[0]), math.exp(rates[1]), math.exp(rates[2])
    f_tau, f_omega, f_u, f_v, f_class = f[0], f[1], f[2], f[3], f[4]
    far = 0
    for i in range(labels.size):
        shown, negative, positive = labels[i] >= 0, known[i] == 0, known[i] == 1
        t, not_t = base + span * up_t[i], lost + span * down_t[i]
        psi, not_psi = gamma + rho * up_s[i], lam + rho * down_s[i]
        other = not_psi if positive else not_t + t * not_psi
        near = (abs(tau[i]) <= FAR) & (abs(omega[i]) <= FAR) & (psi >= TINY) & (other >= TINY)
        near &= (t >= TINY) & (not_t >= TINY)
        far += 0 if near else 1
        above = 1.0 if positive else t
        root = math.sqrt(weight[i] * above / (psi * other if near else 1.0))
        root = root if shown & (not negative) else 0.0
        slope_t = span * link_slope(links.of_class, tau[i], up_t[i], down_t[i])
        slope_s = rho * link_slope(links.of_selection, omega[i], up_s[i], down_s[i])
        alone = slope_t * math.sqrt(weight[i] / (t * not_t if near else 1.0))
        by_tau = 0.0 if positive else root * psi * slope_t / (t if near else 1.0)
        f_tau[i] = by_tau if near else math.nan  # NaN marks the row
        f_omega[i] = root * slope_s
        f_u[i] = root * gamma * not_psi
        f_v[i] = -root * lam * psi
        f_class[i] = alone if positive | negative else 0.0
    if far > 0:
        for i in range(labels.size):
            if math.isnan(f_tau[i]):
                f_tau[i], f_omega[i], f_u[i], f_v[i], f_class[i] = roots_log(
                    labels[i], known[i], weight[i], tau[i], omega[i], links, point
                )


@jit
def roots_log(
    label: int, known: int, weight: float, tau: float, omega: float, links: Links, point: Point
) -> tuple:
    """`roots_of_tile` of one row in log space."""
    rates, w = point.rates[0], math.sqrt(weight)
    t, not_t, t_slope = log_factor_of(links.of_class, tau, point.class_rates)
    psi, not_psi, slope = log_factor_of(links.of_selection, omega, rates)
    f_tau, f_class = 0.0, 0.0
    if known >= 0:
        f_class = w * exp_ratio(t_slope, 0.5 * (t + not_t))
        root = 0.5 * (psi + not_psi)
    else:
        root = 0.5 * (psi + log_add(not_t, t + not_psi) - t)
        f_tau = w * exp_ratio(t_slope + psi - t, root)
    if label < 0 or known == 0:
        return 0.0, 0.0, 0.0, 0.0, f_class
    f_u, f_v = exp_ratio(rates[0] + not_psi, root), -exp_ratio(rates[1] + psi, root)
    return f_tau, w * exp_ratio(slope, root), w * f_u, w * f_v, f_class


@jit
def expected_information(rows: Rows, links: Links, point: Point) -> tuple[float, Array, Array]:
    """Log-likelihood, gradient and expected (Fisher) information in the flat order."""
    check_single(rows, point)
    n, p = rows.X.shape
    size, q = INFO_ROWS, p + 1
    every = 2 * q + OWN
    room, ones = np.empty((9, size)), np.ones(size)
    f, F, info_tau = np.empty((5, size)), np.zeros((every + 3, size)), np.zeros((q, q + 3))
    loglik, grad, info = 0.0, np.zeros(every), np.zeros((every, every + 3))
    for start in range(0, n, size):
        stop = min(start + size, n)
        m = stop - start
        weight = rows.weight[start:stop] if rows.weight.size > 0 else ones[:m]
        tile, known = rows.X[start:stop], rows.known[start:stop]
        first, second = factors_of_tile(rows, start, links, point, room)
        loglik += add_single(rows, start, links, point, first, second, weight, room, grad)
        labels = rows.labels[0, start:stop]
        roots_of_tile(labels, known, weight, first, second, links, point, f)
        fill(tile, f[0, :m], F[:q])
        fill(tile, f[1, :m], F[q : 2 * q])
        for i in range(m):  # slice assignment would compile all of broadcasting
            F[2 * q, i], F[2 * q + 1, i] = f[2, i], f[3, i]
        add_gram(F, every, m, info)
        if known.max() >= 0:
            fill(tile, f[4, :m], F[:q])
            add_gram(F, q, m, info_tau)
    symmetric = np.empty((every, every))
    for i in range(every):
        for j in range(i, every):
            value = info[i, j] + (info_tau[i, j] if j < q else 0.0)
            symmetric[i, j] = symmetric[j, i] = value
    return loglik, grad, symmetric
