"""How functions are compiled, and when compiled code on disk is out of date.

Numba keeps machine code on disk until the file of the function itself changes, although it holds
the code of every function called, from whatever file. Here each function is as old as the newest of
all compiled sources: a change in one of them compiles everything again, once.
"""

from collections.abc import Callable
from typing import Any

from numba import config, njit

from bayes_lepu.sources import source_digest

SOURCES = (
    "arithmetic.py",
    "compilation.py",
    "kernel",
    "likelihood",
    "links.py",
    "models/compiled.py",
    "panel/compiled.py",
    "propensities",
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
    numba = njit(nogil=True, cache=keep, error_model="numpy", fastmath=set(fastmath))

    def compile_function(function: Callable[..., Any]) -> Any:
        dispatcher = numba(function)
        if keep and not config.DISABLE_JIT:
            # Numba has no public way to say it; its stamp is the digest of one file.
            dispatcher._cache._cache_file._source_stamp = source_digest(*SOURCES)
        return dispatcher

    return compile_function
