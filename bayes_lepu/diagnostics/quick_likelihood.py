"""The likelihood of one annotator's rows for the many refits of a verdict, in plain NumPy."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from bayes_lepu.factors import link_of, log_factor
from bayes_lepu.likelihood import Links, Point, Rows, flat_order
from bayes_lepu.links import Array

TINY = 1e-300


def one_annotator(
    rows: Rows, links: Links, free: NDArray[np.bool_]
) -> Callable[[Point], tuple[float, Array, Array]]:
    """Log likelihood, gradient and expected information on the free coordinates only.

    `bayes_lepu.likelihood.information` without its logarithms for the far tails, which a refit from
    a good answer does not visit: eight times as fast, and equal to 1e-9 (tested).
    """
    where = flat_order(rows)
    X1 = np.column_stack([rows.X, np.ones(len(rows.X))])
    of_class = X1[:, free[where.of_class()]]
    of_selection = X1[:, free[where.of_selection(0)]]
    rates = free[where.own(0)][:2]
    marked, positive, negative = rows.labels[0] == 1, rows.known == 1, rows.known == 0
    weight = rows.weight if rows.weight.size else np.ones(len(rows.X))
    audited = positive | negative
    once = np.where(audited, 0.0, weight)  # of rows whose class is open

    def evaluate(point: Point) -> tuple[float, Array, Array]:
        tau = rows.X @ point.a + point.b
        omega = rows.X @ point.alpha[0] + point.beta[0]
        t, not_t, t_slope = _exp(log_factor(link_of(links.of_class), tau, point.class_rates))
        psi, not_psi, slope = _exp(log_factor(link_of(links.of_selection), omega, point.rates[0]))
        eps = float(point.epsilon[0])
        h = np.maximum(t * psi + not_t * eps, TINY)
        not_h = np.maximum(t * not_psi + not_t * (1 - eps), TINY)
        own = np.column_stack(
            [np.exp(point.rates[0, 0]) * not_psi, -np.exp(point.rates[0, 1]) * psi]
        )[:, rates]
        d_psi = np.hstack([slope[:, None] * of_selection, own])
        d_t = t_slope[:, None] * of_class
        D = np.hstack([(psi - eps)[:, None] * d_t, t[:, None] * d_psi])
        value = float(once @ np.log(np.where(marked, h, not_h)))
        grad = (once * np.where(marked, 1 / h, -1 / not_h)) @ D
        info = (D * (once / (h * not_h))[:, None]).T @ D
        if audited.any():  # the class is seen, and then the label given the class
            t, not_t, psi, not_psi = (np.maximum(v, TINY) for v in (t, not_t, psi, not_psi))
            k = of_class.shape[1]
            false = eps if eps else TINY
            given = np.where(
                positive,
                t * np.where(marked, psi, not_psi),
                not_t * np.where(marked, false, 1 - eps),
            )
            seen, found = weight * audited, weight * positive
            value += float(seen[audited] @ np.log(np.maximum(given[audited], TINY)))
            grad[:k] += (seen * np.where(positive, 1 / t, -1 / not_t)) @ d_t
            grad[k:] += (found * np.where(marked, 1 / psi, -1 / not_psi)) @ d_psi
            info[:k, :k] += (d_t * (seen / (t * not_t))[:, None]).T @ d_t
            info[k:, k:] += (d_psi * (found / (psi * not_psi))[:, None]).T @ d_psi
        return value, grad, info

    return evaluate


def _exp(logs: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
    up, down, slope = (np.exp(v) for v in logs)
    return up, down, slope
