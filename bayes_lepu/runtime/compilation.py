"""How functions are compiled, and when compiled code on disk is out of date.

Numba keeps machine code on disk until the file of the function itself changes, although it holds
the code of every function called, from whatever file. Here each function is as old as the newest of
all compiled sources: a change in one of them compiles everything again, once.

Where nothing can be kept (neither the library's folder nor the home folder can be written), each
process compiles for itself. A folder for temporary files is no way out: the kept files are run as
code, and others may write there.
"""

import warnings
from collections.abc import Callable
from functools import cache, wraps
from typing import Any

from numba import config, njit

from bayes_lepu.errors import OWN_CODE, LepuWarning
from bayes_lepu.runtime.sources import source_digest
from bayes_lepu.runtime.telling import tell

SOURCES = (
    "data/scorers.py",
    "rows",
    "links.py",
    "model/compiled.py",
    "factors",
    "runtime/compilation.py",
)


def compiled(
    *, fastmath: frozenset[str] = frozenset(), keep: bool = True
) -> Callable[[Callable[..., Any]], Any]:
    """Decorator: compile without threads or the GIL, IEEE division, kept on disk.

    Parameters
    ----------
    fastmath : set of str
        What the compiler may assume of floating-point numbers, by LLVM's names.
    keep : bool
        Whether to keep the machine code on disk. False for a function that is only ever called
        from compiled code, which is kept itself, and which need not stand in a file.
    """
    options = {"nogil": True, "error_model": "numpy", "fastmath": set(fastmath)}

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
        # Numba has no public way to say it: its stamp is the digest of one file, and comes after
        # types that are read by name and may be gone. Its version comes first.
        store = dispatcher._cache
        index = store._cache_file
        index._version = f"{index._version} {source_digest(*SOURCES)}"
        store.load_overload = _announced(_never_fatal(store.load_overload))
        store.save_overload = _never_fatal(store.save_overload)
        return dispatcher

    return compile_function


def _never_fatal(step: Callable[..., Any]) -> Callable[..., Any]:
    """The same step, of which a full disk or a damaged file only means compiling again."""

    @wraps(step)
    def attempt(*args: Any, **kwargs: Any) -> Any:
        try:
            return step(*args, **kwargs)
        except Exception:
            return None

    return attempt


def _announced(load: Callable[..., Any]) -> Callable[..., Any]:
    """The same step; where it finds nothing, compiling follows, and that is said once."""

    @wraps(load)
    def attempt(*args: Any, **kwargs: Any) -> Any:
        found = load(*args, **kwargs)
        if found is None:
            _say_compiling()
        return found

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
