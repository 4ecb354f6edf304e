r"""Whether the audited rows are as often positive as the fit says of rows like them.

.. math:: z = \sum_i (y_i - m_i) \Big/ \sqrt{\textstyle\sum_i m_i (1 - m_i)}, \qquad
    m_i = P(y=1 \mid x_i, l=0)

over the audited rows that nobody had marked. The fit has seen them, which makes z smaller and the
test cautious: a few audits among many labels hardly move a model whose form is wrong.
"""

from typing import TYPE_CHECKING

import numpy as np

from bayes_lepu.diagnostics.records import Aspect, Check, passed_if
from bayes_lepu.diagnostics.subject import Subject
from bayes_lepu.links import RowKind
from bayes_lepu.models.parameters import Parameters
from bayes_lepu.result.summaries import mean_by_row

if TYPE_CHECKING:
    from bayes_lepu.diagnostics.evidence import Evidence

LARGEST_Z = 2.5  # reached by chance in one fit of eighty


def check_audits(subject: Subject, evidence: "Evidence") -> list[Check]:
    """Hold the audited classes against what the fit expects of them."""
    data = subject.fit.data
    known = np.isin(data.kind, (RowKind.MISSED, RowKind.NEGATIVE))
    if not known.any() or subject.fit.spec.certain:
        return []
    found = int(np.sum(data.kind == RowKind.MISSED))
    m = mean_by_row(subject.fit.draws, Parameters.missed, data.X[known])
    z = (found - float(m.sum())) / max(float(np.sqrt(np.sum(m * (1 - m)))), 1e-12)
    return [
        passed_if(
            abs(z) <= LARGEST_Z,
            "audited rows",
            z,
            f"within {LARGEST_Z:g} standard deviations",
            f"Of {int(known.sum())} audited unlabelled rows {found} are positive; by this fit "
            f"{float(m.sum()):.1f} were to be expected ({z:+.1f} sd).",
            "The form of the model is wrong where these rows are. Try another one, or count the "
            "positives by rows audited at random alone: fit.bounds(audits='random').",
            bears_on=(Aspect.LEVEL,),
            consequence="the audited rows contradict it",
        )
    ]
