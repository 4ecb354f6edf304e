"""The command line: ``bayes-lepu demo``."""

import argparse
from collections.abc import Sequence

from bayes_lepu._fit import fit
from bayes_lepu.datasets import load_demo


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    parser = argparse.ArgumentParser(prog="bayes-lepu", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("demo", help="fit PsychM to an embedded data set with a known annotator")
    parser.parse_args(argv)
    return demo()


def demo() -> int:
    """Fit PsychM to the embedded data and compare with the truth."""
    data = load_demo()
    result = fit(data.X, data.l, model="psychm", random_seed=1)
    print(data.description, end="\n\n")
    print(result, end="\n\n")
    print(result.mode_table().round(3).to_string(), end="\n\n")
    accuracy = float((result.predict(data.X) == data.y).mean())
    print(f"True class prior {data.truth['pi']:.3f}, true label frequency {data.truth['c']:.3f}.")
    print(f"Accuracy on the true classes, which the fit never saw: {accuracy:.3f}.")
    return 0
