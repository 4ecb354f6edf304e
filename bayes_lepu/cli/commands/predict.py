"""``bayes-lepu predict``: class probabilities for new rows."""

import argparse
from pathlib import Path
from typing import Any

from bayes_lepu.cli.arguments import split_names
from bayes_lepu.cli.files import about, check_output, prediction_table, read_frame, write_table
from bayes_lepu.cli.terminal import Terminal
from bayes_lepu.data.encoding import UNSEEN
from bayes_lepu.fitted import load

EXAMPLES = """\
examples:
  bayes-lepu predict lepu-photos/fit.nc new.csv
  bayes-lepu predict lepu-photos/fit.nc new.parquet --id file --out predictions.parquet

Columns are found by name; those that the fit does not know are left aside. For files that do not
fit in memory there is bayes_lepu.dask.predict_proba in Python.
"""


def add(commands: Any) -> argparse.ArgumentParser:
    """Add the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "predict", help="class probabilities for the rows of a new file", epilog=EXAMPLES
    )
    parser.add_argument("fit", type=Path, help="fit.nc written by bayes-lepu fit")
    parser.add_argument("data", type=Path, help="CSV, TSV or Parquet file with the same columns")
    parser.add_argument(
        "--out", type=Path, help="CSV or Parquet to write; default <name of data>-predictions.csv"
    )
    parser.add_argument("--overwrite", action="store_true", help="replace an earlier file")
    parser.add_argument("--id", metavar="NAME", help="column that names the rows")
    parser.add_argument("--unseen", choices=UNSEEN, help="levels that the fit has not seen")
    parser.add_argument("--blank", metavar="TEXTS", help="cells to read as blank, such as ?")
    parser.add_argument("--separator", metavar="CHAR", help="cell separator; default , or tab")
    parser.set_defaults(run=run)
    return parser


def run(args: argparse.Namespace, terminal: Terminal) -> None:
    """Load, read, predict, write."""
    out = args.out or Path(f"{args.data.name.split('.')[0]}-predictions.csv")
    check_output(out, (args.fit, args.data), overwrite=args.overwrite)
    fit = load(args.fit)
    if args.unseen is not None:
        fit = fit.accept_unseen(args.unseen)
    with terminal.stage(f"Predicting the rows of {args.data}"), about(args.data):
        frame = read_frame(
            args.data,
            separator=args.separator,
            id_column=args.id,
            blanks=split_names(args.blank),
            text_columns=[c.name for c in fit.data.encoding.columns if c.levels is not None],
        )
        needed = list(fit.data.user_columns)
        X = frame[needed] if set(needed) <= {*frame.columns} else frame  # which the fit refuses
        table = prediction_table(fit, X)
        write_table(table, out, index_label=args.id or "row")
    rows, share = len(table), float(table["class_probability"].mean())
    terminal.say(f"{rows} rows, expected share of positives {share:.3f}.")
    terminal.files({"predictions": out})
    terminal.result({"rows": rows, "expected_share_positive": share, "files": {"predictions": out}})
