"""How a link enters compiled code: a type of its own, so that every link is inlined in its loops.

Numba compiles a function once for every combination of types. A link is a value whose type names
it, so a loop over rows is compiled for that link and vectorised with it. The type is written to
disk with the machine code as two strings, its name and a digest of its source, and never as a class
of the user's module: code on disk is found again by any process and is never older than the link.
"""

import hashlib
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba import types
from numba.core.datamodel.models import OpaqueModel
from numba.extending import NativeValue, overload, register_model, unbox

from bayes_lepu.compilation import compiled

_FUNCTIONS: dict[str, tuple[Callable | None, ...]] = {}


class LinkType(types.Type):
    """Numba's type of one link."""

    @classmethod
    def of(cls, name: str, *functions: Callable | None) -> "LinkType":
        """The type of the link with these functions (logs, value and complement, slope)."""
        made = cls(name=f"Link({name}, {_digest(functions)})")
        _FUNCTIONS.setdefault(made.name, functions)
        return made


register_model(LinkType)(OpaqueModel)


@unbox(LinkType)
def _unbox(typ, obj, c):  # type: ignore[no-untyped-def]
    return NativeValue(c.context.get_dummy_value())


def _digest(functions: tuple[Callable | None, ...]) -> str:
    """Digest of the files in which the functions stand, and of their own code."""
    digest = hashlib.sha256()
    for function in functions:
        plain = getattr(function, "py_func", function)
        if plain is not None:
            path = Path(plain.__code__.co_filename)
            digest.update(path.read_bytes() if path.is_file() else b"")
            digest.update(plain.__code__.co_code)
            digest.update(repr(plain.__code__.co_consts).encode())
    return digest.hexdigest()[:16]


def _compiled(function: Callable | None) -> Any:
    if function is None or hasattr(function, "py_func"):
        return function
    return compiled(fastmath=frozenset({"contract"}), keep=False)(function)


def link_logs(link: Any, z: float) -> tuple[float, float, float]:
    """Log F, log(1 - F) and log F' of one number; for compiled code only."""
    raise NotImplementedError("link_logs is called from compiled code.")


def link_value(link: Any, z: float) -> tuple[float, float]:
    """F and 1 - F of one number, |z| <= 300; for compiled code only."""
    raise NotImplementedError("link_value is called from compiled code.")


def link_slope(link: Any, z: float, up: float, down: float) -> float:
    """F' of one number given F and 1 - F; for compiled code only."""
    raise NotImplementedError("link_slope is called from compiled code.")


@overload(link_logs)
def _link_logs(link, z):  # type: ignore[no-untyped-def]
    if not isinstance(link, LinkType):
        return None
    logs = _compiled(_FUNCTIONS[link.name][0])
    return lambda link, z: logs(z)


@overload(link_value)
def _link_value(link, z):  # type: ignore[no-untyped-def]
    if not isinstance(link, LinkType):
        return None
    logs, value = (_compiled(f) for f in _FUNCTIONS[link.name][:2])
    if value is not None:
        return lambda link, z: value(z)

    def from_logs(link, z):  # type: ignore[no-untyped-def]
        up, down, _ = logs(z)
        return math.exp(up), math.exp(down)

    return from_logs


@overload(link_slope)
def _link_slope(link, z, up, down):  # type: ignore[no-untyped-def]
    if not isinstance(link, LinkType):
        return None
    logs, _, slope = (_compiled(f) for f in _FUNCTIONS[link.name])
    if slope is not None:
        return lambda link, z, up, down: slope(z, up, down)
    return lambda link, z, up, down: math.exp(logs(z)[2])
