"""All checks in order, and what they amount to: a level, a sentence, and what carries it."""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from bayes_lepu.runtime.interruption import stops_at_once
from bayes_lepu.verdict import table
from bayes_lepu.verdict.conclusion import carriers, choose_level, sentence
from bayes_lepu.verdict.evidence import MAX_DIM, evidence_of
from bayes_lepu.verdict.naming import exchanged_pi
from bayes_lepu.verdict.records import Check, Identifiability

if TYPE_CHECKING:
    from bayes_lepu.fitted import Fit

MOST_CELLS = 10_000_000  # of a sparse table that is made dense to be judged: 80 MB


@stops_at_once
@np.errstate(all="ignore")  # what is not finite is judged as such, below
def diagnose(fit: "Fit") -> Identifiability:
    """What these data can and cannot say: run the checks that apply and form the verdict.

    Parameters
    ----------
    fit : Fit

    Returns
    -------
    Identifiability

    Examples
    --------
    >>> import bayes_lepu as lepu
    >>> demo = lepu.load_demo()
    >>> fit = lepu.fit(demo.X, demo.l, model="spm", method="map", random_seed=1)
    >>> lepu.diagnose(fit).level
    3
    """
    evidence = evidence_of(_made_dense(fit))
    checks: list[Check] = []
    for row in table.CHECKS:
        checks += row.records(evidence)
    _ = evidence.figures, evidence.calibration, evidence.agreement  # for who shows the verdict
    level = choose_level(checks)
    other = exchanged_pi(evidence) if level == 3 else None
    return Identifiability(
        level=level,
        verdict=sentence(evidence, checks, level, other),
        carried_by=carriers(evidence, checks, level),
        checks=tuple(checks),
        remedies=evidence.remedies,
        exchanged_pi=other,
        pi_range=None if evidence.forms is None else (evidence.forms.low, evidence.forms.high),
        evidence=evidence,
    )


def verdict_of(fit: "Fit") -> Identifiability:
    """The verdict that a fit keeps, or a new one where it keeps none."""
    kept = getattr(fit, "identifiability", None)
    return kept if isinstance(kept, Identifiability) else diagnose(fit)


def _made_dense(fit: "Fit") -> "Fit":
    """The same fit on dense rows, where these are few enough to be judged as such."""
    small = fit.density.dim <= MAX_DIM and fit.data.n * fit.data.p <= MOST_CELLS
    return replace(fit, data=fit.data.dense) if fit.data.is_sparse and small else fit
