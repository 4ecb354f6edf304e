"""An exponential and a logarithm that LLVM can vectorise, and the options for compiling loops."""

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic

from bayes_lepu.runtime.compilation import compiled

jit = compiled(fastmath=frozenset({"contract"}))
jit_part = compiled(fastmath=frozenset({"contract"}), inline=True)
# Sums may be reordered (so that they vectorise); infinities and NaN keep their meaning.
SUMS = frozenset({"reassoc", "contract", "nsz", "arcp"})
jit_sums = compiled(fastmath=SUMS)


@intrinsic
def as_float(_context, bits):  # type: ignore[no-untyped-def]
    """The float64 with these 64 bits."""
    return types.float64(types.int64), lambda _c, build, _s, args: build.bitcast(
        args[0], ir.DoubleType()
    )


@intrinsic
def as_bits(_context, number):  # type: ignore[no-untyped-def]
    """The 64 bits of this float64."""
    return types.int64(types.float64), lambda _c, build, _s, args: build.bitcast(
        args[0], ir.IntType(64)
    )


_ROUND = 6755399441055744.0  # 1.5 * 2**52: adding it leaves the nearest integer in the low bits
_LN2_HIGH = 6.93147180369123816490e-01  # 33 bits, so that n * _LN2_HIGH is exact
_LN2_LOW = 1.90821492927058770002e-10


@jit
def exp(x: float) -> float:
    """2**n exp(r) = exp(x), |r| <= log(2) / 2, for |x| <= 700; relative error below 3e-16.

    exp(r) = 1 + r + r**2 Q(r), with Q interpolating at Chebyshev nodes.
    """
    shifted = x * 1.4426950408889634 + _ROUND  # of 1 / log(2)
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
    return as_float(as_bits(q * (r * r) + r + 1.0) + (as_bits(shifted) << 52))


@jit
def log(x: float) -> float:
    """log(x) = e log(2) + log(m), m in [sqrt(1/2), sqrt(2)), for normal x > 0; relative error
    below 4e-16.

    log(m) = 2 atanh(f), f = (m - 1) / (m + 1), by its power series; the next term would be below
    3e-17 of it.
    """
    bits = as_bits(x)
    e = (bits - 0x3FE6A09E667F3BCD) >> 52  # the bits of sqrt(1/2)
    m = as_float(bits - (e << 52))
    exponent = as_float(e + 0x4338000000000000) - _ROUND  # the bits of _ROUND
    f = (m - 1.0) / (m + 1.0)
    s = f * f
    q = s * (1.0 / 19.0) + 1.0 / 17.0
    q = q * s + 1.0 / 15.0
    q = q * s + 1.0 / 13.0
    q = q * s + 1.0 / 11.0
    q = q * s + 1.0 / 9.0
    q = q * s + 1.0 / 7.0
    q = q * s + 1.0 / 5.0
    q = q * s + 1.0 / 3.0
    return exponent * _LN2_HIGH + (2.0 * f + (2.0 * f * s * q + exponent * _LN2_LOW))
