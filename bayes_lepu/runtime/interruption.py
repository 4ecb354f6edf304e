"""Ctrl-C raises exactly one `KeyboardInterrupt`, whatever code is running."""

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from types import FrameType

_noted = threading.Event()
HANDING_OVER = "_numba_unpickle"  # numba's function in Python on the way out of compiled code


@contextmanager
def interruptible() -> Iterator[None]:
    """Turn an interrupt into one `KeyboardInterrupt`, wherever it arrives.

    When numba looks up the class of a return value in Python, an exception would crash its C code
    or become a SystemError, so the interrupt is delayed. In a callback of the garbage collector it
    would be lost, so it is recorded and raised when the outermost call ends.
    """
    with _noting():
        try:
            yield
        except SystemError as error:
            if is_interrupt(error):
                raise KeyboardInterrupt from None
            raise
        if was_interrupted():
            raise KeyboardInterrupt


def was_interrupted() -> bool:
    """Whether an interrupt has arrived since the outermost decorated call began."""
    return _noted.is_set()


@contextmanager
def _noting() -> Iterator[None]:
    before = signal.getsignal(signal.SIGINT)
    outermost = before is signal.default_int_handler
    if not outermost or threading.current_thread() is not threading.main_thread():
        yield  # another handler is installed, or interrupts are recorded already
        return

    def note(number: int, frame: FrameType | None) -> None:
        _noted.set()
        if _is_handing_over(frame):
            _raise_afterwards()
        else:
            signal.default_int_handler(number, frame)

    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        _noted.clear()


def _is_handing_over(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_name == HANDING_OVER:
            return True
        frame = frame.f_back
    return False


def _raise_afterwards() -> None:
    """Raise at the next call or return outside numba's function.

    A repeated signal would probably arrive in the same function again.
    """
    before = sys.getprofile()

    def watch(frame: FrameType, event: str, arg: object) -> None:
        if not _is_handing_over(frame):
            sys.setprofile(before)
            raise KeyboardInterrupt

    sys.setprofile(watch)


def stops_at_once[**P, T](function: Callable[P, T]) -> Callable[P, T]:
    """Decorator: run the function under `interruptible`."""

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        with interruptible():
            return function(*args, **kwargs)

    return run


def is_interrupt(error: BaseException) -> bool:
    """Whether the error is an interrupt or was caused by one."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, KeyboardInterrupt):
            return True
        seen = seen.__cause__ or seen.__context__
    return False
