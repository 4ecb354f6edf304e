"""One tile of rows in linear space, by loops that the compiler vectorises."""

import math

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic

from bayes_lepu.arithmetic import LN2, MANTISSA, ONE, as_bits, as_float, exp, jit, jit_sums
from bayes_lepu.kernel.tails import (
    LABELLED,
    MISSED,
    NEGATIVE,
    UNLABELLED,
    information_log,
    row_log,
)
from bayes_lepu.links import Array

# A tile's part of X stays in the second-level cache. Much longer tiles would overflow the
# product of mantissas in `derivatives`.
TILE_ROWS = 512
TILE_BYTES = 98_304

# Linear space serves while |tau|, |omega| <= FAR and L >= TINY: nothing under- or overflows.
FAR = 300.0
TINY = 1e-280


@jit
def tile_rows(p: int) -> int:
    """Rows per tile: at most TILE_ROWS, and at most TILE_BYTES of X where that leaves a few."""
    return max(8, min(TILE_ROWS, TILE_BYTES // (8 * p)))


@intrinsic
def prefetch(_context, x, k):  # type: ignore[no-untyped-def]
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


@jit_sums
def _predict(X: Array, a: Array, b: float, z: Array) -> None:
    """Fill z = X a + b."""
    for i in range(X.shape[0]):
        x, total = X[i], 0.0
        for j in range(x.size):
            total += x[j] * a[j]
        z[i] = total + b


@jit_sums
def _predict_two(
    X: Array, a: Array, b: float, alpha: Array, beta: float, tau: Array, omega: Array
) -> None:
    """Fill tau = X a + b and omega = X alpha + beta, asking for the next tile meanwhile."""
    ahead = X.size
    for i in range(X.shape[0]):
        x, first, second = X[i], 0.0, 0.0
        for j in range(0, x.size, 8):
            prefetch(x, ahead + j)
        for j in range(x.size):
            first += x[j] * a[j]
            second += x[j] * alpha[j]
        tau[i] = first + b
        omega[i] = second + beta


@jit
def factors_of_tile(
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


@jit_sums
def _sigmoids(z: Array, up: Array, down: Array) -> None:
    """Fill up = sigma(z) and down = sigma(-z), with z cut off at FAR."""
    for i in range(z.size):
        e = exp(-min(max(z[i], -FAR), FAR))
        up[i] = 1.0 / (1.0 + e)
        down[i] = e * up[i]


@jit_sums
def _add(X: Array, d: Array, grad: Array) -> None:
    """Add X' d to grad[:p] and the sum of d to grad[p]."""
    m, p = X.shape
    for i in range(m):
        x, di = X[i], d[i]
        for j in range(p):
            grad[j] += x[j] * di
        grad[p] += di


@jit_sums
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


@jit
def likelihood(kind: int, t: float, not_t: float, psi: float, not_psi: float) -> float:
    """L = k0 (1 - t) + t [k1 psi + k2 (1 - psi)] without branches."""
    seen = psi if kind == LABELLED else not_psi
    seen = 0.0 if kind == NEGATIVE else seen
    return t * seen + (not_t if (kind == UNLABELLED) | (kind == NEGATIVE) else 0.0)


@jit_sums
def derivatives(
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
        value = likelihood(kind[i], t[i], not_t[i], psi, not_psi)
        # false for NaN too, which stays NaN in log space
        near = (abs(tau[i]) <= FAR) & (abs(omega[i]) <= FAR) & (value >= TINY)
        far += 0 if near else 1
        value = value if near else 1.0
        bits = as_bits(value)
        exponents += bits >> 52
        mantissas *= as_float((bits & MANTISSA) | ONE)
        ratio = t[i] / value
        d_tau[i] = ratio * not_t[i] * by_tau if near else math.nan  # NaN marks the row
        by_psi = ratio * by_psi if near else 0.0
        d_omega[i] = by_psi * (slope * not_s0[i])
        sum_u += by_psi * not_psi
        sum_v += by_psi * psi
    loglik = (exponents - 1023 * kind.size) * LN2 + math.log(mantissas)
    d_u, d_v = gamma * sum_u, -lam * sum_v
    if far > 0:
        for i in range(kind.size):
            if math.isnan(d_tau[i]):
                value, d_tau[i], d_omega[i], du, dv = row_log(kind[i], tau[i], omega[i], log_w)
                loglik, d_u, d_v = loglik + value, d_u + du, d_v + dv
    return loglik, d_u, d_v


@jit
def add_gradient(
    X: Array, kind: Array, first: tuple, second: tuple, log_w: Array, room: Array, grad: Array
) -> float:
    """Log-likelihood of a tile; adds its gradient to grad."""
    m, q = kind.size, X.shape[1] + 1
    d_tau, d_omega = room[6, :m], room[7, :m]
    loglik, d_u, d_v = derivatives(kind, first, second, log_w, d_tau, d_omega)
    if log_w[2] > -math.inf:
        _add_two(X, d_tau, d_omega, grad[:q], grad[q : 2 * q])
    else:
        _add(X, d_tau, grad[:q])
    grad[2 * q] += d_u
    grad[2 * q + 1] += d_v
    return loglik


@jit_sums
def information(kind: Array, first: tuple, second: tuple, log_w: Array, f: Array) -> None:
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
                f_tau[i], f_omega[i], f_u[i], f_v[i], f_class[i] = information_log(
                    kind[i], tau[i], omega[i], log_w
                )


@jit
def fill(X: Array, w: Array, F: Array) -> None:
    """F = diag(w) (X, 1), one row of F per column."""
    m, p = X.shape
    for j in range(p):
        column = F[j]
        for i in range(m):
            column[i] = w[i] * X[i, j]
    for i in range(m):
        F[p, i] = w[i]


@jit_sums
def add_gram(F: Array, q: int, m: int, gram: Array) -> None:
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
