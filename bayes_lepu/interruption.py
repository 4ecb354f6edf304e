"""Ctrl-C as the one exception it should be, wherever it strikes."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from types import FrameType

_noted = threading.Event()


@contextmanager
def interruptible() -> Iterator[None]:
    """Turn an interrupt that compiled code has wrapped back into `KeyboardInterrupt`.

    Where the signal arrives while numba hands arguments over, its C code goes on with the
    exception set, and Python reports "SystemError: … returned a result with an exception set".
    Where it arrives in a callback of the garbage collector it is lost, so it is noted as well.
    """
    with _noting():
        try:
            yield
        except SystemError as error:
            if is_interrupt(error):
                raise KeyboardInterrupt from None
            raise


def was_interrupted() -> bool:
    """Whether an interrupt has arrived since the outermost call of ours began."""
    return _noted.is_set()


@contextmanager
def _noting() -> Iterator[None]:
    before = signal.getsignal(signal.SIGINT)
    outermost = before is signal.default_int_handler
    if not outermost or threading.current_thread() is not threading.main_thread():
        yield  # somebody else's way with interrupts, or noted already
        return

    def note(number: int, frame: FrameType | None) -> None:
        _noted.set()
        signal.default_int_handler(number, frame)

    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        _noted.clear()


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
