r"""Sums for what is known from outside: the class prior π or the label frequencies c, compiled.

.. math::
    W = \sum w_i, \qquad T = \sum w_i t_i, \qquad M_j = \sum w_i t_i \psi_{ij}, \qquad
    \pi = T / W, \qquad c_j = M_j / T .
"""

import math

import numpy as np

from bayes_lepu.factors.arithmetic import jit, jit_sums
from bayes_lepu.factors.scalars import link_slope
from bayes_lepu.links import Array
from bayes_lepu.rows.arguments import OWN, Links, Point, Rows
from bayes_lepu.rows.tiles import (
    FAR,
    add_columns,
    curve,
    predict,
    tile_rows,
)


@jit_sums
def weighted_factor(
    link: tuple,
    z: Array,
    up: Array,
    down: Array,
    rates: Array,
    weight: Array,
    value: Array,
    slope: Array,
) -> tuple:
    """Sums of w and of w t; fills w t and w t'."""
    base, span = math.exp(rates[0]), math.exp(rates[2])
    total = sum_value = 0.0
    for i in range(z.size):
        w, cut = weight[i], min(max(z[i], -FAR), FAR)
        value[i] = w * (base + span * up[i])
        slope[i] = w * span * link_slope(link, cut, up[i], down[i])
        total += w
        sum_value += value[i]
    return total, sum_value


@jit_sums
def marked_positives(
    link: tuple,
    z: Array,
    up: Array,
    down: Array,
    rates: Array,
    t: Array,
    t_slope: Array,
    d_tau: Array,
    d_omega: Array,
) -> tuple:
    """Sums of t ψ and of its slopes in u and v; fills those in τ and ω (t, t' carry the weight)."""
    gamma, lam, rho = math.exp(rates[0]), math.exp(rates[1]), math.exp(rates[2])
    total = sum_u = 0.0
    for i in range(z.size):
        cut = min(max(z[i], -FAR), FAR)
        psi, not_psi = gamma + rho * up[i], lam + rho * down[i]
        d_tau[i] = t_slope[i] * psi
        d_omega[i] = t[i] * rho * link_slope(link, cut, up[i], down[i])
        total += t[i] * psi
        sum_u += t[i] * not_psi
    return total, gamma * sum_u, -lam * total


@jit
def outside_moments(
    rows: Rows, links: Links, point: Point
) -> tuple[float, float, Array, Array, Array]:
    """Sums that a known class prior or label frequency needs, with their gradients.

    W = Σ w; T = Σ w t, so that π = T / W, and its gradient; M_j = Σ w t ψ_j (J,), so that
    c_j = M_j / T, and their gradients (J, size).
    """
    n, p = rows.X.shape
    J, size = rows.labels.shape[0], tile_rows(p)
    width = p + 1
    room, ones = np.empty((7, size)), np.ones(size)
    W, T, dT = 0.0, 0.0, np.zeros(p + 1 + J * (width + OWN))
    M, dM = np.zeros(J), np.zeros((J, dT.size))
    slopes = np.zeros((J, p + 1))
    for start in range(0, n, size):
        m = min(size, n - start)
        X = rows.X[start : start + m]
        weight = rows.weight[start : start + m] if rows.weight.size > 0 else ones[:m]
        t, t_slope = room[0, :m], room[1, :m]
        z, up, down, d = room[2, :m], room[3, :m], room[4, :m], room[5, :m]
        predict(X, point.a, point.b, z)
        curve(links.of_class, z, up, down)
        total, positives = weighted_factor(
            links.of_class, z, up, down, point.class_rates, weight, t, t_slope
        )
        W, T = W + total, T + positives
        add_columns(X, t_slope, dT[: p + 1])
        for j in range(J):
            predict(X, point.alpha[j], point.beta[j], z)
            curve(links.of_selection, z, up, down)
            marks, d_u, d_v = marked_positives(
                links.of_selection, z, up, down, point.rates[j], t, t_slope, room[6, :m], d
            )
            at = p + 1 + j * (width + OWN)
            M[j] += marks
            dM[j, at + width] += d_u
            dM[j, at + width + 1] += d_v
            add_columns(X, room[6, :m], dM[j, : p + 1])
            add_columns(X, d, slopes[j])
    for j in range(J):
        at = p + 1 + j * (width + OWN)
        for k in range(width):
            dM[j, at + k] = slopes[j, k]
    return W, T, dT, M, dM
