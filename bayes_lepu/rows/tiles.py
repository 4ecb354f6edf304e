"""Linear algebra on a tile of rows, by loops that the compiler vectorises.

Tiles are small enough to stay in the cache, so that X is read from memory only once for predictors
and gradient.
"""

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic

from bayes_lepu.factors.arithmetic import jit, jit_sums
from bayes_lepu.links import Array

TILE_ROWS = 512  # intermediate arrays of this length stay in the first-level cache
# Linear space serves while predictors are within FAR and the likelihood is at least TINY.
TINY = 1e-280  # its inverse is still a number, and that times a slope


@jit
def tile_rows(p: int) -> int:
    """Rows per tile: at most TILE_ROWS, and 96 kB of X, which stay in the second-level cache."""
    return max(8, min(TILE_ROWS, 98_304 // (8 * p)))


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
def predict(X: Array, a: Array, b: float, z: Array) -> None:
    """Fill z = X a + b."""
    for i in range(X.shape[0]):
        x, total = X[i], 0.0
        for j in range(x.size):
            total += x[j] * a[j]
        z[i] = total + b


@jit_sums
def predict_two(
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


@jit_sums
def add_columns(X: Array, d: Array, grad: Array) -> None:
    """Add X' d to grad[:p] and the sum of d to grad[p]."""
    m, p = X.shape
    for i in range(m):
        x, di = X[i], d[i]
        for j in range(p):
            grad[j] += x[j] * di
        grad[p] += di


@jit_sums
def add_columns_two(X: Array, d: Array, e: Array, first: Array, second: Array) -> None:
    """`add_columns` for (d, first) and (e, second), four rows at a time to spare stores."""
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
    add_columns(X[done:], d[done:], first)
    add_columns(X[done:], e[done:], second)
