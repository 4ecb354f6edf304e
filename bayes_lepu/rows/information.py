r"""Information matrices of the row likelihood, in NumPy over blocks of rows.

Observed, minus the Hessian, by Louis' identity: with :math:`g_1, H_1` gradient and Hessian of
:math:`\log t A` and :math:`g_0, H_0` those of :math:`\log\,(1-t) B`,

.. math:: \nabla^2 \log L = m H_1 + (1-m) H_0 + m(1-m)\,(g_1-g_0)(g_1-g_0)' .

Expected, for one annotator: with :math:`h = t\psi + (1-t)\varepsilon` the information of an
unaudited row is :math:`\nabla h \nabla h' / (h(1-h))`, that of an audited one the sum of those of
its class and of its label given the class. With more annotators the complete-data information at
the responsibilities takes its place: block diagonal, never negative, and above the observed one.
"""

from collections.abc import Iterator

import numpy as np

from bayes_lepu.factors import link_of
from bayes_lepu.links import Array
from bayes_lepu.rows.arguments import Links, Point, Rows, flat_order
from bayes_lepu.rows.formula import Terms, exp_ratio

BLOCK = 16_384  # rows at a time, so that memory does not grow with n


def observed_information(rows: Rows, links: Links, point: Point) -> Array:
    """Minus the Hessian of the log-likelihood in the flat order."""
    out = np.zeros((flat_order(rows).size,) * 2)
    for block in blocks_of_rows(rows):
        with np.errstate(over="ignore"):  # a log-log link's slopes exceed any float in its tail
            out -= _hessian(block, links, point)
    return out


def information(rows: Rows, links: Links, point: Point) -> Array:
    """Expected (J > 1: complete-data) information in the flat order."""
    info = np.zeros((flat_order(rows).size,) * 2)
    for block in blocks_of_rows(rows):
        terms = Terms(block, links, point)
        if len(rows.labels) > 1:
            _add_complete(info, terms)
            continue
        for d_tau, d_cells, d_false in _expected(terms):
            info += _gram(block, d_tau, d_cells, d_false)
    return info


def blocks_of_rows(rows: Rows, size: int = BLOCK) -> Iterator[Rows]:
    """The rows in blocks."""
    for start in range(0, rows.X.shape[0], size):
        part = slice(start, start + size)
        yield Rows(
            rows.X[part],
            rows.labels[:, part],
            rows.known[part],
            rows.weight[part],
        )


def _hessian(rows: Rows, links: Links, point: Point) -> Array:
    """Hessian of the log-likelihood of some rows."""
    terms, where = Terms(rows, links, point), flat_order(rows)
    m, w = terms.m, terms.weight
    up = exp_ratio(terms.log_t_slope, terms.log_t)
    down = exp_ratio(terms.log_t_slope, terms.log_not_t)
    cells, false = terms.d_cells(), terms.d_false()
    root = np.sqrt(w * m * (1 - m))
    H = _gram(rows, _times(root, up + down), _times(root, cells), -_times(root, false))

    bend = link_of(links.of_class).bend(terms.tau)
    by_class = _times(w * m, up * (bend - up)) - _times(w * (1 - m), down * (bend + down))
    X1 = _with_one(rows.X)
    H[where.of_class(), where.of_class()] += (X1 * by_class[:, None]).T @ X1
    for j in range(where.J):
        bend = link_of(links.of_selection).bend(terms.omega[j])
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


def _expected(terms: Terms) -> list[tuple[Array, Array, Array]]:
    """Vectors g of every row whose products g g' add up to the expected information."""
    t, psi, eps = terms.log_t, terms.log_psi[0], terms.point.epsilon[0]
    not_t, not_psi = terms.log_not_t, terms.log_not_psi[0]
    shown, w = terms.shown[0], np.sqrt(terms.weight)
    log_eps = np.log(eps) if eps > 0 else -np.inf
    log_not_eps = np.log1p(-eps) if eps < 1 else -np.inf
    log_h = np.logaddexp(t + psi, not_t + log_eps)
    log_not_h = np.logaddexp(t + not_psi, not_t + log_not_eps)
    root = 0.5 * (log_h + log_not_h)
    open_row = np.where(terms.open & shown, w, 0.0)
    d_tau = exp_ratio(terms.log_t_slope + psi, root)
    d_tau = d_tau - exp_ratio(terms.log_t_slope + log_eps, root)
    d_false = exp_ratio(not_t + log_eps + log_not_eps, root)
    of_label = _times(open_row, d_tau), _times(open_row, _d_psi(terms, root - t)), d_false[None]
    audited = np.where(terms.open, 0.0, w)
    of_class = exp_ratio(terms.log_t_slope, 0.5 * (t + not_t))
    positive = np.where(terms.positive & shown, w, 0.0)
    given_class = _times(positive, _d_psi(terms, 0.5 * (psi + not_psi)))
    negative = np.where((terms.rows.known == 0) & shown, w, 0.0)
    nothing = np.zeros_like(given_class)
    return [
        (of_label[0], of_label[1], _times(open_row, of_label[2])),
        (_times(audited, of_class), nothing, np.zeros((1, t.size))),
        (np.zeros(t.size), given_class, np.zeros((1, t.size))),
        (np.zeros(t.size), nothing, (negative * np.sqrt(eps * (1 - eps)))[None]),
    ]


def _add_complete(info: Array, terms: Terms) -> None:
    """Add the complete-data information, a block for the class and one for every annotator."""
    where, X1 = flat_order(terms.rows), _with_one(terms.rows.X)
    w, eps = terms.weight, terms.point.epsilon
    class_slope = exp_ratio(terms.log_t_slope, 0.5 * (terms.log_t + terms.log_not_t))
    G = X1 * _times(np.sqrt(w), class_slope)[:, None]
    info[where.of_class(), where.of_class()] += G.T @ G
    label_slopes = _d_psi(terms, 0.5 * (terms.log_psi + terms.log_not_psi))
    positive = _times(np.sqrt(w * terms.m) * terms.shown[:, None], label_slopes)
    negative = terms.shown @ (w * (1 - terms.m))
    for j, (omega, *rates) in enumerate(positive):
        e = where.own(j).stop - 1
        of_cells = slice(where.of_selection(j).start, e)
        G = np.column_stack([X1 * omega[:, None], *rates])
        info[of_cells, of_cells] += G.T @ G
        info[e, e] += eps[j] * (1 - eps[j]) * negative[j]


def _d_psi(terms: Terms, log_scale: Array) -> Array:
    """Slopes of ψ in (ω, u, v) divided by a scale, ``(J, 3, n)``."""
    log_gamma, log_lam = terms.point.rates[:, 0, None], terms.point.rates[:, 1, None]
    return np.stack(
        [
            exp_ratio(terms.log_slope, log_scale),
            exp_ratio(log_gamma + terms.log_not_psi, log_scale),
            -exp_ratio(log_lam + terms.log_psi, log_scale),
        ],
        axis=1,
    )


def _gram(rows: Rows, d_tau: Array, d_cells: Array, d_false: Array) -> Array:
    """Sum over rows of g g', for g spread from (τ, ω, u, v, e) over the flat order."""
    X1 = _with_one(rows.X)
    parts = [X1 * d_tau[:, None]]
    for j in range(len(d_cells)):
        parts += [X1 * d_cells[j, 0][:, None], d_cells[j, 1:].T, d_false[j][:, None]]
    G = np.hstack(parts)
    return G.T @ G


def _times(weight: Array, x: Array) -> Array:
    """Product that is zero wherever the weight is, whatever x is there."""
    with np.errstate(invalid="ignore"):
        return np.where(weight == 0, 0.0, weight * x)


def _with_one(X: Array) -> Array:
    return np.column_stack([X, np.ones(len(X))])
