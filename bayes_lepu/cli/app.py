"""Parser, exit codes and errors of the command line.

Exit codes: 0 done, 2 something in the command or the data is wrong (one line says what), 1 a fault
of the program itself, 130 interrupted.
"""

import argparse
import os
import sys
import traceback
from collections.abc import Sequence
from typing import NoReturn

from bayes_lepu.cli.commands import COMMANDS
from bayes_lepu.cli.terminal import Terminal
from bayes_lepu.errors import LepuError
from bayes_lepu.runtime.interruption import interruptible, is_interrupt

EXAMPLES = """\
examples:
  bayes-lepu demo
  bayes-lepu fit photos.csv --label marked
  bayes-lepu predict lepu-photos/fit.nc new.csv --out new-predictions.csv
  bayes-lepu fit --help
"""


class _Parser(argparse.ArgumentParser):
    """A parser whose errors take one line, like all other errors here."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message} (see {self.prog} --help)\n")


def build_parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    from importlib.metadata import version

    parser = _Parser(
        prog="bayes-lepu",
        description="Learn classes, and the annotator, from positive and unlabelled rows.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=version("bayes-lepu"))
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in COMMANDS:
        added = commands.add_parser(
            command.name,
            help=command.help,
            epilog=command.examples,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        command.options(added)
        added.set_defaults(run=command.run)
        common = added.add_argument_group("output")
        common.add_argument("--quiet", action="store_true", help="print nothing but errors")
        common.add_argument("--json", action="store_true", help="print the result as JSON")
        common.add_argument("--debug", action="store_true", help="show a fault's traceback")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    args = build_parser().parse_args(argv)
    terminal = Terminal(quiet=args.quiet, as_json=args.json)
    try:
        with interruptible(), terminal.warnings(), terminal.notes():
            args.run(args, terminal)
    except BrokenPipeError:  # the reader of our output has gone, for example `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return _interrupted(terminal)
    except (LepuError, OSError) as error:
        if args.debug:
            traceback.print_exc()
        terminal.error(str(error))
        return 2
    except MemoryError as error:
        terminal.error(
            f"not enough memory ({error or 'nothing more could be allocated'}). Take fewer rows, "
            "columns or draws, or --method map."
        )
        return 2
    except Exception as error:  # a fault of ours must not bury the user in a traceback
        if is_interrupt(error):
            return _interrupted(terminal)
        if args.debug:
            traceback.print_exc()
        terminal.error(
            f"unexpected {type(error).__name__}: {error} (run again with --debug and report it)"
        )
        return 1
    return 0


def _interrupted(terminal: Terminal) -> int:
    terminal.error("interrupted")
    return 130
