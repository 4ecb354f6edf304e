r"""The fused log-likelihood: value, gradient and expected information in one pass over X.

A row contributes the probability of the cells (y, l) that what is known about it leaves open,

.. math::
    L = k_0 (1-t) + t\,[k_1 \Psi + k_2 (1-\Psi)], \qquad
    t = \sigma(\tau), \quad \Psi = \gamma + \rho\,\sigma(\omega),
    \quad 1 - \Psi = \lambda + \rho\,\sigma(-\omega),

with :math:`(k_0, k_1, k_2)` = (1, 0, 1) unlabelled, (0, 1, 0) labelled, (0, 0, 1) missed and
(1, 0, 0) negative (`bayes_lepu.links.RowKind`). Its derivatives are

.. math::
    \partial L/\partial\tau &= t(1-t)\,[(k_1-k_0)\Psi + (k_2-k_0)(1-\Psi)], \qquad
    \partial L/\partial\Psi = t\,(k_1 - k_2), \\
    \partial\Psi/\partial\omega &= \rho\,\sigma(\omega)\sigma(-\omega), \quad
    \partial\Psi/\partial u = \gamma(1-\Psi), \quad
    \partial\Psi/\partial v = -\lambda\Psi,

where :math:`u = \log(\gamma/\rho)` and :math:`v = \log(\lambda/\rho)`. Under SCAR
(:math:`\rho = 0`) the same formula makes u the logit of c. No sum above mixes signs, so no
digits are lost to cancellation.

Conventions
-----------
``X`` (n, p) C-contiguous, ``kind`` (n,) int8, ``a`` and ``alpha`` (p,), ``log_w`` (3,) as in
`bayes_lepu.links`; everything but ``kind`` is float64. Gradients have 2p + 4 entries in the
order a, b, alpha, beta, u, v. With ``log_w[2] == -inf`` (naive, SCAR) omega is not computed and
its gradient is zero. Every function is compiled by numba without threads, releases the GIL, and
can be called from Python or from other compiled code. Results add over blocks of rows.

Rows are taken in tiles that fit in the first-level cache, so that X comes from memory once for
predictors and gradient. Moderate rows are evaluated in linear space by loops that the compiler
vectorises; the few rows in the far tails are evaluated again in log space.
"""

import math

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import njit, types
from numba.extending import intrinsic

from .links import Array, RowKind

__all__ = ["loglik_grad", "loglik_grad_info", "loglik_grad_pair", "loglik_rows"]

TILE_ROWS = 128
TILE_BYTES = 24_576  # of X; the rest of a 32 kB first-level cache is for the tile's vectors

# Linear space is used while |tau|, |omega| <= FAR and L >= TINY; then a product of eight
# contributions cannot underflow, and one logarithm serves eight rows.
FAR = 40.0
TINY = 1e-37
GROUP = 8

UNLABELLED = int(RowKind.UNLABELLED)
LABELLED = int(RowKind.LABELLED)
MISSED = int(RowKind.MISSED)
NEGATIVE = int(RowKind.NEGATIVE)

# Sums may be reordered (so that they vectorise); infinities and NaN keep their meaning.
_SUMS = {"reassoc", "contract", "nsz", "arcp"}
_jit = njit(nogil=True, cache=True, error_model="numpy")
_jit_sums = njit(nogil=True, cache=True, error_model="numpy", fastmath=_SUMS)
_jit_exact = njit(nogil=True, cache=True, error_model="numpy", fastmath={"contract"})


# --- a vectorisable exponential -------------------------------------------------------------


@intrinsic
def _as_float(_context, bits):  # type: ignore[no-untyped-def]
    """The float64 with these 64 bits."""
    return types.float64(types.int64), lambda _c, build, _s, args: build.bitcast(
        args[0], ir.DoubleType()
    )


@intrinsic
def _as_bits(_context, number):  # type: ignore[no-untyped-def]
    """The 64 bits of this float64."""
    return types.int64(types.float64), lambda _c, build, _s, args: build.bitcast(
        args[0], ir.IntType(64)
    )


_ROUND = 6755399441055744.0  # 1.5 * 2**52: adding it leaves the nearest integer in the low bits
_LOG2E = 1.0 / math.log(2.0)
_LN2_HIGH = 6.93147180369123816490e-01
_LN2_LOW = 1.90821492927058770002e-10


@_jit_exact
def _exp(x: float) -> float:
    """Exponential for |x| <= 700: 2**n exp(r), |r| <= log(2)/2, exp(r) by its Taylor sum.

    libm's function is a call that keeps the loops around it from being vectorised.
    """
    shifted = x * _LOG2E + _ROUND
    n = shifted - _ROUND
    r = (x - n * _LN2_HIGH) - n * _LN2_LOW
    y = r * (1.0 / 6227020800.0) + 1.0 / 479001600.0
    y = y * r + 1.0 / 39916800.0
    y = y * r + 1.0 / 3628800.0
    y = y * r + 1.0 / 362880.0
    y = y * r + 1.0 / 40320.0
    y = y * r + 1.0 / 5040.0
    y = y * r + 1.0 / 720.0
    y = y * r + 1.0 / 120.0
    y = y * r + 1.0 / 24.0
    y = y * r + 1.0 / 6.0
    y = y * r + 0.5
    y = y * r * r + r + 1.0
    return _as_float(_as_bits(y) + (_as_bits(shifted) << 52))


# --- one row --------------------------------------------------------------------------------


@_jit_exact
def _cell(kind: int, t: float, not_t: float, psi: float, not_psi: float) -> tuple:
    """L, dL/dtau and dL/dPsi of one row in linear space."""
    k0 = 1.0 if (kind == UNLABELLED) | (kind == NEGATIVE) else 0.0
    k1 = 1.0 if kind == LABELLED else 0.0
    k2 = 1.0 if (kind == UNLABELLED) | (kind == MISSED) else 0.0
    like = k0 * not_t + t * (k1 * psi + k2 * not_psi)
    d_tau = t * not_t * ((k1 - k0) * psi + (k2 - k0) * not_psi)
    return like, d_tau, t * (k1 - k2)


@_jit
def _log_sigmoid(z: float) -> float:
    return -math.log1p(math.exp(-z)) if z > 0 else z - math.log1p(math.exp(z))


@_jit
def _log_add(x: float, y: float) -> float:
    high, low = max(x, y), min(x, y)
    return high if low == -math.inf else high + math.log1p(math.exp(low - high))


@_jit
def _log_factors(tau: float, omega: float, log_w: Array) -> tuple:
    """Logarithms of t, 1 - t, Psi, 1 - Psi and dPsi/domega."""
    log_s0, log_not_s0 = _log_sigmoid(omega), _log_sigmoid(-omega)
    log_psi = _log_add(log_w[0], log_w[2] + log_s0)
    log_not_psi = _log_add(log_w[1], log_w[2] + log_not_s0)
    log_slope = log_w[2] + log_s0 + log_not_s0
    return _log_sigmoid(tau), _log_sigmoid(-tau), log_psi, log_not_psi, log_slope


@_jit
def _row_log(kind: int, tau: float, omega: float, log_w: Array) -> tuple:
    """log L and its derivatives in (tau, omega, u, v), every ratio bounded, in log space."""
    log_t, log_not_t, log_psi, log_not_psi, log_slope = _log_factors(tau, omega, log_w)
    t, not_t = math.exp(log_t), math.exp(log_not_t)
    gamma, lam = math.exp(log_w[0]), math.exp(log_w[1])
    if kind == NEGATIVE:
        return log_not_t, -t, 0.0, 0.0, 0.0
    if kind == LABELLED:
        d_u = math.exp(log_w[0] + log_not_psi - log_psi)
        return log_t + log_psi, not_t, math.exp(log_slope - log_psi), d_u, -lam
    if kind == MISSED:
        if log_not_psi == -math.inf:  # impossible under the naive model
            return -math.inf, not_t, 0.0, 0.0, 0.0
        d_v = math.exp(log_w[1] + log_psi - log_not_psi)
        return log_t + log_not_psi, not_t, -math.exp(log_slope - log_not_psi), -gamma, d_v
    log_q = _log_add(log_not_t, log_t + log_not_psi)
    d_tau = -math.exp(log_t + log_not_t + log_psi - log_q)
    d_omega = -math.exp(log_t + log_slope - log_q)
    d_u = -math.exp(log_t + log_w[0] + log_not_psi - log_q)
    d_v = math.exp(log_t + log_w[1] + log_psi - log_q)
    return log_q, d_tau, d_omega, d_u, d_v


@_jit
def _row_information(kind: int, tau: float, omega: float, log_w: Array) -> tuple:
    """Expected information of one row in (tau, omega, u, v): tt, to, oo, tu, tv, ou, ov, uu, uv, vv.

    Not audited: o D D' with o = h / (1 - h) and D = grad log h. Audited as positive: t (1 - t)
    for tau and (grad Psi)(grad Psi)' / (Psi (1 - Psi)). Audited as negative: t (1 - t) alone.
    """
    log_t, log_not_t, log_psi, log_not_psi, log_slope = _log_factors(tau, omega, log_w)
    if log_not_psi == -math.inf and kind != UNLABELLED and kind != LABELLED:
        kind = NEGATIVE  # Psi is the constant one: only tau is informed
    tt = math.exp(log_t + log_not_t)
    if kind == NEGATIVE:
        return tt, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    log_d_omega, log_d_u, log_d_v = log_slope - log_psi, log_w[0] + log_not_psi - log_psi, log_w[1]
    to = tu = tv = 0.0
    if kind == MISSED:
        log_o = log_psi - log_not_psi
    else:
        log_o = log_t + log_psi - _log_add(log_not_t, log_t + log_not_psi)
        tt = math.exp(log_o + 2.0 * log_not_t)
        to = math.exp(log_o + log_not_t + log_d_omega)
        tu = math.exp(log_o + log_not_t + log_d_u)
        tv = -math.exp(log_o + log_not_t + log_d_v)
    oo = math.exp(log_o + 2.0 * log_d_omega)
    ou = math.exp(log_o + log_d_omega + log_d_u)
    ov = -math.exp(log_o + log_d_omega + log_d_v)
    uu = math.exp(log_o + 2.0 * log_d_u)
    uv = -math.exp(log_o + log_d_u + log_d_v)
    return tt, to, oo, tu, tv, ou, ov, uu, uv, math.exp(log_o + 2.0 * log_d_v)


# --- one tile -------------------------------------------------------------------------------


@_jit
def _tile_rows(p: int) -> int:
    """Rows per tile: a multiple of GROUP, at most TILE_ROWS, X's part at most TILE_BYTES."""
    return max(GROUP, min(TILE_ROWS, TILE_BYTES // (8 * p) // GROUP * GROUP))


@_jit_sums
def _predict(X: Array, coef: Array, intercept: float, out: Array) -> None:
    """out = X coef + intercept."""
    for i in range(X.shape[0]):
        total = 0.0
        for j in range(X.shape[1]):
            total += X[i, j] * coef[j]
        out[i] = total + intercept


@_jit_sums
def _accumulate(X: Array, d: Array, grad: Array) -> None:
    """Add X' d to grad[:p] and the sum of d to grad[p]."""
    p = X.shape[1]
    total = 0.0
    for i in range(X.shape[0]):
        total += d[i]
        for j in range(p):
            grad[j] += X[i, j] * d[i]
    grad[p] += total


@_jit_sums
def _tile_derivatives(
    kind: Array, tau: Array, omega: Array, log_w: Array, like: Array, d_tau: Array, d_omega: Array
) -> tuple:
    """Log-likelihood of a tile and its derivatives in u and v; fills d_tau and d_omega.

    ``like`` is room for the contributions L, at least as long as the tile rounded up to GROUP.
    """
    m = kind.size
    gamma, lam, rho = math.exp(log_w[0]), math.exp(log_w[1]), math.exp(log_w[2])
    d_u = d_v = 0.0
    far = 0
    for i in range(m):
        x = min(max(tau[i], -FAR), FAR)
        y = min(max(omega[i], -FAR), FAR)
        e_tau, e_omega = _exp(-x), _exp(-y)
        inverse = 1.0 / ((1.0 + e_tau) * (1.0 + e_omega))
        t, s0 = inverse * (1.0 + e_omega), inverse * (1.0 + e_tau)
        not_t, not_s0 = e_tau * t, e_omega * s0
        psi, not_psi = gamma + rho * s0, lam + rho * not_s0
        value, slope_tau, slope_psi = _cell(kind[i], t, not_t, psi, not_psi)
        is_far = (x != tau[i]) | (y != omega[i]) | (value < TINY)
        far += 1 if is_far else 0
        scale = 0.0 if is_far else 1.0 / value
        like[i] = -1.0 if is_far else value  # no probability is negative: a mark
        d_tau[i] = slope_tau * scale
        by_psi = slope_psi * scale
        d_omega[i] = by_psi * rho * s0 * not_s0
        d_u += by_psi * gamma * not_psi
        d_v -= by_psi * lam * psi
    loglik = 0.0
    if far > 0:
        for i in range(m):
            if like[i] < 0.0:
                like[i] = 1.0
                value, d_tau[i], d_omega[i], du, dv = _row_log(kind[i], tau[i], omega[i], log_w)
                loglik += value
                d_u += du
                d_v += dv
    return loglik + _log_product(like, m), d_u, d_v


@_jit_sums
def _log_product(like: Array, m: int) -> float:
    """Sum of log like[:m], one logarithm per GROUP entries."""
    rows = (m + GROUP - 1) // GROUP
    for i in range(m, rows * GROUP):
        like[i] = 1.0
    total = 0.0
    for i in range(rows):
        product = 1.0
        for k in range(GROUP):
            product *= like[i * GROUP + k]
        total += math.log(product)
    return total


# --- the public functions -------------------------------------------------------------------


@_jit
def loglik_grad(
    X: Array, kind: Array, a: Array, b: float, alpha: Array, beta: float, log_w: Array
) -> tuple[float, Array]:
    """Log-likelihood and its gradient (2p + 4,) in a, b, alpha, beta, u, v."""
    n, p = X.shape
    rows = _tile_rows(p)
    tau, omega, like = np.empty(rows), np.zeros(rows), np.empty(rows)
    d_tau, d_omega = np.empty(rows), np.empty(rows)
    has_omega = log_w[2] > -math.inf
    loglik, grad = 0.0, np.zeros(2 * p + 4)
    for start in range(0, n, rows):
        tile, known = X[start : start + rows], kind[start : start + rows]
        m = known.size
        _predict(tile, a, b, tau[:m])
        if has_omega:
            _predict(tile, alpha, beta, omega[:m])
        part, d_u, d_v = _tile_derivatives(
            known, tau[:m], omega[:m], log_w, like, d_tau[:m], d_omega[:m]
        )
        _accumulate(tile, d_tau[:m], grad[: p + 1])
        if has_omega:
            _accumulate(tile, d_omega[:m], grad[p + 1 : 2 * p + 2])
        loglik += part
        grad[2 * p + 2] += d_u
        grad[2 * p + 3] += d_v
    return loglik, grad


@_jit
def loglik_grad_pair(
    X: Array, kind: Array, a: Array, b: float, alpha: Array, beta: float, log_w: Array
) -> tuple[float, Array, float, Array]:
    """The same as `loglik_grad` at theta and at S theta, which exchanges (a, b) and (alpha, beta).

    The second gradient is in the arguments of the second evaluation: its first p entries
    belong to the slopes of its own classifier, which are ``alpha``.
    """
    n, p = X.shape
    rows = _tile_rows(p)
    tau, omega, like = np.empty(rows), np.empty(rows), np.empty(rows)
    d_tau, d_omega = np.empty(rows), np.empty(rows)
    loglik, swapped = 0.0, 0.0
    grad, grad_swapped = np.zeros(2 * p + 4), np.zeros(2 * p + 4)
    for start in range(0, n, rows):
        tile, known = X[start : start + rows], kind[start : start + rows]
        m = known.size
        _predict(tile, a, b, tau[:m])
        _predict(tile, alpha, beta, omega[:m])
        part, d_u, d_v = _tile_derivatives(
            known, tau[:m], omega[:m], log_w, like, d_tau[:m], d_omega[:m]
        )
        _accumulate(tile, d_tau[:m], grad[: p + 1])
        _accumulate(tile, d_omega[:m], grad[p + 1 : 2 * p + 2])
        loglik += part
        grad[2 * p + 2] += d_u
        grad[2 * p + 3] += d_v
        part, d_u, d_v = _tile_derivatives(
            known, omega[:m], tau[:m], log_w, like, d_tau[:m], d_omega[:m]
        )
        _accumulate(tile, d_tau[:m], grad_swapped[: p + 1])
        _accumulate(tile, d_omega[:m], grad_swapped[p + 1 : 2 * p + 2])
        swapped += part
        grad_swapped[2 * p + 2] += d_u
        grad_swapped[2 * p + 3] += d_v
    return loglik, grad, swapped, grad_swapped


@_jit
def loglik_rows(
    X: Array, kind: Array, a: Array, b: float, alpha: Array, beta: float, log_w: Array
) -> Array:
    """Log-likelihood of every row, (n,)."""
    n, p = X.shape
    rows = _tile_rows(p)
    tau, omega = np.empty(rows), np.zeros(rows)
    has_omega = log_w[2] > -math.inf
    out = np.empty(n)
    for start in range(0, n, rows):
        tile = X[start : start + rows]
        m = tile.shape[0]
        _predict(tile, a, b, tau[:m])
        if has_omega:
            _predict(tile, alpha, beta, omega[:m])
        for i in range(m):
            out[start + i] = _row_log(kind[start + i], tau[i], omega[i], log_w)[0]
    return out


@_jit_sums
def _add_gram(Z: Array, w: Array, gram: Array) -> None:
    """Add Z' diag(w) Z to gram."""
    for i in range(Z.shape[0]):
        for j in range(Z.shape[1]):
            z = w[i] * Z[i, j]
            for k in range(Z.shape[1]):
                gram[j, k] += z * Z[i, k]


@_jit_sums
def _add_vector(Z: Array, w: Array, vector: Array) -> None:
    """Add Z' w to vector."""
    for i in range(Z.shape[0]):
        for j in range(Z.shape[1]):
            vector[j] += w[i] * Z[i, j]


@_jit
def loglik_grad_info(
    X: Array, kind: Array, a: Array, b: float, alpha: Array, beta: float, log_w: Array
) -> tuple[float, Array, Array]:
    """Log-likelihood, gradient and expected (Fisher) information (2p + 4, 2p + 4)."""
    n, p = X.shape
    rows = _tile_rows(p)
    q, size = p + 1, 2 * p + 4
    tau, omega, like = np.empty(rows), np.zeros(rows), np.empty(rows)
    d_tau, d_omega = np.empty(rows), np.empty(rows)
    Z = np.ones((rows, q))  # rows of X with the intercept's one
    weights = np.empty((10, rows))
    has_omega = log_w[2] > -math.inf
    loglik, grad = 0.0, np.zeros(size)
    # blocks tau-tau, tau-omega, omega-omega; then columns tau-u, tau-v, omega-u, omega-v
    grams, columns, corner = np.zeros((3, q, q)), np.zeros((4, q)), np.zeros(3)
    for start in range(0, n, rows):
        tile, known = X[start : start + rows], kind[start : start + rows]
        m = known.size
        _predict(tile, a, b, tau[:m])
        if has_omega:
            _predict(tile, alpha, beta, omega[:m])
        part, d_u, d_v = _tile_derivatives(
            known, tau[:m], omega[:m], log_w, like, d_tau[:m], d_omega[:m]
        )
        _accumulate(tile, d_tau[:m], grad[:q])
        if has_omega:
            _accumulate(tile, d_omega[:m], grad[q : 2 * q])
        loglik += part
        grad[2 * q] += d_u
        grad[2 * q + 1] += d_v
        for i in range(m):
            weights[:, i] = _row_information(known[i], tau[i], omega[i], log_w)
        Z[:m, :p] = tile
        for k in range(3 if has_omega else 1):
            _add_gram(Z[:m], weights[k, :m], grams[k])
        for k in range(4 if has_omega else 2):
            _add_vector(Z[:m], weights[3 + k, :m], columns[k])
        for k in range(3):
            corner[k] += weights[7 + k, :m].sum()
    info = np.zeros((size, size))
    info[:q, :q] = grams[0]
    info[:q, q : 2 * q] = grams[1]
    info[q : 2 * q, :q] = grams[1].T
    info[q : 2 * q, q : 2 * q] = grams[2]
    for k in range(2):
        for j in range(q):
            info[j, 2 * q + k] = info[2 * q + k, j] = columns[k, j]
            info[q + j, 2 * q + k] = info[2 * q + k, q + j] = columns[2 + k, j]
    info[2 * q, 2 * q], info[2 * q + 1, 2 * q + 1] = corner[0], corner[2]
    info[2 * q, 2 * q + 1] = info[2 * q + 1, 2 * q] = corner[1]
    return loglik, grad, info
