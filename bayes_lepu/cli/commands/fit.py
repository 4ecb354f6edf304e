"""``bayes-lepu fit``: from a file to a fit, its predictions and its report."""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bayes_lepu._fit import fit as fit_model
from bayes_lepu.actions.plain_answer import Answer
from bayes_lepu.cli.arguments import add_options, given_options, split_names
from bayes_lepu.cli.files import about, check_folder, prediction_table, read_frame, write_csv
from bayes_lepu.cli.terminal import Terminal
from bayes_lepu.data.cells import level_text
from bayes_lepu.data.frames import take_column
from bayes_lepu.errors import DataError
from bayes_lepu.fitted import Fit
from bayes_lepu.result.facts import facts_as_text
from bayes_lepu.result.summaries import describe_draws
from bayes_lepu.suggestions import some

EXAMPLES = """\
examples:
  bayes-lepu fit photos.csv --label marked
  bayes-lepu fit photos.csv --label marked --id file --exclude camera --out results
  bayes-lepu fit photos.csv --label marked --selection-features brightness,sharpness
  bayes-lepu fit photos.parquet --label marked --y checked --model spm --random-seed 1
  bayes-lepu fit photos.csv --label marked --method map --json --quiet
  bayes-lepu fit photos.csv --label marked --class-learner boosting
  bayes-lepu fit claims.csv.gz --label flagged --positive yes --id claim --missing indicator
  bayes-lepu fit photos.csv --label marked --method map --penalty a=l2,alpha=l1 --C 0.1
  bayes-lepu fit claims.csv --label flagged --class-features "~ bs(amount, df=5) + country"
  bayes-lepu fit claims.csv --label flagged --class-prior 0.012,0.002 --y checked
  bayes-lepu fit claims.csv --label flagged --y checked --audits chosen --false-marks
  bayes-lepu fit sites.csv --label v1,v2,v3 --visits hours=h1,h2,h3 --model spm
  bayes-lepu fit photos.csv --label marked --priors "a=normal(0, 2)" --priors "b=normal(-2, 1)"

writes to the folder given by --out:
  report.html          the page to look at and to send on
  fit.nc               the fit itself, for predict, report and Python
  predictions.csv      one row per row of the file, but for rows audited as negative
  identifiability.csv  what these data can and cannot say
"""


FILES = {
    "report.html": "the page to look at",
    "fit.nc": "the fit",
    "predictions.csv": "predictions for the rows",
    "identifiability.csv": "checks",
}


def add(commands: Any) -> argparse.ArgumentParser:
    """Add the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "fit", help="fit a model to a CSV or Parquet file and write its report", epilog=EXAMPLES
    )
    parser.add_argument("data", type=Path, help="CSV, TSV or Parquet file with one row per case")
    file = parser.add_argument_group("the file (names separated by commas)")
    file.add_argument(
        "--label",
        required=True,
        metavar="NAMES",
        help="0/1, or 1 and nothing: labelled positive; of several annotators one column each, "
        "nothing where not shown",
    )
    file.add_argument("--positive", metavar="VALUE", help="what the label holds where labelled")
    file.add_argument("--features", metavar="NAMES", help="columns to use; default: all others")
    file.add_argument("--id", metavar="NAME", help="column that names the rows")
    file.add_argument("--blank", metavar="TEXTS", help="cells to read as blank, such as ?")
    file.add_argument("--separator", metavar="CHAR", help="cell separator; default , or tab")
    add_options(parser)
    parser.add_argument("--out", type=Path, help="folder to write to; default lepu-<name of data>")
    parser.add_argument("--overwrite", action="store_true", help="replace earlier results there")
    parser.set_defaults(run=run)
    return parser


def run(args: argparse.Namespace, terminal: Terminal) -> None:
    """Read, fit, judge, write."""
    out = args.out or Path(f"lepu-{args.data.name.split('.')[0]}")
    check_folder(out, FILES, overwrite=args.overwrite)
    options = given_options(args)
    with terminal.stage(f"Reading {args.data}"):
        blanks = split_names(args.blank)
        frame = read_frame(args.data, separator=args.separator, id_column=args.id, blanks=blanks)
    with terminal.stage(f"Fitting {len(frame)} rows"), about(args.data):
        frame, label, options = named_columns(frame, args, options)
        result = fit_model(frame, label, progressbar=False, **options)
    with terminal.stage("Judging what these data can identify"):
        found = result.identifiability
    files = write_all(result, frame, out, terminal)
    terminal.say()
    done = in_the_shell(result.answer, files["the fit"])
    terminal.say(facts_as_text(result._headline(), result._facts() | done))
    terminal.say()
    terminal.files(files)
    prior = result.class_prior().to_dict("index")
    other = None if found.exchanged_pi is None else describe_draws(found.exchanged_pi)
    terminal.result(
        {
            "model": result.options.model,
            "method": result.options.method,
            "rows": result.data.n,
            "columns": list(result.data.user_columns),
            "labelled": int(result.data.l.sum()),
            "level": found.level,
            "verdict": found.verdict,
            "carried_by": found.carried_by,
            "answer": result.answer.facts() | done,
            "missed": result.missed(total=True).to_dict("index"),
            "class_prior": prior["pi"],
            "class_prior_exchanged": other,
            "label_frequency": prior.get("c"),
            "random_seed": result.options.random_seed,
            "files": files,
        }
    )


def named_columns(
    frame: pd.DataFrame, args: argparse.Namespace, options: Mapping[str, Any]
) -> tuple[pd.DataFrame, str | list[str], dict[str, Any]]:
    """The table, the name of its labels, and the options, as `fit` takes them."""
    if frame.shape[1] == 1:
        raise DataError(
            f"the file has one column, {frame.columns[0]!r}; the label and others are expected. Is "
            "the separator right (--separator)?"
        )
    label, options = split_names(args.label), dict(options)
    if args.positive is not None:
        frame = frame.assign(**{label[0]: _marked(frame, label[0], args.positive)})
    apart: list[str] = []  # columns of visits, which are no features
    if "visits" in options:
        options["visits"], apart = read_visits(frame, options["visits"], label)
    if chosen := split_names(args.features):
        own = [options[role] for role in ("y", "sample_weight") if role in options]
        kept = dict.fromkeys([*label, *own, *options.get("exclude", ()), *chosen])
        frame = take_column(frame, list(kept), option="features")
    frame = frame.drop(columns=apart, errors="ignore")
    return frame, label if len(label) > 1 else label[0], options


def _marked(frame: pd.DataFrame, name: str, positive: str) -> pd.Series:
    """1 where the column holds this text."""
    column = take_column(frame, name, option="l")
    texts = column.map(level_text, na_action="ignore")
    if not (texts == positive).any():
        raise DataError(
            f"no cell of column {name!r} (--label) holds {positive!r} (--positive). It holds "
            f"{some(sorted(texts.dropna().unique()))}."
        )
    return (texts == positive).astype(int)


def read_visits(
    frame: pd.DataFrame, texts: list[str], annotators: list[str]
) -> tuple[dict[str, pd.DataFrame], list[str]]:
    """Columns that differ between the annotators of a row, from ``hours=hours_1,hours_2``."""
    tables, taken = {}, []
    for text in texts:
        name, _, columns = text.partition("=")
        chosen = split_names(columns)
        if len(chosen) != len(annotators):
            raise DataError(
                f"--visits {text!r} names {len(chosen)} column(s) for {len(annotators)} "
                "annotator(s); a name and one column for each of them, in the order of --label, is "
                "expected, such as hours=hours_anna,hours_ben."
            )
        table = take_column(frame, chosen, option="visits")
        tables[name.strip()] = table.set_axis(annotators, axis=1)
        taken += chosen
    return tables, taken


def in_the_shell(found: Answer, saved: Path) -> dict[str, str]:
    """What would help as options of this command, or where it takes Python with the saved fit."""
    if not found.call:
        return {}
    if found.flags:
        return {"do it": f"the same command with {found.flags} --overwrite"}
    return {"do it": f"in Python: fit = lepu.load({str(saved)!r}); {found.call}"}


def write_all(result: Fit, frame: pd.DataFrame, out: Path, terminal: Terminal) -> dict[str, Path]:
    """Write the files and return their paths."""
    out.mkdir(parents=True, exist_ok=True)
    report, saved, predictions, checks = paths = [out / name for name in FILES]
    with terminal.stage("Writing predictions"):
        result.save(saved)
        write_csv(predicted_rows(result, frame), predictions, index_label=frame.index.name or "row")
        write_csv(result.identifiability.to_frame(), checks, index_label="name")
    with terminal.stage("Drawing the report"):
        result.report(report)
    return dict(zip(FILES.values(), paths, strict=True))


def predicted_rows(result: Fit, frame: pd.DataFrame) -> pd.DataFrame:
    """Labels, audits and predictions for the rows of a file, but for those audited as negative.

    Rows left out for their blank cells keep a line of their own, without an answer.
    """
    data = result.data
    X = frame[list(data.user_columns)]
    kept = np.ones(len(frame), dtype=bool)
    if data.encoding.dropped:
        blank = X.astype(str).apply(lambda column: column.str.strip() == "")
        kept = ~(X.isna() | blank).any(axis=1).to_numpy()
    table = prediction_table(result, X[kept]).set_axis(np.flatnonzero(kept))
    table.insert(0, "label", pd.array(data.l, dtype="Int8"))
    if not np.isnan(data.y).all():
        table.insert(1, "audited", pd.array(data.y, dtype="Int8"))
    table = table.reindex(range(len(frame))).set_axis(frame.index)
    return table[(table["audited"] != 0).fillna(True)] if "audited" in table else table
