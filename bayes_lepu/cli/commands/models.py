"""``bayes-lepu models``: the models and their mechanisms."""

import argparse
from typing import Any

from bayes_lepu.cli.terminal import Terminal
from bayes_lepu.models import get_model, list_models


def add(commands: Any) -> argparse.ArgumentParser:
    """Add the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "models", help="list the models of the labelling"
    )
    parser.set_defaults(run=run)
    return parser


def run(args: argparse.Namespace, terminal: Terminal) -> None:
    """Print the registry."""
    specs = [get_model(name) for name in list_models()]
    terminal.table(["model", "propensity"], [[s.name, s.mechanism] for s in specs])
    terminal.result({s.name: {"mechanism": s.mechanism, "parameters": s.parameters} for s in specs})
