"""Links in compiled code: the address of a C function that computes F for the rows of a tile.

A link is then compiled separately when a fit needs it, and the kernel only once for all links.
"""

import math
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import carray, types
from numba.extending import intrinsic

from bayes_lepu.factors import curves
from bayes_lepu.factors.arithmetic import SUMS, jit
from bayes_lepu.factors.factor import Link
from bayes_lepu.links import Array
from bayes_lepu.runtime.compilation import c_function, compiled

FAR = 300.0  # predictors are cut here in linear space: e^300 squared is still a number
LIBRARY = (curves.LOGISTIC, curves.PROBIT, curves.CLOGLOG, curves.LOGLOG, curves.CAUCHIT)
NUMBERS = types.CPointer(types.float64)
C_LINK = types.void(types.boolean, types.int64, *[NUMBERS] * 4)


def code_of(link: Link) -> int:
    """The address of a link's C function, for compiled code in this process."""
    return int(_loop(link).address)


@cache
def _loop(link: Link) -> Any:
    """C function: fills log F, log(1 - F) and log F', or F, 1 - F and F' at z cut off at ±FAR."""
    logs, linear = _scalar(link.scalar_logs), link.scalar and _scalar(link.scalar)

    def from_logs(z):  # type: ignore[no-untyped-def]
        up, down, slope = logs(z)
        return math.exp(up), math.exp(down), math.exp(slope)

    linear = linear or _scalar(from_logs)

    def fill(as_logs, z, up, down, slope):  # type: ignore[no-untyped-def]
        if as_logs:
            for i in range(z.size):
                up[i], down[i], slope[i] = logs(z[i])
        else:
            for i in range(z.size):
                up[i], down[i], slope[i] = linear(min(max(z[i], -FAR), FAR))

    loop = compiled(fastmath=SUMS, keep=False)(fill)

    def fill_in_c(as_logs, n, z, up, down, slope):  # type: ignore[no-untyped-def]
        LOOP(as_logs, carray(z, n), carray(up, n), carray(down, n), carray(slope, n))  # type: ignore[name-defined] # noqa: F821

    return c_function(C_LINK, fill_in_c, link.name if link in LIBRARY else "", LOOP=loop)


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
        kind = ir.FunctionType(ir.VoidType(), [ir.IntType(8), whole, *[numbers] * 4])
        function = build.inttoptr(args[0], kind.as_pointer())
        flag, size = build.zext(args[1], ir.IntType(8)), build.extract_value(made[0].shape, 0)
        build.call(function, [flag, size, *[array.data for array in made]])
        return context.get_dummy_value()

    return types.void(types.int64, types.boolean, z, up, down, slope), generate


@jit
def fill_curve(link: int, z: Array, up: Array, down: Array, slope: Array) -> None:
    """Fill F, 1 - F and F' at predictors cut off at ±FAR."""
    call_link(link, False, z, up, down, slope)


@jit
def link_logs(link: int, z: float) -> tuple[float, float, float]:
    """Log F, log(1 - F) and log F' of one number."""
    room = np.full((4, 1), z)
    call_link(link, True, room[0], room[1], room[2], room[3])
    return room[1, 0], room[2, 0], room[3, 0]


def factor_values(link: Link, z: Array, log_rates: Array) -> tuple[Array, Array, Array]:
    """ψ, 1 - ψ and ∂ψ/∂z of predictors (n,), by the kernel's code."""
    up, down, slope = np.empty((3, z.size))
    fill_curve(code_of(link), z, up, down, slope)
    gamma, lam, rho = np.exp(log_rates)
    return gamma + rho * up, lam + rho * down, rho * slope
