"""The command line ``bayes-lepu``."""

from bayes_lepu.cli.app import main

__all__ = ["main"]
