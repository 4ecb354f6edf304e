"""All checks in order, and what they amount to: a level, a sentence, and what carries it."""

from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np

from bayes_lepu.diagnostics import table
from bayes_lepu.diagnostics.constancy import check_bootstrap
from bayes_lepu.diagnostics.evidence import gather
from bayes_lepu.diagnostics.naming import exchanged_pi
from bayes_lepu.diagnostics.records import Check, Identifiability
from bayes_lepu.diagnostics.subject import MAX_DIM, subject_of
from bayes_lepu.diagnostics.verdict import carriers, choose_level
from bayes_lepu.diagnostics.words import sentence
from bayes_lepu.errors import ModelError
from bayes_lepu.result import FittedModel
from bayes_lepu.runtime.interruption import stops_at_once

LEAST_BOOTSTRAP = 19
MOST_CELLS = 10_000_000  # of a sparse table that is made dense to be judged: 80 MB


@stops_at_once
@np.errstate(all="ignore")  # what is not finite is judged as such, below
def diagnose(
    fit: FittedModel,
    *,
    bootstrap: int = 0,
    progressbar: bool = True,
) -> Identifiability:
    """What these data can and cannot say: run the checks that apply and form the verdict.

    Parameters
    ----------
    fit : Fit
    bootstrap : int
        Number of data sets to simulate from the SCAR fit for the test of a constant propensity
        (19 or more); 0 leaves that test out. Each takes about as long as one fit with
        ``method="map"``.
    progressbar : bool
        Whether to show the progress of the bootstrap.

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
    if bootstrap and bootstrap < LEAST_BOOTSTRAP:
        raise ModelError(
            f"bootstrap = {bootstrap}; 0 (none) or at least {LEAST_BOOTSTRAP} repeats are "
            "expected, since fewer cannot reach p = 0.05."
        )
    subject = subject_of(_made_dense(fit))
    evidence = gather(subject)
    checks: list[Check] = []
    for row in table.CHECKS:
        checks += row.records(subject, evidence)
    if bootstrap:
        checks.append(check_bootstrap(subject, bootstrap, _progress(progressbar)))
    level = choose_level(checks)
    other = exchanged_pi(subject) if level == 3 else None
    return Identifiability(
        level=level,
        verdict=sentence(subject, evidence, checks, level, other),
        carried_by=carriers(subject, evidence, checks, level),
        checks=tuple(checks),
        remedies=evidence.remedies,
        exchanged_pi=other,
        pi_range=None if evidence.forms is None else (evidence.forms.low, evidence.forms.high),
        evidence=evidence,
    )


def verdict_of(fit: FittedModel) -> Identifiability:
    """The verdict that a fit keeps, or a new one where it keeps none."""
    kept = getattr(fit, "identifiability", None)
    return kept if isinstance(kept, Identifiability) else diagnose(fit)


def _made_dense(fit: FittedModel) -> FittedModel:
    """The same fit on dense rows, where these are few enough to be judged as such."""
    small = fit.density.dim <= MAX_DIM and fit.data.n * fit.data.p <= MOST_CELLS
    return replace(fit, data=fit.data.dense) if fit.data.is_sparse and small else fit


def _progress(show: bool) -> Callable[[Iterable[int]], Iterable[int]]:
    if not show:
        return iter
    from rich.progress import track

    return lambda steps: track(list(steps), description="bootstrap of SCAR")
