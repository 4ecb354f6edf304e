"""The commands: their options, and the functions that run them.

Exit codes: 0 done, 2 an error in the command or the data (one line describes it), 1 a fault of the
program itself, 130 interrupted.
"""

import argparse
import os
import re
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np
import pandas as pd

from bayes_lepu._fit import fit as fit_model
from bayes_lepu.actions.audits import read_audit
from bayes_lepu.actions.plain_answer import Answer
from bayes_lepu.cli.arguments import add_options, given_options, split_names
from bayes_lepu.cli.files import about, check_output, prediction_table, read_frame, write_table
from bayes_lepu.cli.terminal import Terminal
from bayes_lepu.data.encoding import level_text
from bayes_lepu.data.frames import take_column
from bayes_lepu.datasets import load_demo
from bayes_lepu.errors import DataError, LepuError, LepuWarning
from bayes_lepu.fitted import Fit, load
from bayes_lepu.model import list_models
from bayes_lepu.result.facts import facts_as_text
from bayes_lepu.result.summaries import describe_draws
from bayes_lepu.runtime.files import page_name
from bayes_lepu.runtime.interruption import interruptible, is_interrupt
from bayes_lepu.suggestions import some


def _table_options(parser: Any) -> None:
    """Add the options for reading a table."""
    parser.add_argument("--id", metavar="NAME", help="column that names the rows")
    parser.add_argument("--blank", metavar="TEXTS", help="cells to read as blank, such as ?")


# fit ------------------------------------------------------------------------------------------

FIT_EXAMPLES = """\
examples:
  bayes-lepu fit photos.csv --label marked
  bayes-lepu fit photos.csv --label marked --id file --exclude camera --out results
  bayes-lepu fit photos.csv --label marked --selection-features brightness,sharpness
  bayes-lepu fit photos.csv --label marked --priors "a=normal(0, 2)" --priors "b=normal(-2, 1)"
  bayes-lepu fit claims.csv.gz --label flagged --positive yes --id claim --missing indicator
  bayes-lepu fit claims.csv --label flagged --y checked --audits chosen --class-prior 0.012,0.002
  bayes-lepu fit sites.csv --label anna,ben,carl --model spm

writes to the folder given by --out:
  report.html          the page to look at and to send on
  fit.nc               the fit itself, for predict, report and Python
  predictions.csv      one row per row of the file, but for rows audited as negative
  identifiability.csv  what these data identify: all checks of the verdict
"""
FILES = {  # content: name of the file
    "report": "report.html",
    "fit": "fit.nc",
    "predictions": "predictions.csv",
    "identifiability": "identifiability.csv",
}


def fit_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command ``fit``: the file, the options of `fit`, and the output."""
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
    _table_options(file)
    add_options(parser)
    parser.add_argument("--out", type=Path, help="folder to write to; default lepu-<name of data>")
    parser.add_argument("--overwrite", action="store_true", help="replace earlier results there")


def run_fit(args: argparse.Namespace, terminal: Terminal) -> None:
    """Read the file, fit the model, compute the verdict, write the results."""
    out = args.out or Path(f"lepu-{args.data.name.split('.')[0]}")
    if out.is_file():
        raise DataError(f"--out {out} is a file; a folder is expected.")
    check_output([out / f for f in FILES.values()], [args.data], overwrite=args.overwrite)
    options = given_options(args)
    terminal.stage(f"Reading {args.data}")
    frame = read_frame(args.data, id_column=args.id, blanks=split_names(args.blank))
    label = split_names(args.label)
    terminal.stage(f"Fitting {len(frame)} rows")
    with about(args.data):
        if args.positive is not None:
            frame = frame.assign(**_marked(frame, label, vars(args).get("y"), args.positive))
        result = fit_model(
            frame, label if len(label) > 1 else label[0], progressbar=False, **options
        )
    finish(result, args.data.name, out, terminal)


def finish(result: Fit, title: str, out: Path, terminal: Terminal) -> None:
    """Compute the verdict of a fit, write its files and print the answer."""
    found = result.identifiability
    files = write_all(result, title, out, terminal)
    terminal.say()
    done = in_the_shell(result.answer, files["fit"])
    terminal.say(facts_as_text(result._headline(), result._facts() | done))
    terminal.say()
    prior = result.class_prior().to_dict("index")
    other = None if found.exchanged_pi is None else describe_draws(found.exchanged_pi)
    terminal.done(
        files,
        model=result.options.model,
        method=result.options.method,
        rows=result.data.n,
        columns=list(result.data.user_columns),
        labelled=int(result.data.l.sum()),
        level=found.level,
        verdict=found.verdict,
        carried_by=found.carried_by,
        answer=result.answer.facts() | done,
        missed=result.missed(total=True).to_dict("index"),
        class_prior=prior["pi"],
        class_prior_swapped=other,
        label_frequency=prior["c"],
        random_seed=result.options.random_seed,
    )


def _marked(
    frame: pd.DataFrame, label: list[str], y: str | None, positive: str
) -> dict[str, pd.Series]:
    """1 where the columns of labels, and of audits in words, hold this text.

    No cell means unlabelled to one annotator, and unknown in all others.
    """
    names = dict.fromkeys(label, "--label") | ({y: "--y"} if y else {})
    texts = {
        name: take_column(frame, name, option=option).map(level_text, na_action="ignore")
        for name, option in names.items()
    }
    if not any((texts[name] == positive).any() for name in label):
        held = sorted(pd.concat([texts[name] for name in label]).dropna().unique())
        raise DataError(
            f"no cell of column {', '.join(label)!r} (--label) holds {positive!r} (--positive). "
            f"It holds {some(held)}."
        )
    return {
        name: (text == positive).astype(float).where(text.notna() | ([name] == label))
        for name, text in texts.items()
        if name in label or not pd.api.types.is_numeric_dtype(frame[name])
    }


def in_the_shell(found: Answer, saved: Path) -> dict[str, str]:
    """The line "do it": options of this command, or Python code for the saved fit."""
    if not found.call:
        return {}
    if found.flags:
        return {"do it": f"the same command with {found.flags} --overwrite"}
    if rows := re.search(r"suggest_audit\((\d+)", found.call):
        audit = f"bayes-lepu audit {saved} --rows {rows[1]} --out audit.csv"
        return {"do it": f"{audit}; fill in y; bayes-lepu update {saved} --audits audit.csv"}
    return {"do it": f"in Python: fit = lepu.load({str(saved)!r}); {found.call}"}


def write_all(result: Fit, title: str, out: Path, terminal: Terminal) -> dict[str, Path]:
    """Write the files and return their paths."""
    out.mkdir(parents=True, exist_ok=True)
    files = {what: out / name for what, name in FILES.items()}
    rows = result.data.index.name or "row"
    terminal.stage("Writing predictions")
    result.save(files["fit"])
    write_table(predicted_rows(result), files["predictions"], index_label=rows)
    write_table(result.identifiability.to_frame(), files["identifiability"], index_label="name")
    terminal.stage("Drawing the report")
    result.report(files["report"], title=f"{title}: what the labels missed")
    return files


def predicted_rows(result: Fit) -> pd.DataFrame:
    """Labels, audits and predictions for all rows of a fit except those audited as negative."""
    data = result.data
    table = prediction_table(result, data)
    table.insert(0, "label", data.l)
    if not np.isnan(data.y).all():
        table.insert(1, "audited", pd.array(data.y, dtype="Int8"))
    return table[(table["audited"] != 0).fillna(True)] if "audited" in table else table


# predict --------------------------------------------------------------------------------------

PREDICT_EXAMPLES = """\
examples:
  bayes-lepu predict lepu-photos/fit.nc new.csv
  bayes-lepu predict lepu-photos/fit.nc new.parquet --id file --out predictions.parquet

Columns are matched by name; columns that the fit does not know are ignored. For files that do not
fit in memory use bayes_lepu.dask.predict_proba in Python.
"""


def predict_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command ``predict``: a saved fit and a file of rows."""
    parser.add_argument("fit", type=Path, help="fit.nc written by bayes-lepu fit")
    parser.add_argument("data", type=Path, help="CSV, TSV or Parquet file with the same columns")
    parser.add_argument(
        "--out", type=Path, help="CSV or Parquet to write; default <name of data>-predictions.csv"
    )
    parser.add_argument("--overwrite", action="store_true", help="replace an earlier file")
    parser.add_argument(
        "--accept-unseen",
        action="store_true",
        help="replace levels that the fit has not seen by the most frequent level",
    )
    _table_options(parser)


def run_predict(args: argparse.Namespace, terminal: Terminal) -> None:
    """Load the fit, read the file, write the predictions."""
    out = args.out or Path(f"{args.data.name.split('.')[0]}-predictions.csv")
    check_output([out], (args.fit, args.data), overwrite=args.overwrite)
    fit = load(args.fit)
    if args.accept_unseen:
        fit = fit.accept_unseen()
    terminal.stage(f"Predicting the rows of {args.data}")
    with about(args.data):
        frame = read_frame(
            args.data,
            id_column=args.id,
            blanks=split_names(args.blank),
            text_columns=[c.name for c in fit.data.encoding.columns if c.levels is not None],
        )
        needed = list(fit.data.user_columns)
        X = frame[needed] if set(needed) <= {*frame.columns} else frame  # the fit refuses this one
        table = prediction_table(fit, X)
        write_table(table, out, index_label=args.id or "row")
    rows, share = len(table), float(table["class_probability"].mean())
    terminal.say(f"{rows} rows, expected share of positives {share:.3f} if the model is exact.")
    terminal.say(fit._facts().get("trust", "Nobody has judged this fit yet: bayes-lepu report."))
    terminal.done({"predictions": out}, rows=rows, expected_share_positive=share)


# audit and update -----------------------------------------------------------------------------


def audit_options(parser: argparse.ArgumentParser) -> None:
    """A saved fit, and how many rows."""
    parser.add_argument("fit", type=Path, help="fit.nc written by bayes-lepu fit")
    parser.add_argument("--rows", type=int, required=True, help="how many rows to audit")
    parser.add_argument("--goal", default="total", help="total (default) or find")
    parser.add_argument("--out", type=Path, default=Path("audit.csv"), help="default audit.csv")
    parser.add_argument("--overwrite", action="store_true", help="replace an earlier sheet")


def run_audit(args: argparse.Namespace, terminal: Terminal) -> None:
    """Load, draw, write."""
    check_output([args.out], (args.fit,), overwrite=args.overwrite)
    plan = load(args.fit).suggest_audit(args.rows, goal=args.goal)
    plan.to_csv(args.out)
    terminal.say(f"{len(plan.rows)} rows to audit: fill in the column y (0, 1 or nothing), then")
    terminal.say(f"  bayes-lepu update {args.fit} --audits {args.out}")
    terminal.done({"audit": args.out}, rows=len(plan.rows))


def update_options(parser: argparse.ArgumentParser) -> None:
    """A saved fit, and the sheet of `audit` with its answers."""
    parser.add_argument("fit", type=Path, help="fit.nc written by bayes-lepu fit")
    parser.add_argument("--audits", type=Path, required=True, help="the sheet, y filled in")
    parser.add_argument(
        "--out", type=Path, help="folder to write to; default that of FIT with -audited"
    )
    parser.add_argument("--overwrite", action="store_true", help="replace earlier results there")


def run_update(args: argparse.Namespace, terminal: Terminal) -> None:
    """Load, fit again, judge, write."""
    folder = args.fit.absolute().parent
    out = args.out or folder.with_name(f"{folder.name}-audited")
    inputs = (args.fit, args.audits)
    check_output([out / f for f in FILES.values()], inputs, overwrite=args.overwrite)
    plan, fit = read_audit(args.audits), load(args.fit)
    terminal.stage(f"Fitting {fit.data.n} rows again")
    finish(fit.update(audits=plan), f"{folder.name} with audits", out, terminal)


# report ---------------------------------------------------------------------------------------

REPORT_EXAMPLES = """\
examples:
  bayes-lepu report fit.nc
  bayes-lepu report fit.nc --out photos.html --title "Camera 7, March" --group-by brightness
"""


def report_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command ``report``: a saved fit and a page to write."""
    parser.add_argument("fit", type=Path, help="fit.nc written by bayes-lepu fit or Fit.save")
    parser.add_argument("--out", type=Path, default=Path("report.html"), help="default report.html")
    parser.add_argument("--overwrite", action="store_true", help="replace an earlier page")
    parser.add_argument("--title", help="heading of the page")
    parser.add_argument("--group-by", metavar="NAMES", help="columns to show label rates by")


def run_report(args: argparse.Namespace, terminal: Terminal) -> None:
    """Load the fit, compute its verdict, write the report."""
    check_output([args.out], (args.fit,), overwrite=args.overwrite)
    page_name(args.out)
    fit = load(args.fit)
    found = fit.identifiability
    terminal.stage("Drawing the report")
    fit.report(args.out, title=args.title, group_by=split_names(args.group_by))
    terminal.say(f"Level {found.level}: {found.verdict}")
    terminal.done({"report": args.out}, level=found.level, verdict=found.verdict)


# demo and warm-up -----------------------------------------------------------------------------


def demo_options(parser: argparse.ArgumentParser) -> None:
    """Add the option of the command ``demo``: the file to write."""
    default = Path("demo-report.html")
    parser.add_argument("--out", type=Path, default=default, help="report to write")


def run_demo(args: argparse.Namespace, terminal: Terminal) -> None:
    """Fit the demo, compare the fit with the truth, write the report."""
    page_name(args.out)
    data = load_demo()
    terminal.say(f"{data.description}\n")
    terminal.stage("Fitting psychm by nuts")
    fit = fit_model(data.X, data.l, model="psychm", random_seed=1, progressbar=False)
    found = fit.identifiability
    terminal.stage("Drawing the report")
    fit.report(args.out, title="Camera trap: what the volunteer overlooked")
    accuracy = float((fit.predict(data.X) == data.y).mean())
    truth = {name: float(data.truth[name]) for name in ("pi", "c")}
    terminal.say(
        f"{fit}\n\n"
        f"True class prior {truth['pi']:.3f}, true label frequency {truth['c']:.3f}.\n"
        f"Accuracy on the true classes, which the fit never saw: {accuracy:.3f}.\n\n"
        f"Open {args.out} in a browser. It shows how many positives were missed, which rows to\n"
        "review, and whether to trust this. Your own table: bayes-lepu fit TABLE.csv --label COLUMN"
    )
    terminal.done({"report": args.out}, level=found.level, truth=truth, accuracy=accuracy)


def run_warm_up(args: argparse.Namespace, terminal: Terminal) -> None:
    """Run every model with every method on a few rows, so that numba compiles everything."""
    demo, began = load_demo(), time.perf_counter()
    X, l = demo.X[:300], np.asarray(demo.l)[:300]  # the compiled code takes any number of rows
    few: Any = {"draws": 10, "tune": 20, "chains": 1, "random_seed": 0, "progressbar": False}
    terminal.stage("Compiling")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LepuWarning)
        for model in list_models():
            fit = fit_model(X, l, model=model, method="map", random_seed=0)
            fit_model(X, l, model=model, **few)
        _ = fit.identifiability
    seconds = time.perf_counter() - began
    terminal.say(f"Compiled code is ready ({seconds:.0f} s).")
    terminal.done(seconds=seconds)


# The program ----------------------------------------------------------------------------------


class Command(NamedTuple):
    """What a command does, the options it adds to a parser, and the function that does it."""

    help: str
    options: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace, Terminal], None]
    examples: str = ""


COMMANDS = {
    "fit": Command(
        "fit a model to a CSV or Parquet file and write its report",
        fit_options,
        run_fit,
        FIT_EXAMPLES,
    ),
    "predict": Command(
        "class probabilities for the rows of a new file",
        predict_options,
        run_predict,
        PREDICT_EXAMPLES,
    ),
    "audit": Command("draw unlabelled rows whose class to find out", audit_options, run_audit),
    "update": Command(
        "fit again with what the audit found, and write the same files as fit",
        update_options,
        run_update,
    ),
    "report": Command(
        "write the HTML report of a saved fit", report_options, run_report, REPORT_EXAMPLES
    ),
    "demo": Command(
        "fit PsychM to an embedded data set with a known annotator", demo_options, run_demo
    ),
    "warm-up": Command(
        "compile the numerical code ahead, once after installation", lambda _: None, run_warm_up
    ),
}
EXAMPLES = """\
examples:
  bayes-lepu demo
  bayes-lepu fit photos.csv --label marked
  bayes-lepu predict lepu-photos/fit.nc new.csv --out new-predictions.csv
  bayes-lepu fit --help
"""


class _Parser(argparse.ArgumentParser):
    """A parser whose errors take one line, like all other errors here."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message} (see {self.prog} --help)\n")


def build_parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    from importlib.metadata import version

    raw: Any = {"formatter_class": argparse.RawDescriptionHelpFormatter}
    about_all = "Learn classes, and the annotator, from positive and unlabelled rows."
    parser = _Parser(prog="bayes-lepu", description=about_all, epilog=EXAMPLES, **raw)
    parser.add_argument("--version", action="version", version=version("bayes-lepu"))
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, command in COMMANDS.items():
        added = commands.add_parser(name, help=command.help, epilog=command.examples, **raw)
        command.options(added)
        added.set_defaults(run=command.run)
        common = added.add_argument_group("output")
        common.add_argument("--quiet", action="store_true", help="print nothing but errors")
        common.add_argument("--json", action="store_true", help="print the result as JSON")
        common.add_argument("--debug", action="store_true", help="show a fault's traceback")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    args = build_parser().parse_args(argv)
    terminal = Terminal(quiet=args.quiet, as_json=args.json)
    try:
        with interruptible(), terminal.messages():
            args.run(args, terminal)
        return 0
    except BrokenPipeError:  # the reader of our output has gone, for example `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (Exception, KeyboardInterrupt) as error:
        if isinstance(error, KeyboardInterrupt) or is_interrupt(error):
            terminal.error("interrupted")
            return 130
        if args.debug:
            traceback.print_exc()
        if isinstance(error, LepuError | OSError | MemoryError):
            short = isinstance(error, MemoryError)
            terminal.error(f"not enough memory ({error})" if short else str(error))
            return 2
        terminal.error(  # one line instead of a traceback
            f"unexpected {type(error).__name__}: {error} (run again with --debug and report it)"
        )
        return 1
