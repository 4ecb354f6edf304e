"""All checks in order, and what they amount to: a level, a sentence, and what carries it."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from bayes_lepu.rows.sparse_matrices import as_dense
from bayes_lepu.runtime.interruption import stops_at_once
from bayes_lepu.verdict import labels, levels, naming, rivals, several_annotators
from bayes_lepu.verdict.columns import check_columns
from bayes_lepu.verdict.convergence import check_convergence
from bayes_lepu.verdict.evidence import MAX_DIM, Evidence, evidence_of
from bayes_lepu.verdict.forms import FORM_RANGE, SPREAD, check_forms, missed_between
from bayes_lepu.verdict.records import ROUNDING, Aspect, Check, Identifiability, settled

if TYPE_CHECKING:
    from bayes_lepu.fitted import Fit


# Every check returns its records, none where it does not apply. To add one, append it.
CHECKS: list[Callable[[Evidence], Iterable[Check]]] = [
    levels.check_design,
    rivals.check_split,
    rivals.check_bend,
    check_convergence,
    several_annotators.check_overlap,
    naming.check_orientation,
    levels.check_ranking,
    rivals.check_constancy,
    labels.check_labels,
    check_columns,
    check_forms,
    several_annotators.check_panel_forms,
    labels.check_knowledge,
    labels.check_audits,
]


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
    # A sparse table of 80 MB or less is judged on dense rows.
    if fit.data.is_sparse and fit.density.dim <= MAX_DIM and fit.data.n * fit.data.p <= 10_000_000:
        fit = replace(fit, data=replace(fit.data, X=as_dense(fit.data.X)))
    evidence = evidence_of(fit)
    checks = [found for check in CHECKS for found in check(evidence)]
    _ = evidence.figures, evidence.agreement  # for who shows the verdict
    ends = pi_range(evidence, checks)
    level = choose_level(checks, by_audits=audits_give_total(evidence, checks))
    other = naming.exchanged_pi(evidence) if level == 3 else None
    return Identifiability(
        level=level,
        verdict=sentence(evidence, checks, level),
        carried_by=carriers(evidence, checks, level),
        checks=tuple(checks),
        remedies=evidence.remedies,
        exchanged_pi=other,
        pi_range=ends,
        evidence=evidence,
    )


# The level, and what it rests on --------------------------------------------------------------

BY_AUDITS = "rows audited at random"
# What names the factors where neither a rule nor the priors do, as an assumption.
NAMED_BY = {
    "density": "the lower asymptote γ belongs to the annotator, not to the class",
    "columns": "columns kept out of one factor",
    "learned class": "s follows the columns in straight lines; only the class may bend",
}


def choose_level(checks: Sequence[Check], *, by_audits: bool = False) -> int:
    """The best level that the checks support, or random audits for the total."""
    if not settled(checks, Aspect.RANKING):
        return 4
    if not settled(checks, Aspect.ORIENTATION):
        return 3
    known = (by_audits or level_is_known(checks)) and settled(checks, Aspect.COMPUTATION)
    return 1 if known else 2


def level_is_known(checks: Sequence[Check]) -> bool:
    """Whether π is determined, the orientation given."""
    return settled(checks, Aspect.LEVEL) and settled(checks, Aspect.LABELS)


def reasons(checks: Iterable[Check], *aspects: Aspect) -> list[str]:
    """What leaves these aspects open, in words, each once."""
    found = [c.consequence for c in checks if c.open and set(c.bears_on) & set(aspects)]
    return list(dict.fromkeys(reason for reason in found if reason))


def outside(evidence: Evidence) -> bool:
    """Whether the estimate of π lies where the likelihood under a weak penalty does not."""
    pi, pieces = float(np.mean(evidence.pi_given_naming)), evidence.likelihood_pieces
    within = any(low - ROUNDING <= pi <= high + ROUNDING for low, high in pieces)
    return bool(pieces) and not within


def audited_range(evidence: Evidence, checks: Iterable[Check]) -> tuple[float, float] | None:
    """π by random audits whatever the model, two standard errors to each side.

    None without them, and where they do not look like a random part of the unlabelled rows.
    """
    unlike = any(c.name == labels.NOT_RANDOM and c.open for c in checks)
    if evidence.fit.options.audits != "random" or unlike:
        return None
    pi, error = labels.audits_alone(evidence.fit)
    return (pi - 2 * error, pi + 2 * error) if np.isfinite(error) else None


def pi_range(evidence: Evidence, checks: Iterable[Check]) -> tuple[float, float] | None:
    """π over all models that predict the labels as well, as far as random audits allow them."""
    if evidence.forms is None:
        return None
    low, high = evidence.forms.low, evidence.forms.high
    if (audits := audited_range(evidence, checks)) is not None:
        inside = max(low, audits[0]), min(high, audits[1])
        # Models that the labels contradict do not narrow what the audits say.
        low, high = inside if inside[0] < inside[1] and not contradicted(checks) else audits
    own = float(np.mean(evidence.pi_draws))
    return max(min(low, own), 0.0), min(max(high, own), 1.0)


def contradicted(checks: Iterable[Check]) -> bool:
    """Whether the labels contradict the model, and do not only leave it wide."""
    about = {Aspect.RANKING, Aspect.LEVEL, Aspect.LABELS}
    return any(c.open and c.name != FORM_RANGE and about & set(c.bears_on) for c in checks)


def audits_give_total(evidence: Evidence, checks: Iterable[Check]) -> bool:
    """Whether random audits alone give π to ±.05, and the missed positives within `SPREAD`."""
    if (found := audited_range(evidence, checks)) is None:
        return False
    few, many = missed_between(evidence.data, *found)
    return found[1] - found[0] <= 0.2 and many <= SPREAD * few


def carriers(evidence: Evidence, checks: Sequence[Check], level: int) -> tuple[str, ...]:
    """Which assumptions the conclusion rests on."""
    fit, several, found = evidence.fit, evidence.several, []
    if level < 4:
        found.append("data" if level_is_known(checks) else "data (the ranking, not π)")
    if several:
        found.append("annotators independent given x and y")
    # Without rows audited at random the level of π is read from the form.
    found.append(BY_AUDITS if audits_give_total(evidence, checks) else "parametric form")
    if not evidence.data.is_closed:
        found.append("knowledge from outside")
    signs = naming.named_by_signs(evidence)
    by_prior = outside(evidence) or signs or levels.prior_speaks(evidence)
    if evidence.symmetric and fit.orientation.rule != "none" and not signs:
        found.append("orientation rule")
    elif not settled(checks, Aspect.ORIENTATION):
        by_prior = True
    if by_prior or level == 4:
        found.append("prior")
    if level < 3 and fit.orientation.settled_by in NAMED_BY:
        found.append(NAMED_BY[fit.orientation.settled_by])
    if not fit.spec.has_selection:
        what = "constant" if fit.spec.constant else "one"
        found.append(f"assumption that {'every s_j' if several else 's'} is {what}")
    return tuple(found)


# The sentence ---------------------------------------------------------------------------------


def sentence(evidence: Evidence, checks: Sequence[Check], level: int) -> str:
    """What the level means here."""
    several = evidence.several
    signs = (
        " given the signs of the slopes in the priors" if naming.named_by_signs(evidence) else ""
    )
    if level == 1:
        if not level_is_known(checks):
            return f"The ranking by t is separable{signs}, and random audits give its level."
        who = "t and every annotator's s are" if several else "t and s are"
        signs = ", if annotators label independently given x and the class" if several else signs
        return f"{who} separable from these data{signs}."
    if level == 4:
        why = reasons(checks, Aspect.RANKING) or ["no check of the ranking by t supports more"]
        text = f"Only h = s·t is identified: {why[0]}"
    elif level == 3:
        text = "The two factors are identified, not which of them is the class: "
        text += f"{_orientation(evidence, checks)}"
        text += "" if level_is_known(checks) else ". Even given that, the level is open"
    else:
        text = f"The ranking by t is separable{signs}, its level is not"
        why = [
            reason
            for aspect in (Aspect.LABELS, Aspect.COMPUTATION, Aspect.LEVEL)
            for reason in reasons(checks, aspect)
        ]
        # Of several annotators all reasons: some make π too low and some too high.
        shown = dict.fromkeys(why if several else why[:1])
        text += (": " if shown else "") + "; ".join(shown)
    return text + "."


def _orientation(evidence: Evidence, checks: Sequence[Check]) -> str:
    """Why the orientation is open."""
    rule = evidence.fit.orientation.rule
    if evidence.several:
        return "; ".join(reasons(checks, Aspect.ORIENTATION))
    if evidence.contradicted:
        return "the likelihood prefers them swapped, the priors of this fit do not"
    if not evidence.symmetric:
        return "the data do not identify it"
    if rule == "none":
        return "it rests on the priors alone"
    return f"it rests on the orientation rule ({rule})"
