"""`Fit`: a fitted model with everything one can ask of it."""

from dataclasses import dataclass
from pathlib import Path

from bayes_lepu.result import FittedModel
from bayes_lepu.result.tree import read


@dataclass(frozen=True, eq=False, repr=False)
class Fit(FittedModel):
    """The frozen answer of one call to `fit`."""


def load(path: str | Path) -> Fit:
    """Read a fit written by `Fit.save`."""
    return Fit(**read(Path(path)))
