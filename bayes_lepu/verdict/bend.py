r"""Is the class curved? Asked before anything is said of the annotator.

Two straight factors follow a curved class by giving each a part of it, and the annotator is blamed
for the curve. So the fitted model, whose class is straight in the columns, is compared with the
same model on a learned class (`bayes_lepu.data.learned`) by how well both predict labels that they
have not seen (`bayes_lepu.choosing.held_out_rows`). So that no steep annotator is taken for a
curve, the straight class has the better of its default priors and of weak ones, and a model whose s
is constant is joined by SPM on both sides. Copies of a row are counted, since a classifier trained
on one knows the label of the other.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bayes_lepu.choosing import FOLDS, Compared, classes_to_compare, held_out_rows
from bayes_lepu.data.learned import AUTO_LEARNERS, can_learn
from bayes_lepu.data.pu_data import PUData
from bayes_lepu.defaults import default_priors_of
from bayes_lepu.links import Array
from bayes_lepu.model import get_model
from bayes_lepu.model.spec import ModelSpec
from bayes_lepu.priors.prior import Priors
from bayes_lepu.result.numbers_in_words import UNITS
from bayes_lepu.verdict.climbing import weak_density
from bayes_lepu.verdict.records import Aspect, Check, passed_if
from bayes_lepu.verdict.thresholds import judged_on

if TYPE_CHECKING:
    from bayes_lepu.verdict.evidence import Evidence

ROWS = 5_000  # of a larger table an even part is compared: curves lead by tens of units there
# Straight worlds give a learned class a lead of up to 8 by chance, curved tables one of 20 to 150.
CURVED = 10.0
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
    error : float
        Its standard error.
    pi : float
        The class prior with the learned class.
    rows : int
        How many rows were compared.
    """

    lead: float
    error: float
    pi: float
    rows: int

    @property
    def curved(self) -> bool:
        """Whether the labels ask for a learned class."""
        return self.lead > max(CURVED, 2 * self.error)


def measure_bend(subject: "Evidence") -> Bend | None:
    """The comparison; None where the class is learned already or cannot be."""
    fit, data = subject.fit, subject.data
    if fit.choice is not None and fit.choice.bend is not None:
        best = max((c for c in fit.choice.candidates if c.learned), key=lambda c: c.held_out)
        return Bend(fit.choice.bend, 0.0, best.pi, data.n)
    if data.learned is not None or subject.propensity.fixed is not None:
        return None
    data = data.counted
    part = data.evenly(max(ROWS, data.n * MARKS // max(int(data.l.sum()), 1)))
    if not can_learn(part, FOLDS):
        return None
    seed, own = fit.options.random_seed, fit.spec
    varying = replace(get_model("spm"), of_class=own.of_class, false_marks=own.false_marks)
    specs = [own] if own.has_selection else [own, varying]
    plain, bent = classes_to_compare(
        part, "auto", seed, ("boosting",)
    )  # a fifth of the cost of both
    every = [(spec, priors) for spec in specs for priors in _priors(spec, part)]
    straight, _ = _best(plain, every, seed)
    learned, pi = _best(bent, [(spec, default_priors_of(spec, bent.part)) for spec in specs], seed)
    return Bend(*part.total_and_error(learned - straight), pi, part.n)


def _best(
    compared: Compared, models: list[tuple[ModelSpec, Priors]], random_seed: int
) -> tuple[Array, float]:
    """Log likelihoods of unseen labels, and π, by the model that predicts them best."""
    found = [held_out_rows(spec, compared, priors, random_seed) for spec, priors in models]
    return max(found, key=lambda one: float(one[0] @ compared.part.each_weight))


def _priors(spec: ModelSpec, data: PUData) -> list[Priors]:
    """The default priors; of one annotator also weak ones, which let s be steep."""
    usual = default_priors_of(spec, data)
    return [usual] if data.n_annotators > 1 else [usual, weak_density(spec, data).priors]


def check_bend(evidence: "Evidence") -> list[Check]:
    """Whether straight lines in the columns are enough for the class."""
    found = evidence.bend
    if found is None or evidence.data.learned is not None:
        return []
    # With a constant s the order by t is the order by h, which the labels teach all the same.
    aspect = Aspect.RANKING if evidence.fit.spec.has_selection else Aspect.LABELS
    return [
        passed_if(
            not found.curved,
            STRAIGHT,
            found.lead,
            f"at most {CURVED:g} {UNITS}",
            f"Against the straight class, one learned from the columns predicts unseen labels by "
            f"{found.lead:+.1f} ± {found.error:.1f} {UNITS}; its π is {found.pi:.2f}."
            + judged_on(found.rows, evidence.data.n),
            f"Let the class bend: lepu.fit(..., class_learner={LEARNERS!r}), or leave model= out.",
            bears_on=(aspect,),
            needs="passed",
            consequence="the class bends, and straight lines put its curve into both factors",
        )
    ]
