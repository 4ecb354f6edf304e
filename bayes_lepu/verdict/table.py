"""The checks in order: one row each, and a list that a check from elsewhere can join."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import Flag, auto

from bayes_lepu.verdict import columns, levels, rivals
from bayes_lepu.verdict.bend import check_bend
from bayes_lepu.verdict.convergence import check_convergence
from bayes_lepu.verdict.design import check_design, check_rows, check_sampling
from bayes_lepu.verdict.evidence import Evidence
from bayes_lepu.verdict.forms import check_forms
from bayes_lepu.verdict.knowledge import check_audits, check_false_marks, check_knowledge
from bayes_lepu.verdict.label_checks import check_calibration, check_rates
from bayes_lepu.verdict.levels import check_ranking
from bayes_lepu.verdict.naming import check_modes, check_orientation
from bayes_lepu.verdict.records import Check
from bayes_lepu.verdict.several_annotators import (
    check_independence,
    check_mode_weights,
    check_overlap,
    check_panel_forms,
)

CheckFunction = Callable[[Evidence], Iterable[Check]]


class Scope(Flag):
    """The kinds of fit that are judged, and so where a check applies."""

    DENSE = auto()  # one annotator
    SPARSE = auto()  # one annotator, and a sparse table too large to be made dense
    SEVERAL = auto()  # annotators
    ONE = DENSE | SPARSE
    ANY = DENSE | SPARSE | SEVERAL


def scope_of(evidence: Evidence) -> Scope:
    """Which kind of fit this is."""
    if evidence.several:
        return Scope.SEVERAL
    return Scope.SPARSE if evidence.data.is_sparse else Scope.DENSE


@dataclass(frozen=True)
class Row:
    """One check, and where it applies.

    Attributes
    ----------
    check : callable
        Reads the fit and the evidence and returns its records; each of them declares what it bears
        on, and the level follows.
    scope : Scope
        The kinds of fit it is for.
    if_too_large : Check, optional
        The record that stands in its place where the table is too large for dense curvature.
    """

    check: CheckFunction
    scope: Scope = Scope.ANY
    if_too_large: Check | None = None

    def records(self, evidence: Evidence) -> Iterable[Check]:
        """What the check finds; nothing where it does not apply."""
        if not self.scope & scope_of(evidence):
            return []
        if self.if_too_large is not None and evidence.too_large:
            return [replace(self.if_too_large, text=evidence.too_large)]
        return self.check(evidence)


# To add a check, append a row.
CHECKS: list[Row] = [
    Row(check_sampling),
    Row(check_design, Scope.DENSE),
    Row(check_rows, Scope.DENSE),
    Row(rivals.check_split, Scope.ONE),
    Row(check_bend),
    Row(check_convergence),
    Row(check_overlap, Scope.SEVERAL),
    Row(check_orientation, Scope.ONE),
    Row(check_modes, Scope.DENSE),
    Row(check_mode_weights, Scope.SEVERAL),
    Row(check_ranking),
    Row(levels.check_profile, Scope.ONE, levels.NOT_COMPUTED),
    Row(levels.check_sd),
    Row(levels.check_against_profile, Scope.DENSE),
    Row(levels.check_contraction, Scope.DENSE | Scope.SEVERAL),
    Row(rivals.check_constancy, Scope.ONE, rivals.NOT_COMPUTED),
    Row(check_rates),
    Row(check_calibration, Scope.DENSE | Scope.SEVERAL),
    Row(columns.check_columns, Scope.ONE, columns.NOT_COMPUTED),
    Row(check_independence, Scope.SEVERAL),
    Row(check_forms, Scope.ONE),
    Row(check_panel_forms, Scope.SEVERAL),
    Row(check_knowledge),
    Row(check_audits, Scope.DENSE),
    Row(check_false_marks),
]
