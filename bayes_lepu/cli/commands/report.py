"""``bayes-lepu report``: the page of a saved fit."""

import argparse
from pathlib import Path
from typing import Any

from bayes_lepu.cli.arguments import split_names
from bayes_lepu.cli.files import check_output
from bayes_lepu.cli.terminal import Terminal
from bayes_lepu.fitted import load
from bayes_lepu.runtime.files import page_name

EXAMPLES = """\
examples:
  bayes-lepu report fit.nc
  bayes-lepu report fit.nc --out photos.html --title "Camera 7, March" --group-by brightness
"""


def add(commands: Any) -> argparse.ArgumentParser:
    """Add the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "report", help="write the HTML report of a saved fit", epilog=EXAMPLES
    )
    parser.add_argument("fit", type=Path, help="fit.nc written by bayes-lepu fit or Fit.save")
    parser.add_argument("--out", type=Path, default=Path("report.html"), help="default report.html")
    parser.add_argument("--overwrite", action="store_true", help="replace an earlier page")
    parser.add_argument("--title", help="heading of the page")
    parser.add_argument("--group-by", metavar="NAMES", help="columns to show label rates by")
    parser.set_defaults(run=run)
    return parser


def run(args: argparse.Namespace, terminal: Terminal) -> None:
    """Load, judge, write."""
    page_name(check_output(args.out, (args.fit,), overwrite=args.overwrite))
    fit = load(args.fit)
    with terminal.stage("Judging what these data can identify"):
        found = fit.identifiability
    with terminal.stage("Drawing the report"):
        fit.report(args.out, title=args.title, group_by=split_names(args.group_by))
    terminal.say(f"Level {found.level}: {found.verdict}")
    terminal.files({"the page to look at": args.out})
    terminal.result({"level": found.level, "verdict": found.verdict, "files": {"report": args.out}})
