r"""The row likelihood of case-control data in NumPy, with its information.

Marked rows were drawn from p(x | l=1) and the others, the background, from p(x), so that the share
of marked rows says nothing. With C the unknown ratio of the two rates of drawing,

.. math::
    \operatorname{odds}(l_i = 1 \mid x_i, \text{drawn}) = C\,\psi_i t_i, \qquad
    \log L_i = l_i z_i - \log(1 + e^{z_i}), \quad z_i = \log C + \log\psi_i + \log t_i,

plus :math:`\log t_i` or :math:`\log(1 - t_i)` of a background row whose class was audited. The
gradient is :math:`(l_i - p_i)\,\nabla z_i` with :math:`p = \sigma(z)`, the expected information
:math:`p_i(1-p_i)\,\nabla z_i \nabla z_i'`.

In the flat order log C takes the place of the false marks, of which there are none.
"""

import numpy as np
from scipy.special import log_expit

from bayes_lepu.likelihood.arguments import Links, Point, Rows, flat_order
from bayes_lepu.likelihood.formula import exp_ratio
from bayes_lepu.links import Array
from bayes_lepu.propensities import link_of, log_factor


class _Terms:
    """All that one evaluation shares."""

    def __init__(self, rows: Rows, links: Links, point: Point) -> None:
        of_class, of_selection = link_of(links.of_class), link_of(links.of_selection)
        self.tau, omega = rows.X @ point.a + point.b, rows.X @ point.alpha[0] + point.beta[0]
        self.log_t, self.log_not_t, t_slope = log_factor(of_class, self.tau, point.class_rates)
        log_psi, log_not_psi, slope = log_factor(of_selection, omega, point.rates[0])
        self.z = point.log_ratio + self.log_t + log_psi
        self.marked = rows.labels[0] == 1
        self.weight = rows.weight if rows.weight.size else np.ones(len(rows.X))
        self.positive = ~self.marked & (rows.known == 1)
        self.negative = ~self.marked & (rows.known == 0)
        self.p = np.exp(log_expit(self.z))
        self.up, self.down = exp_ratio(t_slope, self.log_t), exp_ratio(t_slope, self.log_not_t)
        self.gamma, self.lam = np.exp(point.rates[0, :2])
        self.d_omega = exp_ratio(slope, log_psi)
        self.d_u = exp_ratio(point.rates[0, 0] + log_not_psi, log_psi)
        self.bends = of_class.bend(self.tau), of_selection.bend(omega)
        self.X1 = np.column_stack([rows.X, np.ones(len(rows.X))])

    @property
    def slopes(self) -> Array:
        """∇z of every row in the flat order, ``(n, size)``."""
        ones = np.ones(len(self.z))
        own = np.column_stack([self.d_u, -self.lam * ones, ones])
        return np.hstack([self.X1 * self.up[:, None], self.X1 * self.d_omega[:, None], own])

    def rows(self) -> Array:
        sampled = np.where(self.marked, log_expit(self.z), log_expit(-self.z))
        audited = np.where(self.positive, self.log_t, np.where(self.negative, self.log_not_t, 0.0))
        return sampled + audited

    def loglik(self) -> float:
        return float(self.weight @ self.rows())

    def grad(self) -> Array:
        out = (self.weight * (self.marked - self.p)) @ self.slopes
        of_class = np.where(self.positive, self.up, np.where(self.negative, -self.down, 0.0))
        out[: self.X1.shape[1]] += (self.weight * of_class) @ self.X1
        return out


def row_terms(rows: Rows, links: Links, point: Point) -> tuple[Array, Array]:
    """Log-likelihood of every row (without its weight), and P(y=1 | x, labels)."""
    terms = _Terms(rows, links, point)
    unmarked = np.where(terms.positive, 1.0, np.where(terms.negative, 0.0, np.exp(terms.log_t)))
    return terms.rows(), np.where(terms.marked, 1.0, unmarked)


def loglik_grad(rows: Rows, links: Links, point: Point) -> tuple[float, Array]:
    """Log-likelihood and its gradient in the flat order."""
    terms = _Terms(rows, links, point)
    return terms.loglik(), terms.grad()


def loglik_grad_info(rows: Rows, links: Links, point: Point) -> tuple[float, Array, Array]:
    """The same with the expected information."""
    terms = _Terms(rows, links, point)
    g, k = terms.slopes, terms.X1.shape[1]
    info = (g * (terms.weight * terms.p * (1 - terms.p))[:, None]).T @ g
    audited = terms.weight * (terms.positive | terms.negative) * terms.up * terms.down
    info[:k, :k] += (terms.X1 * audited[:, None]).T @ terms.X1
    return terms.loglik(), terms.grad(), info


def observed_information(rows: Rows, links: Links, point: Point) -> Array:
    """Minus the Hessian of the log-likelihood in the flat order."""
    terms, where = _Terms(rows, links, point), flat_order(rows)
    g, k, X1 = terms.slopes, terms.X1.shape[1], terms.X1
    info = (g * (terms.weight * terms.p * (1 - terms.p))[:, None]).T @ g
    miss = terms.weight * (terms.marked - terms.p)
    (bend_t, bend_s), gamma, lam = terms.bends, terms.gamma, terms.lam
    by_t = (miss + terms.weight * terms.positive) * terms.up * (bend_t - terms.up)
    by_t -= terms.weight * terms.negative * terms.down * (bend_t + terms.down)
    info[:k, :k] -= (X1 * by_t[:, None]).T @ X1
    at, (u, v, _) = where.of_selection(0), range(*where.own(0).indices(where.size))
    d, d_u = terms.d_omega, terms.d_u
    info[at, at] -= (X1 * (miss * d * (bend_s - d))[:, None]).T @ X1
    mixed = (miss * (-gamma * d - d * d_u)) @ X1
    info[at, u] -= mixed
    info[u, at] -= mixed
    info[u, u] -= float(miss @ ((1 - 2 * gamma) * d_u - d_u**2))
    both = float(miss.sum() * gamma * lam)
    info[u, v] -= both
    info[v, u] -= both
    info[v, v] += float(miss.sum()) * lam * (1 - lam)
    return info
