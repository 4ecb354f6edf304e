"""Links in compiled code: a number for those of the library, an address for any other.

Loops over the rows of a tile are compiled for every link, and one kernel calls them all. A link
from outside brings a C function of its own, so that nothing else is compiled for it.
"""

import math
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import carray, cfunc, types
from numba.extending import intrinsic

from bayes_lepu.factors import curves
from bayes_lepu.factors.arithmetic import SUMS, jit
from bayes_lepu.factors.factor import Link
from bayes_lepu.links import Array
from bayes_lepu.runtime.compilation import compiled

FAR = 300.0  # predictors are cut here in linear space: e^300 squared is still a number
NUMBERED = (curves.LOGISTIC, curves.PROBIT, curves.CLOGLOG, curves.LOGLOG, curves.CAUCHIT)
NUMBERS = types.CPointer(types.float64)
C_LINK = types.void(types.int64, types.int64, *[NUMBERS] * 4)


def code_of(link: Link) -> int:
    """What stands for a link in the arguments of compiled code, in this process."""
    return NUMBERED.index(link) if link in NUMBERED else _outside(link).address


@cache
def _outside(link: Link) -> Any:
    """The C function of a link from outside: fills its logarithms, or F, 1 - F and F'."""
    logs, given = _scalar(link.scalar_logs), link.scalar and _scalar(link.scalar)

    def from_logs(z):  # type: ignore[no-untyped-def]
        up, down, slope = logs(z)
        return math.exp(up), math.exp(down), math.exp(slope)

    linear = given or _scalar(from_logs)

    def fill(as_logs, n, z, up, down, slope):  # type: ignore[no-untyped-def]
        z, up, down, slope = carray(z, n), carray(up, n), carray(down, n), carray(slope, n)
        for i in range(n):
            x = z[i]
            found = logs(x) if as_logs else linear(min(max(x, -FAR), FAR))
            up[i], down[i], slope[i] = found

    return cfunc(C_LINK, error_model="numpy")(fill)


def _scalar(function: Any) -> Any:
    """A function of one number, compiled."""
    if hasattr(function, "py_func"):
        return function
    return compiled(fastmath=frozenset({"contract"}), keep=False)(function)


@intrinsic
def call_link(_context, address, as_logs, z, up, down, slope):  # type: ignore[no-untyped-def]
    """Call the C function of a link on arrays of equal length."""

    def generate(context, build, signature, args):  # type: ignore[no-untyped-def]
        arrays = zip(signature.args[2:], args[2:], strict=True)
        made = [context.make_array(kind)(context, build, value) for kind, value in arrays]
        whole, numbers = ir.IntType(64), ir.DoubleType().as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [whole, whole, *[numbers] * 4])
        function = build.inttoptr(args[0], kind.as_pointer())
        size = build.extract_value(made[0].shape, 0)
        build.call(function, [args[1], size, *[array.data for array in made]])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, z, up, down, slope), generate


def _loop(scalar: Any) -> Any:
    """The loop over a tile for one link."""

    def fill(z, up, down, slope):  # type: ignore[no-untyped-def]
        for i in range(z.size):
            up[i], down[i], slope[i] = scalar(min(max(z[i], -FAR), FAR))

    return compiled(fastmath=SUMS, keep=False)(fill)


_fill_logistic, _fill_probit, _fill_cloglog, _fill_loglog, _fill_cauchit = (
    _loop(link.scalar) for link in NUMBERED
)


@jit
def fill_curve(link: int, z: Array, up: Array, down: Array, slope: Array) -> None:
    """Fill F, 1 - F and F' at predictors cut off at ±FAR."""
    if link == 0:
        _fill_logistic(z, up, down, slope)
    elif link == 1:
        _fill_probit(z, up, down, slope)
    elif link == 2:
        _fill_cloglog(z, up, down, slope)
    elif link == 3:
        _fill_loglog(z, up, down, slope)
    elif link == 4:
        _fill_cauchit(z, up, down, slope)
    else:
        call_link(link, 0, z, up, down, slope)


@jit
def link_logs(link: int, z: float) -> tuple[float, float, float]:
    """Log F, log(1 - F) and log F' of one number."""
    if link == 0:
        return curves.logistic_scalar_logs(z)
    if link == 1:
        return curves.probit_scalar_logs(z)
    if link == 2:
        return curves.cloglog_scalar_logs(z)
    if link == 3:
        return curves.loglog_scalar_logs(z)
    if link == 4:
        return curves.cauchit_scalar_logs(z)
    room = np.empty((4, 1))
    room[0, 0] = z
    call_link(link, 1, room[0], room[1], room[2], room[3])
    return room[1, 0], room[2, 0], room[3, 0]


def factor_values(link: Link, z: Array, log_rates: Array) -> tuple[Array, Array, Array]:
    """ψ, 1 - ψ and ∂ψ/∂z of predictors (n,), as quickly as the kernel has them."""
    up, down, slope = np.empty((3, z.size))
    fill_curve(code_of(link), z, up, down, slope)
    gamma, lam, rho = np.exp(log_rates)
    return gamma + rho * up, lam + rho * down, rho * slope
