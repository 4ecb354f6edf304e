r"""The row likelihood in NumPy: the specification that the compiled kernel is tested against.

With labels :math:`l_{ij}` of annotators j (missing where not shown), rate of false marks
:math:`\varepsilon_j` and weight :math:`w_i`,

.. math::
    A_i = \prod_j \psi_{ij}^{l_{ij}} (1-\psi_{ij})^{1-l_{ij}}, \qquad
    B_i = \prod_j \varepsilon_j^{l_{ij}} (1-\varepsilon_j)^{1-l_{ij}}, \qquad
    L_i = t_i A_i + (1-t_i) B_i,

where only the first term is left if the class is known to be positive and only the second if it is
known to be negative. With the responsibility :math:`m_i = t_i A_i / L_i`,

.. math::
    \partial \log L_i/\partial\tau_i = t'_i (A_i - B_i) / L_i, \qquad
    \partial \log L_i/\partial\omega_{ij} = \pm m_i \psi'_{ij} / P(l_{ij} \mid y=1), \qquad
    \partial \log L_i/\partial e_j = (1-m_i)(l_{ij} - \varepsilon_j).

Everything is computed from logarithms. Minus the Hessian is by Louis' identity, with
:math:`g_1, H_1` gradient and Hessian of :math:`\log t A` and :math:`g_0, H_0` those of
:math:`\log\,(1-t) B`,

.. math:: \nabla^2 \log L = m H_1 + (1-m) H_0 + m(1-m)\,(g_1-g_0)(g_1-g_0)' .

The expected information of one annotator is a sum over rows of :math:`g g'` with
:math:`g = \nabla h / \sqrt{h(1-h)}`, :math:`h = t\psi + (1-t)\varepsilon`; a row of known class has
:math:`t'^2 / (t(1-t))` and its label's :math:`\nabla\psi \nabla\psi' / (\psi(1-\psi))` or
:math:`\varepsilon(1-\varepsilon)`. Of several annotators the complete-data information takes its
place: block diagonal, never negative, and above the observed one. All are made over blocks of rows,
so that memory does not grow with n.
"""

from collections.abc import Iterator

import numpy as np

from bayes_lepu.links import Array
from bayes_lepu.rows.arguments import Links, Point, Rows, flat_order


class Terms:
    """The shared terms of one evaluation: logarithms of the factors and of the row likelihood."""

    def __init__(self, rows: Rows, links: Links, point: Point) -> None:
        self.rows, self.point = rows, point
        self.tau = rows.X @ point.a + point.b
        self.omega = point.alpha @ rows.X.T + point.beta[:, None]
        of_t = links.of_class.mixed(self.tau, point.class_rates)
        self.log_t, self.log_not_t, self.log_t_slope = of_t
        of_s = links.of_selection.mixed(self.omega, point.rates[:, None, :])
        self.log_psi, self.log_not_psi, self.log_slope = of_s
        self.marked, self.shown = rows.labels == 1, rows.labels >= 0
        eps = point.epsilon[:, None]
        with np.errstate(divide="ignore"):
            log_eps, log_not_eps = np.log(eps), np.log1p(-eps)
        # of every cell: log P(l | y=1) and log P(l | y=0), zero where nothing was shown
        self.log_a = self._cells(self.log_psi, self.log_not_psi)
        self.log_b = self._cells(log_eps, log_not_eps)
        self.log_A, self.log_B = self.log_a.sum(axis=0), self.log_b.sum(axis=0)
        self.open, self.positive = rows.known < 0, rows.known == 1
        never = -np.inf
        self.log_if_positive = np.where(rows.known == 0, never, self.log_t + self.log_A)
        self.log_if_negative = np.where(self.positive, never, self.log_not_t + self.log_B)
        self.loglik = np.logaddexp(self.log_if_positive, self.log_if_negative)
        self.m = np.where(self.open, exp_ratio(self.log_if_positive, self.loglik), self.positive)
        self.weight = rows.weight

    def _cells(self, if_marked: Array, if_not: Array) -> Array:
        return np.where(self.marked, if_marked, np.where(self.shown, if_not, 0.0))

    def d_tau(self) -> Array:
        """Slope of every row's log-likelihood in τ."""
        log_L, log_slope = self.loglik, self.log_t_slope
        up = exp_ratio(log_slope + np.where(self.rows.known == 0, -np.inf, self.log_A), log_L)
        down = exp_ratio(log_slope + np.where(self.positive, -np.inf, self.log_B), log_L)
        direct = up - down
        if self.point.epsilon.any():
            return direct
        # B is 1 where nobody marked; then B - A = 1 - A builds up from positive terms
        log_A, log_short = np.zeros(self.tau.size), np.full(self.tau.size, -np.inf)
        for j in range(len(self.log_a)):
            step = np.where(self.shown[j], log_A + self.log_psi[j], -np.inf)
            log_short = np.logaddexp(log_short, step)
            log_A = log_A + self.log_a[j]
        unmarked = self.open & ~self.marked.any(axis=0)
        log_short = np.where(unmarked, log_short, -np.inf)
        return np.where(unmarked, -exp_ratio(log_slope + log_short, log_L), direct)

    def d_psi(self, log_scale: Array) -> Array:
        """Slopes of ψ in (ω, u, v) divided by a scale, ``(J, 3, n)``."""
        log_gamma, log_lam = self.point.rates[:, 0, None], self.point.rates[:, 1, None]
        return np.stack(
            [
                exp_ratio(self.log_slope, log_scale),
                exp_ratio(log_gamma + self.log_not_psi, log_scale),
                -exp_ratio(log_lam + self.log_psi, log_scale),
            ],
            axis=1,
        )

    def d_cells(self) -> Array:
        """Slopes of every cell's log P(l | y=1) in (ω, u, v), ``(J, 3, n)``, without m."""
        sign = np.where(self.marked, 1.0, np.where(self.shown, -1.0, 0.0))
        return sign[:, None] * self.d_psi(self.log_a)

    def d_false(self) -> Array:
        """Slopes of every cell's log P(l | y=0) in e, ``(J, n)``, without 1 - m."""
        eps = self.point.epsilon[:, None]
        return np.where(self.shown & (eps > 0), self.marked - eps, 0.0)


def exp_ratio(log_x: Array, log_y: Array) -> Array:
    """The ratio x / y from logarithms; 0 where x is 0, also where y is 0 too."""
    with np.errstate(invalid="ignore"):
        return np.where(log_x == -np.inf, 0.0, np.exp(log_x - log_y))


def row_terms(rows: Rows, links: Links, point: Point) -> tuple[Array, Array]:
    """Log-likelihood of every row (without its weight), and P(y=1 | x, labels)."""
    terms = Terms(rows, links, point)
    return terms.loglik, terms.m


def loglik_grad(rows: Rows, links: Links, point: Point) -> tuple[float, Array]:
    """Log-likelihood and its gradient in the flat order."""
    terms, where = Terms(rows, links, point), flat_order(rows)
    grad = np.zeros(where.size)
    grad[where.of_class()] = _spread(rows.X, terms.weight * terms.d_tau())
    cells, false = terms.d_cells(), terms.d_false()
    for j in range(where.J):
        d = terms.weight * terms.m * cells[j]
        grad[where.of_selection(j)] = _spread(rows.X, d[0])
        d_false = (terms.weight * (1 - terms.m)) @ false[j]
        grad[where.own(j)] = d[1].sum(), d[2].sum(), d_false
    return float(terms.weight @ terms.loglik), grad


def _spread(design: Array, d: Array) -> Array:
    """Sums of d times every column, and of d."""
    return np.append(d @ design, d.sum())


def observed_information(rows: Rows, links: Links, point: Point) -> Array:
    """Minus the Hessian of the log-likelihood in the flat order."""
    out = np.zeros((flat_order(rows).size,) * 2)
    for block in blocks_of_rows(rows):
        with np.errstate(over="ignore"):  # a log-log link's slopes exceed any float in its tail
            out -= _hessian(block, links, point)
    return out


def information(rows: Rows, links: Links, point: Point) -> Array:
    """An information matrix that is never negative, in the flat order.

    The expected information of one annotator, the complete-data information of several.
    """
    info = np.zeros((flat_order(rows).size,) * 2)
    for block in blocks_of_rows(rows):
        terms = Terms(block, links, point)
        if len(rows.labels) == 1:
            info += _expected(terms)
        else:
            _add_complete(info, terms)
    return info


def blocks_of_rows(rows: Rows, size: int = 16_384) -> Iterator[Rows]:
    """The rows in blocks, by default with some tens of MB of intermediate arrays."""
    for start in range(0, rows.X.shape[0], size):
        part = slice(start, start + size)
        yield Rows(rows.X[part], rows.labels[:, part], rows.known[part], rows.weight[part])


def _hessian(rows: Rows, links: Links, point: Point) -> Array:
    """Hessian of the log-likelihood of some rows."""
    terms, where = Terms(rows, links, point), flat_order(rows)
    m, w = terms.m, terms.weight
    up = exp_ratio(terms.log_t_slope, terms.log_t)
    down = exp_ratio(terms.log_t_slope, terms.log_not_t)
    cells, false = terms.d_cells(), terms.d_false()
    root = np.sqrt(w * m * (1 - m))
    H = _gram(rows, _times(root, up + down), _times(root, cells), -_times(root, false))

    bend = links.of_class.bend(terms.tau)
    by_class = _times(w * m, up * (bend - up)) - _times(w * (1 - m), down * (bend + down))
    X1 = _with_one(rows.X)
    H[where.of_class(), where.of_class()] += (X1 * by_class[:, None]).T @ X1
    for j in range(where.J):
        bend = links.of_selection.bend(terms.omega[j])
        second = _times(w * m, _second_slopes(cells[j], bend, np.exp(point.rates[j])))
        slopes, own = where.of_selection(j), where.own(j)
        uv, e = slice(own.start, own.stop - 1), own.stop - 1
        H[slopes, slopes] += (X1 * second[0, 0][:, None]).T @ X1
        mixed = X1.T @ second[0, 1:].T
        H[slopes, uv] += mixed
        H[uv, slopes] += mixed.T
        H[uv, uv] += second[1:, 1:].sum(axis=-1)
        eps = point.epsilon[j]
        H[e, e] -= eps * (1 - eps) * ((w * (1 - m)) @ terms.shown[j])
    return H


def _second_slopes(d: Array, bend: Array, rates: Array) -> Array:
    """Second derivatives ``(3, 3, n)`` of a cell's log P(l | y=1) in (ω, u, v), given its first."""
    gamma, lam, _ = rates
    d_omega, d_u, d_v = d
    by_u, by_v, both = -gamma * d_omega, -lam * d_omega, -lam * d_u - gamma * d_v
    second = np.array(
        [
            [bend * d_omega, by_u, by_v],
            [by_u, (1 - 2 * gamma) * d_u, both],
            [by_v, both, (1 - 2 * lam) * d_v],
        ]
    )
    return second - d[:, None] * d[None, :]


def _expected(terms: Terms) -> Array:
    """Expected information of some rows of one annotator."""
    rows, root = terms.rows, np.sqrt(terms.weight)
    with np.errstate(divide="ignore"):
        log_eps, log_not_eps = np.log(terms.point.epsilon), np.log1p(-terms.point.epsilon)
    above = np.where(terms.open, terms.log_t, np.where(terms.positive, 0.0, -np.inf))
    below = np.where(terms.open, terms.log_not_t, np.where(terms.positive, -np.inf, 0.0))
    log_h = np.logaddexp(above + terms.log_psi[0], below + log_eps)
    log_not_h = np.logaddexp(above + terms.log_not_psi[0], below + log_not_eps)
    log_sd = 0.5 * (log_h + log_not_h)
    uncertain = terms.shown[0] & np.isfinite(log_sd)
    root_of_label = np.where(uncertain, root, 0.0)
    log_sd = np.where(uncertain, log_sd, 0.0)
    class_slope = terms.log_t_slope
    with np.errstate(over="ignore"):
        d_tau = exp_ratio(class_slope + terms.log_psi[0], log_sd)
        d_tau -= exp_ratio(class_slope + log_eps, log_sd)
        d_psi = terms.d_psi(log_sd - above)
        d_false = exp_ratio(below + log_eps + log_not_eps, log_sd)
        alone = exp_ratio(class_slope, 0.5 * (terms.log_t + terms.log_not_t))
    of_label = _times(root_of_label * terms.open, d_tau), _times(root_of_label, d_psi)
    info = _gram(rows, *of_label, _times(root_of_label, d_false)[None])
    G = _with_one(rows.X) * _times(root * ~terms.open, alone)[:, None]
    where = flat_order(rows).of_class()
    info[where, where] += G.T @ G
    return info


def _add_complete(info: Array, terms: Terms) -> None:
    """Add the complete-data information, a block for the class and one for every annotator."""
    where, X1 = flat_order(terms.rows), _with_one(terms.rows.X)
    w, eps = terms.weight, terms.point.epsilon
    class_slope = exp_ratio(terms.log_t_slope, 0.5 * (terms.log_t + terms.log_not_t))
    G = X1 * _times(np.sqrt(w), class_slope)[:, None]
    info[where.of_class(), where.of_class()] += G.T @ G
    label_slopes = terms.d_psi(0.5 * (terms.log_psi + terms.log_not_psi))
    positive = _times(np.sqrt(w * terms.m) * terms.shown[:, None], label_slopes)
    negative = terms.shown @ (w * (1 - terms.m))
    for j, (omega, *rates) in enumerate(positive):
        e = where.own(j).stop - 1
        of_cells = slice(where.of_selection(j).start, e)
        G = np.column_stack([X1 * omega[:, None], *rates])
        info[of_cells, of_cells] += G.T @ G
        info[e, e] += eps[j] * (1 - eps[j]) * negative[j]


def _gram(rows: Rows, d_tau: Array, d_cells: Array, d_false: Array) -> Array:
    """Sum over rows of g g', for g spread from (τ, ω, u, v, e) over the flat order."""
    X1 = _with_one(rows.X)
    parts = [X1 * d_tau[:, None]]
    for j in range(len(d_cells)):
        parts += [X1 * d_cells[j, 0][:, None], d_cells[j, 1:].T, d_false[j][:, None]]
    G = np.hstack(parts)
    return G.T @ G


def _times(weight: Array, x: Array) -> Array:
    """Product that is zero where the weight is zero, even if x is infinite or NaN."""
    with np.errstate(invalid="ignore"):
        return np.where(weight == 0, 0.0, weight * x)


def _with_one(X: Array) -> Array:
    return np.column_stack([X, np.ones(len(X))])
