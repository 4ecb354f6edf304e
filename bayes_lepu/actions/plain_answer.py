"""The answer in plain sentences, without symbols: the same in print(fit), report and terminal.

It states how many positives were missed, which rows to review first, whether to trust the answer,
and what would help most, with a line of Python that does it.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from bayes_lepu.actions.decisions import Decision, decide
from bayes_lepu.actions.missed import (
    AS_NAMED,
    EXCHANGED,
    ONLY_MARKS,
    UNNAMED_LEVEL,
    alternatives_of,
    count_missed,
    missed_range,
)
from bayes_lepu.defaults import ORDER_ALONE
from bayes_lepu.links import Array, RowKind
from bayes_lepu.result.numbers_in_words import (
    has_interval,
    ratio,
    say_count,
    say_range,
    with_interval,
)
from bayes_lepu.verdict.forms import SAME_ROWS
from bayes_lepu.verdict.identifiability import BY_AUDITS
from bayes_lepu.verdict.labels import NOT_RANDOM
from bayes_lepu.verdict.records import Aspect, Check, Identifiability
from bayes_lepu.verdict.rivals import LEARNERS, STRAIGHT

if TYPE_CHECKING:
    from bayes_lepu.fitted import Fit

# Bounds of the number of rows to review first: about what a person reviews in one sitting.
FEWEST, MOST = 20, 100
NOTHING_MISSED: dict[str, Any] = {
    "missed": "No positive was missed, by assumption: this model treats unlabelled as negative.",
    "look": "No row is left to review.",
    "trust": "The labels cannot check that assumption.",
    "help": "Fit a model in which labels can be missing.",
    "call": 'lepu.fit(X, l, model="spm")',
    "flags": "--model spm",
}
BOTH_ORIENTATIONS = (
    "These labels do not show which factor is the class. What this fit takes for the class may be "
    "the annotator's propensity, and vice versa."
)
NOT_THE_CLASS = (
    "these labels show how likely a row is to be labelled, not how likely it is to be positive."
)


@dataclass(frozen=True, eq=False)
class Answer:
    """A fit in plain sentences.

    Attributes
    ----------
    missed, look, trust, help : str
        How many positives were missed; which rows to review first, and how many are positive;
        whether the data identify this; what would help most, empty where nothing would.
    call, flags : str
        The line of Python that does it, and the options of ``bayes-lepu fit``; empty where there
        are none.
    decision : Decision
        The rows to review.
    total : DataFrame
        The number of missed positives if the model is exact, one line per orientation; weighted
        rows count by their weights.
    audited : str
        Number of missed positives by random audits, whatever the model; empty without them.
    range : (float, float), optional
        The number of missed positives over the alternative models with the same fit: the figure to
        quote.
    """

    missed: str
    look: str
    trust: str
    help: str
    call: str
    flags: str
    decision: Decision
    total: pd.DataFrame
    audited: str = ""
    range: tuple[float, float] | None = None

    def facts(self) -> dict[str, str]:
        """The sentences under the names of the questions that they answer."""
        found = {
            "by audits": self.audited,
            "missed": self.missed,
            "review first": self.look,
            "trust": self.trust,
            "would help": self.help,
            "do it": self.call,
        }
        return {name: text for name, text in found.items() if text}

    def __str__(self) -> str:
        return "\n".join(self.facts().values())


def answer(fit: "Fit", verdict: Identifiability, audits: pd.DataFrame | None = None) -> Answer:
    """The answer of a fit in plain sentences; ``audits`` is the table of `audit_estimate`."""
    both = verdict.level >= UNNAMED_LEVEL

    def how_many(ranked: Array) -> int:
        return min(len(ranked), int(np.clip(round(float(ranked.sum())), FEWEST, MOST)))

    known = alternatives_of(fit, verdict)
    decision = decide(fit, None, ("a first look", how_many), identified=verdict.level, known=known)
    total = count_missed(fit, ci_prob=decision.ci_prob, both=both)
    if fit.spec.certain:
        return Answer(**NOTHING_MISSED, decision=decision, total=total)
    help_, call, flags = _help(fit, verdict) if decision.candidates else ("", "", "")
    look, trust = _look(decision, verdict.level), _trust(fit, verdict)
    if not fit.data.in_memory:  # counts are of all rows; everything else comes from a sample
        look = "Score the unlabelled rows in parts by fit.missed(X); review the likeliest first."
        trust = f"Judged by {say_count(fit.data.n)} rows at random: {trust[0].lower()}{trust[1:]}"
        call = flags = ""
    audited = ""
    if audits is not None and audits.loc["missed", "audits"] > 0:
        audited = _by_audits(fit, verdict, audits.loc["missed"], decision.ci_prob)
    ends = missed_range(fit, verdict.pi_range, total)
    return Answer(
        _missed(fit, ends, decision, total),
        look,
        trust,
        help_,
        call,
        flags,
        decision,
        total,
        audited,
        ends,
    )


def _by_audits(fit: "Fit", verdict: Identifiability, row: pd.Series, level: float) -> str:
    """The count by random audits, and whether the fit agrees with it."""
    found = {"mean": row["estimate"], "lower": row["lower"], "upper": row["upper"]}
    text = (
        f"By {say_count(row['audits'])} rows audited at random, whatever the model: "
        f"{_one(found, level).replace(' (', ' positives are missed (', 1)}."
    )
    low, high = (
        row["model"] if fit.is_point else row[f"model_{end}"] for end in ("lower", "upper")
    )
    if any(c.name == NOT_RANDOM and c.open for c in verdict.checks):
        text += " But these rows do not look like a random part of the unlabelled ones."
    elif low > row["upper"] or high < row["lower"]:
        text += f" The fit's own count ({say_count(row['model'])}) disagrees: trust the audits."
    else:
        text += " This is the figure to quote."
    return text


def _missed(
    fit: "Fit", ends: tuple[float, float] | None, decision: Decision, total: pd.DataFrame
) -> str:
    """The number of missed positives: over all models with the same fit, then by this one."""
    weights = fit.data.kind_weights
    known = say_count(float(weights[[RowKind.LABELLED, RowKind.MISSED]].sum()))
    if decision.candidates == 0:
        return (
            f"No positive is missed any more: every unlabelled row has been checked, and {known} "
            "are positive."
        )
    said = [_one(row, decision.ci_prob) for _, row in total.iterrows()]
    exact = f"If this model is exact, {said[0]}."
    exact += f" With class and annotator swapped, {said[1]}." if said[1:] else ""
    if ends is None:
        text = f"{exact} Alternative models with the same fit were not computed."
    else:
        low, high = (say_count(end) for end in ends)
        span = f"About {low}" if low == high else f"Between {low} and {high}"
        text = (
            f"{span} positives were missed, over all models that fit these labels equally well. "
            f"{exact}"
        )
    how = "marked or found" if fit.spec.false_marks else "known"
    counted = ", counted by their weights" if fit.data.weighted else ""
    rows = say_count(weights[RowKind.UNLABELLED])
    return f"{text} {known} positives are {how}; the class of {rows} rows is open{counted}."


def _look(decision: Decision, level: int) -> str:
    if decision.candidates == 0:
        return "No row is left to review."
    if (AS_NAMED, "positives") not in decision.outcome.index:
        return f"Review the {len(decision.rows)} most probable rows first. {ORDER_ALONE}"
    own, count = decision.outcome.loc[(AS_NAMED, "positives")], len(decision.rows)
    text = f"Review the {count} most probable rows first: "
    if level >= UNNAMED_LEVEL:  # the order depends on which factor is the class
        text = f"Of the {count} rows that this fit puts first, "
    if level == ONLY_MARKS:
        text = f"Of the {count} rows that are most like the marked ones, "
    exact, of_them = _roughly(with_interval(own)), " of them" if level < UNNAMED_LEVEL else ""
    if "low" not in own:
        text += f"{exact}{of_them} are positive, if this model is exact"
    else:
        text += f"{say_range(own)}{of_them} are positive; {exact} if this model is exact"
    if EXCHANGED in decision.draws:
        other = decision.outcome.loc[(EXCHANGED, "positives")]
        text += f"; with class and annotator swapped, {with_interval(other)}"
    return text + "."


def _trust(fit: "Fit", verdict: Identifiability) -> str:
    if failed := _not_converged(verdict):
        found = failed[0].text.rstrip(".")
        text = f"Do not use it yet, the computation has not converged. {found}."
        doubts = {3: f" {BOTH_ORIENTATIONS}", 4: f" Also, {NOT_THE_CLASS}"}
        return text + doubts.get(verdict.level, "")
    if _curved(verdict):
        return (
            "Do not rely on it: the class is curved. A class learned from the columns predicts "
            "unseen labels better than these straight lines."
        )
    if verdict.level == 1 and BY_AUDITS in verdict.carried_by:
        return "The labels identify the order of the rows, the random audits the total."
    if verdict.level == 1:
        text = (
            "The labels identify the order of the rows and the total, if the model's form is right"
        )
        if fit.options.audits == "random":
            return f"{text}."
        return (  # labels cannot test this assumption; an audit can
            f"{text} and nobody marked a case more readily for being clear. Only rows audited at "
            "random can test the second condition."
        )
    if verdict.level == 4:
        return f"Do not rely on it: {NOT_THE_CLASS}"
    text = BOTH_ORIENTATIONS
    if verdict.level == 2:
        text = "The order of the rows is reliable, the total is not."
        forms = None if verdict.evidence is None else verdict.evidence.forms
        if forms is not None and forms.same < SAME_ROWS:
            text = (
                "The order of all rows is reliable. The total, and which unlabelled rows come "
                "first, are not: alternative models with the same fit disagree."
            )
    unfit = any(c.open and Aspect.LABELS in c.bears_on for c in verdict.checks)
    return text + (" The model does not reproduce the labels well either." if unfit else "")


def _not_converged(verdict: Identifiability) -> list[Check]:
    """The checks of the computation that failed."""
    return [c for c in verdict.checks if c.status == "failed" and Aspect.COMPUTATION in c.bears_on]


def _curved(verdict: Identifiability) -> list[Check]:
    """The check of a straight class, if it failed."""
    return [c for c in verdict.checks if c.name == STRAIGHT and c.status == "failed"]


def _help(fit: "Fit", verdict: Identifiability) -> tuple[str, str, str]:
    """The most helpful next step, the call that does it, and its command-line flags."""
    if failed := _not_converged(verdict):  # before convergence, nothing else is known to help
        if fit.method != "nuts":
            advice = "Sample the posterior instead of approximating it."
            return advice, 'fit.update(method="nuts")', "--method nuts"
        if fit.parameters.b.shape[0] > 1:
            return failed[0].remedy, "", ""
        call = f'lepu.fit(X, l, model="{fit.options.model}", chains=4)'
        return failed[0].remedy, call, "--chains 4"
    if curved := _curved(verdict):
        return curved[0].remedy, f"lepu.fit(X, l, class_learner={LEARNERS!r})", ""
    offer, parts = verdict.offer, []
    if offer is None or not offer.helps:
        return "", "", ""
    if verdict.level == UNNAMED_LEVEL and offer.gap_after > offer.gap_before + 1:
        parts.append(
            f"one orientation would become {ratio(offer.gap_after)} times as likely as the other"
        )
    size = float(fit.data.kind_weights.sum())
    now, then = (say_count(size * sd) for sd in (offer.sd_before, offer.sd_after))
    if now != then:
        parts.append(f"the total would be known to ±{then} instead of ±{now}")
    advice = f"Find out the true class of {offer.rows} rows that the library picks"
    return f"{advice}: {' and '.join(parts)}.", offer.call, ""


def _one(row: "pd.Series | dict[str, float]", level: float) -> str:
    count = _roughly(say_count(row["mean"]))
    if not has_interval(row):
        return f"{count} (a point estimate)"
    return f"{count} ({level:.0%} interval {say_count(row['lower'])} to {say_count(row['upper'])})"


def _roughly(count: str) -> str:
    return count if count.startswith("fewer") else f"about {count}"
