"""``bayes-lepu demo``: the embedded data set, whose annotator is known."""

import argparse
from pathlib import Path
from typing import Any

from bayes_lepu._fit import fit as fit_model
from bayes_lepu.cli.files import check_output
from bayes_lepu.cli.terminal import Terminal
from bayes_lepu.datasets import load_demo
from bayes_lepu.runtime.files import page_name


def add(commands: Any) -> argparse.ArgumentParser:
    """Add the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "demo", help="fit PsychM to an embedded data set with a known annotator"
    )
    parser.add_argument(
        "--out", type=Path, default=Path("demo-report.html"), help="report to write"
    )
    parser.set_defaults(run=run)
    return parser


def run(args: argparse.Namespace, terminal: Terminal) -> None:
    """Fit, compare with the truth, write the report."""
    page_name(check_output(args.out, (), overwrite=True))
    data = load_demo()
    terminal.say(data.description)
    terminal.say()
    with terminal.stage("Fitting psychm by nuts"):
        fit = fit_model(data.X, data.l, model="psychm", random_seed=1, progressbar=False)
    with terminal.stage("Judging what these data can identify"):
        found = fit.identifiability
    with terminal.stage("Drawing the report"):
        fit.report(args.out, title="Camera trap: what the volunteer overlooked")
    accuracy = float((fit.predict(data.X) == data.y).mean())
    truth = {name: float(data.truth[name]) for name in ("pi", "c")}
    call = fit.answer.call
    terminal.say(str(fit).replace(f" {call}", f" in Python: {call}") if call else str(fit))
    terminal.say()
    terminal.say(f"True class prior {truth['pi']:.3f}, true label frequency {truth['c']:.3f}.")
    terminal.say(f"Accuracy on the true classes, which the fit never saw: {accuracy:.3f}.")
    terminal.say()
    terminal.say(f"Look at {args.out} in a browser: how many were missed, which rows, whether to")
    terminal.say(
        "trust it, then the pictures. Your own table: bayes-lepu fit TABLE.csv --label COLUMN"
    )
    terminal.result(
        {
            "level": found.level,
            "verdict": found.verdict,
            "class_prior": float(fit.pi_draws.mean()),
            "label_frequency": float(fit.c_draws.mean()),
            "truth": truth,
            "accuracy": accuracy,
            "files": {"report": args.out},
        }
    )
