"""Names of links as classes, which compiled code takes for types.

Numba compiles a function once for every combination of types, so a link that has a type of its own
is inlined in the loops over rows and vectorised with them. A tag is an empty tuple of a class named
after the link and a digest of its source. Machine code on disk refers to that class by its name in
this module, which makes any class that is asked for: code is found again by every process,
wherever the link was defined, and is never older than the link.
"""

from collections import namedtuple
from typing import Any


def __getattr__(name: str) -> Any:
    if not name.startswith("Link_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    made = namedtuple(name, (), module=__name__)  # type: ignore[misc]
    globals()[name] = made
    return made
