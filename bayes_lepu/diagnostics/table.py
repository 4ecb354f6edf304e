"""The checks in order: one line each, and a list that a check from elsewhere can join."""

from collections.abc import Callable, Iterable

from bayes_lepu.diagnostics.columns import check_columns
from bayes_lepu.diagnostics.constancy import check_constancy, check_split
from bayes_lepu.diagnostics.convergence import check_convergence
from bayes_lepu.diagnostics.data_information import check_information, check_ranking, check_shape
from bayes_lepu.diagnostics.design import check_design, check_rows
from bayes_lepu.diagnostics.evidence import Evidence
from bayes_lepu.diagnostics.exceptional import check_exceptional
from bayes_lepu.diagnostics.forms import check_forms
from bayes_lepu.diagnostics.knowledge import check_false_marks, check_knowledge
from bayes_lepu.diagnostics.label_checks import check_calibration, check_rates, check_shrinkage
from bayes_lepu.diagnostics.levels import (
    check_against_profile,
    check_contraction,
    check_profile,
    check_sd,
    check_widths,
)
from bayes_lepu.diagnostics.naming import check_modes, check_orientation
from bayes_lepu.diagnostics.plausibility import check_existence, check_plausibility
from bayes_lepu.diagnostics.records import Check
from bayes_lepu.diagnostics.sensitivity import check_intercepts, check_power_scaling
from bayes_lepu.diagnostics.subject import Subject

# A check reads the fit and the evidence and returns its records; each of them declares what it
# bears on, and the level follows. To add one, append it.
CheckFunction = Callable[[Subject, Evidence], Iterable[Check]]

CHECKS: list[CheckFunction] = [
    check_design,
    check_rows,
    check_split,
    check_existence,
    check_convergence,
    check_orientation,
    check_modes,
    check_information,
    check_shape,
    check_ranking,
    check_exceptional,
    check_profile,
    check_sd,
    check_against_profile,
    check_contraction,
    check_widths,
    check_power_scaling,
    check_intercepts,
    check_constancy,
    check_rates,
    check_calibration,
    check_shrinkage,
    check_columns,
    check_forms,
    check_knowledge,
    check_false_marks,
    check_plausibility,
]
