"""``bayes-lepu compare``: which model of the labelling predicts the labels best."""

import argparse
from pathlib import Path
from typing import Any

from bayes_lepu.cli.terminal import Terminal
from bayes_lepu.comparison import compare
from bayes_lepu.errors import ModelError
from bayes_lepu.loading import load

EXAMPLES = """\
examples:
  bayes-lepu compare lepu-scar/fit.nc lepu-psychm/fit.nc
  bayes-lepu compare scar=a/fit.nc spm=b/fit.nc psychm=c/fit.nc

A difference below 4, or below twice its standard error (dse), says nothing.
"""


def add(commands: Any) -> argparse.ArgumentParser:
    """Add the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "compare", help="compare fits of the same rows by PSIS-LOO", epilog=EXAMPLES
    )
    parser.add_argument("fits", nargs="+", metavar="[NAME=]FIT", help="fit.nc files, two or more")
    parser.set_defaults(run=run)
    return parser


def run(args: argparse.Namespace, terminal: Terminal) -> None:
    """Load, compare, print."""
    fits = {}
    for text in args.fits:
        name, path = _named(text)
        fit = load(path)
        name = name or fit.spec.name
        if name in fits:
            raise ModelError(f"Two fits are named {name!r}; write NAME={path} to tell them apart.")
        fits[name] = fit
    with terminal.stage("Leaving out one row at a time"):
        table = compare(fits, round_to="none")
    shown = table[["elpd", "elpd_diff", "dse", "weight"]].astype(float)
    rows = [
        [str(name), *(f"{v:.2f}" for v in row)]
        for name, row in zip(table.index, shown.to_numpy(), strict=True)
    ]
    terminal.table(["model", *shown.columns], rows)
    terminal.result({"models": {str(k): v for k, v in shown.to_dict("index").items()}})


def _named(text: str) -> tuple[str | None, Path]:
    name, separator, path = text.partition("=")
    return (
        (name, Path(path)) if separator and name and not Path(text).exists() else (None, Path(text))
    )
