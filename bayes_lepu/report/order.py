"""The sections of the report in their order.

A section is a function that takes a `Page` and returns a `Section`, or None where it has nothing to
say. One of one's own is appended to `SECTIONS`.
"""

from collections.abc import Callable

from bayes_lepu.report.page import Page
from bayes_lepu.report.section import Section
from bayes_lepu.report.sections.annotator_curves import annotator_section
from bayes_lepu.report.sections.class_curves import class_section
from bayes_lepu.report.sections.grouped_checks import checks_section
from bayes_lepu.report.sections.health import health_section
from bayes_lepu.report.sections.label_fit import labels_section
from bayes_lepu.report.sections.reproduce_call import reproduce_section
from bayes_lepu.report.sections.rows_to_look_at import rows_section
from bayes_lepu.report.sections.simpler_models import comparison_section
from bayes_lepu.report.sections.slopes import coefficients_section
from bayes_lepu.report.sections.table_in import data_section

SECTIONS: list[Callable[[Page], Section | None]] = [
    rows_section,
    class_section,
    annotator_section,
    labels_section,
    checks_section,
    comparison_section,
    coefficients_section,
    data_section,
    health_section,
    reproduce_section,
]
