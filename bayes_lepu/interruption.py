"""Ctrl-C as the one exception it should be, wherever it strikes."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps


@contextmanager
def interruptible() -> Iterator[None]:
    """Turn an interrupt that compiled code has wrapped back into `KeyboardInterrupt`.

    Where the signal arrives while numba hands arguments over, its C code goes on with the
    exception set, and Python reports "SystemError: … returned a result with an exception set".
    """
    try:
        yield
    except SystemError as error:
        if is_interrupt(error):
            raise KeyboardInterrupt from None
        raise


def stops_at_once[**P, T](function: Callable[P, T]) -> Callable[P, T]:
    """Decorator: run the function under `interruptible`."""

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        with interruptible():
            return function(*args, **kwargs)

    return run


def is_interrupt(error: BaseException) -> bool:
    """Whether an interrupt is the error, or what it came from."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, KeyboardInterrupt):
            return True
        seen = seen.__cause__ or seen.__context__
    return False
