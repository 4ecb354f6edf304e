"""Compilation of functions, and a disk cache that notices every change of the sources.

Numba caches machine code on disk until the file of the function itself changes, although the code
includes every function called, from any file. Here a change in one of the compiled sources
recompiles everything once. If the cache cannot be written, each process compiles for itself. A
folder for temporary files is not used, because other users could write code there.
"""

import hashlib
import warnings
from collections.abc import Callable, Iterator
from functools import cache, wraps
from importlib.resources import files
from importlib.resources.abc import Traversable
from types import FunctionType
from typing import Any

from numba import cfunc, config, njit

from bayes_lepu.errors import OWN_CODE, LepuWarning, tell

SOURCES = (
    "data/learned.py",
    "rows",
    "links.py",
    "model/compiled.py",
    "factors",
    "runtime/compilation.py",
)


def compiled(
    *, fastmath: frozenset[str] = frozenset(), keep: bool = True, inline: bool = False
) -> Callable[[Callable[..., Any]], Any]:
    """Decorator: compile without threads, without the GIL, with IEEE division, cached on disk.

    ``fastmath`` lists LLVM's assumptions about floating-point numbers. A function that is only
    called from cached compiled code need not be cached itself. ``inline`` inserts it into its
    callers before they are compiled, because numba otherwise compiles a called function again for
    every caller, at every level of calls.
    """
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": set(fastmath)}
    options["inline"] = "always" if inline else "never"

    def compile_function(function: Callable[..., Any]) -> Any:
        if not keep or config.DISABLE_JIT:
            return njit(**options)(function)
        try:
            dispatcher = njit(cache=True, **options)(function)
        except RuntimeError as error:
            if "no locator available" not in str(error):
                raise
            _warn_nothing_kept()
            return njit(**options)(function)
        try:
            return _kept(dispatcher)
        except AttributeError:  # another numba: rather compiled by every process than out of date
            return njit(**options)(function)

    return compile_function


def c_function(signature: Any, function: Callable[..., Any], key: str, **names: Any) -> Any:
    """A C function, cached on disk under a key; an empty key means no cache.

    ``names`` are further globals of the function. The cache distinguishes functions by name.
    """
    made = FunctionType(function.__code__, {**function.__globals__, **names})
    stamp = hashlib.sha256(f"{source_digest(*SOURCES)} {key}".encode()).hexdigest()
    made.__qualname__ = f"{function.__name__}_{stamp[:16]}"
    if key:
        try:
            return cfunc(signature, cache=True)(made)
        except Exception:  # no folder, a full disk or a damaged file
            pass
    return cfunc(signature)(made)


def _kept(dispatcher: Any) -> Any:
    """The function with a disk cache that is valid for the digest of all sources.

    Numba's own cache is valid for the digest of one file and for numba's version.
    """
    store = dispatcher._cache
    index = store._cache_file
    index._version = f"{index._version} {source_digest(*SOURCES)}"
    load, save = _never_fatal(store.load_overload), _never_fatal(store.save_overload)

    def announced(*args: Any, **kwargs: Any) -> Any:
        found = load(*args, **kwargs)
        if found is None:
            _say_compiling()
        return found

    store.load_overload, store.save_overload = announced, save
    return dispatcher


def _never_fatal(step: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator for steps of the cache: a full disk or a damaged file only causes recompilation."""

    @wraps(step)
    def attempt(*args: Any, **kwargs: Any) -> Any:
        try:
            return step(*args, **kwargs)
        except Exception:
            return None

    return attempt


@cache
def _say_compiling() -> None:
    tell("Compiling the numerical code, once after installation (up to a minute)")


@cache
def _warn_nothing_kept() -> None:
    warnings.warn(
        "Compiled code cannot be kept: neither the folder of bayes_lepu nor the home folder can be "
        "written. Every new process compiles for about half a minute; set the environment variable "
        "NUMBA_CACHE_DIR to a folder of yours to do it once.",
        LepuWarning,
        skip_file_prefixes=OWN_CODE,
    )


@cache
def source_digest(*parts: str, package: str = "bayes_lepu") -> str:
    """SHA-256 of files and folders of a package ("links.py", "rows"), as hexadecimal digits."""
    digest = hashlib.sha256()
    for part in parts:
        for path, file in _python_files(part, files(package).joinpath(part)):
            digest.update(f"{path}\0".encode())
            digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def _python_files(path: str, place: Traversable) -> Iterator[tuple[str, Traversable]]:
    """Files below a place with their paths, in the same order everywhere."""
    if place.is_dir():
        for inside in sorted(place.iterdir(), key=lambda entry: entry.name):
            if inside.is_dir() or inside.name.endswith(".py"):
                yield from _python_files(f"{path}/{inside.name}", inside)
    else:
        yield path, place
