r"""Tiles of rows with any number of annotators and with false marks, in linear space.

Loops over annotators are outside and loops over rows inside, so that all of them vectorise. The
products A and B of `bayes_lepu.rows.formula` grow annotator by annotator. As long as B = 1,
which without false marks means that nobody marked the row, so does

.. math:: B - A = 1 - A, \qquad 1 - A\,(1-\psi) = (1 - A) + A\psi,

a sum of positive terms; otherwise the plain difference is exact (B = 0), or its rounding error
stays below that of the likelihood itself.
"""

import math

from bayes_lepu.factors.arithmetic import jit_sums
from bayes_lepu.factors.scalars import link_slope
from bayes_lepu.links import Array
from bayes_lepu.rows.arguments import Links
from bayes_lepu.rows.tiles import FAR, TINY


@jit_sums
def multiply_cells(
    labels: Array, omega: Array, up: Array, down: Array, rates: Array, epsilon: float, sums: tuple
) -> None:
    """One annotator's factors: updates A, B, 1 - A and the smallest factor ``least``.

    Once B is not 1 any more, 1 - A becomes NaN.
    """
    A, B, short, least = sums
    gamma, lam, rho = math.exp(rates[0]), math.exp(rates[1]), math.exp(rates[2])
    for i in range(labels.size):
        marked, shown = labels[i] == 1, labels[i] >= 0
        psi, not_psi = gamma + rho * up[i], lam + rho * down[i]
        cell, false = not_psi if shown else 1.0, 1.0 - epsilon if shown else 1.0
        cell, false = psi if marked else cell, epsilon if marked else false
        plain = marked | (shown & (epsilon > 0.0))
        short[i] += math.nan if plain else (A[i] * psi if shown else 0.0)
        A[i] *= cell
        B[i] *= false
        within = cell if abs(omega[i]) <= FAR else 0.0
        least[i] = min(least[i], within)


@jit_sums
def combine_cells(
    known: Array,
    weight: Array,
    tau: Array,
    up: Array,
    down: Array,
    links: Links,
    class_rates: Array,
    sums: tuple,
    value: Array,
    d_tau: Array,
    m: Array,
    not_m: Array,
) -> int:
    """Number of far rows; fills L, the slope in τ, and the responsibilities times the weight.

    Far rows count as L = 1 with slopes of zero, and are marked by d_tau = NaN.
    """
    A, B, short, least = sums
    base, lost, span = math.exp(class_rates[0]), math.exp(class_rates[1]), math.exp(class_rates[2])
    far = 0
    for i in range(known.size):
        negative, positive = known[i] == 0, known[i] == 1
        t, not_t = base + span * up[i], lost + span * down[i]
        if_positive = 0.0 if negative else t * A[i]
        if_negative = 0.0 if positive else not_t * B[i]
        difference = A[i] - B[i] if math.isnan(short[i]) else -short[i]
        difference = A[i] if positive else difference
        difference = -B[i] if negative else difference
        L = if_positive + if_negative
        near = (abs(tau[i]) <= FAR) & (least[i] >= TINY) & (L >= TINY)
        far += 0 if near else 1
        L = L if near else 1.0
        inverse = weight[i] / L if near else 0.0
        slope = span * link_slope(links.of_class, tau[i], up[i], down[i])
        value[i] = L
        d_tau[i] = slope * (difference * inverse) if near else math.nan
        m[i] = if_positive * inverse
        not_m[i] = if_negative * inverse
    return far


@jit_sums
def slopes_of_annotator(
    labels: Array,
    omega: Array,
    up: Array,
    down: Array,
    links: Links,
    rates: Array,
    epsilon: float,
    m: Array,
    not_m: Array,
    d: Array,
) -> tuple:
    """Sums of the slopes in u, v and e; fills the slope d in ω."""
    gamma, lam, rho = math.exp(rates[0]), math.exp(rates[1]), math.exp(rates[2])
    sum_u = sum_v = sum_e = 0.0
    for i in range(labels.size):
        marked, shown = labels[i] == 1, labels[i] >= 0
        psi, not_psi = gamma + rho * up[i], lam + rho * down[i]
        sign = -1.0 if shown else 0.0
        sign = 1.0 if marked else sign
        cell = psi if marked else not_psi
        cell = cell if cell >= TINY else 1.0  # a far row, or one that was not shown
        by_psi = sign * m[i] / cell
        d[i] = by_psi * rho * link_slope(links.of_selection, omega[i], up[i], down[i])
        sum_u += by_psi * not_psi
        sum_v += by_psi * psi
        miss = -epsilon if shown else 0.0
        sum_e += not_m[i] * (1.0 - epsilon if marked else miss)
    return gamma * sum_u, -lam * sum_v, sum_e if epsilon > 0.0 else 0.0
