"""``bayes-lepu predict``: class probabilities for new rows."""

import argparse
from pathlib import Path
from typing import Any

from bayes_lepu.cli.predictions import prediction_table
from bayes_lepu.cli.tables import read_sheet
from bayes_lepu.cli.terminal import Terminal
from bayes_lepu.fitted import load

EXAMPLES = """\
examples:
  bayes-lepu predict lepu-photos/fit.nc new.csv
  bayes-lepu predict lepu-photos/fit.nc new.parquet --id file --out new-predictions.csv

Columns are found by name; those that the fit does not know are left aside.
"""


def add(commands: Any) -> argparse.ArgumentParser:
    """Add the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "predict", help="class probabilities for the rows of a new file", epilog=EXAMPLES
    )
    parser.add_argument("fit", type=Path, help="fit.nc written by bayes-lepu fit")
    parser.add_argument("data", type=Path, help="CSV, TSV or Parquet file with the same columns")
    parser.add_argument(
        "--out", type=Path, help="CSV to write; default <name of data>-predictions.csv"
    )
    parser.add_argument("--id", metavar="NAME", help="column that names the rows")
    parser.add_argument("--separator", metavar="CHAR", help="cell separator; default , or tab")
    parser.set_defaults(run=run)
    return parser


def run(args: argparse.Namespace, terminal: Terminal) -> None:
    """Load, read, predict, write."""
    fit = load(args.fit)
    out = args.out or Path(f"{args.data.name.split('.')[0]}-predictions.csv")
    with terminal.stage(f"Reading {args.data}"):
        sheet = read_sheet(args.data, separator=args.separator, id_column=args.id)
        for name in fit.feature_names:
            sheet.require(name, "a column of the fit")
        X = sheet.numbers(list(fit.feature_names), remedy="The fit needs a number here.")
    with terminal.stage(f"Predicting {len(X)} rows"):
        table = prediction_table(fit, X)
        table.to_csv(out, index_label=X.index.name or "row", float_format="%.6g")
    share = float(table["class_probability"].mean())
    terminal.say(f"{len(X)} rows, expected share of positives {share:.3f}.")
    terminal.files({"predictions": out})
    terminal.result(
        {"rows": len(X), "expected_share_positive": share, "files": {"predictions": out}}
    )
