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

from rich.console import Console
from rich.table import Table
from rich.text import Text

from bayes_lepu.errors import LepuWarning


class _Notes(logging.Handler):
    """Hands every message to a function."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        super().__init__(logging.INFO)
        self.tell = tell

    def emit(self, record: logging.LogRecord) -> None:
        self.tell(record.getMessage())


class Terminal:
    """Prints for a person, as JSON, or not at all."""

    def __init__(self, *, quiet: bool = False, as_json: bool = False) -> None:
        self.quiet = quiet
        self.as_json = as_json
        self.talks = not (quiet or as_json)  # to a person
        self.warned: list[str] = []
        for stream in (sys.stdout, sys.stderr):  # Greek letters, wherever they are sent
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(encoding="utf-8")
        self._out = Console(file=sys.stdout, highlight=False, soft_wrap=True)
        self._err = Console(file=sys.stderr, highlight=False, soft_wrap=True)

    def say(self, text: str = "", *, style: str = "") -> None:
        """A line for a person. The text is taken as it is: names may hold brackets."""
        if self.talks:
            self._out.print(Text(text, style=style))

    def files(self, files: Mapping[str, Path]) -> None:
        """The files written, each with what it holds."""
        if self.talks:
            grid = Table.grid(padding=(0, 2))
            for what, path in files.items():
                grid.add_row(Text(f"wrote {path}", style="bold"), Text(what))
            self._out.print(grid)

    def result(self, value: Mapping[str, Any]) -> None:
        """The result as JSON, where that is wanted."""
        if self.as_json:
            text = json.dumps(
                plain({**value, "warnings": self.warned}), ensure_ascii=False, indent=2
            )
            sys.stdout.write(text + "\n")

    def error(self, text: str) -> None:
        """One line on stderr, or one for each entry of a list."""
        head, *entries = text.split("\n- ")
        lines = [" ".join(part.split()) for part in (head, *entries)]
        shown = "bayes-lepu: error: " + "\n- ".join(lines)
        self._err.print(Text(shown, style="red"))

    @contextmanager
    def stage(self, text: str) -> Iterator[None]:
        """Shows what is going on: with a clock on terminals, as one line where it is piped."""
        if self.quiet or not self._err.is_terminal:
            self._note(text)
            yield
            return
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        spinner = SpinnerColumn(
            "line" if self._err.options.ascii_only else "dots", finished_text=" "
        )
        columns = (spinner, TextColumn("{task.description}", markup=False), TimeElapsedColumn())
        with Progress(*columns, console=self._err) as progress:
            task = progress.add_task(text, total=1)
            yield
            progress.advance(task)

    @contextmanager
    def notes(self) -> Iterator[None]:
        """What the library tells of its stages (compiling, searching, sampling), as lines."""
        told = _Notes(self._note)
        logger = logging.getLogger("bayes_lepu")
        before = logger.level
        logger.addHandler(told)
        logger.setLevel(logging.INFO)
        try:
            yield
        finally:
            logger.removeHandler(told)
            logger.setLevel(before)

    def _note(self, text: str) -> None:
        if not self.quiet:
            self._err.print(Text(f"{text} ...", style="dim"))

    @contextmanager
    def warnings(self) -> Iterator[None]:
        """Our own warnings become one line on stderr; other libraries' are of no use here."""

        def show(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
            text = " ".join(str(message).split())
            if issubclass(category, LepuWarning) and text not in self.warned:
                self.warned.append(text)
                if not self.quiet:
                    self._err.print(Text(f"warning: {text}", style="yellow"))

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", LepuWarning)
            warnings.showwarning = show
            yield


def plain(value: Any) -> Any:
    """A value that JSON knows: no NumPy scalars, no NaN, no paths."""
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
