"""``bayes-lepu reproduce``: the paper's experiments, which live beside the library in a clone."""

import argparse
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from bayes_lepu.cli.terminal import Terminal
from bayes_lepu.errors import LepuError

NEEDS_CLONE = (
    "The paper's experiments are not part of the installed library. Clone its repository and run "
    "this command, or `make reproduce`, in that folder."
)


def add(commands: Any) -> argparse.ArgumentParser:
    """Add the command, with the options that the experiments declare where they are."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "reproduce", help="run the paper's experiments, with its numbers beside (from a clone)"
    )
    experiments = find_experiments()
    if experiments is None:
        parser.description = NEEDS_CLONE
        parser.add_argument("anything", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
        parser.set_defaults(run=refuse)
    else:
        experiments.add_arguments(parser)
    return parser


def find_experiments() -> ModuleType | None:
    """The command of the clone that holds this library, or of the clone one stands in."""
    for folder in (Path(__file__).resolve().parents[3], Path.cwd()):
        if (folder / "reproduction" / "command.py").is_file():
            if sys.path[:1] != [str(folder)]:  # first: no other package of that name may be taken
                sys.path.insert(0, str(folder))
            return import_module("reproduction.command")
    return None


def refuse(args: argparse.Namespace, terminal: Terminal) -> None:
    """Say where the experiments are."""
    raise LepuError(NEEDS_CLONE)
