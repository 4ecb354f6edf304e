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
    \partial \log L_i/\partial e_j = (1-m_i)(l_{ij} - \varepsilon_j),

and the propensity's own coordinates follow as ω does. Everything is computed from logarithms.
Without false marks :math:`B_i - A_i` of an unmarked row is a sum of positive terms.
"""

import numpy as np

from bayes_lepu.factors import link_of, log_factor
from bayes_lepu.links import Array
from bayes_lepu.rows.arguments import Links, Point, Rows, flat_order


class Terms:
    """All that one evaluation shares: logarithms of the factors and of the row's likelihood."""

    def __init__(self, rows: Rows, links: Links, point: Point) -> None:
        self.rows, self.point = rows, point
        self.tau = rows.X @ point.a + point.b
        self.omega = point.alpha @ rows.X.T + point.beta[:, None]
        self.log_t, self.log_not_t, self.log_t_slope = log_factor(
            link_of(links.of_class), self.tau, point.class_rates
        )
        self.log_psi, self.log_not_psi, self.log_slope = log_factor(
            link_of(links.of_selection), self.omega, point.rates[:, None, :]
        )
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
        self.weight = rows.weight if rows.weight.size else np.ones(self.tau.size)

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

    def d_cells(self) -> Array:
        """Slopes of every cell's log P(l | y=1) in (ω, u, v), ``(J, 3, n)``, without m."""
        log_gamma, log_lam = self.point.rates[:, 0, None], self.point.rates[:, 1, None]
        sign = np.where(self.marked, 1.0, np.where(self.shown, -1.0, 0.0))
        return np.stack(
            [
                sign * exp_ratio(self.log_slope, self.log_a),
                sign * exp_ratio(log_gamma + self.log_not_psi, self.log_a),
                -sign * exp_ratio(log_lam + self.log_psi, self.log_a),
            ],
            axis=1,
        )

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


def loglik_grad_pair(rows: Rows, links: Links, point: Point) -> tuple[float, Array, float, Array]:
    """`loglik_grad` at θ and at S θ, which exchanges (a, b) and (α, β) of the one annotator."""
    exchanged = point._replace(
        a=point.alpha[0], b=point.beta[0], alpha=point.a[None], beta=np.array([point.b])
    )
    return *loglik_grad(rows, links, point), *loglik_grad(rows, links, exchanged)


def outside_moments(
    rows: Rows, links: Links, point: Point
) -> tuple[float, float, Array, Array, Array]:
    r"""Sums that a known class prior or label frequency needs, with their gradients.

    Returns
    -------
    W : float
        :math:`\sum w_i`.
    T : float
        :math:`\sum w_i t_i`, so that π = T / W.
    dT : (size,)
    M : (J,)
        :math:`\sum w_i t_i \psi_{ij}`, so that c_j = M_j / T.
    dM : (J, size)
    """
    terms, where = Terms(rows, links, point), flat_order(rows)
    w, t, t_slope = terms.weight, np.exp(terms.log_t), np.exp(terms.log_t_slope)
    psi, gamma, lam = np.exp(terms.log_psi), *np.exp(point.rates[:, :2].T)
    dT, dM = np.zeros(where.size), np.zeros((where.J, where.size))
    dT[where.of_class()] = _spread(rows.X, w * t_slope)
    for j in range(where.J):
        dM[j, where.of_class()] = _spread(rows.X, w * t_slope * psi[j])
        dM[j, where.of_selection(j)] = _spread(rows.X, w * t * np.exp(terms.log_slope[j]))
        d_u = gamma[j] * (w * t) @ np.exp(terms.log_not_psi[j])
        dM[j, where.own(j)] = d_u, -lam[j] * (w * t) @ psi[j], 0.0
    return float(w.sum()), float(w @ t), dT, psi @ (w * t), dM


def _spread(design: Array, d: Array) -> Array:
    """Sums of d times every column, and of d."""
    return np.append(d @ design, d.sum())
