"""What the commands print: stages and messages on stderr, results on stdout."""

import json
import logging
import math
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bayes_lepu.errors import LepuWarning


class _Notes(logging.Handler):
    """Log handler that passes every message to a function, without the trailing dots."""

    def __init__(self, show: Callable[[str], None]) -> None:
        super().__init__(logging.INFO)
        self.show = show

    def emit(self, record: logging.LogRecord) -> None:
        self.show(record.getMessage().removesuffix(" ..."))


class Terminal:
    """Prints text, JSON or nothing, as the options of the command ask for."""

    def __init__(self, *, quiet: bool = False, as_json: bool = False) -> None:
        self.quiet = quiet
        self.as_json = as_json
        self.warned: list[str] = []
        for stream in (sys.stdout, sys.stderr):  # Greek letters need UTF-8
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(encoding="utf-8")

    def say(self, text: str = "") -> None:
        """Print a line of text."""
        if not (self.quiet or self.as_json):
            print(text, flush=True)

    def done(self, files: Mapping[str, Path] | None = None, **result: Any) -> None:
        """Print the files written, each with its content; or the result as JSON."""
        if self.as_json:
            whole = plain({**result, "files": files or {}, "warnings": self.warned})
            print(json.dumps(whole, ensure_ascii=False, indent=2))
        for what, path in (files or {}).items():
            self.say(f"wrote {path}  ({what})")

    def error(self, text: str) -> None:
        """Print an error as one line on stderr, or one line for each entry of a list."""
        head, *entries = text.split("\n- ")
        lines = [" ".join(part.split()) for part in (head, *entries)]
        print("bayes-lepu: error: " + "\n- ".join(lines), file=sys.stderr)

    def stage(self, text: str) -> None:
        """Print the current step as a line on stderr."""
        if not self.quiet:
            print(f"{text} ...", file=sys.stderr, flush=True)

    @contextmanager
    def messages(self) -> Iterator[None]:
        """Print the library's log lines and its own warnings as lines on stderr."""

        def show(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
            text = " ".join(str(message).split())
            if issubclass(category, LepuWarning) and text not in self.warned:
                self.warned.append(text)
                if not self.quiet:
                    print(f"warning: {text}", file=sys.stderr, flush=True)

        notes, logger = _Notes(self.stage), logging.getLogger("bayes_lepu")
        before = logger.level
        logger.addHandler(notes)
        logger.setLevel(logging.INFO)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # warnings of other libraries do not help the user
                warnings.simplefilter("always", LepuWarning)
                warnings.showwarning = show
                yield
        finally:
            logger.removeHandler(notes)
            logger.setLevel(before)


def plain(value: Any) -> Any:
    """The value without NumPy scalars, NaN and paths, as JSON needs it."""
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
