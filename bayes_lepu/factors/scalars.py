"""How a link enters compiled code: as a tag, whose type leads to the link's scalar functions.

Numba compiles a function once for every combination of types, so a link that has a type of its own
is inlined in the loops over rows and vectorised with them. A tag is an empty tuple of a class named
after the link and a digest of its source. Machine code on disk refers to that class by its name in
this module, which makes any class that is asked for: code is found again by every process,
wherever the link was defined, and is never older than the link.

The library's own links have numbers too: a `Numbered` tag carries one as a value, so that code
which is compiled for it takes any of them and is compiled once.
"""

import hashlib
import math
import re
import sys
from collections import namedtuple
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from numba import types
from numba.extending import overload

from bayes_lepu.runtime.compilation import compiled


def __getattr__(name: str) -> Any:
    if not name.startswith("Link_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    made = namedtuple(name, (), module=__name__)  # type: ignore[misc]
    globals()[name] = made
    return made


_FUNCTIONS: dict[type, tuple[Callable | None, ...]] = {}
_NUMBERS: dict[type, int] = {}


class Numbered(NamedTuple):
    """A tag that says by its value which of the library's links is meant."""

    number: int


def give_numbers(tags: Iterable[tuple]) -> None:
    """Number the library's links, once."""
    _NUMBERS.update((type(tag), number) for number, tag in enumerate(tags))


def by_number(tag: tuple) -> tuple:
    """The tag with the number of a link; the link's own tag where it has none."""
    number = _NUMBERS.get(type(tag))
    return tag if number is None else Numbered(number)


def kind_of(tag: tuple) -> type:
    """The class of the link's own tag, also of one with its number."""
    return list(_NUMBERS)[tag.number] if isinstance(tag, Numbered) else type(tag)


def make_tag(name: str, *functions: Callable | None) -> tuple:
    """The tag of a link with these functions (logs, value and complement, slope)."""
    word = re.sub(r"\W", "_", name)
    kind = getattr(sys.modules[__name__], f"Link_{word}_{_digest(functions)}")
    _FUNCTIONS.setdefault(kind, functions)
    return kind()


def _functions(link: Any) -> tuple[Callable | None, ...] | None:
    """The scalar functions behind the numba type of a tag; None for any other type."""
    kind = link.instance_class if isinstance(link, types.BaseNamedTuple) else None
    return _FUNCTIONS.get(kind) if kind is not None else None


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


def same_link(first: Any, second: Any) -> bool:
    """Whether two links are the same function; for compiled code only."""
    raise NotImplementedError("same_link is called from compiled code.")


@overload(same_link)
def _same_link(first, second):  # type: ignore[no-untyped-def]
    same = first == second
    return lambda first, second: same


def _pieces(functions: tuple[Callable | None, ...]) -> tuple[Any, Any, Any]:
    """Compiled: logs, value with complement, and slope of a link."""
    logs, value, slope = (_compiled(f) for f in functions)
    if value is not None:
        return logs, value, slope

    def from_logs(z):  # type: ignore[no-untyped-def]
        up, down, _ = logs(z)
        return math.exp(up), math.exp(down)

    return logs, _compiled(from_logs), _compiled(lambda z, up, down: math.exp(logs(z)[2]))


def _called(link: Any, which: int) -> Any:
    """One of a link's functions with the tag before its arguments; None for other types."""
    if isinstance(link, types.BaseNamedTuple) and link.instance_class is Numbered:
        first, *others = (_pieces(_FUNCTIONS[kind])[which] for kind in _NUMBERS)
        called = _compiled(lambda link, *args: first(*args))
        for number, function in enumerate(others, start=1):
            called = _either(number, function, called)
        return called
    if (functions := _functions(link)) is None:
        return None
    function = _pieces(functions)[which]
    return _compiled(lambda link, *args: function(*args))


def _either(number: int, function: Any, otherwise: Any) -> Any:
    def either(link, *args):  # type: ignore[no-untyped-def]
        if link.number == number:
            return function(*args)
        return otherwise(link, *args)

    return _compiled(either)


@overload(link_logs)
def _link_logs(link, z):  # type: ignore[no-untyped-def]
    called = _called(link, 0)
    return called and (lambda link, z: called(link, z))


@overload(link_value)
def _link_value(link, z):  # type: ignore[no-untyped-def]
    called = _called(link, 1)
    return called and (lambda link, z: called(link, z))


@overload(link_slope)
def _link_slope(link, z, up, down):  # type: ignore[no-untyped-def]
    called = _called(link, 2)
    return called and (lambda link, z, up, down: called(link, z, up, down))
