r"""Tiles of rows with one annotator and no false marks, in linear space.

.. math::
    L = [y \ne 0]\; t\,P(l \mid y=1) + [y \ne 1]\,[l \ne 1]\,(1-t),

where [y ≠ 0] holds unless the class is known to be negative. With :math:`D = \partial L/\partial t`
equal to ψ (marked), -ψ (not marked) or 0 (not shown) in an open row, and with s = 1, -1, 0 for
these,

.. math::
    L_\tau = t' D, \qquad L_\omega = s\,t\,\psi', \qquad
    L_u = s\,t\,\gamma(1-\psi), \qquad L_v = -s\,t\,\lambda\psi .

No sum mixes signs, so no digits are lost. This is the general form with all loops over annotators
gone: one pass instead of five, which takes 0.56 of the time at 5000 x 5 and compiles in half.
"""

import math

from bayes_lepu.factors.arithmetic import LN2, MANTISSA, ONE, as_bits, as_float, jit_sums
from bayes_lepu.factors.scalars import link_slope
from bayes_lepu.links import Array
from bayes_lepu.rows.arguments import Links
from bayes_lepu.rows.tiles import FAR, TINY


@jit_sums
def slopes_of_tile(
    labels: Array,
    known: Array,
    weight: Array,
    first: tuple,
    second: tuple,
    links: Links,
    class_rates: Array,
    rates: Array,
    value: Array,
    d_tau: Array,
    d_omega: Array,
) -> tuple:
    """Log of the product of all L, sums of the slopes in u and v, and the number of far rows.

    Fills the likelihood ``value`` of every row and its slopes ``d_tau`` and ``d_omega``, which are
    multiplied by the weight. The logarithm of the product adds exponents, multiplies mantissas
    (each in [1, 2), so TILE_ROWS of them cannot overflow), and is taken once. Far rows count as
    L = 1 with slopes of zero, and are marked by d_tau = NaN.
    """
    (tau, up_t, down_t), (omega, up_s, down_s) = first, second
    base, lost, span = math.exp(class_rates[0]), math.exp(class_rates[1]), math.exp(class_rates[2])
    gamma, lam, rho = math.exp(rates[0]), math.exp(rates[1]), math.exp(rates[2])
    exponents, mantissas, far = 0, 1.0, 0
    sum_u = sum_v = 0.0
    for i in range(labels.size):
        marked, shown = labels[i] == 1, labels[i] >= 0
        negative, positive = known[i] == 0, known[i] == 1
        t, not_t = base + span * up_t[i], lost + span * down_t[i]
        psi, not_psi = gamma + rho * up_s[i], lam + rho * down_s[i]
        sign = -1.0 if shown else 0.0
        sign = 1.0 if marked else sign
        sign = 0.0 if negative else sign
        cell = not_psi if shown else 1.0
        cell = psi if marked else cell
        cell = 0.0 if negative else cell
        D = cell if positive else sign * psi
        D = -1.0 if negative else D
        L = t * cell + (0.0 if positive | marked else not_t)
        # false for NaN too, which stays NaN in log space
        near = (abs(tau[i]) <= FAR) & (abs(omega[i]) <= FAR) & (L >= TINY)
        far += 0 if near else 1
        L = L if near else 1.0
        value[i] = L
        bits = as_bits(L)
        exponents += bits >> 52
        mantissas *= as_float((bits & MANTISSA) | ONE)
        inverse = weight[i] / L
        slope_t = span * link_slope(links.of_class, tau[i], up_t[i], down_t[i])
        slope_s = rho * link_slope(links.of_selection, omega[i], up_s[i], down_s[i])
        by_psi = sign * t * inverse if near else 0.0
        d_tau[i] = slope_t * (D * inverse) if near else math.nan
        d_omega[i] = by_psi * slope_s
        sum_u += by_psi * not_psi
        sum_v += by_psi * psi
    loglik = (exponents - 1023 * labels.size) * LN2 + math.log(mantissas)
    return loglik, gamma * sum_u, -lam * sum_v, far
