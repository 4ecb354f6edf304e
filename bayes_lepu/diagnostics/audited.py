r"""Whether audited rows are as often positive as the fit says, and whether they are random ones.

.. math:: z = \sum_i (y_i - m_i) \Big/ \sqrt{\textstyle\sum_i m_i (1 - m_i)}, \qquad
    m_i = P(y=1 \mid x_i, l=0)

over the audited rows that nobody had marked. The fit has seen them, which makes z smaller and the
test cautious: a few audits among many labels hardly move a model whose form is wrong.

Rows declared random are compared with the unlabelled rows that nobody audited: a random part of all
has the same mean of m and of h, up to its standard error.
"""

from typing import TYPE_CHECKING

import numpy as np

from bayes_lepu.diagnostics.records import Aspect, Check, passed_if
from bayes_lepu.diagnostics.subject import Subject
from bayes_lepu.links import Array, RowKind
from bayes_lepu.models.parameters import Parameters
from bayes_lepu.result.summaries import mean_by_row

if TYPE_CHECKING:
    from bayes_lepu.diagnostics.evidence import Evidence
    from bayes_lepu.fitted import Fit

LARGEST_Z = 2.5  # reached by chance in one fit of eighty
UNLIKE_Z = 3.5  # of two means: by chance in one fit of a thousand; reported finds have 5 to 10
NOT_RANDOM = "random audits"


def check_audits(subject: Subject, evidence: "Evidence") -> list[Check]:
    """Compare the audited classes with what the fit expects of them."""
    fit, data = subject.fit, subject.fit.data
    known = np.isin(data.kind, (RowKind.MISSED, RowKind.NEGATIVE))
    if not known.any() or fit.spec.certain:
        return []
    found = int(np.sum(data.kind == RowKind.MISSED))
    unmarked = data.l == 0
    m = mean_by_row(fit.draws, Parameters.missed, data.X[unmarked])
    h = mean_by_row(fit.draws, Parameters.h, data.X[unmarked])
    audited, rest = known[unmarked], data.kind[unmarked] == RowKind.UNLABELLED
    expected, variance = float(m[audited].sum()), float(np.sum((m * (1 - m))[audited]))
    z = (found - expected) / max(np.sqrt(variance), 1e-12)
    checks = [
        passed_if(
            abs(z) <= LARGEST_Z,
            "audited rows",
            z,
            f"within {LARGEST_Z:g} standard deviations",
            f"Of {int(known.sum())} audited unlabelled rows {found} are positive; by this fit "
            f"{expected:.1f} were to be expected ({z:+.1f} sd).",
            "The form of the model is wrong where these rows are. Try another one, or count the "
            "positives by rows audited at random: fit.audit_estimate().",
            bears_on=(Aspect.LEVEL,),
            consequence="the audited rows contradict it",
        )
    ]
    if fit.options.audits == "random" and rest.sum() > 1:
        apart = max((_difference(v, audited, rest) for v in (m, h)), key=abs)
        checks.append(
            passed_if(
                abs(apart) <= UNLIKE_Z,
                NOT_RANDOM,
                apart,
                f"within {UNLIKE_Z:g} standard errors",
                "The audited rows are declared a random part of the unlabelled ones. Their mean "
                f"score differs from that of the other unlabelled rows by {apart:+.1f} standard "
                "errors.",
                'Say audits="chosen" where they were picked for a reason, and audit rows drawn at '
                "random: fit.suggest_audit(50).",
                bears_on=(Aspect.LEVEL,),
                consequence="the audited rows do not look like a random part of the unlabelled",
            )
        )
    return checks


def _difference(score: Array, audited: Array, rest: Array) -> float:
    """Difference of two means in standard errors, with the spread of all these rows."""
    one, other = score[audited], score[rest]
    spread = np.sqrt(np.var(score) * (1 / len(one) + 1 / len(other)))
    return float((one.mean() - other.mean()) / max(spread, 1e-12))


def audits_alone_error(fit: "Fit") -> float:
    r"""Standard error of π by random audits alone; infinite where they leave it open.

    .. math:: \hat\pi = P(l=1) + P(l=0)\,\hat m, \qquad
        \mathrm{se} = P(l=0) \sqrt{\hat m (1-\hat m) / k}

    for k audited unlabelled rows, a share m of them positive; without any logistic form. Where
    marks may be false, the same of the marked rows is added.
    """
    data, squares = fit.data, 0.0
    for marked in (0, 1) if fit.spec.false_marks else (0,):
        here = data.l == marked
        one, other = (float((here & (data.y == c)) @ data.each_weight) for c in (1, 0))
        if not (k := one + other):
            return np.inf
        m, share = (one + 1) / (k + 2), np.average(here, weights=data.row_weights)
        squares += float(share) ** 2 * m * (1 - m) / k
    return float(np.sqrt(squares))
