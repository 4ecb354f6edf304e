"""``bayes-lepu fit``: from a file to a fit, its predictions and its report."""

import argparse
from pathlib import Path
from typing import Any

import pandas as pd

from bayes_lepu._fit import METHODS
from bayes_lepu._fit import fit as fit_model
from bayes_lepu.cli.predictions import prediction_table
from bayes_lepu.cli.tables import Sheet, read_sheet, split_names
from bayes_lepu.cli.terminal import Terminal
from bayes_lepu.errors import DataError
from bayes_lepu.fitted import Fit
from bayes_lepu.inference.orientation import RULES
from bayes_lepu.models import list_models

REMEDY = (
    "Choose the columns to use with --features a,b,c, leave this one out with --exclude, or name "
    "it with --id if it identifies the rows."
)
EXAMPLES = """\
examples:
  bayes-lepu fit photos.csv --label marked
  bayes-lepu fit photos.csv --label marked --id file --exclude camera --out results
  bayes-lepu fit photos.csv --label marked --selection-features brightness,sharpness
  bayes-lepu fit photos.parquet --label marked --audited checked --model spm --seed 1
  bayes-lepu fit photos.csv --label marked --method map --json --quiet

writes to the folder given by --out:
  report.html          the page to look at and to send on
  fit.nc               the fit itself, for predict, report, compare and Python
  predictions.csv      one row per row of the file
  identifiability.csv  what these data can and cannot say
"""


def add(commands: Any) -> argparse.ArgumentParser:
    """Add the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "fit", help="fit a model to a CSV or Parquet file and write its report", epilog=EXAMPLES
    )
    parser.add_argument("data", type=Path, help="CSV, TSV or Parquet file with one row per case")
    columns = parser.add_argument_group("columns (names separated by commas)")
    columns.add_argument("--label", required=True, metavar="NAME", help="0/1: labelled positive")
    columns.add_argument("--features", metavar="NAMES", help="columns to use; default: all others")
    columns.add_argument("--exclude", metavar="NAMES", help="columns to leave out")
    columns.add_argument("--class-features", metavar="NAMES", help="columns the class may use")
    columns.add_argument(
        "--selection-features", metavar="NAMES", help="columns the annotator may respond to"
    )
    columns.add_argument("--audited", metavar="NAME", help="known classes: 0, 1 or nothing")
    columns.add_argument("--id", metavar="NAME", help="column that names the rows")
    columns.add_argument("--separator", metavar="CHAR", help="cell separator; default , or tab")
    model = parser.add_argument_group("model")
    model.add_argument("--model", default="psychm", choices=list_models(), help="default psychm")
    model.add_argument("--method", default="nuts", choices=METHODS, help="default nuts")
    model.add_argument("--orientation", default="sigma-norm", choices=RULES)
    model.add_argument("--no-standardize", action="store_true", help="keep the columns' own scale")
    sampler = parser.add_argument_group("sampler")
    sampler.add_argument("--draws", type=int, default=1000, help="per chain; default 1000")
    sampler.add_argument("--tune", type=int, default=1000, help="warm-up draws; default 1000")
    sampler.add_argument("--chains", type=int, default=4, help="default 4")
    sampler.add_argument("--cores", type=int, help="chains at a time; default: all cores")
    sampler.add_argument("--seed", type=int, help="random seed; one is made and recorded if absent")
    parser.add_argument("--out", type=Path, help="folder to write to; default lepu-<name of data>")
    parser.set_defaults(run=run)
    return parser


def run(args: argparse.Namespace, terminal: Terminal) -> None:
    """Read, fit, judge, write."""
    out = args.out or Path(f"lepu-{args.data.name.split('.')[0]}")
    if out.exists() and not out.is_dir():
        raise DataError(f"--out {out} is a file; a folder is expected.")
    with terminal.stage(f"Reading {args.data}"):
        sheet = read_sheet(args.data, separator=_separator(args.separator), id_column=args.id)
        labels = sheet.labels(args.label)
        audited = None if args.audited is None else sheet.classes(args.audited, args.label)
        X = sheet.numbers(feature_names(sheet, args), remedy=REMEDY)
    with terminal.stage(
        f"Fitting {args.model} by {args.method}: {len(X)} rows, {X.shape[1]} columns"
    ):
        result = fit_model(
            X,
            labels,
            y=audited,
            model=args.model,
            method=args.method,
            class_features=split_names(args.class_features),
            selection_features=split_names(args.selection_features),
            standardize=not args.no_standardize,
            orientation=args.orientation,
            draws=args.draws,
            tune=args.tune,
            chains=args.chains,
            cores=args.cores,
            random_seed=args.seed,
            progressbar=False,
        )
    with terminal.stage("Judging what these data can identify"):
        found = result.identifiability
    files = write_all(result, X, labels, out, terminal)
    terminal.say()
    terminal.say(repr(result))
    terminal.say()
    terminal.files(files)
    prior = result.class_prior().to_dict("index")
    terminal.result(
        {
            "model": args.model,
            "method": args.method,
            "rows": len(X),
            "columns": list(X.columns),
            "labelled": int(labels.sum()),
            "level": found.level,
            "verdict": found.verdict,
            "carried_by": found.carried_by,
            "class_prior": prior["pi"],
            "class_prior_exchanged": found.exchanged_pi,
            "label_frequency": prior["c"],
            "random_seed": result.settings["random_seed"],
            "files": files,
        }
    )


def write_all(
    result: Fit, X: pd.DataFrame, labels: pd.Series, out: Path, terminal: Terminal
) -> dict[str, Path]:
    """Write report, fit, predictions and checks to a folder."""
    out.mkdir(parents=True, exist_ok=True)
    files = {
        "the page to look at": out / "report.html",
        "the fit": out / "fit.nc",
        "predictions for every row": out / "predictions.csv",
        "checks": out / "identifiability.csv",
    }
    report, saved, predictions, checks = files.values()
    with terminal.stage("Writing the fit and its predictions"):
        result.save(saved)
        table = prediction_table(result, X)
        table.insert(0, "label", labels)
        table.to_csv(predictions, index_label=X.index.name or "row", float_format="%.6g")
        result.identifiability.to_frame().to_csv(checks)
    with terminal.stage("Drawing the report"):
        result.report(report)
    return files


def feature_names(sheet: Sheet, args: argparse.Namespace) -> list[str]:
    """The columns to use, those of ``--features`` or all that have no other role."""
    roles = {
        getattr(args, option): f"--{option}"
        for option in ("label", "audited", "id")
        if getattr(args, option) is not None
    }
    for option in ("features", "exclude", "class_features", "selection_features"):
        for name in split_names(getattr(args, option)) or []:
            sheet.require(name, "--" + option.replace("_", "-"))
    chosen = split_names(args.features)
    if chosen is not None:
        clash = [name for name in chosen if name in roles]
        if clash:
            raise DataError(
                f"Column {clash[0]!r} is named by both --features and {roles[clash[0]]}."
            )
    else:
        chosen = [name for name in sheet.frame.columns if name not in roles]
    excluded = split_names(args.exclude) or []
    names = [name for name in chosen if name not in excluded]
    if not names:
        raise DataError(f"{sheet.path}: no column is left to learn from.")
    return names


def _separator(text: str | None) -> str | None:
    return {"tab": "\t", "\\t": "\t"}.get(text, text) if text else None
