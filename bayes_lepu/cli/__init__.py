"""The command line ``bayes-lepu``."""

from bayes_lepu.runtime.interruption import importing as _importing

with _importing():
    from bayes_lepu.cli.app import main

__all__ = ["main"]
