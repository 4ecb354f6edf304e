"""Ctrl-C as the one exception it should be, wherever it strikes."""

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

    Where numba looks up, in Python, the class of what it returns, an exception would crash its C
    code or become a SystemError: there an interrupt waits. In a callback of the garbage collector
    it would be lost: it is noted, and raised when the call of ours ends.
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
    """Raise as soon as anything is called or returns outside numba's function.

    A signal sent again would arrive there again, where most of the time is compiled code.
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
    """Whether an interrupt is the error, or what it came from."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, KeyboardInterrupt):
            return True
        seen = seen.__cause__ or seen.__context__
    return False
