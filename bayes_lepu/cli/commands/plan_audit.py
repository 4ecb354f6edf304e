"""``bayes-lepu plan-audit``: how many rows to audit, before any model or with a saved fit."""

import argparse
from pathlib import Path
from typing import Any

from bayes_lepu.actions.audits import plan_audit
from bayes_lepu.cli.terminal import Terminal
from bayes_lepu.errors import ModelError
from bayes_lepu.fitted import load

EXAMPLES = """\
examples:
  bayes-lepu plan-audit --rows 5000 --share 0.1 --width 0.08
  bayes-lepu plan-audit --fit lepu-photos/fit.nc --width 0.08
"""


def add(commands: Any) -> argparse.ArgumentParser:
    """Add the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "plan-audit", help="how many unlabelled rows to audit at random", epilog=EXAMPLES
    )
    parser.add_argument("--width", type=float, required=True, help="width of the 95%% interval")
    parser.add_argument("--rows", type=int, help="unlabelled rows")
    parser.add_argument("--share", type=float, help="share of positives among them, roughly")
    parser.add_argument("--fit", type=Path, help="fit.nc, in place of --rows and --share")
    parser.set_defaults(run=run)
    return parser


def run(args: argparse.Namespace, terminal: Terminal) -> None:
    """Compute and print."""
    if args.fit is not None:
        found = load(args.fit).plan_audit(width=args.width, ci_prob=0.95).to_dict()
    elif args.rows is None or args.share is None:
        raise ModelError("--rows and --share are needed, or --fit.")
    else:
        found = {"audits alone": plan_audit(args.rows, args.share, args.width)}
    for name, count in found.items():
        terminal.say(f"{count} rows: {name}")
    terminal.result({"audits": found, "width": args.width})
