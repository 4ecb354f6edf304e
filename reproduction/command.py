"""``python -m reproduction EXPERIMENT ...``: the paper's numbers beside ours."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bayes_lepu.engines.orientation import RULES
from bayes_lepu.errors import LepuError

EXPERIMENTS = ("table1", "table2", "ablation", "animal")
EXAMPLES = """\
examples:
  python -m reproduction table1 --trials 500 --jobs 2
  python -m reproduction table1 table2 ablation --trials 100 --jobs 2
  python -m reproduction table1 --distribution normal --out results-normal
  python -m reproduction animal --data data --jobs 2
  python -m reproduction animal --data data --bayes

Every finished trial is kept at once: the same command again goes on where it was stopped, and more
trials are added to those there are. In the folder given by --out:
  trials-*.jsonl    one line per finished trial, with settings and seed
  NAME-scores.csv   one row per trial, model and score (also as Parquet)
  NAME.csv          means and standard errors beside the printed numbers
  NAME.md, .html    the table in the paper's shape, with its explanation
  NAME.png          the same as a picture
"""


def build_parser() -> argparse.ArgumentParser:
    """The parser of the command."""
    plain = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("reproduction", epilog=EXAMPLES, formatter_class=plain)
    parser.add_argument("experiments", nargs="+", choices=EXPERIMENTS, metavar="EXPERIMENT")
    parser.add_argument("--trials", type=int, help="trials (default: as many as the paper)")
    parser.add_argument("--jobs", type=int, default=1, help="processes, each on one thread")
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder of results")
    parser.add_argument("--seed", type=int, default=0, help="seed of the run")
    generator = parser.add_argument_group("what the paper leaves open (simulated data)")
    generator.add_argument("--distribution", choices=("uniform", "normal", "unit"), help="p(X)")
    generator.add_argument(
        "--shared-rademacher", action="store_true", default=None, help="one R for a and α"
    )
    generator.add_argument(
        "--ordering", choices=("class-steeper",), help="condition on |a| > |α|, Assumption 3"
    )
    generator.add_argument("--orientation", choices=RULES, help="rule that names SPM's factors")
    for name, text in (("gamma", "guess rate"), ("lam", "lapse rate"), ("rho1", "scale of slopes")):
        generator.add_argument(f"--{name}", type=float, help=text)
    generator.add_argument("--rho2", type=float, help="scale of intercepts")
    generator.add_argument("--K", type=float, help="Rademacher shift")
    generator.add_argument("--rows", dest="n", type=int, help="rows, half of which train")
    people = parser.add_argument_group("human annotators (animal)")
    people.add_argument("--data", type=Path, help="folder of the tables (or set BAYES_LEPU_DATA)")
    people.add_argument(
        "--features",
        help="pca10, pca50 (default; with --bayes pca10), full or statistics",
    )
    people.add_argument("--subjects", help="codes, such as fsa,mta (default: the paper's five)")
    people.add_argument("--protocol", choices=("paper", "safe"), help="one only (default: both)")
    people.add_argument("--speeded", action="store_true", help="label only the fast half of hits")
    people.add_argument("--bayes", action="store_true", help="posteriors instead of resamples")
    return parser


def main(argv: Sequence[str]) -> int:
    """Run, write and print one experiment after the other."""
    args = build_parser().parse_args(argv)
    try:
        for name in args.experiments:
            result = _run_one(name, args)
            print(result.document.markdown())
            print("Files: " + ", ".join(map(str, result.files)) + "\n")
    except (LepuError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def _run_one(name: str, args: argparse.Namespace) -> Any:
    from reproduction import experiments

    options: dict[str, Any] = {"seed": args.seed, "jobs": args.jobs, "out": args.out}
    if name == "animal" and args.bayes:
        return experiments.run_animal_bayes(**options, **_bayes_options(args))
    if args.trials is not None:
        options["trials"] = args.trials
    if name == "animal":
        return experiments.run_animal(**options, **_animal_options(args))
    if changes := _changes(args, experiments.SyntheticSettings()):
        # The caption of Table 2 has no lapses; elsewhere the text's rate is the default.
        start = experiments.TABLE2_SETTINGS if name == "table2" else experiments.SyntheticSettings()
        options["settings"] = replace(start, **changes)
    runs = {
        "table1": experiments.run_table1,
        "table2": experiments.run_table2,
        "ablation": experiments.run_ablation,
    }
    return runs[name](**options)


def _animal_options(args: argparse.Namespace) -> dict[str, Any]:
    options: dict[str, Any] = {"path": args.data, "speeded": args.speeded}
    if args.subjects:
        options["subjects"] = tuple(args.subjects.split(","))
    if args.protocol:
        options["protocols"] = (args.protocol,)
    if args.features:
        options["features"] = args.features
    return options


def _bayes_options(args: argparse.Namespace) -> dict[str, Any]:
    from reproduction.experiments import BayesSettings

    options: dict[str, Any] = {"path": args.data}
    if args.subjects:
        options["subjects"] = tuple(args.subjects.split(","))
    options["settings"] = BayesSettings(
        subject="", features=args.features or "pca10", speeded=args.speeded
    )
    return options


def _changes(args: argparse.Namespace, settings: Any) -> dict[str, Any]:
    """The settings that the command line gives."""
    given = vars(args)
    return {k: given[k] for k in vars(settings) if given.get(k) is not None}
