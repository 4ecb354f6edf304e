"""``bayes-lepu predict``: class probabilities for new rows."""

import argparse
from pathlib import Path
from typing import Any

from bayes_lepu.cli.outputs import check_output, write_csv
from bayes_lepu.cli.predictions import prediction_table
from bayes_lepu.cli.sheets import complaint, read_sheet, split_names
from bayes_lepu.cli.terminal import Terminal
from bayes_lepu.encoding import UNSEEN
from bayes_lepu.errors import DataError
from bayes_lepu.fitted import load
from bayes_lepu.suggestions import did_you_mean, some

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
    parser.add_argument("--unseen", choices=UNSEEN, help="levels that the fit has not seen")
    parser.add_argument("--blank", metavar="TEXTS", help="cells to read as blank, such as ?")
    parser.add_argument("--separator", metavar="CHAR", help="cell separator; default , or tab")
    parser.set_defaults(run=run)
    return parser


def run(args: argparse.Namespace, terminal: Terminal) -> None:
    """Load, read, predict, write."""
    out = args.out or Path(f"{args.data.name.split('.')[0]}-predictions.csv")
    check_output(out, (args.fit, args.data))
    fit = load(args.fit)
    if args.unseen is not None:
        fit = fit.accept_unseen(args.unseen)
    with terminal.stage(f"Reading {args.data}"):
        sheet = read_sheet(
            args.data,
            separator=args.separator,
            id_column=args.id,
            blanks=split_names(args.blank) or (),
        )
        missing = [name for name in fit.data.user_columns if name not in sheet.frame.columns]
        if missing:
            near = did_you_mean(missing[0], sheet.frame.columns)
            raise DataError(
                f"{args.data}: there is no column {', '.join(map(repr, missing))}, which the fit "
                f"needs.{near} Columns: {some(list(sheet.frame.columns), most=12)}."
            )
        X = sheet.frame[list(fit.data.user_columns)]
    with terminal.stage(f"Predicting {len(X)} rows"):
        try:
            table = prediction_table(fit, X)
        except DataError as error:
            raise DataError(complaint(error, args.data, new_rows=True)) from None
        write_csv(table, out, index_label=X.index.name or "row")
    share = float(table["class_probability"].mean())
    terminal.say(f"{len(X)} rows, expected share of positives {share:.3f}.")
    terminal.files({"predictions": out})
    terminal.result(
        {"rows": len(X), "expected_share_positive": share, "files": {"predictions": out}}
    )
