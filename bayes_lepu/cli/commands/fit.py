"""``bayes-lepu fit``: from a file to a fit, its predictions and its report."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayes_lepu._fit import fit as fit_model
from bayes_lepu.actions.plain_answer import Answer
from bayes_lepu.cli.fit_arguments import add_options, given_options, split_names
from bayes_lepu.cli.outputs import check_folder, prediction_table, write_csv
from bayes_lepu.cli.sheets import Sheet, complaint, read_sheet, together
from bayes_lepu.cli.terminal import Terminal
from bayes_lepu.data.user_table import complete_rows, read_table
from bayes_lepu.errors import DataError
from bayes_lepu.fitted import Fit
from bayes_lepu.result.facts import facts_as_text
from bayes_lepu.result.origin import FitOptions
from bayes_lepu.result.summaries import describe_draws

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


FACTORS = ("class_features", "selection_features")
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
    if options.get("y") == args.label:
        raise DataError(
            f"--y and --label both name {args.label!r}. Labels say who was marked, audits what "
            "class a row turned out to have."
        )
    with terminal.stage(f"Reading {args.data}"):
        sheet = read_sheet(
            args.data,
            separator=_separator(args.separator),
            id_column=args.id,
            blanks=split_names(args.blank),
        )
        X, labels, options = read_columns(sheet, args, options)
        marked = (labels == 1).any(axis=1) if isinstance(labels, pd.DataFrame) else labels
    asked = FitOptions(**{name: options[name] for name in ("model", "method") if name in options})
    with terminal.stage(
        f"Fitting {asked.model} by {asked.method}: {len(X)} rows, {X.shape[1]} columns"
    ):
        try:
            result = fit_model(X, labels, progressbar=False, **options)
        except DataError as error:
            raise DataError(complaint(error, args.data)) from None
    with terminal.stage("Judging what these data can identify"):
        found = result.identifiability
    files = write_all(result, X, marked, out, terminal)
    terminal.say()
    done = in_the_shell(result.answer, files["the fit"])
    terminal.say(facts_as_text(result._headline(), result._facts() | done))
    terminal.say()
    terminal.files(files)
    prior = result.class_prior().to_dict("index")
    other = None if found.exchanged_pi is None else describe_draws(found.exchanged_pi)
    terminal.result(
        {
            "model": asked.model,
            "method": asked.method,
            "rows": result.data.n,
            "columns": list(X.columns),
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


def in_the_shell(found: Answer, saved: Path) -> dict[str, str]:
    """What would help as options of this command, or where it takes Python with the saved fit."""
    if not found.call:
        return {}
    if found.flags:
        return {"do it": f"the same command with {found.flags} --overwrite"}
    return {"do it": f"in Python: fit = lepu.load({str(saved)!r}); {found.call}"}


def write_all(
    result: Fit, X: pd.DataFrame, labels: pd.Series, out: Path, terminal: Terminal
) -> dict[str, Path]:
    """Write report, fit, predictions and checks to a folder."""
    out.mkdir(parents=True, exist_ok=True)
    files = {what: out / name for name, what in FILES.items()}
    report, saved, predictions, checks = files.values()
    with terminal.stage("Writing the fit and its predictions"):
        result.save(saved)
        # Rows left out for their blank cells keep a line of their own, without an answer.
        kept = (
            complete_rows(X[list(result.data.user_columns)])
            if result.data.encoding.dropped
            else np.ones(len(X), dtype=bool)
        )
        table = prediction_table(result, X[kept])
        if not kept.all():
            table = _spread(table, kept, X.index)
        table.insert(0, "label", labels.to_numpy().astype(int))
        table = with_audits(table, result, kept)
        write_csv(table, predictions, index_label=X.index.name or "row")
        write_csv(result.identifiability.to_frame(), checks, index_label="name")
    with terminal.stage("Drawing the report"):
        result.report(report)
    return files


def read_columns(
    sheet: Sheet, args: argparse.Namespace, options: Mapping[str, Any]
) -> tuple[pd.DataFrame, pd.Series | pd.DataFrame, dict[str, Any]]:
    """Features, labels, and the options with the columns that they name.

    One error has all that is wrong with them.
    """
    complaints: list[str] = []

    def attempt[V](read: Callable[[], V]) -> V | None:
        try:
            return read()
        except DataError as error:
            complaints.append(str(error))
            return None

    asked = {"features": split_names(args.features), **options}
    for option in ("features", "exclude", *FACTORS):
        for name in _names(asked.get(option)):
            attempt(lambda n=name, o=option: sheet.require(n, "--" + o.replace("_", "-")))  # type: ignore[misc]
    annotators = split_names(args.label)
    labels: pd.Series | pd.DataFrame | None
    if len(annotators) > 1:
        labels = attempt(lambda: sheet.annotators(annotators))
        known = None
    else:
        labels = known = attempt(lambda: sheet.labels(args.label, positive=args.positive))
    out = {name: value for name, value in options.items() if name != "exclude"}
    if "y" in options:  # with false marks a labelled row may be negative
        marks = None if options.get("false_marks") else known
        out["y"] = attempt(lambda: sheet.classes(options["y"], marks))
    if "sample_weight" in options:
        weight = options["sample_weight"]
        out["sample_weight"] = attempt(lambda: sheet.require(weight, "--sample-weight"))
    if "visits" in options:
        out["visits"] = attempt(lambda: read_visits(sheet, options["visits"], annotators))
    names = attempt(lambda: feature_names(sheet, args, options))
    if complaints or labels is None or names is None:
        if names:
            try:
                read_table(sheet.frame[names], missing=options.get("missing", "error"))
            except DataError as error:
                complaints.append(complaint(error, args.data))
        raise DataError(together(complaints))
    return sheet.frame[names], labels, out


def read_visits(
    sheet: Sheet, texts: Sequence[str], annotators: Sequence[str]
) -> dict[str, pd.DataFrame]:
    """Columns that differ between the annotators of a row, from ``hours=hours_1,hours_2``."""
    tables = {}
    for text in texts:
        name, _, columns = text.partition("=")
        chosen = split_names(columns)
        if len(chosen) != len(annotators):
            raise DataError(
                f"--visits {text!r} names {len(chosen)} column(s) for {len(annotators)} "
                "annotator(s); a name and one column for each of them, in the order of --label, is "
                "expected, such as hours=hours_anna,hours_ben."
            )
        cells = (sheet.require(column, "--visits") for column in chosen)
        tables[name.strip()] = pd.DataFrame(dict(zip(annotators, cells, strict=True)))
    return tables


def with_audits(table: pd.DataFrame, result: Fit, kept: NDArray[np.bool_]) -> pd.DataFrame:
    """The predictions with the audited classes beside; rows cleared as negative are left out."""
    audited = np.full(len(table), np.nan)
    audited[kept] = result.data.y
    if np.isnan(audited).all():
        return table
    table = table.copy()
    table.insert(1, "audited", pd.array(audited, dtype="Int8"))
    return table[audited != 0]


def feature_names(sheet: Sheet, args: argparse.Namespace, options: Mapping[str, Any]) -> list[str]:
    """The columns to use, those of ``--features`` or all that have no other role."""
    roles = dict.fromkeys(split_names(args.label), "--label")
    named = {
        "--id": args.id,
        "--y": options.get("y"),
        "--sample-weight": options.get("sample_weight"),
    }
    roles |= {name: option for option, name in named.items() if name is not None}
    for text in options.get("visits", ()):
        roles |= dict.fromkeys(split_names(text.partition("=")[2]), "--visits")
    chosen = split_names(args.features)
    for option, names in {"features": chosen, **options}.items():
        clash = [name for name in _names(names) if name in roles]
        if option in ("features", *FACTORS) and clash:
            raise DataError(
                f"Column {clash[0]!r} is named by both --{option.replace('_', '-')} and "
                f"{roles[clash[0]]}; a column to learn from has no other role."
            )
    known = list(sheet.frame.columns)
    chosen = chosen or [name for name in known if name not in roles]
    excluded = options.get("exclude", ())
    names = [name for name in chosen if name not in excluded and name in known]
    if not names:
        raise DataError(f"{sheet.path}: no column is left to learn from.")
    return names


def _spread(table: pd.DataFrame, kept: Any, index: pd.Index) -> pd.DataFrame:
    values = np.full((len(index), table.shape[1]), np.nan)
    values[kept] = table.to_numpy()
    return pd.DataFrame(values, index=index, columns=table.columns)


def _names(columns: Any) -> list[str]:
    """Names of columns; none where there is a formula."""
    return columns if isinstance(columns, list) else []


def _separator(text: str | None) -> str | None:
    return {"tab": "\t", "\\t": "\t"}.get(text, text) if text else None
