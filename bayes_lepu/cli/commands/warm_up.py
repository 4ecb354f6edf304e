"""``bayes-lepu warm-up``: compile the numerical code ahead, so that no first fit has to wait."""

import argparse
import time
import warnings
from typing import Any

import numpy as np

from bayes_lepu._fit import fit as fit_model
from bayes_lepu.cli.terminal import Terminal
from bayes_lepu.datasets import load_demo
from bayes_lepu.errors import LepuWarning
from bayes_lepu.model import list_models

ROWS = 300  # every function is compiled for any number of rows


def add(commands: Any) -> argparse.ArgumentParser:
    """Add the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "warm-up", help="compile the numerical code ahead, once after installation"
    )
    parser.set_defaults(run=run)
    return parser


def run(args: argparse.Namespace, terminal: Terminal) -> None:
    """Run every model by every method on a few rows."""
    demo, began = load_demo(), time.perf_counter()
    X, l = demo.X[:ROWS], np.asarray(demo.l)[:ROWS]
    with terminal.stage("Compiling"), warnings.catch_warnings():
        warnings.simplefilter("ignore", LepuWarning)
        for model in list_models():
            fit = fit_model(X, l, model=model, method="map", random_seed=0)
            fit_model(
                X, l, model=model, draws=10, tune=20, chains=1, random_seed=0, progressbar=False
            )
        fit.identifiability  # noqa: B018
    seconds = time.perf_counter() - began
    terminal.say(f"Compiled code is ready ({seconds:.0f} s).")
    terminal.result({"seconds": seconds})
