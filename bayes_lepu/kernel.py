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

Rows are taken in tiles that stay in cache, so that X comes from memory once for predictors and
gradient. Moderate rows are evaluated in linear space by loops that the compiler
vectorises; rows in the far tails are evaluated again in log space.
"""

import math

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import njit, types
from numba.extending import intrinsic

from .links import Array, RowKind

__all__ = ["loglik_grad", "loglik_grad_info", "loglik_grad_pair", "loglik_rows"]

# A tile's part of X stays in the second-level cache. Much longer tiles would overflow the
# product of mantissas in `_derivatives`.
TILE_ROWS = 512
TILE_BYTES = 98_304
INFO_ROWS = 128  # its scratch is 2p + 4 numbers a row

# Linear space serves while |tau|, |omega| <= FAR and L >= TINY: nothing under- or overflows.
FAR = 300.0
TINY = 1e-280

UNLABELLED = int(RowKind.UNLABELLED)
LABELLED = int(RowKind.LABELLED)
MISSED = int(RowKind.MISSED)
NEGATIVE = int(RowKind.NEGATIVE)

_jit = njit(nogil=True, cache=True, error_model="numpy", fastmath={"contract"})
# Sums may be reordered (so that they vectorise); infinities and NaN keep their meaning.
_jit_sums = njit(
    nogil=True, cache=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz", "arcp"}
)


# --- an exponential that the loops around it can be vectorised with ---------------------------


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
_LN2 = math.log(2.0)
_LN2_HIGH = 6.93147180369123816490e-01  # 33 bits, so that n * _LN2_HIGH is exact
_LN2_LOW = 1.90821492927058770002e-10
_MANTISSA = (1 << 52) - 1
_ONE = 1023 << 52  # the bits of 1.0


@_jit
def _exp(x: float) -> float:
    """2**n exp(r) = exp(x), |r| <= log(2) / 2, for |x| <= 700; relative error below 3e-16.

    exp(r) = 1 + r + r**2 Q(r), with Q interpolating at Chebyshev nodes.
    """
    shifted = x * _LOG2E + _ROUND
    n = shifted - _ROUND
    r = (x - n * _LN2_HIGH) - n * _LN2_LOW
    q = 2.510042720212035e-08 * r + 2.7620139383334396e-07
    q = q * r + 2.755726837263038e-06
    q = q * r + 2.4801521189018113e-05
    q = q * r + 0.00019841269863114935
    q = q * r + 0.0013888888917282464
    q = q * r + 0.008333333333330042
    q = q * r + 0.04166666666662399
    q = q * r + 0.16666666666666669
    q = q * r + 0.5
    return _as_float(_as_bits(q * (r * r) + r + 1.0) + (_as_bits(shifted) << 52))


# --- one row in log space ---------------------------------------------------------------------


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
    """Log-likelihood and its derivatives in tau, omega, u, v; every ratio is bounded."""
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
def _information_log(kind: int, tau: float, omega: float, log_w: Array) -> tuple:
    """`_information` of one row in log space."""
    log_t, log_not_t, log_psi, log_not_psi, log_slope = _log_factors(tau, omega, log_w)
    f_tau, f_class = 0.0, math.exp(0.5 * (log_t + log_not_t))
    if kind == NEGATIVE or (kind == MISSED and log_not_psi == -math.inf):
        return 0.0, 0.0, 0.0, 0.0, f_class
    if kind == MISSED:
        root = -0.5 * (log_psi + log_not_psi)
    else:
        root = 0.5 * (log_t - log_psi - _log_add(log_not_t, log_t + log_not_psi))
        f_tau, f_class = math.exp(root + log_psi + log_not_t), 0.0
    f_u, f_v = math.exp(root + log_w[0] + log_not_psi), -math.exp(root + log_w[1] + log_psi)
    return f_tau, math.exp(root + log_slope), f_u, f_v, f_class


# --- one tile in linear space -----------------------------------------------------------------


@_jit
def _tile_rows(p: int) -> int:
    """Rows per tile: at most TILE_ROWS, and at most TILE_BYTES of X where that leaves a few."""
    return max(8, min(TILE_ROWS, TILE_BYTES // (8 * p)))


@intrinsic
def _prefetch(_context, x, k):  # type: ignore[no-untyped-def]
    """Ask for the memory k places after the start of x, which may lie beyond its end."""

    def generate(context, build, signature, args):  # type: ignore[no-untyped-def]
        start = context.make_array(signature.args[0])(context, build, args[0]).data
        byte, flag = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, flag, flag, flag])
        call = build.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        address = build.bitcast(build.gep(start, [args[1]]), byte)
        build.call(call, [address, flag(0), flag(2), flag(1)])  # read, second level, data
        return context.get_dummy_value()

    return types.void(x, types.intp), generate


@_jit_sums
def _predict(X: Array, a: Array, b: float, z: Array) -> None:
    """Fill z = X a + b."""
    for i in range(X.shape[0]):
        x, total = X[i], 0.0
        for j in range(x.size):
            total += x[j] * a[j]
        z[i] = total + b


@_jit_sums
def _predict_two(
    X: Array, a: Array, b: float, alpha: Array, beta: float, tau: Array, omega: Array
) -> None:
    """Fill tau = X a + b and omega = X alpha + beta, asking for the next tile meanwhile."""
    ahead = X.size
    for i in range(X.shape[0]):
        x, first, second = X[i], 0.0, 0.0
        for j in range(0, x.size, 8):
            _prefetch(x, ahead + j)
        for j in range(x.size):
            first += x[j] * a[j]
            second += x[j] * alpha[j]
        tau[i] = first + b
        omega[i] = second + beta


@_jit
def _factors(
    X: Array, a: Array, b: float, alpha: Array, beta: float, has_omega: bool, room: Array
) -> tuple:
    """(z, sigma(z), sigma(-z)) for z = tau and z = omega (zero where the model has none)."""
    m = X.shape[0]
    first = (room[0, :m], room[1, :m], room[2, :m])
    second = (room[3, :m], room[4, :m], room[5, :m])
    if has_omega:
        _predict_two(X, a, b, alpha, beta, first[0], second[0])
    else:
        _predict(X, a, b, first[0])
        second[0][:] = 0.0
    for z, up, down in (first, second):
        _sigmoids(z, up, down)
    return first, second


@_jit_sums
def _sigmoids(z: Array, up: Array, down: Array) -> None:
    """Fill up = sigma(z) and down = sigma(-z), with z cut off at FAR."""
    for i in range(z.size):
        e = _exp(-min(max(z[i], -FAR), FAR))
        up[i] = 1.0 / (1.0 + e)
        down[i] = e * up[i]


@_jit_sums
def _add(X: Array, d: Array, grad: Array) -> None:
    """Add X' d to grad[:p] and the sum of d to grad[p]."""
    m, p = X.shape
    for i in range(m):
        x, di = X[i], d[i]
        for j in range(p):
            grad[j] += x[j] * di
        grad[p] += di


@_jit_sums
def _add_two(X: Array, d: Array, e: Array, first: Array, second: Array) -> None:
    """`_add` for (d, first) and (e, second), four rows at a time to spare loads and stores."""
    m, p = X.shape
    for block in range(m // 4):
        i = 4 * block
        x0, x1, x2, x3 = X[i], X[i + 1], X[i + 2], X[i + 3]
        d0, d1, d2, d3 = d[i], d[i + 1], d[i + 2], d[i + 3]
        e0, e1, e2, e3 = e[i], e[i + 1], e[i + 2], e[i + 3]
        for j in range(p):
            by_d = x0[j] * d0 + x1[j] * d1 + x2[j] * d2 + x3[j] * d3
            by_e = x0[j] * e0 + x1[j] * e1 + x2[j] * e2 + x3[j] * e3
            first[j] += by_d
            second[j] += by_e
        first[p] += d0 + d1 + d2 + d3
        second[p] += e0 + e1 + e2 + e3
    done = m // 4 * 4
    _add(X[done:], d[done:], first)
    _add(X[done:], e[done:], second)


@_jit
def _likelihood(kind: int, t: float, not_t: float, psi: float, not_psi: float) -> float:
    """L = k0 (1 - t) + t [k1 psi + k2 (1 - psi)] without branches."""
    seen = psi if kind == LABELLED else not_psi
    seen = 0.0 if kind == NEGATIVE else seen
    return t * seen + (not_t if (kind == UNLABELLED) | (kind == NEGATIVE) else 0.0)


@_jit_sums
def _derivatives(
    kind: Array, first: tuple, second: tuple, log_w: Array, d_tau: Array, d_omega: Array
) -> tuple:
    """Log-likelihood of a tile and its derivatives in u and v; fills d_tau and d_omega.

    The logarithm of the product of all L adds exponents, multiplies mantissas (each in [1, 2),
    so TILE_ROWS of them cannot overflow), and is taken once.
    """
    (tau, t, not_t), (omega, s0, not_s0) = first, second
    gamma, lam, rho = math.exp(log_w[0]), math.exp(log_w[1]), math.exp(log_w[2])
    sum_u = sum_v = 0.0
    exponents, mantissas, far = 0, 1.0, 0
    for i in range(kind.size):
        missed, negative = kind[i] == MISSED, kind[i] == NEGATIVE
        slope = rho * s0[i]
        psi, not_psi = gamma + slope, lam + rho * not_s0[i]
        by_psi = 1.0 if kind[i] == LABELLED else -1.0
        by_psi = 0.0 if negative else by_psi  # k1 - k2
        by_tau = not_psi if missed else by_psi * psi
        by_tau = -1.0 if negative else by_tau  # (k1 - k0) psi + (k2 - k0) (1 - psi)
        value = _likelihood(kind[i], t[i], not_t[i], psi, not_psi)
        # false for NaN too, which stays NaN in log space
        near = (abs(tau[i]) <= FAR) & (abs(omega[i]) <= FAR) & (value >= TINY)
        far += 0 if near else 1
        value = value if near else 1.0
        bits = _as_bits(value)
        exponents += bits >> 52
        mantissas *= _as_float((bits & _MANTISSA) | _ONE)
        ratio = t[i] / value
        d_tau[i] = ratio * not_t[i] * by_tau if near else math.nan  # NaN marks the row
        by_psi = ratio * by_psi if near else 0.0
        d_omega[i] = by_psi * (slope * not_s0[i])
        sum_u += by_psi * not_psi
        sum_v += by_psi * psi
    loglik = (exponents - 1023 * kind.size) * _LN2 + math.log(mantissas)
    d_u, d_v = gamma * sum_u, -lam * sum_v
    if far > 0:
        for i in range(kind.size):
            if math.isnan(d_tau[i]):
                value, d_tau[i], d_omega[i], du, dv = _row_log(kind[i], tau[i], omega[i], log_w)
                loglik, d_u, d_v = loglik + value, d_u + du, d_v + dv
    return loglik, d_u, d_v


@_jit
def _add_gradient(
    X: Array, kind: Array, first: tuple, second: tuple, log_w: Array, room: Array, grad: Array
) -> float:
    """Log-likelihood of a tile; adds its gradient to grad."""
    m, q = kind.size, X.shape[1] + 1
    d_tau, d_omega = room[6, :m], room[7, :m]
    loglik, d_u, d_v = _derivatives(kind, first, second, log_w, d_tau, d_omega)
    if log_w[2] > -math.inf:
        _add_two(X, d_tau, d_omega, grad[:q], grad[q : 2 * q])
    else:
        _add(X, d_tau, grad[:q])
    grad[2 * q] += d_u
    grad[2 * q + 1] += d_v
    return loglik


@_jit_sums
def _information(kind: Array, first: tuple, second: tuple, log_w: Array, f: Array) -> None:
    """Expected information of each row in (tau, omega, u, v), as g g' and f[4]**2 for tau alone.

    Not audited: g = sqrt(o) D with o = h / (1 - h) and D = grad log h. Audited as positive:
    g = grad Psi / sqrt(Psi (1 - Psi)) for its label, and t (1 - t) for tau alone, which is all
    there is for a row audited as negative. Fills f (5, m) with g and the root of the rest.
    """
    (tau, t, not_t), (omega, s0, not_s0) = first, second
    gamma, lam, rho = math.exp(log_w[0]), math.exp(log_w[1]), math.exp(log_w[2])
    f_tau, f_omega, f_u, f_v, f_class = f[0], f[1], f[2], f[3], f[4]
    far = 0
    for i in range(kind.size):
        missed, negative = kind[i] == MISSED, kind[i] == NEGATIVE
        psi, not_psi = gamma + rho * s0[i], lam + rho * not_s0[i]
        other = not_psi if missed else not_t[i] + t[i] * not_psi
        near = (abs(tau[i]) <= FAR) & (abs(omega[i]) <= FAR) & (psi >= TINY) & (other >= TINY)
        far += 0 if near else 1
        root = math.sqrt((1.0 if missed else t[i]) / (other * psi if near else 1.0))
        root = 0.0 if negative else root
        by_tau = 0.0 if missed else root * psi * not_t[i]
        f_tau[i] = by_tau if near else math.nan  # NaN marks the row
        f_omega[i] = root * rho * s0[i] * not_s0[i]
        f_u[i] = root * gamma * not_psi
        f_v[i] = -root * lam * psi
        f_class[i] = math.sqrt(t[i] * not_t[i]) if missed | negative else 0.0
    if far > 0:
        for i in range(kind.size):
            if math.isnan(f_tau[i]):
                f_tau[i], f_omega[i], f_u[i], f_v[i], f_class[i] = _information_log(
                    kind[i], tau[i], omega[i], log_w
                )


@_jit
def _fill(X: Array, w: Array, F: Array) -> None:
    """F = diag(w) (X, 1), one row of F per column."""
    m, p = X.shape
    for j in range(p):
        column = F[j]
        for i in range(m):
            column[i] = w[i] * X[i, j]
    F[p, :m] = w


@_jit_sums
def _add_gram(F: Array, q: int, m: int, gram: Array) -> None:
    """Add the products of F's first q rows, over m columns, to the upper triangle of gram.

    Each row meets four others at a time; F and gram have room for three beyond the last.
    """
    for j in range(q):
        x = F[j]
        for k in range(j, q, 4):
            y0, y1, y2, y3 = F[k], F[k + 1], F[k + 2], F[k + 3]
            s0 = s1 = s2 = s3 = 0.0
            for i in range(m):
                s0 += x[i] * y0[i]
                s1 += x[i] * y1[i]
                s2 += x[i] * y2[i]
                s3 += x[i] * y3[i]
            gram[j, k] += s0
            gram[j, k + 1] += s1
            gram[j, k + 2] += s2
            gram[j, k + 3] += s3


# --- the public functions ---------------------------------------------------------------------


@_jit
def loglik_grad(
    X: Array, kind: Array, a: Array, b: float, alpha: Array, beta: float, log_w: Array
) -> tuple[float, Array]:
    """Log-likelihood and its gradient (2p + 4,) in a, b, alpha, beta, u, v."""
    n, p = X.shape
    rows = _tile_rows(p)
    room, has_omega = np.empty((8, rows)), log_w[2] > -math.inf
    loglik, grad = 0.0, np.zeros(2 * p + 4)
    for start in range(0, n, rows):
        tile, known = X[start : start + rows], kind[start : start + rows]
        first, second = _factors(tile, a, b, alpha, beta, has_omega, room)
        loglik += _add_gradient(tile, known, first, second, log_w, room, grad)
    return loglik, grad


@_jit
def loglik_grad_pair(
    X: Array, kind: Array, a: Array, b: float, alpha: Array, beta: float, log_w: Array
) -> tuple[float, Array, float, Array]:
    """`loglik_grad` at theta and at S theta, which exchanges (a, b) and (alpha, beta).

    The second gradient is in the arguments of the second evaluation: its first p entries
    belong to the slopes of its own classifier, which are ``alpha``.
    """
    n, p = X.shape
    rows = _tile_rows(p)
    room = np.empty((8, rows))
    loglik, swapped = 0.0, 0.0
    grad, grad_swapped = np.zeros(2 * p + 4), np.zeros(2 * p + 4)
    for start in range(0, n, rows):
        tile, known = X[start : start + rows], kind[start : start + rows]
        first, second = _factors(tile, a, b, alpha, beta, True, room)
        loglik += _add_gradient(tile, known, first, second, log_w, room, grad)
        swapped += _add_gradient(tile, known, second, first, log_w, room, grad_swapped)
    return loglik, grad, swapped, grad_swapped


@_jit
def loglik_rows(
    X: Array, kind: Array, a: Array, b: float, alpha: Array, beta: float, log_w: Array
) -> Array:
    """Log-likelihood of every row, (n,)."""
    n, p = X.shape
    rows = _tile_rows(p)
    room, has_omega = np.empty((8, rows)), log_w[2] > -math.inf
    gamma, lam, rho = math.exp(log_w[0]), math.exp(log_w[1]), math.exp(log_w[2])
    out = np.empty(n)
    for start in range(0, n, rows):
        first, second = _factors(X[start : start + rows], a, b, alpha, beta, has_omega, room)
        (tau, t, not_t), (omega, s0, not_s0) = first, second
        for i in range(tau.size):
            known = kind[start + i]
            psi, not_psi = gamma + rho * s0[i], lam + rho * not_s0[i]
            value = _likelihood(known, t[i], not_t[i], psi, not_psi)
            if abs(tau[i]) <= FAR and abs(omega[i]) <= FAR and value >= TINY:
                out[start + i] = math.log(value)
            else:
                out[start + i] = _row_log(known, tau[i], omega[i], log_w)[0]
    return out


@_jit
def loglik_grad_info(
    X: Array, kind: Array, a: Array, b: float, alpha: Array, beta: float, log_w: Array
) -> tuple[float, Array, Array]:
    """Log-likelihood, gradient and expected (Fisher) information (2p + 4, 2p + 4)."""
    n, p = X.shape
    rows, q, size = INFO_ROWS, p + 1, 2 * p + 4
    room, has_omega = np.empty((8, rows)), log_w[2] > -math.inf
    f, F, info_tau = np.empty((5, rows)), np.zeros((size + 3, rows)), np.zeros((q, q + 3))
    loglik, grad, info = 0.0, np.zeros(size), np.zeros((size, size + 3))
    for start in range(0, n, rows):
        tile, known = X[start : start + rows], kind[start : start + rows]
        m = known.size
        first, second = _factors(tile, a, b, alpha, beta, has_omega, room)
        loglik += _add_gradient(tile, known, first, second, log_w, room, grad)
        _information(known, first, second, log_w, f)
        _fill(tile, f[0, :m], F[:q])
        _fill(tile, f[1, :m], F[q : 2 * q])
        F[2 * q : size] = f[2:4]
        _add_gram(F, size, m, info)
        if f[4, :m].any():
            _fill(tile, f[4, :m], F[:q])
            _add_gram(F, q, m, info_tau)
    info[:q, :q] += info_tau[:, :q]
    upper = np.triu(info[:, :size])
    return loglik, grad, upper + np.triu(upper, 1).T
