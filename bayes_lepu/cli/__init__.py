"""The command line ``bayes-lepu``."""

from bayes_lepu.cli.commands import main

__all__ = ["main"]
