"""What the commands print: stages and messages on stderr, results on stdout."""

import json
import math
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from bayes_lepu.errors import LepuWarning


class Terminal:
    """Prints for a person, as JSON, or not at all."""

    def __init__(self, *, quiet: bool = False, as_json: bool = False) -> None:
        self.quiet = quiet
        self.as_json = as_json
        self.warned: list[str] = []
        self._out = Console(file=sys.stdout, highlight=False, soft_wrap=True)
        self._err = Console(file=sys.stderr, highlight=False, soft_wrap=True)

    @property
    def talks(self) -> bool:
        """Whether text for a person is wanted."""
        return not (self.quiet or self.as_json)

    def say(self, text: str = "", *, style: str = "") -> None:
        """A line for a person. The text is taken as it is: names may hold brackets."""
        if self.talks:
            self._out.print(Text(text, style=style))

    def figures(self, rows: Mapping[str, str]) -> None:
        """Names and values in two columns."""
        if self.talks:
            grid = Table.grid(padding=(0, 2))
            for name, value in rows.items():
                grid.add_row(Text(name, style="bold"), Text(value))
            self._out.print(grid)

    def table(self, columns: list[str], rows: list[list[str]]) -> None:
        """A table."""
        if self.talks:
            shown = Table(box=None, header_style="bold", pad_edge=False)
            for column in columns:
                shown.add_column(Text(column))
            for row in rows:
                shown.add_row(*(Text(cell) for cell in row))
            self._out.print(shown)

    def files(self, files: Mapping[str, Path]) -> None:
        """The files written, each with what it holds."""
        self.figures({f"wrote {path}": what for what, path in files.items()})

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
        self._err.print(Text("bayes-lepu: error: " + "\n- ".join(lines), style="red"))

    @contextmanager
    def stage(self, text: str) -> Iterator[None]:
        """Shows that something is going on, with a clock, on terminals only."""
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        columns = (SpinnerColumn(finished_text="✓"), TextColumn("{task.description}"))
        with Progress(
            *columns,
            TimeElapsedColumn(),
            console=self._err,
            disable=self.quiet or not self._err.is_terminal,
        ) as progress:
            task = progress.add_task(text, total=1)
            yield
            progress.advance(task)

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
