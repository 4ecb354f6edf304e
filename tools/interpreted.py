"""The compiled sources run by Python itself: a plug-in of pytest for `tools.mutants`.

Compiling the kernel anew takes a minute, interpreting it on a small table takes none. Numba is to
be switched off too (``NUMBA_DISABLE_JIT=1``); what it leaves undone is done here: a function with
an `overload` runs the implementation that the types of its arguments select, and an `intrinsic`
runs its meaning in Python. Logarithms and exponentials answer as in C, where Python's raise errors.
"""

import math
import struct
from collections.abc import Callable
from typing import Any

import numba
import numba.extending
import numpy as np

CALL = "lambda *args: _interpreted(*args)"


def _as_float(bits: int) -> float:
    return struct.unpack("<d", struct.pack("<Q", bits & (2**64 - 1)))[0]


def _as_bits(number: float) -> int:
    return struct.unpack("<q", struct.pack("<d", number))[0]


INTRINSICS = {"as_float": _as_float, "as_bits": _as_bits, "prefetch": lambda x, k: None}


def intrinsic(function: Callable) -> Callable:
    """What the intrinsic computes, by its name."""
    return INTRINSICS[function.__name__]


def overload(stub: Any) -> Callable:
    """Have the function itself run what would have been compiled in its place."""

    def decorate(choose: Callable) -> Callable:
        def run(*args: Any) -> Any:
            chosen = choose(*(numba.typeof(argument) for argument in args))
            if chosen is None:
                raise TypeError(f"{stub.__name__} has no implementation for {args!r}")
            return chosen(*args)

        name = f"_interpreted_{stub.__name__}"
        stub.__globals__[name] = run
        stub.__code__ = eval(CALL.replace("_interpreted", name)).__code__
        return choose

    return decorate


def as_in_c(function: Callable, numpy: Callable) -> Callable:
    """A function of Python, with the value of NumPy where it would raise an error."""

    def value(*args: Any) -> float:
        try:
            return function(*args)
        except (ValueError, OverflowError):
            with np.errstate(all="ignore"):
                return float(numpy(*args))

    return value


for known in ("exp", "expm1", "log", "log1p"):
    setattr(math, known, as_in_c(getattr(math, known), getattr(np, known)))
numba.extending.intrinsic = intrinsic
numba.extending.overload = overload
