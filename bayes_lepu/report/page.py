"""What every section of the report may read."""

from collections.abc import Mapping
from dataclasses import dataclass

from bayes_lepu.diagnostics.records import Identifiability
from bayes_lepu.result import FittedModel
from bayes_lepu.settling.plain_answer import Answer
from bayes_lepu.settling.readings import UNNAMED_LEVEL


@dataclass(frozen=True, eq=False)
class Page:
    """A fit with its verdict and its answer, and the options of the report.

    Attributes
    ----------
    fit : Fit
    verdict : Identifiability
    answer : Answer
        The sentences of the first screen, and the rows to look at.
    group_by : tuple of str
        Columns by which label rates are shown; empty for those that matter most.
    compare_with : mapping of str to Fit, or None
    """

    fit: FittedModel
    verdict: Identifiability
    answer: Answer
    group_by: tuple[str, ...] = ()
    compare_with: Mapping[str, FittedModel] | None = None

    @property
    def h_formula(self) -> str:
        """How h follows from t and s."""
        return " = s·t + ε·(1 − t)" if self.fit.spec.false_marks else " = s·t"

    @property
    def unnamed(self) -> bool:
        """Whether every number has a second reading, with the factors exchanged."""
        return self.verdict.level >= UNNAMED_LEVEL and self.fit.spec.has_selection
