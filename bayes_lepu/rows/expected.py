r"""Log-likelihood, gradient and expected information of one annotator, compiled.

An unaudited row that was shown contributes :math:`g g'` with
:math:`g = \nabla h / \sqrt{h(1-h)}`, :math:`h = t\psi + (1-t)\varepsilon`; an audited one the
information of its class, :math:`t'^2 / (t(1-t))`, and, if shown, that of its label:
:math:`\nabla\psi \nabla\psi' / (\psi(1-\psi))` of a positive, :math:`\varepsilon(1-\varepsilon)`
of a negative. The gradient is the sum of g times the residual :math:`(l-h) / \sqrt{h(1-h)}`.
"""

import math

import numpy as np

from bayes_lepu.factors.arithmetic import jit, jit_sums, log
from bayes_lepu.factors.scalars import link_slope
from bayes_lepu.links import Array
from bayes_lepu.rows.arguments import OWN, Links, Point, Rows
from bayes_lepu.rows.evaluation import exp_ratio, factors_of_tile, log_add, log_factor_of
from bayes_lepu.rows.tiles import FAR, TINY, add_gram, fill

INFO_ROWS = 128  # its scratch is 2p + 8 numbers a row
LARGEST = 300.0  # logarithm of a residual whose square is still a number
G_TAU, G_OMEGA, G_U, G_V, G_E, OF_LABEL, G_CLASS, OF_CLASS = range(8)  # see `roots_of_tile`


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
) -> float:
    """Log-likelihood of a tile of rows; fills f (8, m).

    Its rows are g in (τ, ω, u, v, e) and the residual of the label, then g in τ and the residual
    of the class, for audited rows.
    """
    (tau, up_t, down_t), (omega, up_s, down_s) = first, second
    rates, class_rates, eps = point.rates[0], point.class_rates, point.epsilon[0]
    base, lost, span = math.exp(class_rates[0]), math.exp(class_rates[1]), math.exp(class_rates[2])
    gamma, lam, rho = math.exp(rates[0]), math.exp(rates[1]), math.exp(rates[2])
    total, far = 0.0, 0
    for i in range(labels.size):
        shown, marked = labels[i] >= 0, labels[i] == 1
        negative, positive = known[i] == 0, known[i] == 1
        t, not_t = base + span * up_t[i], lost + span * down_t[i]
        psi, not_psi = gamma + rho * up_s[i], lam + rho * down_s[i]
        above = 1.0 if positive else 0.0 if negative else t
        below = 0.0 if positive else 1.0 if negative else not_t
        h, not_h = above * psi + below * eps, above * not_psi + below * (1.0 - eps)
        near = (abs(tau[i]) <= FAR) & (abs(omega[i]) <= FAR) & (t >= TINY) & (not_t >= TINY)
        near &= (h >= TINY) & (not_h >= TINY)
        far += 0 if near else 1
        w = math.sqrt(weight[i])
        root = w / math.sqrt(h * not_h) if near & shown else 0.0
        alone = w / math.sqrt(t * not_t) if near & (positive | negative) else 0.0
        slope_t = span * link_slope(links.of_class, tau[i], up_t[i], down_t[i])
        slope_s = rho * link_slope(links.of_selection, omega[i], up_s[i], down_s[i])
        by_tau = 0.0 if positive | negative else root * (psi - eps) * slope_t
        f[G_TAU, i] = by_tau if near else math.nan  # NaN marks the row
        f[G_OMEGA, i] = root * above * slope_s
        f[G_U, i] = root * above * gamma * not_psi
        f[G_V, i] = -root * above * lam * psi
        f[G_E, i] = root * below * eps * (1.0 - eps)
        f[OF_LABEL, i] = root * (not_h if marked else -h)
        f[G_CLASS, i] = alone * slope_t
        f[OF_CLASS, i] = alone * (not_t if positive else -t)
        seen = (h if marked else not_h) if shown else 1.0
        seen *= t if positive else not_t if negative else 1.0
        total += weight[i] * log(seen if near & (seen >= TINY) else 1.0)
        far += 1 if seen < TINY else 0
        f[G_TAU, i] = f[G_TAU, i] if seen >= TINY else math.nan
    if far > 0:
        for i in range(labels.size):
            if math.isnan(f[G_TAU, i]):
                total += weight[i] * roots_log(
                    labels[i], known[i], weight[i], tau[i], omega[i], links, point, f[:, i]
                )
    return total


@jit
def scaled(log_up: float, log_down: float, is_up: bool) -> tuple:
    """Logarithm of what slopes are divided by, and the residual, of a Bernoulli variable.

    Their quotient is the slope of its log probability. Residuals beyond LARGEST, of what next to
    never happens, are cut: such a row has no information to speak of, and keeps its slope.
    """
    half = min(max(0.5 * (log_down - log_up), -LARGEST), LARGEST)
    if is_up:
        return log_up + half, math.exp(half)
    return log_down - half, -math.exp(-half)


@jit
def roots_log(
    label: int,
    known: int,
    weight: float,
    tau: float,
    omega: float,
    links: Links,
    point: Point,
    f: Array,
) -> float:
    """`roots_of_tile` of one row in log space, without its weight in what is returned."""
    rates, eps, w = point.rates[0], point.epsilon[0], math.sqrt(weight)
    t, not_t, t_slope = log_factor_of(links.of_class, tau, point.class_rates)
    psi, not_psi, slope = log_factor_of(links.of_selection, omega, rates)
    value = 0.0
    for i in range(f.size):
        f[i] = 0.0
    if known >= 0:
        value = t if known == 1 else not_t
        root, residual = scaled(t, not_t, known == 1)
        f[G_CLASS], f[OF_CLASS] = w * exp_ratio(t_slope, root), w * residual
    if label < 0:
        return value
    log_eps, log_not_eps = math.log(eps) if eps > 0.0 else -math.inf, math.log1p(-eps)
    above = 0.0 if known == 1 else -math.inf if known == 0 else t
    below = -math.inf if known == 1 else 0.0 if known == 0 else not_t
    log_h = log_add(above + psi, below + log_eps)
    log_not_h = log_add(above + not_psi, below + log_not_eps)
    value += log_h if label == 1 else log_not_h
    if log_h == -math.inf or log_not_h == -math.inf:  # the label is certain
        return value
    root, residual = scaled(log_h, log_not_h, label == 1)
    f[OF_LABEL] = w * residual
    if known < 0:
        f[G_TAU] = w * (exp_ratio(t_slope + psi, root) - exp_ratio(t_slope + log_eps, root))
    f[G_OMEGA] = w * exp_ratio(above + slope, root)
    f[G_U] = w * exp_ratio(above + rates[0] + not_psi, root)
    f[G_V] = -w * exp_ratio(above + rates[1] + psi, root)
    f[G_E] = w * exp_ratio(below + log_eps + log_not_eps, root)
    return value


@jit_sums
def add_products(F: Array, q: int, residual: Array, grad: Array) -> None:
    """Add the products of F's first q rows with the residuals to grad."""
    for j in range(q):
        total, x = 0.0, F[j]
        for i in range(residual.size):
            total += x[i] * residual[i]
        grad[j] += total


@jit
def expected_information(rows: Rows, links: Links, point: Point) -> tuple[float, Array, Array]:
    """Log-likelihood, gradient and expected (Fisher) information in the flat order."""
    n, p = rows.X.shape
    size, q = INFO_ROWS, p + 1
    every = 2 * q + OWN
    # Rows of F are those of τ, then u, v and e, then ω, of which a constant s has none.
    used = every if point.rates[0, 2] > -math.inf else q + OWN
    room, f = np.empty((6, size)), np.empty((8, size))
    F, gram_class = np.zeros((every + 3, size)), np.zeros((q, q + 3))
    loglik, slopes, gram = 0.0, np.zeros(every), np.zeros((every, every + 3))
    for start in range(0, n, size):
        stop = min(start + size, n)
        m = stop - start
        tile, known = rows.X[start:stop], rows.known[start:stop]
        labels, weight = rows.labels[0, start:stop], rows.weight[start:stop]
        first, second = factors_of_tile(rows, start, links, point, room)
        loglik += roots_of_tile(labels, known, weight, first, second, links, point, f)
        fill(tile, f[G_TAU, :m], F[:q])
        for i in range(m):  # slice assignment would compile all of broadcasting
            F[q, i], F[q + 1, i], F[q + 2, i] = f[G_U, i], f[G_V, i], f[G_E, i]
        if used == every:
            fill(tile, f[G_OMEGA, :m], F[q + OWN :])
        add_products(F, used, f[OF_LABEL, :m], slopes)
        add_gram(F, used, m, gram)
        if known.max() >= 0:
            fill(tile, f[G_CLASS, :m], F[:q])
            add_products(F, q, f[OF_CLASS, :m], slopes)
            add_gram(F, q, m, gram_class)
    grad, info = np.zeros(every), np.zeros((every, every))
    for i in range(used):
        at = i if i < q else i + q if i < q + OWN else i - OWN
        grad[at] = slopes[i]
        for j in range(i, used):
            to = j if j < q else j + q if j < q + OWN else j - OWN
            info[at, to] = info[to, at] = gram[i, j] + (gram_class[i, j] if j < q else 0.0)
    return loglik, grad, info
