r"""Is the class curved? Asked before anything is said of the annotator.

Two straight factors follow a curved class by giving each a part of it, and the annotator is blamed
for the curve. So the fitted model, whose class is straight in the columns, is compared with the
same model on a learned class (`bayes_lepu.data.learned`) by how well both predict labels that they
have not seen (`bayes_lepu.choosing.held_out`), each with its default priors. A model whose s is
constant is helped by SPM on both sides, so that an annotator who varies is not taken for a curve.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bayes_lepu.choosing import MARGIN, held_out
from bayes_lepu.data.learned import AUTO_LEARNERS, can_learn, with_learned
from bayes_lepu.defaults import default_priors_of
from bayes_lepu.diagnostics.records import Aspect, Check, passed_if
from bayes_lepu.diagnostics.subject import Subject
from bayes_lepu.diagnostics.thresholds import judged_on
from bayes_lepu.models import get_model
from bayes_lepu.result.numbers_in_words import UNITS

if TYPE_CHECKING:
    from bayes_lepu.diagnostics.evidence import Evidence

ROWS = 5_000  # of a larger table an even part is compared: curves lead by tens of units there
MARKS = 500  # marked rows of that part, where there are as many
LEARNERS = list(AUTO_LEARNERS)
STRAIGHT = "straight class"


@dataclass(frozen=True)
class Bend:
    """A straight against a learned class.

    Attributes
    ----------
    lead : float
        By how many log-likelihood units the learned class predicts unseen labels better.
    pi : float
        The class prior with the learned class.
    rows : int
        How many rows were compared.
    """

    lead: float
    pi: float
    rows: int

    @property
    def curved(self) -> bool:
        """Whether the labels ask for a learned class."""
        return self.lead > MARGIN


def measure_bend(subject: Subject) -> Bend | None:
    """The comparison; None where the class is learned already or cannot be."""
    fit, data = subject.fit, subject.data
    if fit.choice is not None and fit.choice.bend is not None:
        best = max((c for c in fit.choice.candidates if c.learned), key=lambda c: c.held_out)
        return Bend(fit.choice.bend, best.pi, data.n)
    if data.learned is not None or subject.propensity.fixed is not None:
        return None
    part = data.evenly(max(ROWS, data.n * MARKS // max(int(data.l.sum()), 1)))
    if not can_learn(part):
        return None
    seed, own = fit.options.random_seed, fit.spec
    varying = replace(get_model("spm"), of_class=own.of_class, false_marks=own.false_marks)
    specs = [own] if own.has_selection else [own, varying]
    straight, learned = (
        max(
            (held_out(spec, rows, default_priors_of(spec, rows), seed) for spec in specs),
            key=lambda one: one.held_out,
        )
        for rows in (part, with_learned(part, AUTO_LEARNERS, seed))
    )
    return Bend(learned.held_out - straight.held_out, learned.pi, part.n)


def check_bend(subject: Subject, evidence: "Evidence") -> list[Check]:
    """Whether straight lines in the columns are enough for the class."""
    found = evidence.bend
    if found is None or subject.data.learned is not None:
        return []
    # With a constant s the order by t is the order by h, which the labels teach all the same.
    aspect = Aspect.RANKING if subject.fit.spec.has_selection else Aspect.LABELS
    return [
        passed_if(
            not found.curved,
            STRAIGHT,
            found.lead,
            f"at most {MARGIN:g} {UNITS}",
            f"Against the straight class, one learned from the columns predicts unseen labels by "
            f"{found.lead:+.1f} {UNITS}; its π is {found.pi:.2f}."
            + judged_on(found.rows, subject.data.n),
            f"Let the class bend: lepu.fit(..., class_learner={LEARNERS!r}), or leave model= out.",
            bears_on=(aspect,),
            needs="passed",
            consequence="the class bends, and straight lines put its curve into both factors",
        )
    ]
