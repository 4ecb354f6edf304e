"""``bayes-lepu fit``: from a file to a fit, its predictions and its report."""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayes_lepu._fit import fit as fit_model
from bayes_lepu.cli.outputs import check_folder, write_csv
from bayes_lepu.cli.penalties import read_penalty, read_priors, read_strength
from bayes_lepu.cli.predictions import prediction_table
from bayes_lepu.cli.sheets import Sheet, complaint, read_sheet, split_names, together
from bayes_lepu.cli.terminal import Terminal
from bayes_lepu.errors import DataError
from bayes_lepu.fitted import Fit
from bayes_lepu.inference.engines import ENGINES
from bayes_lepu.inference.orientation import RULES
from bayes_lepu.models import AUTO, list_models
from bayes_lepu.result.facts import facts_as_text
from bayes_lepu.result.summaries import describe_draws
from bayes_lepu.settling.plain_answer import Answer
from bayes_lepu.tables.encoding import MISSING
from bayes_lepu.tables.formulas import is_formula
from bayes_lepu.tables.user_table import complete_rows, read_table

EXAMPLES = """\
examples:
  bayes-lepu fit photos.csv --label marked
  bayes-lepu fit photos.csv --label marked --id file --exclude camera --out results
  bayes-lepu fit photos.csv --label marked --selection-features brightness,sharpness
  bayes-lepu fit photos.parquet --label marked --audited checked --model spm --seed 1
  bayes-lepu fit photos.csv --label marked --method map --json --quiet
  bayes-lepu fit photos.csv --label marked --class-learner boosting
  bayes-lepu fit claims.csv.gz --label flagged --positive yes --id claim --missing indicator
  bayes-lepu fit photos.csv --label marked --method map --penalty a=l2,alpha=l1 --C 0.1
  bayes-lepu fit claims.csv --label flagged --class-features "~ bs(amount, df=5) + country"
  bayes-lepu fit claims.csv --label flagged --class-prior 0.012,0.002 --audited checked
  bayes-lepu fit claims.csv --label flagged --audited checked --audits chosen --false-marks
  bayes-lepu fit sites.csv --label v1,v2,v3 --visits hours=h1,h2,h3 --model spm
  bayes-lepu fit photos.csv --label marked --prior "a=normal(0, 2)" --prior "b=normal(-2, 1)"

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
    columns = parser.add_argument_group("columns (names separated by commas)")
    columns.add_argument(
        "--label",
        required=True,
        metavar="NAMES",
        help="0/1, or 1 and nothing: labelled positive; of several annotators one column each, "
        "nothing where not shown",
    )
    columns.add_argument(
        "--visits",
        action="append",
        metavar="NAME=COLUMNS",
        help="what differs between the annotators of a row, with a column for each of them, such "
        "as hours=hours_anna,hours_ben; may be repeated",
    )
    columns.add_argument("--positive", metavar="VALUE", help="what the label holds where labelled")
    columns.add_argument("--features", metavar="NAMES", help="columns to use; default: all others")
    columns.add_argument("--exclude", metavar="NAMES", help="columns to leave out")
    columns.add_argument(
        "--class-features",
        metavar="NAMES",
        help="columns the class may use, or a formula such as '~ bs(age, df=5) + sex'",
    )
    columns.add_argument(
        "--selection-features",
        metavar="NAMES",
        help="columns the annotator may respond to, or a formula",
    )
    columns.add_argument("--audited", metavar="NAME", help="known classes: 0, 1 or nothing")
    columns.add_argument(
        "--audits", choices=("random", "chosen"), help="how the audited rows were picked"
    )
    columns.add_argument("--weight", metavar="NAME", help="how often every row counts")
    columns.add_argument("--id", metavar="NAME", help="column that names the rows")
    columns.add_argument(
        "--missing", default="error", choices=MISSING, help="what to do about blank cells"
    )
    columns.add_argument("--blank", metavar="TEXTS", help="cells to read as blank, such as ?")
    columns.add_argument("--separator", metavar="CHAR", help="cell separator; default , or tab")
    model = parser.add_argument_group("model")
    model.add_argument(
        "--model",
        default=AUTO,
        choices=(*list_models(), AUTO),
        help="default auto: the labels choose between scar, spm and psychm",
    )
    model.add_argument(
        "--class-learner",
        default="auto",
        metavar="NAMES",
        help="how the class may bend: boosting, trees, both or none; default auto: the labels "
        "decide, or none for a model that is named",
    )
    model.add_argument("--method", default="nuts", choices=tuple(ENGINES), help="default nuts")
    model.add_argument("--orientation", default="sigma-norm", choices=RULES)
    model.add_argument("--penalty", metavar="KIND", help="for map: l2, l1, none, or a=l2,alpha=l1")
    model.add_argument("--C", metavar="NUMBER", help="for map: 0.01, or a=0.01,alpha=0.1")
    model.add_argument(
        "--prior",
        action="append",
        metavar="NAME=FAMILY(...)",
        help="such as a=normal(0, 2); may be repeated",
    )
    for option, what in (
        ("class-prior", "share of positives"),
        ("label-frequency", "share marked"),
    ):
        model.add_argument(
            f"--{option}",
            type=known_figure,
            metavar="VALUE,ERROR",
            help=f"{what} known from elsewhere, with its standard error",
        )
    model.add_argument("--false-marks", action="store_true", help="negatives may be marked")
    model.add_argument("--no-standardize", action="store_true", help="keep the columns' own scale")
    sampler = parser.add_argument_group("sampler")
    sampler.add_argument("--draws", type=int, default=1000, help="per chain; default 1000")
    sampler.add_argument("--tune", type=int, default=1000, help="warm-up draws; default 1000")
    sampler.add_argument("--chains", type=int, default=4, help="default 4")
    sampler.add_argument("--cores", type=int, help="chains at a time; default: all cores")
    sampler.add_argument("--seed", type=int, help="random seed; one is made and recorded if absent")
    parser.add_argument("--out", type=Path, help="folder to write to; default lepu-<name of data>")
    parser.add_argument("--overwrite", action="store_true", help="replace earlier results there")
    parser.set_defaults(run=run)
    return parser


def run(args: argparse.Namespace, terminal: Terminal) -> None:
    """Read, fit, judge, write."""
    out = args.out or Path(f"lepu-{args.data.name.split('.')[0]}")
    check_folder(out, FILES, overwrite=args.overwrite)
    if args.audited is not None and args.audited == args.label:
        raise DataError(
            f"--audited and --label both name {args.label!r}. Labels say who was marked, audits "
            "what class a row turned out to have."
        )
    with terminal.stage(f"Reading {args.data}"):
        sheet = read_sheet(
            args.data,
            separator=_separator(args.separator),
            id_column=args.id,
            blanks=split_names(args.blank) or (),
        )
        visits = read_visits(sheet, args.visits or [], split_names(args.label) or [])
        X, labels, audited, weight = read_columns(sheet, args)
        marked = (labels == 1).any(axis=1) if isinstance(labels, pd.DataFrame) else labels
    with terminal.stage(
        f"Fitting {args.model} by {args.method}: {len(X)} rows, {X.shape[1]} columns"
    ):
        try:
            result = fit_model(
                X,
                labels,
                visits=visits or None,
                y=audited,
                audits=args.audits,
                class_prior=args.class_prior,
                label_frequency=args.label_frequency,
                false_marks=args.false_marks,
                sample_weight=weight,
                model=args.model,
                class_learner=read_learners(args.class_learner),
                method=args.method,
                class_features=columns_or_formula(args.class_features),
                selection_features=columns_or_formula(args.selection_features),
                missing=args.missing,
                standardize=not args.no_standardize,
                penalty=read_penalty(args.penalty),
                C=read_strength(args.C),
                priors=read_priors(args.prior),
                orientation=args.orientation,
                draws=args.draws,
                tune=args.tune,
                chains=args.chains,
                cores=args.cores,
                random_seed=args.seed,
                progressbar=False,
            )
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
            "model": args.model,
            "method": args.method,
            "rows": result.data.n,
            "columns": list(X.columns),
            "labelled": int(result.data.l.sum()),
            "level": found.level,
            "verdict": found.verdict,
            "carried_by": found.carried_by,
            "answer": result.answer.facts() | done,
            "missed": result.answer.total.to_dict("index"),
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
    sheet: Sheet, args: argparse.Namespace
) -> tuple[pd.DataFrame, pd.Series | pd.DataFrame, pd.Series | None, pd.Series | None]:
    """Features, labels, audits and weights; one error with all that is wrong with them."""
    complaints: list[str] = []

    def attempt[V](read: Callable[[], V]) -> V | None:
        try:
            return read()
        except DataError as error:
            complaints.append(str(error))
            return None

    for option in ("features", "exclude", "class_features", "selection_features"):
        for name in _names(getattr(args, option)):
            attempt(lambda n=name, o=option: sheet.require(n, "--" + o.replace("_", "-")))  # type: ignore[misc]
    annotators = split_names(args.label) or []
    labels: pd.Series | pd.DataFrame | None
    if len(annotators) > 1:
        labels = attempt(lambda: sheet.annotators(annotators))
        known = None
    else:
        labels = known = attempt(lambda: sheet.labels(args.label, positive=args.positive))
    known = None if args.false_marks else known  # a mark that was found to be false is legal then
    audited = None if args.audited is None else attempt(lambda: sheet.classes(args.audited, known))
    weight = (
        None if args.weight is None else attempt(lambda: sheet.require(args.weight, "--weight"))
    )
    names = attempt(lambda: feature_names(sheet, args))
    if complaints or labels is None or names is None:
        if names:
            try:
                read_table(sheet.frame[names], missing=args.missing)
            except DataError as error:
                complaints.append(complaint(error, args.data))
        raise DataError(together(complaints))
    return sheet.frame[names], labels, audited, weight


def read_visits(
    sheet: Sheet, texts: Sequence[str], annotators: Sequence[str]
) -> dict[str, pd.DataFrame]:
    """Columns that differ between the annotators of a row, from ``hours=hours_1,hours_2``."""
    tables = {}
    for text in texts:
        name, _, columns = text.partition("=")
        chosen = split_names(columns) or []
        if len(chosen) != len(annotators):
            raise DataError(
                f"--visits {text!r} names {len(chosen)} column(s) for {len(annotators)} "
                "annotator(s); a name and one column for each of them, in the order of --label, is "
                "expected, such as hours=hours_anna,hours_ben."
            )
        cells = (sheet.require(column, "--visits") for column in chosen)
        tables[name.strip()] = pd.DataFrame(dict(zip(annotators, cells, strict=True)))
    return tables


def read_learners(text: str) -> str | list[str] | None:
    """Learners from ``boosting,trees``, or one of the words auto and none."""
    return {"auto": "auto", "none": None}.get(text, split_names(text))


def columns_or_formula(text: str | None) -> str | list[str] | None:
    """Names of columns, or the formula as it is."""
    return text if is_formula(text) else split_names(text)


def known_figure(text: str) -> tuple[float, float]:
    """A figure and its standard error, as in ``0.12,0.02``."""
    try:
        value, error = (float(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r}; a value and its standard error, such as 0.12,0.02, are expected"
        ) from None
    return value, error


def with_audits(table: pd.DataFrame, result: Fit, kept: NDArray[np.bool_]) -> pd.DataFrame:
    """The predictions with the audited classes beside; rows cleared as negative are left out."""
    audited = np.full(len(table), np.nan)
    audited[kept] = result.data.y
    if np.isnan(audited).all():
        return table
    table = table.copy()
    table.insert(1, "audited", pd.array(audited, dtype="Int8"))
    return table[audited != 0]


def feature_names(sheet: Sheet, args: argparse.Namespace) -> list[str]:
    """The columns to use, those of ``--features`` or all that have no other role."""
    roles = {
        getattr(args, option): f"--{option}"
        for option in ("label", "audited", "id", "weight")
        if getattr(args, option) is not None
    } | dict.fromkeys(split_names(args.label) or [], "--label")
    for text in args.visits or []:
        roles |= dict.fromkeys(split_names(text.partition("=")[2]) or [], "--visits")
    known = list(sheet.frame.columns)
    for option in ("features", "class_features", "selection_features"):
        clash = [name for name in _names(getattr(args, option)) if name in roles]
        if clash:
            raise DataError(
                f"Column {clash[0]!r} is named by both --{option.replace('_', '-')} and "
                f"{roles[clash[0]]}; a column to learn from has no other role."
            )
    chosen = split_names(args.features)
    if chosen is None:
        chosen = [name for name in known if name not in roles]
    excluded = split_names(args.exclude) or []
    names = [name for name in chosen if name not in excluded and name in known]
    if not names:
        raise DataError(f"{sheet.path}: no column is left to learn from.")
    return names


def _spread(table: pd.DataFrame, kept: Any, index: pd.Index) -> pd.DataFrame:
    values = np.full((len(index), table.shape[1]), np.nan)
    values[kept] = table.to_numpy()
    return pd.DataFrame(values, index=index, columns=table.columns)


def _names(text: str | None) -> list[str]:
    """Names of columns; none where there is a formula."""
    return [] if is_formula(text) else split_names(text) or []


def _separator(text: str | None) -> str | None:
    return {"tab": "\t", "\\t": "\t"}.get(text, text) if text else None
