r"""The highest point of a parabola with kinks.

.. math:: \max_x \; g'(x - z) - \tfrac12 (x - z)' H (x - z) - \sum_j C_j |x_j|

with H positive definite. Coordinates away from their kink move together, to the top of the
parabola or to the first kink on the way; one at its kink that the slope pulls away is let go. Every
step rises, so the end is exact, zeros included. Without kinks this is one linear system.
"""

import math

import numpy as np

from bayes_lepu.links import Array
from bayes_lepu.runtime.compilation import compiled

SLACK = 1e-9  # pull beyond C, relative to it, that still counts as none

_jit = compiled()


@_jit
def highest(g: Array, H: Array, z: Array, C: Array) -> tuple[bool, Array]:
    """Whether H is positive definite, and where the maximum is."""
    k = z.size
    x, slope, sign = z.copy(), g.copy(), np.zeros(k)
    free, moving, step = np.ones(k, np.bool_), np.empty(k, np.intp), np.empty(k)
    for j in range(k):
        if C[j] > 0.0:
            sign[j], free[j] = np.sign(x[j]), x[j] != 0.0
    for _ in range(4 * k):
        size = 0
        for j in range(k):
            if free[j]:
                moving[size] = j
                step[size] = slope[j] - C[j] * sign[j]
                size += 1
        if not solve(H, moving[:size], step):
            return False, x
        length, first = 1.0, -1
        for i in range(size):
            j = moving[i]
            if sign[j] * (x[j] + step[i]) < 0.0 and -x[j] / step[i] < length:
                length, first = -x[j] / step[i], j
        for i in range(size):
            j, d = moving[i], length * step[i]
            x[j] += d
            for r in range(k):
                slope[r] -= H[j, r] * d
        if first >= 0:
            x[first], free[first] = 0.0, False
            continue
        strongest, pull = -1, 0.0
        for j in range(k):
            excess = abs(slope[j]) - C[j] * (1.0 + SLACK)
            if not free[j] and excess > pull:
                strongest, pull = j, excess
        if strongest < 0:
            break
        free[strongest], sign[strongest] = True, np.sign(slope[strongest])
    return True, x


@_jit
def solve(H: Array, chosen: Array, x: Array) -> bool:
    """Solve for the chosen rows and columns of H, in place; False if not positive definite."""
    k = chosen.size
    L = np.empty((k, k))
    for i in range(k):
        for j in range(i + 1):
            total = H[chosen[i], chosen[j]]
            for r in range(j):
                total -= L[i, r] * L[j, r]
            if i > j:
                L[i, j] = total / L[j, j]
            elif total > 0.0:
                L[i, i] = math.sqrt(total)
            else:
                return False
    for i in range(k):
        for r in range(i):
            x[i] -= L[i, r] * x[r]
        x[i] /= L[i, i]
    for i in range(k - 1, -1, -1):
        for r in range(i + 1, k):
            x[i] -= L[r, i] * x[r]
        x[i] /= L[i, i]
    return True
